"""Spans and metrics that OpenTelemetry's own definitions take, and that hold no word of a prompt."""

from __future__ import annotations

import base64
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from prefixguard.cli import root
from prefixguard.importers import open_source

IMPORTS = Path(__file__).parent.parent.parent / "fixtures" / "imports"
SAMPLES = ["mitmproxy.flow.gz", "litellm-callback.jsonl.gz", "claude-code.jsonl.gz", "openai-v2.json"]


def export(name: str, kind: str) -> dict[str, Any]:
    result = CliRunner().invoke(root, ["export", str(IMPORTS / name), "--format", kind])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def parsed_spans(document: dict[str, Any]) -> ExportTraceServiceRequest:
    """OTLP's JSON writes ids in hexadecimal where the general mapping of protocol buffers has base64."""
    for span in spans(document):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return Parse(json.dumps(document), ExportTraceServiceRequest())


def spans(document: dict[str, Any]) -> list[dict[str, Any]]:
    (resource,) = document["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    found: list[dict[str, Any]] = scope["spans"]
    return found


def told(span: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: next(iter(pair["value"].values())) for pair in span["attributes"]}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_official_definitions_take_the_spans(name: str) -> None:
    message = parsed_spans(export(name, "otel"))
    (scope,) = message.resource_spans[0].scope_spans
    requests = len(open_source(str(IMPORTS / name)))
    roots = [span for span in scope.spans if not span.parent_span_id]
    assert len(scope.spans) == requests + len(roots)
    assert len({span.span_id for span in scope.spans}) == len(scope.spans)
    for span in scope.spans:
        assert (len(span.trace_id), len(span.span_id)) == (16, 8)
        assert span.end_time_unix_nano >= span.start_time_unix_nano > 1_700_000_000 * 10**9
        if span.parent_span_id:
            assert any((r.span_id, r.trace_id) == (span.parent_span_id, span.trace_id) for r in roots)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_official_definitions_take_the_metrics(name: str) -> None:
    message = Parse(json.dumps(export(name, "otel-metrics")), ExportMetricsServiceRequest())
    metrics = {metric.name: metric for metric in message.resource_metrics[0].scope_metrics[0].metrics}
    usage = metrics["gen_ai.client.token.usage"]
    assert usage.unit == "{token}"
    for point in usage.histogram.data_points:
        assert sum(point.bucket_counts) == point.count
        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
        assert point.min <= point.sum / point.count <= point.max
    assert "session" not in json.dumps(export(name, "otel-metrics")).replace("prefixguard", "")


def test_figures_stand_under_the_names_of_the_conventions() -> None:
    calls = [told(span) for span in spans(export("mitmproxy.flow.gz", "otel")) if span["kind"] == 3]
    first, second = calls[:2]
    assert first["gen_ai.operation.name"] == "chat"
    assert first["gen_ai.request.model"] == "gpt-4.1"
    assert (first["gen_ai.usage.input_tokens"], first["gen_ai.usage.cache_read.input_tokens"]) == (
        "1293",
        "0",
    )
    assert second["gen_ai.usage.cache_read.input_tokens"] == "1280"
    assert first["server.port"] == "18899"
    assert first["gen_ai.response.id"].startswith("chatcmpl-")
    broken = [call for call in calls if call["prefixguard.break"]]
    assert [call["prefixguard.causes"]["values"] for call in broken] == [[{"stringValue": "PG102"}]]


def test_what_is_unknown_is_left_out() -> None:
    for span in spans(export("openai-v2.json", "otel")):
        assert "gen_ai.usage.cache_read.input_tokens" not in told(span)
    for span in spans(export("claude-code.jsonl.gz", "otel"))[1:]:
        assert not {"prefixguard.break", "prefixguard.shape", "prefixguard.cost.avoidable.usd"} & set(
            told(span)
        )
        assert told(span)["prefixguard.unseen"] == {"values": [{"stringValue": "prompt"}]}


@pytest.mark.parametrize("kind", ["otel", "otel-metrics", "hash-trace"])
def test_no_word_of_a_prompt_leaves(kind: str) -> None:
    result = CliRunner().invoke(root, ["export", str(IMPORTS / "mitmproxy.flow.gz"), "--format", kind])
    for word in ("coding assistant", "Monday", "list_files", "README", "app.py"):
        assert word not in result.stdout


def test_the_export_is_read_back_as_spans_with_the_same_figures(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(export("mitmproxy.flow.gz", "otel")))
    result = CliRunner().invoke(root, ["report", str(path), "--format", "json"])
    again = json.loads(result.stdout)
    usages = [turn["usage"] for session in again["sessions"] for turn in session["turns"]]
    assert (
        sorted((u["uncached"], u["read"] or 0) for u in usages)[:3]
        == sorted((u["uncached"], u["read"] or 0) for u in usages)[:3]
    )
    assert len(usages) == 10
    assert {tuple(turn["unseen"]) for session in again["sessions"] for turn in session["turns"]} == {
        ("prompt",)
    }


def test_an_export_twice_has_the_same_ids() -> None:
    assert export("openai-v2.json", "otel") == export("openai-v2.json", "otel")


def test_the_operations_name_every_api() -> None:
    from prefixguard.wire.detect import FORMATS

    path = Path(__file__).parent.parent.parent / "rules" / "exporters" / "otel.toml"
    operations = tomllib.loads(path.read_text())["operations"]
    assert {format_.name for format_ in FORMATS} <= set(operations)
