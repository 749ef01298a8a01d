"""Chains of pieces: cutting, joining, naming blocks, and copies of sessions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.simulate import Keys, Piece, Request, Workload, at_once, from_hashes
from prefixguard.simulate.workload import Chain, drop, join, length, take

CHAINS = st.lists(
    st.builds(Piece, st.sampled_from("abc"), st.just(0), st.integers(1, 9)), max_size=6
).map(lambda pieces: tuple(p._replace(identity=(p.identity, i)) for i, p in enumerate(pieces)))  # fmt: skip


def tokens(chain: Chain) -> list[object]:
    """Every token of a chain by itself: the plainest form."""
    return [(piece.identity, piece.offset + i) for piece in chain for i in range(piece.tokens)]


@given(CHAINS, st.integers(0, 60))
def test_a_chain_cut_and_joined_is_the_same(chain: Chain, at: int) -> None:
    first, rest = take(chain, at), drop(chain, at)
    assert length(first) == min(at, length(chain))
    assert tokens(first) + tokens(rest) == tokens(chain)
    assert join(first, rest) == chain


@settings(max_examples=200)
@given(CHAINS, CHAINS, st.integers(0, 40), st.sampled_from([1, 2, 5, 16]))
def test_equal_blocks_have_equal_keys_and_no_others(one: Chain, other: Chain, at: int, block: int) -> None:
    mixed = join(take(one, at), other)
    keys = Keys(block)
    named = [keys(Request(0, chain)) for chain in (one, mixed)]
    plain = [tokens(chain) for chain in (one, mixed)]
    for name, text in zip(named, plain, strict=True):
        assert len(name) == len(text) // block
    for i, (left, right) in enumerate(zip(*named, strict=False)):
        assert (left == right) == (plain[0][: (i + 1) * block] == plain[1][: (i + 1) * block])


def test_salts_keep_caches_apart() -> None:
    keys = Keys(4)
    chain = (Piece("a", 0, 8),)
    assert keys(Request(0, chain, salt="x")) != keys(Request(0, chain, salt="y"))
    assert keys(Request(0, chain, salt="x")) == keys(Request(1, chain, salt="x"))


def test_the_last_token_of_a_reply_has_no_block() -> None:
    keys = Keys(4)
    assert len(keys(Request(0, (Piece("a", 0, 4),), (Piece("r", 0, 4),), 4))) == 1
    assert len(keys(Request(0, (Piece("a", 0, 4),), (Piece("r", 0, 5),), 5))) == 2


def test_a_reply_said_again_is_the_same_block() -> None:
    keys = Keys(4)
    before = Request(0, (Piece("a", 0, 4),), (Piece("r", 0, 5),), 5)
    after = Request(0, (Piece("a", 0, 4), Piece("r", 0, 5), Piece("b", 0, 3)))
    assert keys(after)[:2] == keys(before)


def test_a_trace_shares_what_its_hashes_share() -> None:
    rows = [((1, 2, 3), 1100, 0, 5), ((1, 2, 4), 1100, 0, 5), ((1, 2, 3, 5), 1600, 0, 0)]
    work = from_hashes("t", rows, 512)
    assert [request.tokens for request in work.requests] == [1100, 1100, 1600]
    keys = Keys(16)
    first, second, third = (keys(request) for request in work.requests)
    assert first[:64] == second[:64]
    assert first[64] != second[64]
    # The third hash stood for 76 tokens in one request and for 512 in the other: the same content.
    assert third[64:68] == first[64:68]


def session(number: int, turns: int) -> list[Request]:
    head = Piece("head", 0, 10)
    return [
        Request(number, (head, *(Piece((number, i), 0, 5) for i in range(turn + 1)))) for turn in range(turns)
    ]


def test_sessions_take_turns_and_copies_share_the_head_alone() -> None:
    work = Workload("w", (*session(0, 2), *session(1, 3)), exact=True, common={"head": 10})
    four = at_once(work, 4)
    assert [request.session for request in four.requests] == [0, 1, 2, 3, 0, 1, 2, 3, 1, 3]
    first, copy = four.requests[0], four.requests[2]
    assert first.prompt[0] == copy.prompt[0]
    assert first.prompt[1] != copy.prompt[1]
    assert [request.tokens for request in four.requests[:4]] == [15] * 4


def test_of_a_head_that_changes_only_the_stable_part_is_common() -> None:
    work = Workload(
        "w", (Request(0, (Piece("head", 0, 10), Piece("x", 0, 5))),), exact=True, common={"head": 4}
    )
    one, two = at_once(work, 2).requests
    assert one.prompt[0] == Piece("head", 0, 10)
    assert two.prompt == (Piece("head", 0, 4), Piece((1, "head"), 4, 6), Piece((1, "x"), 0, 5))
