"""What there is to show of a value: bars in time, arrows between them, tables. Nothing here knows how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from graphstore.values.findings import (
    Chain,
    Inspection,
    NodeChange,
    Step,
    Supersession,
    ViewDiff,
    manner,
    words,
)
from graphstore.values.models import Event, Link, Node, Version
from graphstore.values.period import during, moment, when
from graphstore.values.text import line, said
from graphstore.values.vocabulary import KINDS
from graphstore.view.sight import Sight
from graphstore.view.view import Reader

Manner = Literal["cause", "succession", "other"]
Thing = Node | Event | Version
_SUCCESSION = frozenset({"supersedes", "transition", "corrects"})
_SOLID = frozenset({"stands", "shaky", "not_yet"})
_THING_COLUMNS = ("when", "kind", "what", "standing", "recorded")
_LINK_COLUMNS = ("link", "reason", "holds", "recorded")


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of the picture: something that holds over a period, or that happened."""

    name: str
    """What arrows call it by."""
    kind: str
    words: str
    start: datetime
    end: datetime | None
    """Of an event, when it was last seen."""
    recorded_at: datetime
    standing: str
    happened: bool = False
    sign: str = ""
    link: bool = False
    unsaid: datetime | None = None
    """When this row of it was no longer believed; what took its place may be recorded by a link alone."""

    @property
    def pale(self) -> bool:
        """Return True if it no longer stands."""
        return self.standing not in _SOLID

    @property
    def period(self) -> str:
        """Return when it held or happened, in words."""
        if not self.happened:
            until = "" if self.unsaid is None else f", as believed until {when(self.unsaid)}"
            return during(self.start, self.end) + until
        return when(self.start) if self.end in (None, self.start) else during(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Arrow:
    """From the earlier to the later: from cause to effect, from the old to the new; else from source to target."""

    tail: str
    head: str
    manner: Manner
    label: str
    reason: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: the rows shown, and of how many."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    what: str = "rows"

    @property
    def hidden(self) -> int:
        """Return how many rows are not shown."""
        return self.total - len(self.rows)


@dataclass(frozen=True, slots=True)
class Scene:
    """Holds all there is to show of one value. `boxes` and `edges` are its graph; without boxes it is no graph."""

    title: str
    bars: tuple[Bar, ...] = ()
    total: int = 0
    arrows: tuple[Arrow, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    boxes: tuple[Bar, ...] = ()
    edges: tuple[Arrow, ...] = ()
    notes: tuple[str, ...] = ()
    here: datetime | None = None
    """The valid time it was looked at from."""
    root: str = ""
    """The box it is about."""


def scene(value: Any, most: int) -> Scene:
    """The scene of a value, with at most `most` of anything."""
    if isinstance(value, Scene):
        return replace(
            value, bars=value.bars[:most], boxes=value.boxes[:most], arrows=value.arrows[: 2 * most]
        )
    return next(_SCENES[kind] for kind in type(value).__mro__ if kind in _SCENES)(value, most)


# ---------------------------------------------------------------- things and links


def bar(thing: Thing, *, name: str | None = None, sign: str = "", standing: str | None = None) -> Bar:
    """The bar of a thing."""
    name = thing.id if name is None else name
    if isinstance(thing, Event):
        return Bar(
            name, thing.type, words(thing), thing.first_seen, thing.last_seen, thing.recorded_at,
            standing or thing.standing, happened=True, sign=sign,
        )  # fmt: skip
    found = standing or (thing.standing if isinstance(thing, Node) else "stands")
    return Bar(
        name, thing.kind, words(thing), thing.valid_from, thing.valid_to, thing.recorded_at, found,
        sign=sign, unsaid=thing.tx_to,
    )  # fmt: skip


def cut(each: Bar, link: Link | None) -> Bar:
    """The bar of something superseded, as it is believed since: it ends where the link that took its place begins."""
    if link is None or link.kind != "supersedes" or each.happened or each.unsaid is None:
        return each
    if each.end is not None and each.end <= link.valid_from:
        return each
    return replace(each, end=max(link.valid_from, each.start), unsaid=None)


def arrow(link: Link, tail: str | None = None, head: str | None = None) -> Arrow:
    """The arrow of a link; `tail` and `head` name its source and target otherwise than by id."""
    sentence = f"{link.source} {link.kind} {link.target}"
    return _arrow(tail or link.source, link.kind, head or link.target, link.reason or "", sentence)


def _arrow(source: str, name: str, target: str, reason: str, sentence: str) -> Arrow:
    kind = KINDS.get(name)
    if kind is not None and (kind.causal or name in _SUCCESSION):
        manner: Manner = "cause" if kind.causal else "succession"
        return Arrow(target, source, manner, kind.inverse, reason, sentence)
    return Arrow(source, target, "other", name, reason, sentence)


def arrows(links: Iterable[Link], shown: Iterable[Bar], most: int) -> tuple[Arrow, ...]:
    """The arrows among the bars shown, one for each pair and manner, at most twice as many as bars."""
    names = {each.name for each in shown}
    found: dict[tuple[str, str, str], Arrow] = {}
    for link in links:
        if link.source in names and link.target in names:
            each = arrow(link)
            found.setdefault((each.tail, each.head, each.manner), each)
            if len(found) >= 2 * most:
                break
    return tuple(found.values())


def things_scene(
    title: str, things: Sequence[Node | Event], total: int, links: Sequence[Link], most: int, here: datetime
) -> Scene:
    """The scene of some of the things of a view, in the order of time."""
    bars = _in_time(bar(each) for each in things[:most])
    return Scene(
        title, bars, total, arrows(links, bars, most), (thing_sheet(bars, total, "things"),), here=here
    )


def graph_scene(
    nodes: Iterable[Mapping[str, Any]], links: Iterable[tuple[str, Mapping[str, Any], str]], most: int
) -> Scene:
    """The scene of what a query found: its nodes that have a time, in the order of it, and the links between them, each a source, a link and a target."""
    found = {each["id"]: each for each in nodes if isinstance(each.get("id"), str)}
    bars = _in_time(one for each in found.values() if (one := _found_bar(each)) is not None)
    shown = bars[:most]
    names = {each.name for each in shown}
    drawn = {
        (source, target, link["_label"]): _arrow(
            source,
            name := str(link.get("kind") or link["_label"]).lower(),
            target,
            link.get("reason") or "",
            f"{source} {name} {target}",
        )
        for source, link, target in links
        if source in names and target in names
    }
    edges = tuple(drawn.values())[: 2 * most]
    return Scene("", shown, len(bars), edges, boxes=shown, edges=edges)


def _found_bar(found: Mapping[str, Any]) -> Bar | None:
    """The bar of a node of a query's answer; None where it says no time."""
    happened = "occurred_at" in found
    start = found.get("occurred_at" if happened else "valid_from")
    if not isinstance(start, datetime):
        return None
    end, told = found.get("last_seen" if happened else "valid_to"), found.get("tx_from")
    kind = found.get("type" if happened else "kind") or found["_label"]
    return Bar(
        found["id"], str(kind), str(found.get("description" if happened else "text") or ""), start, end if isinstance(end, datetime) else None,
        told if isinstance(told, datetime) else start, str(found.get("standing") or "stands"), happened=happened,
    )  # fmt: skip


def thing_sheet(bars: Sequence[Bar], total: int, what: str) -> Sheet:
    """The table of what the bars say."""
    rows = tuple(
        (each.period, each.kind, f"{each.words} [{each.name}]" if each.words else each.name, each.standing, when(each.recorded_at))
        for each in bars
    )  # fmt: skip
    return Sheet(_THING_COLUMNS, rows, total, what)


def link_sheet(links: Sequence[Link], most: int, signs: Sequence[str] = ()) -> Sheet:
    """The table of links, as sentences."""
    rows = [
        (f"{link.source} {link.kind} {link.target}", link.reason or "", during(link.valid_from, link.valid_to), when(link.recorded_at))
        for link in links[:most]
    ]  # fmt: skip
    if not signs:
        return Sheet(_LINK_COLUMNS, tuple(rows), len(links), "links")
    signed = tuple((sign, *row) for sign, row in zip(signs, rows, strict=False))
    return Sheet(("", *_LINK_COLUMNS), signed, len(links), "links")


def _in_time(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    return tuple(sorted(bars, key=lambda each: (each.start, each.recorded_at, each.name)))


def _called(thing: Thing) -> str:
    text = line(words(thing), 48)
    return f"{line(thing.id, 40)} ({text})" if text else line(thing.id, 40)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _tables(*sheets: Sheet) -> tuple[Sheet, ...]:
    return tuple(sheet for sheet in sheets if sheet.total)


# ---------------------------------------------------------------- a value each


def _chain(found: Chain, most: int) -> Scene:
    things = {thing.id: thing for thing in (found.root, *found.nodes)}
    taken = {link.target: link for link in reversed(found.links) if link.kind == "supersedes"}
    bars = _in_time(cut(bar(thing), taken.get(thing.id)) for thing in list(things.values())[:most])
    title = f"Chain from {_called(found.root)}: {_count(len(found.nodes), 'thing')} reached by {_count(len(found.links), 'link')}"
    drawn = arrows(found.links, bars, most)
    return Scene(
        title, bars, len(things), drawn,
        _tables(thing_sheet(bars, len(things), "things"), link_sheet(found.links, most)),
        bars, drawn, ("The depth asked for ends before the chain does.",) if found.truncated else (), root=found.root.id,
    )  # fmt: skip


def _supersession(found: Supersession, most: int) -> Scene:
    bars = [bar(found.subject, name=_version(found.subject), sign="asked")]
    names = {found.subject.id: bars[0].name}  # what arrows call the last bar of an id
    drawn: list[Arrow] = []
    for step in found.chain[: most - 1]:
        if step.node is None:
            continue
        name = _version(step.node)
        before = names.get(step.node.id if step.link is None else step.link.target)
        bars.append(bar(step.node, name=name))
        names[step.node.id] = name
        if before is not None and before != name:
            bars = [cut(each, step.link) if each.name == before else each for each in bars]
            drawn.append(_stepped(step, before, name))
    now = ", ".join(_called(each) for each in found.current[:4]) or "nothing"
    title = (
        f"Supersession of {_called(found.subject)}: {_count(len(found.chain), 'step')}; standing now: {now}"
    )
    total = 1 + sum(step.node is not None for step in found.chain)
    return Scene(
        title,
        tuple(bars),
        total,
        tuple(drawn),
        _tables(_steps(found, bars[0], most)),
        tuple(bars),
        tuple(drawn),
        root=bars[0].name,
    )


def _version(thing: Node | Event) -> str:
    return thing.ref if isinstance(thing, Node) else thing.id


def _stepped(step: Step, before: str, after: str) -> Arrow:
    if step.link is not None:
        return arrow(step.link, tail=after, head=before)
    return Arrow(before, after, "succession", step.how, step.why or "", f"{before} {step.how} as {after}")


def _steps(found: Supersession, asked: Bar, most: int) -> Sheet:
    rows: list[tuple[str, ...]] = [
        ("asked", _called(found.subject), asked.period, when(found.subject.recorded_at), "", "", found.standing)
    ]  # fmt: skip
    for step, of in zip(found.chain[: most - 1], found.of_steps, strict=False):
        thing = step.node
        rows.append(
            (
                manner(step),
                of if thing is None else _called(thing),
                "" if step.since is None else when(step.since),
                when(step.recorded_at),
                step.who or "",
                step.why or "",
                "" if thing is None else thing.standing,
            )
        )
    columns = ("how", "what", "since", "recorded", "who", "why", "standing")
    return Sheet(columns, tuple(rows), 1 + len(found.chain), "steps")


def _inspection(found: Inspection, most: int) -> Scene:
    thing = found.node
    own = [_version_bar(each, found) for each in found.history[-max(most // 3, 1) :]] or [bar(thing)]
    touching = [*found.links, *found.backlinks]
    near = [_neighbour(link, outward=True) for link in found.links[:most]]
    near += [_neighbour(link, outward=False) for link in found.backlinks[:most]]
    shares = _in_time(near)[: max(most - len(own), 1)]
    shown = {each.name for each in shares}
    drawn = [arrow(link, *_ends(link, found, own)) for link in touching if link.id in shown]
    title = (
        f"Inspection of {_called(thing)}, which {_is(thing.standing)}: {_count(len(found.links), 'link')} from it, "
        f"{_count(len(found.backlinks), 'link')} to it, {_count(len(found.history), 'row')} of history"
    )
    bars = (*own, *shares)
    total = max(len(found.history), 1) + len(touching)
    sheets = _tables(
        thing_sheet(own, max(len(found.history), 1), "versions"),
        link_sheet(touching, most, ["→"] * len(found.links) + ["←"] * len(found.backlinks)),
    )
    return Scene(
        title, bars, total, tuple(each for each in drawn if each.manner != "other"), sheets, *_star(found, most),
        root=thing.id,
    )  # fmt: skip


def _is(standing: str) -> str:
    return {"stands": "stands", "not_yet": "is not yet"}.get(standing, f"is {standing}")


def _version_bar(version: Version, found: Inspection) -> Bar:
    standing = found.node.standing
    here = isinstance(found.node, Node) and version.number == found.node.number
    alone = sum(each.ref == version.ref for each in found.history) == 1
    name = version.ref if alone else f"{version.ref} from {when(version.valid_from)}"
    return bar(version, name=name, standing=standing if here else "superseded")


def _neighbour(link: Link, outward: bool) -> Bar:
    other = link.target if outward else link.source
    standing = link.target_standing if outward else link.source_standing
    label = other if not link.reason else f"{other}: {link.reason}"
    return Bar(
        link.id, link.kind, label, link.valid_from, link.valid_to, link.recorded_at, standing,
        sign="→" if outward else "←", link=True,
    )  # fmt: skip


def _ends(link: Link, found: Inspection, own: Sequence[Bar]) -> tuple[str, str]:
    """The bars between which a link of an inspection runs: the version that held when it began, and the link's own."""
    holding = [
        each.name for each in own if each.start <= link.valid_from and (each.end is None or link.valid_from < each.end)
    ]  # fmt: skip
    mine = holding[-1] if holding else own[-1].name
    return (mine, link.id) if link.source == found.node.id else (link.id, mine)


def _star(found: Inspection, most: int) -> tuple[tuple[Bar, ...], tuple[Arrow, ...]]:
    """The thing and its neighbours as boxes."""
    taken = next((link for link in found.backlinks if link.kind == "supersedes"), None)
    boxes = {found.node.id: cut(bar(found.node), taken)}
    touching = [*found.links[: most // 2 + 1], *found.backlinks[: most // 2 + 1]]
    for link in touching:
        for other, standing in ((link.source, link.source_standing), (link.target, link.target_standing)):
            boxes.setdefault(
                other, Bar(other, "", "", link.valid_from, None, link.recorded_at, standing, link=True)
            )
    return tuple(boxes.values()), tuple(arrow(link) for link in touching)


def _view_diff(found: ViewDiff, most: int) -> Scene:
    signed: list[tuple[str, Node | Event | NodeChange]] = [("~", each) for each in found.changed]
    signed += [*(("+", each) for each in found.added), *(("+", each) for each in found.events_added)]
    signed += [*(("−", each) for each in found.removed), *(("−", each) for each in found.events_removed)]
    rows, bars = [], []
    for sign, each in signed[:most]:
        thing = each.after if isinstance(each, NodeChange) else each
        bars.append(bar(thing, sign=sign, standing="ended" if sign == "−" else None))
        rows.append(
            (sign, bars[-1].period, bars[-1].kind, _called(thing), _changes(each), when(thing.recorded_at))
        )
    links = [*found.links_added, *found.links_removed]
    counts = (
        (len(found.added) + len(found.events_added), "added"),
        (len(found.removed) + len(found.events_removed), "removed"),
        (len(found.changed), "changed"),
        (len(found.links_added), "links added"),
        (len(found.links_removed), "links removed"),
    )
    title = ", ".join(f"{number:,} {word}" for number, word in counts if number) or "no difference"
    signs = ["+"] * len(found.links_added) + ["−"] * len(found.links_removed)
    columns = ("", "when", "kind", "what", "differs in", "recorded")
    return Scene(
        f"ViewDiff: {title}", tuple(bars), len(signed), arrows(links, bars, most),
        _tables(Sheet(columns, tuple(rows), len(signed), "things"), link_sheet(links, most, signs)),
    )  # fmt: skip


def _changes(each: Node | Event | NodeChange) -> str:
    if not isinstance(each, NodeChange):
        return ""
    parts = []
    for field in each.fields[:5]:
        old = "" if field.type == "added" else f"{line(said(field.old), 24)} "
        new = "gone" if field.type == "removed" else line(said(field.new), 24)
        parts.append(f"{field.path}: {old}→ {new}")
    more = len(each.fields) - 5
    return "; ".join(parts) + (f"; {more} more" if more > 0 else "")


_SCENES: dict[type, Callable[[Any, int], Scene]] = {
    Chain: _chain,
    Supersession: _supersession,
    Inspection: _inspection,
    ViewDiff: _view_diff,
}


# ---------------------------------------------------------------- a view


def glance(reader: Reader, most: int) -> Scene:
    """The last things recorded that stand at the reader's coordinate, at most `most` of them, the links between them, and how many more there are."""
    title = repr(reader).strip("<>")
    if reader._why_closed:
        return Scene(title)
    with reader.reading() as sight:
        last, count = sight.latest(most)
        links = _between(set(last), sight)
        return things_scene(title, list(map(sight.thing, last)), count, links, most, moment(sight.valid))


def _between(shown: set[int], sight: Sight) -> list[Link]:
    """The links that hold here among some things."""
    rows = [
        row
        for ent in sorted(shown)
        for edge in sight.edges(ent, "out")
        if edge.target in shown and (row := sight.held(edge.link)) >= 0
    ]
    return [sight.link(row) for row in sorted(rows, key=sight.link_order)]
