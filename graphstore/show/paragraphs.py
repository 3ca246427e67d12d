"""Renders values as text for people: styled lines, and tables. The command line, the shell and the tour print them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from graphstore.show.tables import Grid, found_for, grid_of, json_text, label, walked
from graphstore.values import findings, models
from graphstore.values.period import exactly, when
from graphstore.values.time_range import plural


class StyledLine(NamedTuple):
    """A line of text: its parts, each with a style such as `bold`. One that is not folded may be longer than the screen is wide."""

    parts: tuple[tuple[str, str], ...]
    is_folded: bool = True


Blocks = Iterator[StyledLine | Grid]


def paragraphs(value: object, most: int | None = None) -> Blocks:
    """Return any answer of the store in words; of a supersession or a chain only the first `most` steps or things."""
    if isinstance(value, findings.Supersession):
        return _supersession(value, most)
    if isinstance(value, findings.Chain):
        return _chain(value, most)
    if isinstance(value, dict):
        return iter([Grid(("", ""), [(str(name).replace("_", " "), one) for name, one in value.items()])])
    if isinstance(value, list | tuple):
        return _several(value)
    written = found_for(value, _WRITTEN)
    return iter([_styled(str(value))]) if written is None else written(value)


def _styled(text: str, style: str = "") -> StyledLine:
    return StyledLine(((text, style),))


def _several(values: Sequence[Any]) -> Blocks:
    match values:
        case [findings.Chain(), *_]:
            for chain in values:
                yield from _chain(chain)
        case [findings.Change(), *_]:
            tx = _distinct([one.tx for one in values])
            rows = [(tx[one.tx], one.verb, one.subject, one.author, one.reason) for one in values]
            yield Grid(("tx", "verb", "subject", "author", "reason"), rows)
        case [dict() as first, *_]:
            yield Grid(list(first), [list(row.values()) for row in values])
        case _:
            yield grid_of(values)


def _distinct(instants: Iterable[datetime]) -> dict[datetime, str]:
    """Return instants as a person reads them, those that share a second with its fraction."""
    each = set(instants)
    shown = Counter(map(when, each))
    return {at: when(at) if shown[when(at)] == 1 else exactly(at) for at in each}


# ---- things and what is known of them -----------------------------------------------------------

_FIELDS = "key scope tags trigger source origin agent sender thread classification media_path description text".split()


def _thing(thing: models.Node | models.Event) -> Blocks:
    number = f" v{thing.number}" if isinstance(thing, models.Node) else ""
    kind = thing.kind if isinstance(thing, models.Node) else thing.type
    style = "green" if thing.standing == "stands" else "yellow"
    yield StyledLine(
        ((f"{thing.id}  {kind}{number}", "bold"), ("  ", ""), (models.in_words(thing.standing), style))
    )
    if isinstance(thing, models.Node):
        yield _styled(f"  valid     {when(thing.valid_from)} → {when(thing.valid_to)}")
    else:
        again = f" → {when(thing.last_seen)}, {thing.count} times" if thing.count > 1 else ""
        status = f", {thing.status}" if thing.status else ""
        yield _styled(f"  happened  {when(thing.first_seen)}{again}{status}")
    if thing.author or thing.recorded_at != thing.tx_from:
        by = f" by {thing.author}" if thing.author else ""
        yield _styled(f"  recorded  {when(thing.recorded_at)}{by}")
    yield _styled(f"  believed  {when(thing.tx_from)} → {when(thing.tx_to)}")
    about = dict(thing)
    for name in _FIELDS:
        value = about.get(name)
        if value:
            yield _styled(f"  {name:<9} {', '.join(value) if isinstance(value, tuple) else value}")
    body = thing.content if isinstance(thing, models.Node) else thing.metadata
    if body:
        for text in json_text(body).decode().splitlines():
            yield StyledLine(((f"  {text}", ""),), is_folded=False)


def _link(link: models.Link) -> Blocks:
    yield _styled(f"{link.id}  {link}, valid {when(link.valid_from)} → {when(link.valid_to)}")


def _inspection(found: findings.Inspection) -> Blocks:
    yield from _thing(found.node)
    for title, links in (("links", found.links), ("backlinks", found.backlinks)):
        if links:
            yield _styled(f"\n{title}", "bold")
            yield grid_of(links)
    if found.same_topic:
        topics = (link.target for link in found.same_topic)
        yield _styled(f"\nof the same topic: {', '.join(topics)}", "dim")
    if found.grounds is not None and found.grounds.of:
        yield _styled(f"\nrests on: {findings.counted(found.grounds)}", "dim")
    if found.confirmations:
        yield _styled(f"\nconfirmations: {found.confirmations}", "dim")
    if len(found.history) > 1:
        yield _styled("\nhistory", "bold")
        yield grid_of(found.history)


def _supersession(found: findings.Supersession, most: int | None = None) -> Blocks:
    """Each step of a supersession in up to three lines, then what stands now."""
    yield _styled(f"{found.subject.id}  {label(found.subject)}", "bold")
    for step, ended in list(zip(found.chain, found.of_steps, strict=True))[:most]:
        what, *more = findings.clauses(step)
        begin = f"{ended} " if step.node is None and ended != found.subject.id else ""
        yield _styled(f"  {begin}{what}" + (f"  {label(step.node)}" if step.node else ""), "cyan")
        for part, style in zip(more, ("dim", ""), strict=False):
            yield _styled(f"     {part}", style)
    yield from _left_out(len(found.chain), most, "steps")
    for thing in found.current:
        word = "standing now" if found.chain else "nothing superseded it; standing"
        ref = thing.ref if isinstance(thing, models.Node) else thing.id
        yield _styled(f"  {word}: {ref}  {label(thing)}", "green")
    if not found.current:
        yield _styled(f"  nothing stands in its place; it is {found.standing}.", "yellow")


def _left_out(count: int, most: int | None, what: str) -> Blocks:
    if most is not None and count > most:
        yield _styled(f"  … and {count - most:,} more {what}", "dim")


def _chain(chain: findings.Chain, most: int | None = None) -> Blocks:
    for thing, depth, reason in list(walked(chain))[: None if most is None else most + 1]:
        since = thing.valid_from if isinstance(thing, models.Node) else thing.occurred_at
        begin = f"{'   ' * (depth - 1)}└─ " if depth else ""
        style = "" if depth else "bold"
        yield StyledLine(((begin, ""), (label(thing), style), (f"  {when(since)}  {thing.id}", "dim")))
        if reason:
            yield _styled(f"{'   ' * depth}because: {reason}", "dim")
    yield from _left_out(len(chain.nodes), most, "things")
    if chain.truncated:
        deeper = "there is more than this; a greater --depth or --hops shows more of what is behind it."
        yield _styled(deeper, "yellow")
    elif not chain.nodes:
        yield _styled("   nothing.", "dim")


# ---- reports ------------------------------------------------------------------------------------


def review(found: Mapping[str, Sequence[Any]]) -> Blocks:
    """Return what somebody should look at, under its names."""
    for title, values in found.items():
        yield _styled(title, "bold")
        yield from _several(values)
        yield from (_styled(f"  → {each.call}", "dim") for each in values)


def _swept(found: Any) -> Blocks:
    if found.judged is not None:
        yield _styled(f"{found.judged} pairs judged: {len(found.contradicting)} links written.")
        yield grid_of(found.contradicting)
    if found.until is None:
        yield _styled("no extractor was asked.", "dim")
    else:
        yield _styled(
            f"asked about {found.asked} things recorded after {when(found.since, 'the beginning')}: "
            f"{len(found.admitted)} links written, {len(found.refused)} proposals refused."
        )
    if found.admitted:
        yield grid_of(found.admitted)
    if found.counts:
        yield Grid(("refused", ""), found.counts.items())
    for refusal in found.refused:
        if refusal.detail:
            proposal = refusal.proposal
            yield _styled(f"  {proposal.source} {proposal.kind} {proposal.target}: {refusal.detail}")
    yield _styled(
        f"{len(found.evicted)} evicted. Open: {found.contradictions} contradictions, {found.shaky} shaky things."
    )


def _verification(found: findings.Verification) -> Blocks:
    if found.ok:
        yield _styled(f"sound: {found.transactions} transactions ({', '.join(found.checked)}).", "green")
    else:
        yield Grid(("file", "line", "problem"), [(one.file, one.line, one.message) for one in found.problems])


def _memory(found: Any) -> Blocks:
    yield grid_of(found.layers)
    yield _styled(f"{plural(found.chunks, 'chunk')}, at most {found.cap:,}.")


def _session(found: Any) -> Blocks:
    """Yield what a session holds, a line for each that is not empty."""
    version = f" {found.version}" if found.version is not None else ""
    counted = (
        f"{found.entries:,}, {found.content_entries:,} of content, in {plural(found.segments, 'segment')}"
    )
    entries = "entry" if found.copied == 1 else "entries"
    lasted = "" if found.duration_minutes is None else f", {found.duration_minutes:,} minutes"
    rows = {
        "session": f"{found.session_id} ({found.format}{version})",
        "name": found.name,
        "folder": found.cwd,
        "forked from": found.parent_session,
        "copied": f"{found.copied:,} {entries}, not counted below" if found.copied else None,
        "entries": counted,
        "time": f"{when(found.started_at)} → {when(found.ended_at)}{lasted}",
        "boundaries": _counts(found.boundaries),
        "types": _counts(found.types),
        "messages": _counts(found.messages),
        "tools": _counts(found.tools),
        "tool errors": found.tool_errors and str(found.tool_errors),
        "models": _counts(found.models),
        "tokens": _counts({name.replace("_", " "): count for name, count in found.tokens if count}),
        "cost": None if found.cost is None else f"${found.cost:,.4f}",
        "warnings": _counts(found.warnings) or "none",
    }
    for name, value in rows.items():
        if value:
            yield _styled(f"{name:<12} {value}")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def report(found: Mapping[str, Any]) -> Blocks:
    """Return the history of events as `events.history_report` gives it: each with its links below, then what keeps coming back, then all in a sentence."""
    rows: list[tuple[object, ...]] = []
    for event in found["events"]:
        often = f" ({event['count']} ×)" if event.get("count", 1) > 1 else ""
        asked = " (asked for)" if event.get("asked") else ""
        words = " ".join(event["description"].split())
        at = datetime.fromisoformat(event["timestamp"])
        rows.append((when(at), event["type"], event["status"] or "", f"{words}{often}{asked}", event["id"]))
        rows += [("", "", "", f"  {_reported_link(link)}", "") for link in event["links"]]
    if rows:
        yield Grid(("when", "type", "status", "description", "id"), rows)
    for pattern in found["patterns"]:
        yield _styled(pattern["description"], "yellow")
    yield _styled(found["summary"])


def _reported_link(link: Mapping[str, Any]) -> str:
    details = [link["confidence"]] if link["confidence"] != "explicit" else []
    details += [word for word in ("evicted",) if link.get("target_evicted")]
    details += [link["reason"]] if link.get("reason") else []
    return f"{link['relationship']} {link['target']}" + (f" ({', '.join(details)})" if details else "")


def timeline(page: Mapping[str, Any]) -> Blocks:
    """Return a page of messages under each other, newest first, each with what was added to it."""
    rows: list[tuple[Any, ...]] = []
    for one in page["events"]:
        rows.append(
            (when(one.occurred_at), one.type, one.sender_name or one.sender, one.thread, label(one) or one.media_path,
             _mark(one), one.id)
        )  # fmt: skip
        for each in page["added"].get(one.id, ()):
            what = each.type.partition("_")[2]
            rows.append((when(each.occurred_at), f"  {what}", each.agent, "", label(each), "", each.id))
    yield Grid(("when", "type", "from", "thread", "says", "", "id"), rows)
    if page["cursor"] is not None:
        yield _styled(f"more: --cursor {page['cursor']}")


def _mark(message: models.Event) -> str:
    """Return the marks of a message: not authorized, and its standing unless it stands."""
    marks = [] if message.authorized else ["not authorized"]
    marks += [] if message.standing == "stands" else [models.in_words(message.standing)]
    return ", ".join(marks)


_WRITTEN: dict[str, Callable[[Any], Blocks]] = {
    "Node": _thing,
    "Event": _thing,
    "Link": _link,
    "Inspection": _inspection,
    "Verification": _verification,
    "Swept": _swept,
    "MemoryStats": _memory,
    "SessionStatistics": _session,
}
"""What a value of a class says, by the name of the class, which need not be imported."""
