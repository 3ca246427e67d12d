"""Find nodes that may be one thing, for somebody to join: of one kind and scope, with one name or nearly the same statement. The store never joins by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import ceil
from unicodedata import normalize

from graphstore.values import sameness
from graphstore.values.findings import JoinCandidate
from graphstore.values.generated_ids import is_one
from graphstore.view import conflicts
from graphstore.view.sight import Sight

_NAMES = ("name", "title")
_APART = frozenset({"contrasts_with"})  # a link that states that two things are not one


def candidates(sight: Sight, limit: int | None = None) -> list[JoinCandidate]:
    """Return the pairs of nodes that stand and may be one thing, newest first: at most `limit`.

    Pairs that a lifecycle, a `contradicts` or a `contrasts_with` link connects are decided, and are left out.
    """
    index = sight.index
    rows = [row for row in sight.node_rows() if conflicts.is_stated(sight, index.r_ent[row])]
    rows.sort(key=lambda row: conflicts.age(sight, row), reverse=True)
    decided = conflicts.linked(sight) | {
        (index.l_src[link], index.l_tgt[link])
        for link in (index.k_link[row] for row in sight.held_of(_APART))
    }
    lots: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        ent = index.r_ent[row]
        lots.setdefault((index.kind[ent], index.scope[ent]), []).append(row)
    found = list[JoinCandidate]()
    for lot in lots.values() if limit != 0 else ():
        for newer, older, why in _pairs(sight, lot):
            ends = index.r_ent[newer], index.r_ent[older]
            if ends in decided or ends[::-1] in decided or not _fit(sight, *ends):
                continue
            into, other = (
                ends if index.key[ends[1]] is None and index.key[ends[0]] is not None else ends[::-1]
            )
            found.append(
                JoinCandidate.made({"node": sight.thing(other), "into": sight.thing(into), "why": why})
            )
            if len(found) == limit:
                return found
    return found


def _fit(sight: Sight, one: int, other: int) -> bool:
    """Return True if two nodes could be joined: at most one slot among them."""
    first, second = sight.index.key[one], sight.index.key[other]
    return first is None or second is None or first == second


def _pairs(sight: Sight, rows: list[int]) -> Iterator[tuple[int, int, str]]:
    """Yield each pair of rows of one lot that may be one thing, the newer one first, and why."""
    seen = set[tuple[int, int]]()
    named: dict[str, int] = {}
    for at, row in enumerate(rows):
        for name in _names(sight, row):
            first = named.setdefault(name, at)
            if first != at and (first, at) not in seen:
                seen.add((first, at))
                yield rows[first], row, f"one name: {name}"
    said = [conflicts.statement(sight, row) for row in rows]
    for one, other in _near([sameness.tokens(text) for text in said]):
        if (one, other) not in seen and sameness.same(said[one], said[other]):
            yield rows[one], rows[other], "nearly the same statement"


def _near(sets: list[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of sets, by their places, that have nearly all words in common: each two of these share one of their few rarest words."""
    counts = Counter(word for words in sets for word in words)
    holders: dict[str, list[int]] = {}
    for at, words in enumerate(sets):
        rarest = sorted(words, key=lambda word: (counts[word], word))
        rarest = rarest[: len(words) - ceil(sameness.SAME * len(words)) + 1]
        shared = {one for word in rarest for one in holders.get(word, ())}
        yield from (
            (one, at) for one in sorted(shared) if sameness.jaccard(sets[one], words) >= sameness.SAME
        )
        for word in rarest:
            holders.setdefault(word, []).append(at)


def _names(sight: Sight, row: int) -> set[str]:
    """Return the names of a node: its id, if somebody chose it, and the names in its content. Composed, in lower case, without space around."""
    content, id = sight.body_of(row).get("content", {}), sight.index.names[sight.index.r_ent[row]]
    given = [content.get(name) for name in _NAMES] + ([] if is_one(id) else [id.rpartition("/")[2]])
    plain = (
        normalize("NFC", normalize("NFC", each).casefold()).strip() for each in given if isinstance(each, str)
    )
    return {" ".join(each.replace("_", " ").replace("-", " ").split()) for each in plain} - {""}
