"""A line of the chain is what its hashes stand for, or it is refused."""

from __future__ import annotations

import random

import pytest

from graphstore.ledger.chain import FORGOTTEN, GENESIS, check, dumps, encoded, hashed

BODIES = [
    dumps({"content": {"n": 1}, "tags": ["a", "b"]}),
    dumps({"content": {"list": [{"a": 1}, {"b": 2}]}, "text": '},{"digest":"'}),
    dumps({}),
    dumps({"reason": 'null,"head":{"body":["'}),
]


def line_of(bodies: list[bytes], left: list[bytes] | None = None) -> bytes:
    """A line of some bodies, of which those that are `null` in `left` were removed."""
    head = {"author": '"body":["', "body": hashed(bodies), "ops": [["add_node", "a"]], "prev": GENESIS}
    line = encoded({**head, "tx": "2026-01-01T00:00:00Z"}, bodies if left is None else left)
    return line.line().rstrip(b"\n")


@pytest.mark.parametrize("count", [0, 1, 2, 4])
@pytest.mark.parametrize("forgotten", range(1 << len(BODIES)))
def test_a_line_is_taken_apart_into_what_it_was_made_of(count: int, forgotten: int) -> None:
    left = [FORGOTTEN if forgotten >> at & 1 else body for at, body in enumerate(BODIES[:count])]
    line = line_of(BODIES[:count], left)

    head, verbatim = check(line, GENESIS)

    assert (left, line + b"\n") == (verbatim.bodies, verbatim.line())
    assert dumps(head) == verbatim.head


@pytest.mark.parametrize("bodies", [BODIES, BODIES[::2], BODIES[:1]])
def test_what_is_damaged_is_refused(bodies: list[bytes]) -> None:
    chance, whole = random.Random(1), line_of(bodies)
    for _ in range(2_000):
        line, at = bytearray(whole), chance.randrange(len(whole))
        if chance.random() < 0.5:
            line[at] ^= 1 << chance.randrange(8)
        else:
            line[at : at + chance.randrange(2)] = chance.randbytes(chance.randrange(2))
        if line == whole:
            continue
        with pytest.raises(ValueError):
            check(bytes(line))


def test_line_that_follows_another_one_is_refused() -> None:
    with pytest.raises(ValueError, match="digest chain broken"):
        check(line_of(BODIES), "1" * 32)


def test_bodies_that_changed_places_are_refused() -> None:
    one, other = dumps({"n": 1}), dumps({"n": 2})
    line = line_of([one, other])
    with pytest.raises(ValueError, match="content of a body"):
        check(line.replace(one + b"," + other, other + b"," + one))
