"""Find what stands at a coordinate and is shaky, and why: what it rests on, and what became of that.

A fall is the invalidation of a thing on which others rest. The rows of `shaky` name the shaky things. The reasons follow from the facts that the writer of these rows uses,
as of the coordinate's tx: each fall is followed to what rests on it, latest first. How operations were grouped into transactions has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, takewhile
from typing import Any, NamedTuple

from graphstore.ledger.past_rows import past_rows
from graphstore.ledger.standing_facts import FactsAt, Fall, FallenPart, Ground
from graphstore.ledger.statements import Statement
from graphstore.read.described import things
from graphstore.read.ids import resolve
from graphstore.read.index_of_rows import ENTITIES_NUMBERED, ENTITY_NUMBER, SHAKY, Number
from graphstore.read.inspected import inspect
from graphstore.read.linked import LINKS_OVER, LinkedRow, link_of
from graphstore.read.operations import done_by
from graphstore.read.points import Point, as_json
from graphstore.values.findings import OUTSIDE, Foundation, Grounds, Inspection, LinkInspection, Shaky
from graphstore.values.gc_pause import no_collecting
from graphstore.values.inputs import whole_number
from graphstore.values.models import Event, Link, Node
from graphstore.values.period import Instant, Period, moment
from graphstore.values.shared_path import SharedPaths
from graphstore.values.vocabulary import NEVER_SO, UPHOLDING

Path = tuple[Any, ...]  # (link, rest of the path); () at its end


class ShakyEntity(NamedTuple):
    """A shaky thing and why: the invalidated thing it rests on (-1: one outside of scopes), the path there, and when and by which operation that was invalidated."""

    ent: int
    root: int
    path: Path
    fell_at: Instant
    op: int


class Fallen(NamedTuple):
    """A fall: of which thing, when it was recorded, and the links by which something rests on that thing directly."""

    fall: Fall
    root: int
    fell_at: Instant
    first: list[Ground]


LOOKS_AMONG = Statement("looks_among", Number)
_HERE = "s.valid_from <= ?1 AND s.valid_to > ?1 AND s.tx_from <= ?2 AND s.tx_to > ?2"
_REACHED = f"SELECT s.entity FROM shaky s WHERE {_HERE}"
_PASSING = (
    "SELECT value FROM json_each(?3) WHERE EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = value) "
    f"OR EXISTS (SELECT 1 FROM shaky s WHERE s.entity = value AND {_HERE})"
)
_VISIBLE = "SELECT link FROM link_period WHERE link IN (SELECT value FROM json_each(?))"
_HELD = """
SELECT p.link, p.number FROM json_each(?1) s CROSS JOIN link_period p
WHERE p.link = s.value AND p.valid_from <= ?2 AND p.valid_to > ?2 AND p.tx_from <= ?3 AND p.tx_to > ?3
"""


def shaky(point: Point, limit: int | None = None) -> list[Shaky]:
    """Return what stands here and rests on something invalidated since it was last revised or confirmed: latest fall first, then nearest to it.

    `limit`: the largest number of answers.
    """
    most = whole_number("limit", limit)
    with no_collecting():
        found = list(islice(_with_outside(point), most))
        return _shown(point, found, _foundations(point, [one.ent for one in found]))


def _shown(
    point: Point, found: list[ShakyEntity], foundations: Mapping[int, tuple[Foundation, ...]]
) -> list[Shaky]:
    links, done = _links(point, found), done_by(point, {one.op for one in found})
    ends = [end for row in links.values() for end in (row.source, row.target)]
    numbers = dict.fromkeys(number for one in found for number in (one.ent, one.root))
    names = {
        row.number: row.id for row in point.whole.rows(ENTITIES_NUMBERED, numbers=as_json(list(numbers)))
    }
    shown = things(point, dict.fromkeys([*ends, *(names[one.ent] for one in found)]))

    def link(number: int) -> Link:
        row = links[number]
        return link_of(point, row, shown[row.source].standing, shown[row.target].standing)

    ways = SharedPaths[Link]()
    return [
        Shaky.made(
            {
                "node": shown[names[one.ent]],
                "root": _outside(one.fell_at) if one.root < 0 else shown[names[one.root]],
                "links": ways.path_of(one.path, link) if one.path else (),
                "why": done[one.op][2] if one.op in done else None,
                "recorded_at": moment(one.fell_at),
                **_counted(foundations[one.ent]),
            }
        )
        for one in found
    ]


def inspect_with_grounds(point: Point, id: str) -> Inspection | LinkInspection:
    """Return one thing with all about it, and what it rests on. Raises NotFoundError for an unknown id."""
    found = inspect(point, id)
    if isinstance(found, LinkInspection):
        return found
    kinds = {name for name, kind in point.vocabulary.kinds.items() if kind.rests}
    resting = any(link.kind in kinds for link in found.links)
    if resting or any(link.kind in UPHOLDING for link in found.backlinks):
        return Inspection.made({**dict(found), "grounds": _grounds_of(point, found.node)})
    return found


def grounds(point: Point, id: str) -> Grounds:
    """Return what a thing rests on here, with what became of each foundation, and what makes the thing shaky. Raises NotFoundError for an unknown id."""
    entity, _ = resolve(point, id)
    return _grounds_of(point, things(point, (entity.id,))[entity.id])


def _grounds_of(point: Point, node: Node | Event) -> Grounds:
    [number] = point.rows(ENTITY_NUMBER, id=node.id)
    entity = number.number
    foundations = _foundations(point, [entity])
    found = list(islice(_with_outside(point, entity), 1)) if node.standing == "shaky" else []
    shaken = _shown(point, found, foundations)[0] if found else None
    return Grounds.made({"node": node, **_counted(foundations[entity]), "shaky": shaken})


def _counted(foundations: tuple[Foundation, ...]) -> dict[str, Any]:
    stand = sum(one.stands for one in foundations)
    return {"stand": stand, "of": len(foundations), "foundations": foundations}


def _foundations(point: Point, entities: Sequence[int]) -> dict[int, tuple[Foundation, ...]]:
    """Return the foundations of each of some things here, in the order in which the links were recorded."""
    facts = FactsAt(past_rows(point.database, point.tx), point.valid)
    fallen = _fallen(facts, entities)
    done = done_by(point, {fall.operation for fall in fallen.values() if fall is not None})
    links = _links_over(point, [link for _, link in fallen])
    shown = things(point, {end for row in links.values() for end in (row.source, row.target)})
    made: dict[int, list[Foundation]] = {ent: [] for ent in entities}
    for (ent, link), fall in fallen.items():
        if (row := links.get(link)) is None:
            continue
        base = shown[row.source if row.kind in UPHOLDING else row.target]
        how: str | None = None if fall is None else fall.word
        if fall is None and base.standing == "shaky" and "shaky" in facts.resting[row.kind]:
            how = "shaky"
        _, who, why = done.get(-1 if fall is None else fall.operation, ("", None, None))
        made[ent].append(
            Foundation.made(
                {
                    "id": base.id,
                    "standing": base.standing,
                    "link": link_of(point, row, shown[row.source].standing, shown[row.target].standing),
                    "stands": how in (None, "revised", "shaky"),
                    "how": how,
                    "who": who,
                    "why": why,
                    "recorded_at": None if fall is None else moment(facts.operation(fall.operation)[0]),
                    "rechecked": fall is not None and facts.is_covered(ent, fall, point.valid),
                }
            )
        )
    return {ent: tuple(foundations) for ent, foundations in made.items()}


def _fallen(facts: FactsAt, entities: Sequence[int]) -> dict[tuple[int, int], Fall | None]:
    """Return the links by which things rest on others here, as (thing, link). Each has the last fall of the other thing that counts for it."""
    facts.grounds.load(entities)
    dependants = _dependants(facts, entities)
    found: dict[tuple[int, int], Fall | None] = {
        (ent, ground.link): None for ent in entities for ground in facts.grounds[ent] if facts.holds(ground)
    }
    for base, parts in facts.falls(_here(facts, dependants)).items():
        for ground in dependants[base]:
            for _, _, fall in (one for part in parts for one in facts.counted(part, base, ground)):
                if not (fall.word == "ended" and facts.entity(ground.other).is_event):
                    found[ground.other, ground.link] = max(fall, found[ground.other, ground.link] or fall)
    return found


def _dependants(facts: FactsAt, entities: Iterable[int]) -> dict[int, list[Ground]]:
    """Return the links by which some things rest on others here, by the other thing, with the dependant as `other`. Also reads the falls of the other things."""
    found: dict[int, list[Ground]] = {}
    for ent in entities:
        for ground in facts.grounds[ent]:
            if facts.holds(ground):
                found.setdefault(ground.other, []).append(ground._replace(other=ent))
    facts.load_fallen(found)
    return {base: facts.with_replacers(base, grounds) for base, grounds in found.items()}


def _here(
    facts: FactsAt, dependants: dict[int, list[Ground]]
) -> dict[int, tuple[list[Period], list[Ground]]]:
    """Return the query for the falls of foundations at this valid time."""
    here = [(facts.valid, facts.valid + 1)]
    return {base: (here, grounds) for base, grounds in dependants.items()}


def _with_outside(point: Point, only: int | None = None) -> Iterator[ShakyEntity]:
    """Yield what is shaky. Within scopes the order is that of the whole store. A path that leads outside has only its inner part, and `root` is -1.

    `only`: one thing, which is shaky here; None for everything.
    """
    following = _Following(point, only).shaky_entities()
    if point.whole is point:
        yield from following
        return
    own = {one.ent: one for one in following}
    inside = {row.number for row in point.rows(SHAKY)} if only is None else {only}
    for one in _Following(point.whole, only).shaky_entities():
        found = own.pop(one.ent, None)
        if found is not None:
            yield found
        elif one.ent in inside:
            yield one._replace(root=-1, op=-1, path=_inside(point, one.path))
    yield from own.values()


def _inside(point: Point, path: Path) -> Path:
    """Return the links of a path up to the first that leads outside."""
    numbers = list[int]()
    while path:
        numbers.append(path[0])
        path = path[1]
    rows = point.database.rows(_VISIBLE, (as_json(numbers),))
    visible = {number for (number,) in rows}
    kept: Path = ()
    for number in reversed(list(takewhile(visible.__contains__, numbers))):
        kept = (number, kept)
    return kept


def _outside(fell_at: Instant) -> Node:
    """Return the placeholder for a thing outside of scopes."""
    fields: dict[str, Any] = {
        **dict.fromkeys(Node.model_fields),
        "id": OUTSIDE, "kind": "outside", "scope": "", "number": 1, "content": {}, "tags": (), "trigger": "initial", "standing": "shaky",
        **dict.fromkeys(("recorded_at", "valid_from", "tx_from"), moment(fell_at)),
    }  # fmt: skip
    return Node.made(fields)


class _Following:
    """Follows falls at a coordinate to what is shaky there."""

    def __init__(self, point: Point, only: int | None) -> None:
        """Read what leads to everything shaky. `only`: read this for one thing."""
        self._point, self._valid = point, point.valid
        self._facts = FactsAt(past_rows(point.database, point.tx), point.valid)
        at = point.valid, point.tx
        # things that some fall does not shake, but that an older one may by the same paths
        self._passed: set[int] = set()
        # shaky things, and things on the paths that have ended or were forgotten since
        self._shaky: set[int] = set()
        if only is None:
            self._asked_for = {row.number for row in point.rows(SHAKY)}
            level = {number for (number,) in point.database.rows(_REACHED, at)}
        else:
            self._asked_for = level = {only}
        while level:
            self._shaky |= level
            self._facts.grounds.load(level)
            bases = {
                one.other for each in level for one in self._facts.grounds[each] if self._facts.holds(one)
            }
            asked = as_json(sorted(bases - self._shaky))
            level = {number for (number,) in point.database.rows(_PASSING, (*at, asked))}
        self._facts.load_upright(self._shaky)
        self._dependants = _dependants(self._facts, self._shaky)
        for grounds in self._dependants.values():
            grounds.sort(key=lambda one: (one.kind in UPHOLDING, one.link))

    def shaky_entities(self) -> Iterator[ShakyEntity]:
        """Yield everything that is shaky: latest fall first, then nearest to it, then in the order their links were recorded."""
        seen: set[int] = set()
        fallen = sorted(self._all_fallen(), key=lambda one: one.fell_at, reverse=True)
        for fell_at, group in groupby(fallen, key=lambda one: one.fell_at):
            for one, ent, path in self._spread(list(group), seen):
                if ent in self._asked_for:
                    yield ShakyEntity(ent, one.root, path, fell_at, one.fall.operation)

    # ------------------------------------------------------------------ falls

    def _all_fallen(self) -> Iterator[Fallen]:
        facts, here = self._facts, (self._valid, self._valid + 1)
        revised = {base: facts.last_revisions(base) for base in sorted(self._dependants)}
        absent = {base: grounds for base, grounds in self._dependants.items() if revised[base] is None}
        parts = facts.falls(_here(facts, absent))
        for base, falls in revised.items():
            if falls:
                yield from self._counted(base, [FallenPart(*here, [fall]) for fall in falls])
            elif falls is None:
                yield from self._counted(base, parts[base])

    def _counted(self, base: int, parts: Iterable[FallenPart]) -> Iterator[Fallen]:
        """Yield the falls of a thing that count for a link to it."""
        facts = self._facts
        found: dict[Fall, list[Ground]] = {}
        for ground in self._dependants[base]:
            for part in parts:
                for _, _, fall in facts.counted(part, base, ground):
                    found.setdefault(fall, []).append(ground)
        for fall, first in found.items():
            yield Fallen(fall, base, facts.operation(fall.operation)[0], first)

    # ------------------------------------------------------------------ things made shaky

    def _spread(self, group: list[Fallen], seen: set[int]) -> Iterator[tuple[Fallen, int, Path]]:
        """Yield what the falls recorded in one transaction shake, with the paths back to them: breadth first, each thing once."""
        if len(group) > 1 and self._looks_between(group):
            ways: dict[int, tuple[int, Fallen, Path]] = {}
            for fallen in group:
                for ent, (length, path) in self._spread_one(fallen).items():
                    if ent not in seen and (ent not in ways or length < ways[ent][0]):
                        ways[ent] = (length, fallen, path)
            seen.update(ways)
            for ent, (_, fallen, path) in sorted(ways.items(), key=lambda way: way[1][0]):
                yield fallen, ent, path
            return
        level: list[tuple[Fallen, Ground, Path]] = [
            (one, ground, ()) for one in group for ground in one.first
        ]
        while level:
            following: list[tuple[Fallen, Ground, Path]] = []
            for fallen, ground, rest in level:
                ent = ground.other
                if ent not in seen and self._shakes(fallen, ent):
                    seen.add(ent)
                    path = (ground.link, rest)
                    yield fallen, ent, path
                    following += [(fallen, beyond, path) for beyond in self._onward(fallen, ent)]
            level = following
        if (
            not self._passed <= seen
        ):  # paths may lead through things that another fall shook first, without what lies beyond
            for fallen in group:
                for ent, (_, path) in self._spread_one(fallen).items():
                    if ent not in seen:
                        seen.add(ent)
                        yield fallen, ent, path

    def _spread_one(self, fallen: Fallen) -> dict[int, tuple[int, Path]]:
        """Return everything that one fall shakes, with the number of links and the path back."""
        found: dict[int, tuple[int, Path]] = {}
        level: list[tuple[Ground, Path]] = [(ground, ()) for ground in fallen.first]
        length = 0
        while level:
            length += 1
            following: list[tuple[Ground, Path]] = []
            for ground, rest in level:
                ent = ground.other
                if ent not in found and self._shakes(fallen, ent):
                    path = (ground.link, rest)
                    found[ent] = (length, path)
                    following += [(beyond, path) for beyond in self._onward(fallen, ent)]
            level = following
        return found

    def _looks_between(self, group: list[Fallen]) -> bool:
        """Return True if something was revised or confirmed between the falls of one transaction."""
        operations = [fallen.fall.operation for fallen in group]
        return bool(self._point.rows(LOOKS_AMONG, first=min(operations), stop=max(operations)))

    def _shakes(self, fallen: Fallen, ent: int) -> bool:
        """Return True if a fall shakes a thing on a path from it."""
        facts, fall = self._facts, fallen.fall
        if facts.is_covered(ent, fall, self._valid, with_merged=False):
            return False
        if (fall.word == "ended" and facts.entity(ent).is_event) or facts.is_exempt(ent, fall, fallen.root):
            self._passed.add(ent)
            return False
        if facts.is_covered(ent, fall, self._valid):
            self._passed.add(ent)
            return False
        return True

    def _onward(self, fallen: Fallen, ent: int) -> list[Ground]:
        """Return the links by which a thing that a fall makes shaky shakes others."""
        there = [one for one in self._dependants.get(ent, ()) if "shaky" in self._facts.resting[one.kind]]
        if fallen.fall.word in NEVER_SO:
            return there
        self._passed.update(one.other for one in there if one.never_so)
        return [one for one in there if not one.never_so]


def _links(point: Point, found: list[ShakyEntity]) -> dict[int, LinkedRow]:
    """Return the links of all paths, by their numbers."""
    seen: set[int] = set()
    numbers: dict[int, None] = {}
    for path in (one.path for one in found):
        while path and id(path) not in seen:
            seen.add(id(path))
            numbers[path[0]] = None
            path = path[1]
    return _links_over(point, list(numbers))


def _links_over(point: Point, numbers: list[int]) -> dict[int, LinkedRow]:
    held = dict(point.database.rows(_HELD, (as_json(numbers), point.valid, point.tx)))
    rows = point.rows(LINKS_OVER, periods=as_json(list(held.values())))
    return dict(zip(held, rows, strict=True))
