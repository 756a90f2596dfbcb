"""A request's body as it is sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.backbones.jsontext import PIECE, Body

sizes = st.sampled_from([0, 1, 100, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])


@given(sizes, st.lists(sizes, max_size=6))
def test_pieces_are_the_whole_with_commas_between(head: int, items: list[int]) -> None:
    parts = [bytes([65 + number]) * size for number, size in enumerate(items)]
    body = Body(b"h" * head, parts, b"]}")
    pieces = list(body)
    assert b"".join(pieces) == b"h" * head + b",".join(parts) + b"]}"
    assert body.length == sum(map(len, pieces))
    assert all(len(piece) >= PIECE for piece in pieces[:-1])
