"""Small answers for the pages that the server serves: changes along the two clocks, a thing with its surroundings, causes placed in time.

Each answer is bounded, regardless of the size of the store.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from math import inf
from typing import Any, Literal

from graphstore.errors import InvalidError, NotFoundError
from graphstore.read import link_story
from graphstore.read.walks import Direction
from graphstore.show.layout import Lane, Place, layout
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.values.coordinates import Axis
from graphstore.values.findings import Chain, Change, LinkInspection, Shaky, Step, Supersession
from graphstore.values.inputs import at_least_one, text_of
from graphstore.values.inputs import ids as id_list
from graphstore.values.models import Event, Link, Node, Value
from graphstore.values.period import Instant, TimeLike, instant, moment
from graphstore.values.text import line
from graphstore.view.view import Reader, View

__all__ = [
    "Causes",
    "Clocks",
    "Glimpse",
    "Named",
    "PageSettings",
    "Strip",
    "causes",
    "clocks",
    "glimpse",
    "graph",
    "latest",
    "named",
    "next_change",
    "recent",
    "set_settings",
    "settings",
]

Way = Literal["causes", "effects", "walk"]
_IDS, _LINE = 500, 120
_SETTINGS = "page"
_WIDE = 10  # a clock this many times longer than the span of nearly all changes is shown without the outliers


class Strip(Value):
    """How many changes lie in each of some equal parts of a clock, from `since` until `until`; `changes`: all there are, before and after them too."""

    since: datetime
    until: datetime
    counts: tuple[int, ...]
    changes: int


class Clocks(Value):
    """The changes of the world by when they were true, and of the store by when they were recorded."""

    valid: Strip
    tx: Strip


@registry.read("page")
def clocks(view: Reader, parts: int = 120) -> Clocks:
    """When things began and ended as believed by the view, and when something was recorded: counts in equal parts of each clock, at most 1,000 parts.

    A few instants far from all others lie outside. Raises InvalidError.
    """
    if at_least_one("parts", parts) > 1_000:
        raise InvalidError(f"parts {parts} is too many. Give 1,000 at most.")
    with view.reading() as sight:
        return Clocks(
            valid=_strip(sight.turns("valid"), parts, sight.valid),
            tx=_strip(sight.turns("tx"), parts, sight.tx),
        )


def _strip(turns: Sequence[Instant], parts: int, here: Instant) -> Strip:
    first, last = (turns[0], max(turns[-1], here)) if turns else (here - parts, here)
    if turns:
        begin, end = turns[len(turns) // 50], turns[-1 - len(turns) // 50]
        if last - first > _WIDE * (end - begin) > 0:
            first, last = begin, end
    last = max(last, first + parts)
    edges = [first + (last - first) * part // parts for part in range(parts + 1)]
    marks = [bisect_left(turns, edge) for edge in edges[:-1]] + [bisect_right(turns, last)]
    counts = tuple(b - a for a, b in pairwise(marks))
    return Strip(since=moment(first), until=moment(last), counts=counts, changes=len(turns))


@registry.read("page")
def next_change(view: Reader, axis: Axis, at: TimeLike, back: bool = False) -> datetime | None:
    """The first instant after `at` (with `back` the last before it) at which something begins or ends (`valid`), or was recorded (`tx`); None: there is none."""
    if axis not in ("valid", "tx"):
        raise InvalidError.choice("axis", axis, ("valid", "tx"))
    since = view.instant_of(at, "at", axis)
    with view.reading() as sight:
        turns = sight.turns(axis)
        place = bisect_left(turns, since) - 1 if back else bisect_right(turns, since)
        return moment(turns[place]) if 0 <= place < len(turns) else None


@registry.read("page")
def latest(view: Reader, limit: int = 30) -> list[Node | Event]:
    """What was recorded last of what stands at the coordinate, the last first."""
    most = at_least_one("limit", limit)
    with view.reading() as sight:
        return sight.things(sight.newest(most))


@registry.read("page")
def recent(store: Store, limit: int = 50) -> list[Change]:
    """What was written last, the last first."""
    return store._last_changes(at_least_one("limit", limit))


class Named(Value):
    """What an id is of, and what that says in one line; `id`: the thing to look at, of a link its source."""

    id: str
    kind: str
    text: str


@registry.read("page")
def named(view: Reader, ids: Iterable[str] | str) -> dict[str, Named]:
    """What things and links say in one line each, with any standing, by id: a link as `source kind target`. Ids of neither are left out.

    Raises InvalidError for more than 500 ids.
    """
    asked = list(dict.fromkeys(id_list("ids", ids)))
    if len(asked) > _IDS:
        raise InvalidError(f"ids are {len(asked):,}. Give {_IDS} at most.")

    def said(thing: Node | Event) -> Named:
        if isinstance(thing, Event):
            return Named(id=thing.id, kind=thing.type, text=line(thing.description or thing.id, _LINE))
        text = thing.text or ", ".join(f"{name} {value}" for name, value in thing.content.items())
        return Named(id=thing.id, kind=thing.kind, text=line(text or thing.id, _LINE))

    with view.reading() as sight:
        found, things = {}, sight.things_of(asked)
        for id in asked:
            if id in things:
                found[id] = said(things[id])
            elif (about := link_story.inspected_by(sight.point, id)) is not None:
                source, kind = said(about.source), about.link.kind
                ends = line(source.text, _LINE // 2), line(said(about.target).text, _LINE // 2)
                text = f" {kind.replace('_', ' ')} ".join(ends)
                found[id] = Named(id=source.id, kind=kind, text=text)
        return found


class PageSettings(Value):
    """What a page shows by: the senders that are agents where a message has no role, and from what on the light of the memory is not violet.

    `amber`, `red`: percent of the cap; `missing`: percent of the texts without a vector, for amber; `failures`: times in a row, for red.
    """

    agents: tuple[str, ...] = ("agent", "assistant", "bot")
    amber: float = 80
    red: float = 95
    missing: float = 50
    failures: float = 3


@registry.read("page")
def settings(store: Store) -> PageSettings:
    """What pages show the store by. Kept in it: everybody sees the same."""
    return PageSettings(**(store.setting(_SETTINGS) or {}))


@registry.write("page")
def set_settings(
    store: Store,
    *,
    agents: Iterable[str] | None = None,
    amber: float | None = None,
    red: float | None = None,
    missing: float | None = None,
    failures: float | None = None,
) -> PageSettings:
    """Change some of what pages show the store by; what is not given stays. Raises InvalidError for a number below 0 and a sender that is no text."""
    numbers = {"amber": amber, "red": red, "missing": missing, "failures": failures}
    given: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
            raise InvalidError(f"{name} {value!r} is out of range. Give a number, 0 or more.")
    if agents is not None:
        given["agents"] = [text_of("agent", each) for each in id_list("agents", agents)]
    with store.verb(is_narrow=True):
        known = store.setting(_SETTINGS) or {}
        if {**known, **given} != known:
            store.keep_setting("set_settings", _SETTINGS, {**known, **given})
    return settings(store)


class Glimpse(Value):
    """A thing and what is around it. Of links there are so many as were asked for, of all that `links_total` and `backlinks_total` count.

    `shaky` says what it rests on that has fallen; `steps` what superseded it, one after the other, and `current` what stands in its place.
    """

    thing: Node | Event
    links: tuple[Link, ...]
    links_total: int
    backlinks: tuple[Link, ...]
    backlinks_total: int
    steps: tuple[Step, ...]
    current: tuple[Node | Event, ...]
    shaky: Shaky | None
    confirmations: int
    names: dict[str, str]
    """The texts of the other ends of the links, by id."""


@registry.read("page")
def glimpse(view: Reader, id: str, limit: int = 50) -> Glimpse:
    """A thing by its id, with at most so many links each way. Raises NotFoundError, for the id of a link too."""
    most, here = at_least_one("limit", limit), _fixed(view)
    found = here.inspect(id)
    if isinstance(found, LinkInspection):
        link = found.link
        raise NotFoundError(
            f"{id!r} is the link {link.source} {link.kind} {link.target}. Ask for one of its ends."
        )
    gone = here.what_superseded(found.node.id)
    assert isinstance(gone, Supersession)
    links, backlinks = found.links[:most], found.backlinks[:most]
    ends = [link.target for link in links] + [link.source for link in backlinks]
    return Glimpse(
        thing=found.node, links=links, links_total=len(found.links), backlinks=backlinks, backlinks_total=len(found.backlinks),
        steps=gone.chain[:most], current=gone.current[:most], shaky=_why_shaky(here, found.node), confirmations=found.confirmations,
        names=_names(here, ends),
    )  # fmt: skip


def _fixed(view: Reader) -> View:
    valid, tx = view.coordinate()
    return view.pinned(valid, tx)


def _why_shaky(view: View, thing: Node | Event) -> Shaky | None:
    if thing.standing != "shaky":
        return None
    return next((each for each in view.shaky() if each.node.id == thing.id), None)


def _names(view: View, ids: Iterable[str]) -> dict[str, str]:
    with view.reading() as sight:
        found = {}
        for id, thing in sight.things_of(dict.fromkeys(ids)).items():
            words = thing.description if isinstance(thing, Event) else thing.text or ""
            found[id] = words[:120]
        return found


class Causes(Value):
    """A chain with the place of each of its things, and the lanes of arrows that go over others; `left_out`: how many more were reached."""

    chain: Chain
    places: tuple[Place, ...]
    lanes: tuple[Lane, ...]
    left_out: int


@registry.read("page")
def causes(
    view: Reader, ids: Iterable[str] | str, way: Way = "causes", depth: int = 5, direction: Direction = "both", limit: int = 200
) -> Causes:  # fmt: skip
    """What led to things (`causes`), what they led to (`effects`) or all within so many links (`walk`, in a direction), laid out from left to right in time.

    The nearest come first: of more than `limit` the rest is left out and counted. Raises NotFoundError, InvalidError.
    """
    if way not in ("causes", "effects", "walk"):
        raise InvalidError.choice("way", way, ("causes", "effects", "walk"))
    asked = [ids] if isinstance(ids, str) else list(ids)
    if not asked:
        raise InvalidError("ids is empty. Give the id of a thing, or several.")
    most, here = at_least_one("limit", limit), _fixed(view)
    if way == "walk":
        chains = [here.walk(asked, hops=depth, direction=direction)]
    else:
        chains = [getattr(here, way)(id, depth) for id in asked]
    things: dict[str, Any] = {each.root.id: each.root for each in chains}
    for each in chains:
        things.update((thing.id, thing) for thing in each.nodes)
    shown = dict(list(things.items())[:most])
    links = {
        link.id: link for each in chains for link in each.links if {link.source, link.target} <= shown.keys()
    }
    chain = Chain(
        root=chains[0].root,
        nodes=tuple(thing for id, thing in shown.items() if id != chains[0].root.id),
        links=tuple(list(links.values())[: 4 * most]),
        truncated=any(each.truncated for each in chains),
    )
    return _laid(chain, len(things) - len(shown))


def _laid(chain: Chain, left_out: int) -> Causes:
    starts = {
        each.id: instant(each.occurred_at if isinstance(each, Event) else each.valid_from)
        for each in (chain.root, *chain.nodes)
    }
    drawn = layout(starts, [(link.source, link.target) for link in chain.links])
    return Causes(chain=chain, places=tuple(drawn.places), lanes=tuple(drawn.lanes), left_out=left_out)


@registry.read("page")
def graph(view: Reader, ids: Iterable[str] | str, links: Iterable[str] = ()) -> Causes:
    """Things and links by their ids, such as an answer has, drawn as causes are: links between these things alone. Of more than 500 the rest is counted.

    Ids that are unknown here are left out. Raises NotFoundError where none is known, InvalidError for no ids.
    """
    asked, between = id_list("ids", ids), id_list("links", links)
    if not asked:
        raise InvalidError("ids is empty. Give the id of a thing, or several.")
    with view.reading() as sight:
        known = sight.things_of(asked)
        if not known:
            raise NotFoundError(f"none of the {len(asked):,} ids is known here. Ask for some that are.")
        things = dict(list(known.items())[:_IDS])
        stories = (link_story.inspected_by(sight.point, id) for id in between[: 4 * _IDS])
        found = [about.link for about in stories if about is not None]
        root, *others = things.values()
        kept = tuple(link for link in found if {link.source, link.target} <= things.keys())
        chain = Chain(root=root, nodes=tuple(others), links=kept, truncated=False)
        return _laid(chain, len(known) - len(things))
