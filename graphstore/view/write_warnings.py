"""Find what stands already and repeats, or may contradict, statements that were written.

The candidates are the things of the same scope that the key, the tags and the words of a statement lead to, and those nearest in meaning where the store has an
embedder. The rules of `conflicts.between` decide on each. Nothing is written, and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain

from graphstore.values.contrary import Comparison
from graphstore.values.findings import EarlierStatement, WarnedNode, WriteWarnings, words
from graphstore.values.models import Node
from graphstore.values.period import OPEN, Instant, instant
from graphstore.view import conflicts, vector_search
from graphstore.view.core_state import CoreReader
from graphstore.view.sight import Sight
from graphstore.view.vector_search import QuestionMeaning

MOST = 10
"""The largest number of warnings of each sort for one statement."""
_NEAREST = 12  # statements compared with one, by words; as many by meaning


def warnings_of(view: CoreReader, ids: Sequence[str]) -> list[WriteWarnings]:
    """Return the warnings about each of these things, in their order. Things of one period are read together."""
    valid, tx = view.coordinate()
    with view.reading() as sight:
        nodes = [sight.thing(sight.resolve(id)[0]) for id in ids]
    instants: dict[Instant, list[Node]] = {}
    for node in nodes:
        if isinstance(node, Node):
            for at in _instants(node, valid):
                instants.setdefault(at, []).append(node)
    meanings = {node.id: vector_search.meaning_of(view, words(node)) for node in nodes}
    found: dict[str, dict[str, _Related]] = {node.id: {} for node in nodes}
    for at, together in instants.items():
        with view.pinned(at, tx).reading() as sight:
            for node in together:
                for related in _related(sight, node, meanings[node.id]):
                    found[node.id].setdefault(related[0].id, related)
    return [_warnings(node.id, found[node.id].values()) for node in nodes]


def warned(view: CoreReader, nodes: Sequence[Node], tx: datetime) -> list[WarnedNode]:
    """Return nodes as written at `tx`, each with its warnings. One that was there before is similar to what was written: it was confirmed."""
    answers = []
    for node, warnings in zip(nodes, warnings_of(view, [node.id for node in nodes]), strict=True):
        known = () if node.recorded_at >= tx else (confirmed(node),)
        fields = {"similar": (*known, *warnings.similar), "maybe_contrary": warnings.maybe_contrary}
        answers.append(WarnedNode.made({name: getattr(node, name) for name in Node.model_fields} | fields))
    return answers


def confirmed(node: Node) -> EarlierStatement:
    """Return the warning about a statement that was recorded already, and was confirmed instead of being written again."""
    return _earlier(node.id, node, Comparison("same", sure=True))


def _instants(node: Node, now: Instant) -> Iterator[Instant]:
    """Yield the valid times at which to look: now if it holds now, and its beginning if that is another time."""
    since = instant(node.valid_from)
    until = OPEN if node.valid_to is None else instant(node.valid_to)
    if since <= now < until:
        yield now
    if node.valid_from != node.recorded_at or not since <= now < until:
        yield since


_Related = tuple[Node, Comparison]


def _related(sight: Sight, node: Node, meaning: QuestionMeaning | None) -> Iterator[_Related]:
    """Yield the things that stand here and say the same as a node or something contrary, with how they relate."""
    ent = sight.resolve(node.id)[0]
    row = sight.find(ent)
    if row < 0 or not conflicts.is_stated(sight, ent):
        return
    index, scope = sight.index, sight.index.scope[ent]
    nearest = {} if meaning is None else meaning.nearest(sight, _NEAREST, wanted=lambda each: each == scope)
    others = list(dict.fromkeys(chain(conflicts.near(sight, ent, _NEAREST, None), nearest)))
    index.read_things(others)
    new = conflicts.stated(sight, row)
    for other in others:
        there = sight.find(other)
        if other == ent or there < 0 or index.scope[other] != scope or not conflicts.is_stated(sight, other):
            continue
        compared = conflicts.compared(new, conflicts.stated(sight, there), nearest.get(other))
        if compared is not None and not conflicts.are_linked(sight, ent, other):
            thing = sight.thing(other)
            assert isinstance(thing, Node)
            yield thing, compared


def _warnings(of: str, related: Iterable[_Related]) -> WriteWarnings:
    """Return the warnings about a thing: the surest first, then the newest."""
    newest = sorted(related, key=lambda each: each[0].recorded_at, reverse=True)
    surest = sorted(newest, key=lambda each: not each[1].sure)
    contrary = [each for each in surest if each[1].verdict == "contrary"]
    similar = [each for each in surest if each[1].verdict != "contrary"]
    return WriteWarnings(
        id=of,
        similar=tuple(_earlier(of, *each) for each in similar[:MOST]),
        maybe_contrary=tuple(_earlier(of, *each) for each in contrary[:MOST]),
    )


def _earlier(of: str, node: Node, compared: Comparison) -> EarlierStatement:
    is_contrary = compared.verdict == "contrary"
    return EarlierStatement(
        of=of, id=node.id, kind=node.kind, statement=words(node), who=node.author, recorded_at=node.recorded_at,
        valid_from=node.valid_from, valid_to=node.valid_to, about=compared.about or None,
        values=compared.values if is_contrary and any(compared.values) else None, unsure=not compared.sure,
        calls=deciding(of, node.id, is_contrary=is_contrary),
    )  # fmt: skip


def deciding(new: str, old: str, *, is_contrary: bool, as_tools: bool = False) -> tuple[str, ...]:
    """Return the calls of a store that decide between two statements: those of a store, or the tools of agents."""
    replace = f"supersede(old={old!r}, by={new!r}, reason='…')"
    if new == old:
        return ()
    if not is_contrary:
        return (f"retract(id={new!r}, reason='{old} says it')", replace)
    correct = f"link(source={new!r}, kind='corrects', target={old!r}, reason='…')"
    both = f"id={new!r}, other={old!r}" if as_tools else f"contradiction({new!r}, {old!r})"
    return (replace, correct, f"resolve({both}, keep='both', reason='…')")
