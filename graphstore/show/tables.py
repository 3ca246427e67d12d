"""Renders values as rows of tables, and tables as CSV, Markdown and JSON, for the command line and the shell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel

from graphstore.values import findings, models
from graphstore.values.period import when
from graphstore.values.shared_path import SharedPath
from graphstore.values.text import clean, described, line, width

LABEL_LENGTH = 72
"""Columns of a thing in a line."""
# an underscore within a word is one in Markdown too
_MARKDOWN = re.compile(r"[\\|`*\[\]~$]|(?<![^\W_])_|_(?![^\W_])")


class Grid(NamedTuple):
    """Values under the heads of their columns."""

    columns: Sequence[str]
    rows: Iterable[Sequence[object]]


def label(thing: models.Node | models.Event | models.Version) -> str:
    """Return a thing in one line: its text or description, else its content."""
    return line(findings.words(thing), LABEL_LENGTH)


# ---- cells ------------------------------------------------------------------------------------


def cell(value: object) -> str:
    """Return one value for one cell, for a person."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, dict | list | tuple | BaseModel):
        return orjson.dumps(value, default=_plain, option=orjson.OPT_UTC_Z).decode()
    return str(value)


def value_cell(value: object) -> str:
    """Return a cell of a query's row: NULL is `null`; a node's statement is before its JSON, which leaves out what it does not have."""
    if value is None:
        return "null"
    if not isinstance(value, dict) or "_label" not in value:
        return cell(value)
    properties = cell({name: each for name, each in value.items() if each is not None})
    statement = value.get("text") or value.get("description")
    content = value.get("content")
    if not statement and isinstance(content, str) and content.startswith("{"):
        statement = described(orjson.loads(content), None)
    return f"{line(statement, LABEL_LENGTH)}  {properties}" if statement else properties


def json_text(value: object) -> bytes:
    """Return `value` as one JSON document in UTF-8: models as objects, instants in UTC with a Z."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(value, default=_plain, option=options)


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


def markdown_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as a Markdown table, a line each; what Markdown or HTML would make something of is escaped."""
    lines = [[_literal(cell(value)) for value in row] for row in rows]
    lines = [[_literal(name) for name in columns], ["---"] * len(columns), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _literal(text: str) -> str:
    escaped = _MARKDOWN.sub(r"\\\g<0>", clean(text)).replace("&", "&amp;").replace("<", "&lt;")
    return "<br>".join(escaped.splitlines())


# ---- columns ----------------------------------------------------------------------------------


def column_widths(rows: Sequence[Sequence[str]], widest: int | None = None) -> list[int]:
    """Return how wide each column of some rows is, at most `widest`."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return widths if widest is None else [min(each, widest) for each in widths]


def aligned(rows: Iterable[Sequence[str]], widths: Sequence[int], gap: str) -> Iterator[str]:
    """Yield each row as a line, without columns that are empty. A cell that is wider than its column pushes on the rest of its line."""
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield gap.join(each + " " * (wide - width(each)) for each, wide in cells if wide).rstrip()


# ---- rows -------------------------------------------------------------------------------------


def grid_of(values: Sequence[Any]) -> Grid:
    """Return values of one class under each other."""
    columns, row = (found_for(values[0], _COLUMNS) if values else None) or _ONE_COLUMN
    return Grid(columns, map(row, values))


def found_for(value: object, table: dict[str, Any]) -> Any:
    """Return what a table has for the class of a value, by the class's name; None if it has nothing. The class need not be imported for it."""
    names = (kind.__name__ for kind in type(value).__mro__)
    return next((table[name] for name in names if name in table), None)


def _ends(link: models.Link) -> str:
    ends = f"{link.source_standing} / {link.target_standing}"
    return "both" if ends == "stands / stands" else ends


def _side(change: findings.FieldChange, value: object, absent: str) -> str:
    """Return one side of a change; nothing where the field was not there."""
    if change.type == absent:
        return ""
    return "null" if value is None else cell(value)


_Columns = tuple[tuple[str, ...], Callable[[Any], tuple[object, ...]]]
_ONE_COLUMN: _Columns = (("",), lambda value: (value,))
_COLUMNS: dict[str, _Columns] = {
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
    "JoinCandidate": (
        ("id", "says", "may be", "says", "why"),
        lambda one: (one.node.id, label(one.node), one.into.id, label(one.into), one.why),
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
    "SessionInfo": (
        ("id", "began", "project", "name", "segments", "entries", "copied", "forked from", ""),
        lambda one: (
            one.id, when(one.started_at), one.project, one.name, one.segments, one.entries, one.copied or None, one.parent,
            "missing" if one.missing else None,
        ),
    ),
    "LayerStats": (
        ("layer", "chunks", "bytes", "oldest", "within a day"),
        lambda one: (one.layer or "no layer", one.chunks, one.bytes, one.oldest, one.expiring),
    ),
}  # fmt: skip
"""The heads of the columns of a class of values, and the cells of one of them."""


# ---- records: the rows of one answer, for programs ------------------------------------------------

Records = list[tuple[Any, ...]]


def records_of(value: object) -> Grid | None:
    """Return the answer as rows of values, such as a row for each step of a supersession; None for one that has no rows of its own."""
    found = found_for(value, _RECORDS)
    if found is None:
        return None
    columns, rows = found
    return Grid(columns, rows(value))


def fields_of(value: BaseModel, *without: str) -> Records:
    """Return the fields of a value, a row each."""
    return [(name, getattr(value, name)) for name in type(value).model_fields if name not in without]


def walked(chain: findings.Chain) -> Iterator[tuple[models.Node | models.Event, int, str | None]]:
    """Yield each thing of a chain under the one it was reached from: the thing, how deep, and the reason of the link."""
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


def _kind(thing: models.Node | models.Event) -> str:
    return thing.type if isinstance(thing, models.Event) else thing.kind


def _step(step: findings.Step) -> tuple[Any, ...]:
    thing = (step.node and step.node.id, step.node and label(step.node))
    return (findings.manner(step), *thing, step.who, step.why, step.since, step.recorded_at)


def _hit(rank: int, hit: Any) -> tuple[Any, ...]:
    node, path = hit.node, "; ".join(map(str, hit.path)) or None
    return (rank, node.id, _kind(node), label(node), round(hit.score, 4), hit.strength, path)


def _differences(found: findings.ViewDiff) -> Records:
    fields = "; ".join
    changed = (
        ("changed", "node", each.id, fields(f"{one.path}: {one.old} → {one.new}" for one in each.fields))
        for each in found.changed
    )
    return [
        *_changed("node", found.added, found.removed),
        *changed,
        *_changed("event", found.events_added, found.events_removed),
        *_changed("link", found.links_added, found.links_removed),
    ]


def _changed(what: str, added: Iterable[Any], removed: Iterable[Any]) -> Iterator[tuple[str, ...]]:
    for change, things in (("added", added), ("removed", removed)):
        for each in things:
            yield change, what, each.id, str(each) if what == "link" else label(each)


_RECORDS: dict[str, tuple[tuple[str, ...], Callable[[Any], Records]]] = {
    "Inspection": (("field", "value"), lambda found: fields_of(found.node, "links")),
    "Supersession": (
        ("how", "id", "says", "who", "why", "since", "recorded_at"),
        lambda found: [_step(step) for step in found.chain],
    ),
    "Chain": (
        ("depth", "id", "kind", "says", "reason"),
        lambda found: [
            (depth, thing.id, _kind(thing), label(thing), reason) for thing, depth, reason in walked(found)
        ],
    ),
    "Recalled": (
        ("rank", "id", "kind", "says", "score", "strength", "found by"),
        lambda found: [_hit(*each) for each in enumerate(found, 1)],
    ),
    "ViewDiff": (("change", "what", "id", "says"), _differences),
}
"""Of each class of answers the columns, and the rows of one: of an inspection the fields of its thing, of a chain how many links away each thing is."""
