"""What the command line prints: values of the store as words for people, and as JSON and CSV for other programs."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel

from graphstore.cli.pager import SHOWN, echo
from graphstore.store import sweeping
from graphstore.values import findings, models
from graphstore.values.findings import clauses, words
from graphstore.values.period import exactly, when
from graphstore.values.shared_path import SharedPath
from graphstore.values.text import clean, described, line

if TYPE_CHECKING:
    from rich.console import Console

LABEL_LENGTH = 72
NARROWEST = 8
"""Columns of a terminal for each of a table: where there are less, a row is one long line, so that nothing is squeezed away."""
DRAWN = 1000
"""Rows of a table that are formatted to fit a terminal: a million would take minutes and gigabytes."""
WIDEST = 60
"""Columns that a narrower cell is filled up to, in lines that are not formatted."""
# an underscore within a word is one in Markdown too
_MARKDOWN = re.compile(r"[\\|`*\[\]~$]|(?<![^\W_])_|_(?![^\W_])")


# ---- for other programs -----------------------------------------------------------------------


def as_json(value: object) -> None:
    """`value` as one JSON document: see `json_text`."""
    echo(json_text(value), nl=False)


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows with a header line: see `csv_text`."""
    echo(csv_text(columns, rows), nl=False)


def json_text(value: object) -> bytes:
    """`value` as one JSON document in UTF-8: models as objects, instants in UTC with a Z."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(value, default=_plain, option=options)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows with a header line; lists and objects as JSON, NULL as nothing."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in rows)
    return text.getvalue()


def markdown_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as a Markdown table, a line each; what Markdown or HTML would make something of is escaped."""
    lines = [[_literal(cell(value)) for value in row] for row in rows]
    lines = [[_literal(name) for name in columns], ["---"] * len(columns), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _literal(text: str) -> str:
    escaped = _MARKDOWN.sub(r"\\\g<0>", clean(text)).replace("&", "&amp;").replace("<", "&lt;")
    return "<br>".join(escaped.splitlines())


def _field(value: object) -> str:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else cell(value)


def _apart(instants: Iterable[datetime]) -> dict[datetime, str]:
    """Instants as a person reads them, those that share a second with its fraction."""
    each = set(instants)
    shown = Counter(map(when, each))
    return {at: when(at) if shown[when(at)] == 1 else exactly(at) for at in each}


def cell(value: object) -> str:
    """One value in one table cell, for a person."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, dict | list | tuple | BaseModel):
        return orjson.dumps(value, default=_plain, option=orjson.OPT_UTC_Z).decode()
    return str(value)


def value_cell(value: object) -> str:
    """A value of a row of a query: NULL is `null`; what a node says is before its JSON, which leaves out what it does not have."""
    if value is None:
        return "null"
    if not isinstance(value, dict) or "_label" not in value:
        return cell(value)
    has = cell({name: each for name, each in value.items() if each is not None})
    said = value.get("text") or value.get("description")
    content = value.get("content")
    if not said and isinstance(content, str) and content.startswith("{"):
        said = described(orjson.loads(content), None)
    return f"{line(said, LABEL_LENGTH)}  {has}" if said else has


def _plain(thing: Any) -> Any:
    if isinstance(thing, BaseModel):
        return thing.__dict__  # a value may be iterable as something else
    if isinstance(thing, Decimal):
        return int(thing) if thing == int(thing) else float(thing)
    if isinstance(thing, set | frozenset):
        return sorted(thing)
    if isinstance(thing, SharedPath):
        return list(thing)
    return str(thing)


# ---- for people -------------------------------------------------------------------------------


def console() -> Console:
    """Where people read: text as it is (no markup), a line each when it is piped on."""
    from rich.console import Console

    class Plain(Console):
        def print(self, *values: Any, **how: Any) -> None:
            super().print(*(clean(one) if isinstance(one, str) else one for one in values), **how)

    how: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    shown = SHOWN.get()
    if shown is None:
        return Plain(**how, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)
    return Plain(**how, file=shown.out, force_terminal=True, width=shown.columns)


def label(thing: models.Node | models.Event | models.Version) -> str:
    """A node or event in one line: its text or description, else its content."""
    return line(words(thing), LABEL_LENGTH)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], out: Console | None = None, indent: int = 0
) -> None:
    """Values under columns, with no lines around them; a column that is empty all the way down is left out. The rows of a query are `result_table`."""
    cells = [[cell(value) for value in row] for row in rows]
    shown = [number for number in range(len(columns)) if any(row[number] for row in cells)]
    out = out or console()
    if not cells:
        out.print("nothing.", style="dim")
        return
    grid(
        [columns[number] for number in shown],
        ([row[number] for number in shown] for row in cells),
        out,
        indent,
    )


def result_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """The rows of a query, with every column it asked for, and NULL as `null`."""
    grid(columns, ([value_cell(value) for value in row] for row in rows))
    if not rows:
        console().print("no rows.", style="dim")


def grid(
    columns: Sequence[str], cells: Iterable[Sequence[str]], out: Console | None = None, indent: int = 0
) -> None:
    """Cells under columns, with no lines around them; a line a row where they are many or no terminal shows them. Columns without names have no head."""
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    out = out or console()
    rows = [[clean(each) for each in row] for row in cells]
    if len(rows) > DRAWN or not out.is_terminal or len(columns) * NARROWEST > out.width:
        out.file.writelines(_lines([clean(name) for name in columns], rows, indent))
        return
    drawn = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", show_header=any(columns)
    )
    for name in columns:
        drawn.add_column(Text(clean(name)), overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))
    out.print(Padding(drawn, (0, 0, 0, indent), expand=False))


def _lines(names: list[str], rows: list[list[str]], indent: int) -> Iterator[str]:
    """Rows as lines, a column as wide as its widest cell, up to `WIDEST`: what is wider pushes on the rest of its line."""
    rows = [[" ".join(each.splitlines()) for each in row] for row in rows]
    widths = [min(max(_width(each) for each in column), WIDEST) for column in zip(names, *rows, strict=True)]
    begin = " " * indent
    if any(names):
        yield _line(begin, names, widths)
        yield begin + "─" * (sum(widths) + 3 * (len(widths) - 1)) + "\n"
    yield from (_line(begin, row, widths) for row in rows)


def _line(begin: str, row: list[str], widths: list[int]) -> str:
    padded = (each + " " * (width - _width(each)) for each, width in zip(row, widths, strict=True))
    return begin + "   ".join(padded).rstrip() + "\n"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def show(value: object, out: Console | None = None) -> None:
    """Any answer of the store, in words."""
    out = out or console()
    match value:
        case models.Node() | models.Event():
            _node(value, out)
        case findings.Inspection():
            _inspection(value, out)
        case findings.Supersession():
            _supersession(value, out)
        case findings.Chain():
            _chain(value, out)
        case findings.Verification():
            _verification(value, out)
        case models.Link():
            out.print(f"{value.id}  {value}, valid {when(value.valid_from)} → {when(value.valid_to)}")
        case dict():
            table(("", ""), [(str(name).replace("_", " "), one) for name, one in value.items()], out)
        case list() | tuple():
            _several(value, out)
        case str():
            out.print(value)
        case sweeping.Swept():  # asked last, since it has to be imported
            _swept(value, out)
        case _:
            out.print(str(value))


def _several(values: Sequence[Any], out: Console) -> None:
    match values:
        case [findings.Chain(), *_]:
            for chain in values:
                _chain(chain, out)
        case [findings.Change(), *_]:
            tx = _apart([one.tx for one in values])
            rows = [(tx[one.tx], one.verb, one.subject, one.author, one.reason) for one in values]
            table(("tx", "verb", "subject", "author", "reason"), rows, out)
        case _:
            kinds = type(values[0]).__mro__ if values else ()
            tables = (_TABLES.get(kind.__name__) for kind in kinds)
            columns, row = next(filter(None, tables), _ONE_COLUMN)
            table(columns, map(row, values), out)


def _ends(link: models.Link) -> str:
    ends = f"{link.source_standing} / {link.target_standing}"
    return "both" if ends == "stands / stands" else ends


def _side(change: findings.FieldChange, value: object, absent: str) -> str:
    """One side of a change; nothing where the field was not there."""
    if change.type == absent:
        return ""
    return "null" if value is None else cell(value)


_Table = tuple[tuple[str, ...], Callable[[Any], tuple[object, ...]]]
_ONE_COLUMN: _Table = (("",), lambda value: (value,))
_TABLES: dict[str, _Table] = {
    "Link": (
        ("source", "kind", "target", "since", "until", "strength", "ends stand", "reason", "id"),
        lambda link: (
            link.source, link.kind if link.confidence == "explicit" else f"possibly_{link.kind}", link.target,
            when(link.valid_from), when(link.valid_to, ""), link.strength, _ends(link), link.reason, link.id,
        ),
    ),
    "Version": (
        ("ref", "valid from", "valid to", "recorded", "by", "believed from", "believed to", "trigger", "source", "content"),
        lambda one: (
            one.ref, when(one.valid_from), when(one.valid_to), when(one.recorded_at), one.author, when(one.tx_from),
            when(one.tx_to, ""), one.trigger, one.source, label(one),
        ),
    ),
    "FieldChange": (
        ("", "field", "old", "new"),
        lambda one: (one.type, one.path, _side(one, one.old, "added"), _side(one, one.new, "removed")),
    ),
    "Contradiction": (
        ("", "one", "says", "other", "says", "kept", "reason"),
        lambda one: (
            "says so" if one.link is not None else one.about or "", one.source.id, label(one.source), one.target.id,
            label(one.target), one.decision or ("over" if one.settled else ""), None if one.link is None else one.link.reason,
        ),
    ),
    "Shaky": (
        ("id", "shaky", "rests on", "which is", "since", "why", "by"),
        lambda one: (
            one.node.id, label(one.node), one.root.id, one.root.standing, when(one.recorded_at), one.why, "; ".join(map(str, one.links)),
        ),
    ),
    "Reading": (
        ("id", "in an answer to", "at", "from", "as of", "as known at"),
        lambda one: (one.id, one.agent, when(one.at), one.call, when(one.valid), when(one.tx)),
    ),
    "Snapshot": (("snapshot", "valid", "tx", "by"), lambda one: (one.name, one.valid, one.tx, one.author)),
    "Doubt": (("version", "unsure", "why", "of"), lambda one: (one.ref, one.decision, one.reasoning, one.text)),
    "BranchInfo": (
        ("branch", "begins with", "transactions", "last", "merged"),
        lambda one: (one.name, when(one.forked_at), one.transactions, when(one.last_tx, ""), when(one.merged_at, "")),
    ),
}  # fmt: skip
"""How values are shown under each other, by the name of their class, which need not be imported: the heads of the columns, and the cells of a value."""


def _node(node: models.Node | models.Event, out: Console) -> None:
    number = f" v{node.number}" if isinstance(node, models.Node) else ""
    kind = node.kind if isinstance(node, models.Node) else node.type
    out.print(f"{node.id}  {kind}{number}", style="bold", end="  ")
    out.print(models.in_words(node.standing), style="green" if node.standing == "stands" else "yellow")
    if isinstance(node, models.Node):
        out.print(f"  valid     {when(node.valid_from)} → {when(node.valid_to)}")
    else:
        again = f" → {when(node.last_seen)}, {node.count} times" if node.count > 1 else ""
        out.print(f"  happened  {when(node.first_seen)}{again}{f', {node.status}' if node.status else ''}")
    if node.author or node.recorded_at != node.tx_from:
        out.print(f"  recorded  {when(node.recorded_at)}{f' by {node.author}' if node.author else ''}")
    out.print(f"  believed  {when(node.tx_from)} → {when(node.tx_to)}")
    about = dict(node)
    names = "key scope tags trigger source origin agent sender thread classification media_path description text".split()
    for name in names:
        value = about.get(name)
        if value:
            out.print(f"  {name:<9} {', '.join(value) if isinstance(value, tuple) else value}")
    body = node.content if isinstance(node, models.Node) else node.metadata
    if body:
        for line in orjson.dumps(body, default=_plain, option=orjson.OPT_INDENT_2).decode().splitlines():
            out.print(f"  {line}", soft_wrap=True)


def _inspection(found: findings.Inspection, out: Console) -> None:
    _node(found.node, out)
    for title, links in (("links", found.links), ("backlinks", found.backlinks)):
        if links:
            out.print(f"\n{title}", style="bold")
            _several(links, out)
    if found.same_topic:
        topics = (link.target for link in found.same_topic)
        out.print(f"\nof the same topic: {', '.join(topics)}", style="dim")
    if found.grounds is not None and found.grounds.of:
        out.print(f"\nrests on: {findings.counted(found.grounds)}", style="dim")
    if found.confirmations:
        out.print(f"\nconfirmations: {found.confirmations}", style="dim")
    if len(found.history) > 1:
        out.print("\nhistory", style="bold")
        _several(found.history, out)


def _supersession(found: findings.Supersession, out: Console) -> None:
    out.print(f"{found.subject.id}  {label(found.subject)}", style="bold")
    steps(found, out)
    for thing in found.current:
        word = "standing now" if found.chain else "nothing superseded it; standing"
        ref = thing.ref if isinstance(thing, models.Node) else thing.id
        out.print(f"  {word}: {ref}  {label(thing)}", style="green")
    if not found.current:
        out.print(f"  nothing stands in its place; it is {found.standing}.", style="yellow")


def steps(found: findings.Supersession, out: Console, most: int | None = None, begin: str = "  ") -> None:
    """The first steps of a supersession, in up to three lines each."""
    for step, of in list(zip(found.chain, found.of_steps, strict=True))[:most]:
        what, *more = clauses(step)
        ended = f"{of} " if step.node is None and of != found.subject.id else ""
        out.print(f"{begin}{ended}{what}" + (f"  {label(step.node)}" if step.node else ""), style="cyan")
        for part, style in zip(more, ("dim", ""), strict=False):
            out.print(f"{begin}   {part}", style=style)


def walked(chain: findings.Chain) -> Iterator[tuple[models.Node | models.Event, int, str | None]]:
    """Each thing of a chain under the one it was reached from: the thing, how deep, and the reason of the link."""
    things = {thing.id: thing for thing in (chain.root, *chain.nodes)}
    near: dict[str, list[tuple[str, str | None]]] = {}
    for link in chain.links:
        near.setdefault(link.source, []).append((link.target, link.reason))
        near.setdefault(link.target, []).append((link.source, link.reason))
    shown: set[str] = set()
    for root in things:  # a walk may have begun at several
        waiting: list[tuple[str, int, str | None]] = [] if root in shown else [(root, 0, None)]
        shown.add(root)
        while waiting:
            id, depth, reason = waiting.pop()
            yield things[id], depth, reason
            fresh = [(one, why) for one, why in near.get(id, ()) if one in things and one not in shown]
            shown.update(one for one, _ in fresh)
            waiting.extend((one, depth + 1, why) for one, why in reversed(fresh))


def _chain(chain: findings.Chain, out: Console) -> None:
    for thing, depth, reason in walked(chain):
        since = thing.valid_from if isinstance(thing, models.Node) else thing.occurred_at
        out.print(f"{'   ' * (depth - 1)}└─ " if depth else "", end="")
        out.print(label(thing), style="" if depth else "bold", end="")
        out.print(f"  {when(since)}  {thing.id}", style="dim")
        if reason:
            out.print(f"{'   ' * depth}because: {reason}", style="dim")
    if chain.truncated:
        out.print(
            "there is more than this; a greater --depth or --hops shows more of what is behind it.",
            style="yellow",
        )
    elif not chain.nodes:
        out.print("   nothing.", style="dim")


def review(found: Mapping[str, Sequence[Any]], out: Console | None = None) -> None:
    """What somebody should look at, under its names."""
    out = out or console()
    for title, values in found.items():
        out.print(title, style="bold")
        _several(values, out)


def _swept(found: sweeping.Swept, out: Console) -> None:
    if found.judged is not None:
        out.print(f"{found.judged} pairs judged: {len(found.contradicting)} links written.")
        _several(found.contradicting, out)
    if found.until is None:
        out.print("no extractor was asked.", style="dim")
    else:
        out.print(
            f"asked about {found.asked} things recorded after {when(found.since, 'the beginning')}: "
            f"{len(found.admitted)} links written, {len(found.refused)} proposals refused."
        )
    if found.admitted:
        _several(found.admitted, out)
    if found.counts:
        table(("refused", ""), found.counts.items(), out)
    for refusal in found.refused:
        if refusal.detail:
            out.print(
                f"  {refusal.proposal.source} {refusal.proposal.kind} {refusal.proposal.target}: {refusal.detail}"
            )
    out.print(
        f"{len(found.evicted)} evicted. Open: {found.contradictions} contradictions, {found.shaky} shaky things."
    )


def _verification(found: findings.Verification, out: Console) -> None:
    if found.ok:
        out.print(f"sound: {found.transactions} transactions ({', '.join(found.checked)}).", style="green")
    else:
        table(("file", "line", "problem"), [(one.file, one.line, one.message) for one in found.problems], out)


def report(found: Mapping[str, Any], out: Console | None = None) -> None:
    """The history of events as `events.history_report` gives it: each with its links below, then what keeps coming back, then all in a sentence."""
    out = out or console()
    rows: list[tuple[object, ...]] = []
    for event in found["events"]:
        often = f" ({event['count']} ×)" if event.get("count", 1) > 1 else ""
        asked = " (asked for)" if event.get("asked") else ""
        words = " ".join(event["description"].split())
        at = datetime.fromisoformat(event["timestamp"])
        rows.append((when(at), event["type"], event["status"] or "", f"{words}{often}{asked}", event["id"]))
        rows += [("", "", "", f"  {_reported_link(link)}", "") for link in event["links"]]
    if rows:
        table(("when", "type", "status", "description", "id"), rows, out)
    for pattern in found["patterns"]:
        out.print(pattern["description"], style="yellow")
    out.print(found["summary"])


def timeline(
    messages: Iterable[models.Event], added: Mapping[str, Iterable[models.Event]], out: Console | None = None
) -> None:
    """Messages under each other, newest first, each with what was added to it."""
    rows: list[tuple[Any, ...]] = []
    for one in messages:
        rows.append(
            (when(one.occurred_at), one.type, one.sender_name or one.sender, one.thread, label(one) or one.media_path,
             _mark(one), one.id)
        )  # fmt: skip
        for each in added.get(one.id, ()):
            what = each.type.partition("_")[2]
            rows.append((when(each.occurred_at), f"  {what}", each.agent, "", label(each), "", each.id))
    table(("when", "type", "from", "thread", "says", "", "id"), rows, out)


def _mark(message: models.Event) -> str:
    """Return the marks of a message: not authorized, and its standing unless it stands."""
    marks = [] if message.authorized else ["not authorized"]
    marks += [] if message.standing == "stands" else [models.in_words(message.standing)]
    return ", ".join(marks)


def _reported_link(link: Mapping[str, Any]) -> str:
    details = [link["confidence"]] if link["confidence"] != "explicit" else []
    details += [word for word in ("evicted",) if link.get("target_evicted")]
    details += [link["reason"]] if link.get("reason") else []
    return f"{link['relationship']} {link['target']}" + (f" ({', '.join(details)})" if details else "")
