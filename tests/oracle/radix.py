"""Asks SGLang's RadixCache for the cached tokens of random agent requests, and writes them down.

    python tests/oracle/radix.py fixtures/sglang/radix.json

Runs in an environment that has torch and the package sglang (see README.md); no
model, no GPU. The tree has no memory behind it, so nothing is evicted.
"""

from __future__ import annotations

import importlib.machinery
import json
import sys
import types
from array import array
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from agent_requests import SEEDS, Case, case  # type: ignore[attr-defined]

PAGES = (1, 16)


def without_torchvision() -> None:
    """Lets SGLang import where torchvision is missing: it decodes pictures with it, and there are none."""
    import transformers.image_utils  # noqa: F401  looks for the real one first

    class Nothing(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return Nothing(name)

    for name in (
        "torchvision",
        "torchvision.io",
        "torchvision.transforms",
        "torchvision.transforms.functional",
    ):
        module = sys.modules[name] = Nothing(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__path__ = []


def cached(asked: Case, page: int) -> list[int]:
    """Cached tokens of each request of a case: what SGLang's scheduler would match, and keep when it ends."""
    from sglang.srt.mem_cache.base_prefix_cache import InsertParams, MatchPrefixParams
    from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey

    tree = RadixCache.create_simulated(page_size=page)
    found = []
    for one in asked.requests:
        # The scheduler never matches the last token of a prompt.
        key = RadixKey(array("q", one.prompt[: len(one.prompt) - 1]), cache_salt=one.salt)
        found.append(tree.match_prefix(MatchPrefixParams(key=key)).device_prefix_len)
        # The last sampled token has no keys and values; what fills no page is freed.
        kept = [*one.prompt, *one.reply[: max(0, len(one.reply) - 1)]]
        kept = kept[: len(kept) // page * page]
        if kept:
            tree.insert(InsertParams(key=RadixKey(array("q", kept), cache_salt=one.salt)))
    return found


if __name__ == "__main__":
    without_torchvision()
    told = {str(page): [cached(case(seed), page) for seed in range(SEEDS)] for page in PAGES}
    place = Path(sys.argv[1])
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(
        json.dumps({"engine": f"sglang {version('sglang')}", "pages": told}, separators=(",", ":"))
    )
