"""Prometheus' text as servers write it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.engines.metrics import Metrics

TEXT = """\
# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
vllm:cache_config_info{block_size="32",enable_prefix_caching="True",odd="a \\"quoted\\", b"} 1.0
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 100.0
vllm:prefix_cache_hits_total{engine="1",model_name="tiny"} 1.5e2
llamacpp:prompt_tokens_total 20
broken nonsense here
"""


def test_figures_and_labels() -> None:
    metrics = Metrics(TEXT)
    assert metrics.sum("vllm:prefix_cache_hits_total") == 250
    assert metrics.sum("llamacpp:prompt_tokens_total") == 20
    assert metrics.sum("vllm:prefix_cache_hits") is None
    assert metrics.labels("vllm:cache_config_info")["block_size"] == "32"
    assert metrics.labels("vllm:cache_config_info")["odd"] == 'a \\"quoted\\", b'
    assert metrics.labels("nothing") == {}


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    Metrics(text)
