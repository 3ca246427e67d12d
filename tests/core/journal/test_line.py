"""What a line is, known by its hashes, is what parsing it tells, damaged or not."""

from __future__ import annotations

import random

import orjson
import pytest

from graphstore.core.journal.line import (
    FORGOTTEN,
    GENESIS,
    check,
    compose,
    dumps,
    encode,
    following,
    spans_of,
)

BODIES = [
    dumps({"content": {"n": 1}, "tags": ["a", "b"]}),
    dumps({"content": {"list": [{"a": 1}, {"b": 2}]}, "text": '},{"digest":"'}),
    dumps({}),
    dumps({"reason": 'null,"head":{"body":["'}),
]


def line_of(bodies: list[bytes]) -> bytes:
    return compose({"ops": [["add_node", "a"]], "tx": "2026-01-01T00:00:00Z"}, bodies, GENESIS)[0].rstrip(
        b"\n"
    )


@pytest.mark.parametrize("count", [0, 1, 2, 4])
@pytest.mark.parametrize("forgotten", range(1 << len(BODIES)))
def test_bodies_lie_where_parsing_says(count: int, forgotten: int) -> None:
    head = orjson.loads(line_of(BODIES[:count]))["head"]
    left = [FORGOTTEN if forgotten >> at & 1 else body for at, body in enumerate(BODIES[:count])]
    line = encode(head, left)[0].rstrip(b"\n")

    assert check(line)[2] == spans_of(line)
    assert check(line) == following(line, GENESIS)


@pytest.mark.parametrize("bodies", [BODIES, BODIES[::2], BODIES[:1]])
def test_what_is_damaged_is_refused_as_parsing_refuses_it(bodies: list[bytes]) -> None:
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
        with pytest.raises(ValueError):
            spans_of(bytes(line))
        with pytest.raises(ValueError):
            following(bytes(line), GENESIS)


def test_line_whose_author_stands_before_its_hashes() -> None:
    head = {"author": '"body":["', "ops": [["add_node", "a"]], "tx": "2026-01-01T00:00:00Z"}
    line = compose(head, BODIES[2:], GENESIS)[0].rstrip(b"\n")

    assert check(line) == following(line, GENESIS)


def test_line_that_follows_another_one_is_refused() -> None:
    with pytest.raises(ValueError, match="digest chain broken"):
        following(line_of(BODIES), "1" * 32)


def test_bodies_that_changed_places_are_refused() -> None:
    one, other = dumps({"n": 1}), dumps({"n": 2})
    line = line_of([one, other])
    with pytest.raises(ValueError, match="content of a body"):
        spans_of(line.replace(one + b"," + other, other + b"," + one))
