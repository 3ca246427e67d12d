"""Imports records of others as knowledge: tables and JSON lines by a mapping, a repository's history by its own rules.

Real files are partly broken. A row that cannot be read is reported with file, line and reason, and the rest is kept. A mapping that names a column
missing in the file is refused before anything is written.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson

from graphstore.errors import ConflictError, GraphStoreError, InvalidError
from graphstore.imports.row_files import Row, Unreadable, rows_of
from graphstore.store import registry
from graphstore.store.import_report import Damage as Damage
from graphstore.store.import_report import Importing, ImportReport
from graphstore.values.models import Event
from graphstore.values.period import OPEN, Instant, Period, exactly, instant, moment, without_all

if TYPE_CHECKING:
    from graphstore.imports.git import GitReport
    from graphstore.store.store import Store

Format = Literal["csv", "jsonl"]
Progress = Callable[[int, int], None]

TIMES = ("valid_from", "valid_to", "tx_from", "tx_to")
SETTINGS = {"id", "kind", "key", "scope", "text", "source", "reason", "tags", "content", "types", "links",
            "timezone", *TIMES}  # fmt: skip
LINK_SETTINGS = {"kind", "target", "separator", "reason"}
MUST_NAME_A_COLUMN = ("id", "key", "text")
_COLUMN = re.compile(r"\{([^{}]+)\}")


class RowsReport(ImportReport):
    """What an import of rows wrote and what it left out."""

    rows: int
    nodes: int
    versions: int
    links: int

    _read, _written = "rows", ("versions", "links")

    def _headline(self) -> str:
        return f"{self.rows} rows: {self.nodes} nodes, {self.versions} versions, {self.links} links"


@registry.write("imports", files=("path",))
def import_git(
    store: Store, path: str | Path, *, ref: str = "HEAD", progress: Progress | None = None
) -> GitReport:
    """Write a repository's history: a node per file, a version per change, an event per commit.

    Importing again adds only the new commits. Raises InvalidError when there is no repository, or no dulwich to read it.
    """
    try:
        from graphstore.imports import git
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith("dulwich"):
            raise
        raise InvalidError("git needs dulwich. Install it: pip install 'graphstore[git]'") from None
    return git.import_git(store, path, ref=ref, progress=progress)


@registry.write("imports", files=("path", "mapping"))
def import_csv(
    store: Store, path: str | Path, mapping: Row | str | Path, *, progress: Progress | None = None
) -> RowsReport:
    """Write the rows of a table with a header. See `import_rows`."""
    return import_rows(store, path, mapping, format="csv", progress=progress)


@registry.write("imports", files=("path", "mapping"))
def import_jsonl(
    store: Store, path: str | Path, mapping: Row | str | Path, *, progress: Progress | None = None
) -> RowsReport:
    """Write records, one JSON object a line. See `import_rows`."""
    return import_rows(store, path, mapping, format="jsonl", progress=progress)


@registry.write("imports", files=("path_or_rows", "mapping"))
def import_rows(
    store: Store,
    path_or_rows: str | Path | Iterable[Row],
    mapping: Row | str | Path,
    *,
    format: Format = "csv",
    progress: Progress | None = None,
) -> RowsReport:
    """Write each row as one version of the node its id names, and the links it states.

    `mapping` is a dict, or a TOML or JSON file. A text in it is a template (`"{product}/{cycle}"`), the name of a
    column, or, for `kind`, `scope`, `source`, `reason`, tags, times and link targets, itself:

        id = "{product}/{cycle}"        # rows with one id are versions of one node
        kind = "release"
        key = "product"                 # optional, as are all below
        scope = "endoflife"
        text = "{product} {cycle}"
        tags = ["release", "{lts}"]     # empty ones are left out
        content = "*"                   # every column; or a list of them; or a table: name = "template"
        valid_from = "release_date"     # ISO 8601; an empty cell is no argument
        valid_to = "eol_date"
        tx_from = "recorded"            # then every row needs one; a transaction for each instant, in order
        tx_to = "withdrawn"             # the row is taken back there, and its links with it
        timezone = "Europe/Berlin"      # of times that name none; without it they are damage
        types = { downloads = "int" }   # of content: int, float, bool, json; a CSV cell is text without
        [[links]]
        kind = "superseded_by"          # any name of the vocabulary; the link holds while the row does
        target = "{successors}"         # an id
        separator = " "                 # the cell names several
        reason = "{note}"

    Empty cells of a CSV are left out of the content. Column names in templates may reach into JSON: `{author.name}`.
    Raises InvalidError for a mapping that does not fit the file.
    """
    plan = _RecordMapping(_read_mapping(mapping))
    name, read = rows_of(path_or_rows, format)
    table = _RowsImport(store, name)
    rows = list(read)
    plan.check({column for _, row in rows if isinstance(row, Mapping) for column in row})
    for line, row in rows:
        try:
            if isinstance(row, str):
                raise Unreadable(row)
            table.add(line, plan.record(row))
        except (Unreadable, InvalidError) as damage:
            table.leave(line, str(damage))
    table.load(progress)
    return table.report(rows=len(rows))


def _read_mapping(mapping: Row | str | Path) -> dict[str, Any]:
    if isinstance(mapping, Mapping):
        return dict(mapping)
    path = Path(mapping)
    form, loads = ("JSON", json.loads) if path.suffix == ".json" else ("TOML", tomllib.loads)
    try:
        found = loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidError(f"the mapping {str(path)!r} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise InvalidError(f"the mapping {str(path)!r} is no {form}: {error}") from None
    if not isinstance(found, dict):
        raise InvalidError(f"the mapping {str(path)!r} is no table of settings.")
    return found


# ---- the mapping ------------------------------------------------------------------------------


def _cell(row: Row, column: str) -> Any:
    """Return the value of a column, or of a path into nested objects."""
    if column in row:
        return row[column]
    found: Any = row
    for part in column.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value if value.strip() else ""
    if isinstance(value, date):
        return value.isoformat()
    return "" if value != value else json.dumps(value, ensure_ascii=False, default=str)


class _Template:
    """A template `"{product}/{cycle}"`, the name of a column, or a constant. The columns of the file distinguish the last two."""

    def __init__(self, setting: str, text: Any) -> None:
        if not isinstance(text, str):
            raise InvalidError(f"the mapping's {setting} {text!r} is no text. Give a column or '{{column}}'.")
        self.setting = setting
        self.text = text
        self.columns = _COLUMN.findall(text)

    def settle(self, columns: set[str], *, constant: bool) -> None:
        """Decide between column and constant. Raise InvalidError for a column that the file does not have."""
        if not self.columns and self.text in columns:
            self.text, self.columns = f"{{{self.text}}}", [self.text]
        wrong = [each for each in self.columns if columns.isdisjoint((each, each.split(".")[0]))]
        if not (self.columns or constant):
            wrong = [self.text]
        if wrong:
            raise InvalidError.choice(f"column in the mapping's {self.setting}", wrong[0], columns)

    def filled(self, row: Row) -> str:
        """Return the filled template; empty if one of its columns is."""
        cells = {column: _written(_cell(row, column)) for column in self.columns}
        if not all(cells.values()):
            return ""
        return _COLUMN.sub(lambda found: cells[found[1]], self.text)

    def each(self, row: Row, separator: str | None) -> list[str]:
        """Return the template filled once for each part of its column."""
        if separator is None:
            return [filled for filled in [self.filled(row)] if filled]
        [column] = self.columns
        value = _cell(row, column)
        parts = map(_written, value) if isinstance(value, list) else _written(value).split(separator)
        return [self.filled({column: part.strip()}) for part in parts if part.strip()]


@dataclass(slots=True)
class _LinkPlan:
    kind: str
    target: _Template
    separator: str | None
    reason: _Template | None


@dataclass(slots=True)
class _Record:
    """A row ready to be written."""

    id: str
    kind: str
    key: str | None
    scope: str
    version: dict[str, Any]
    times: dict[str, Instant | None]
    links: list[tuple[str, str, str | None]] = field(default_factory=list)


def _bool(text: str) -> bool:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in known:
        raise ValueError(f"{text!r} is neither true nor false")
    return known[text.lower()]


_TYPES: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "json": json.loads, "bool": _bool}


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content if it is JSON that the store can hold. Raise Unreadable otherwise."""
    try:
        orjson.dumps(content)
    except (TypeError, ValueError) as error:  # an integer beyond 64 bits, a set in a list
        raise Unreadable(f"content is no JSON: {error}") from None
    if any(isinstance(value, float) and not math.isfinite(value) for value in content.values()):
        raise Unreadable("content is no JSON: a number is not finite")
    return content


class _RecordMapping:
    """Holds a mapping, read and checked."""

    def __init__(self, mapping: dict[str, Any]) -> None:
        for setting in mapping:
            if setting not in SETTINGS:
                raise InvalidError.choice("setting in the mapping", setting, SETTINGS)
        for setting in ("id", "kind"):
            if setting not in mapping:
                raise InvalidError(f"the mapping has no {setting}. Give a column or '{{column}}'.")
        plain = ("id", "kind", "key", "scope", "text", "source", "reason", *TIMES)
        self.templates = {name: _Template(name, mapping[name]) for name in plain if name in mapping}
        tags = mapping.get("tags", [])
        self.tags = [_Template("tags", tag) for tag in ([tags] if isinstance(tags, str) else tags)]
        self.content = mapping.get("content", "*")
        self.types = dict(mapping.get("types", {}))
        for kind in self.types.values():
            if kind not in _TYPES:
                raise InvalidError.choice("type in the mapping's types", kind, _TYPES)
        self.zone = zone_named(mapping.get("timezone"))
        self.links = [_link_plan(link) for link in mapping.get("links", [])]
        self.fields: dict[str, _Template] = {}

    def check(self, columns: set[str]) -> None:
        """Match the mapping with the columns of the file. Raise InvalidError for a missing column."""
        if not columns:
            return
        content = self.content
        if content == "*":
            content = sorted(columns)
        if isinstance(content, (list, tuple)):
            content = {column: f"{{{column}}}" for column in content}
        if not isinstance(content, Mapping):
            raise InvalidError(f"the mapping's content {content!r} is neither '*', a list nor a table.")
        self.fields = {name: _Template("content", text) for name, text in content.items()}
        for name, template in self.templates.items():
            template.settle(columns, constant=name not in MUST_NAME_A_COLUMN)
            if name in TIMES and not template.columns:
                self._instant(template.text, name)
        for template in (*self.fields.values(), *self.tags, *(link.target for link in self.links)):
            template.settle(columns, constant=template.setting != "content")
        for link in self.links:
            if link.reason:
                link.reason.settle(columns, constant=True)
            if link.separator is not None and len(link.target.columns) != 1:
                raise InvalidError(f"with a separator, target {link.target.text!r} must name one column.")

    def record(self, row: Row) -> _Record:
        """Return the row ready to be written. Raise Unreadable, or InvalidError for an invalid time."""
        filled = {name: template.filled(row) for name, template in self.templates.items()}
        if not filled["id"]:
            raise Unreadable("no id")
        if not filled["kind"]:
            raise Unreadable("no kind")
        times = {name: self._instant(filled[name], name) if filled.get(name) else None for name in TIMES}
        self._check_times(times)
        content = {name: self._value(row, name, template) for name, template in self.fields.items()}
        version = {
            "node_id": filled["id"],
            "content": _checked({name: value for name, value in content.items() if value is not None}),
            "text": filled.get("text") or None,
            "tags": [tag for template in self.tags if (tag := template.filled(row))],
            "source": filled.get("source") or None,
            "reason": filled.get("reason") or None,
        }
        links = [
            (link.kind, target, link.reason.filled(row) or None if link.reason else None)
            for link in self.links
            for target in link.target.each(row, link.separator)
        ]
        place = filled.get("key") or None, filled.get("scope", "")
        return _Record(filled["id"], filled["kind"], *place, version, times, links)

    def _check_times(self, times: dict[str, Instant | None]) -> None:
        for start, stop in (("valid_from", "valid_to"), ("tx_from", "tx_to")):
            first, last = times[start], times[stop]
            if first is not None and last is not None and first >= last:
                word = "empty" if first == last else "inverted"
                raise Unreadable(f"{word} period: {start} {exactly(first)}, {stop} {exactly(last)}")
        if "tx_from" in self.templates and times["tx_from"] is None:
            raise Unreadable("no tx_from")
        if times["tx_to"] is not None and times["tx_from"] is None:
            raise Unreadable("a tx_to without tx_from")

    def _value(self, row: Row, name: str, template: _Template) -> Any:
        """Return a field of the content. A template of one column keeps the JSON type."""
        plain = len(template.columns) == 1 and template.text == f"{{{template.columns[0]}}}"
        value = _cell(row, template.columns[0]) if plain else template.filled(row)
        if value is None or value != value or (isinstance(value, str) and not value.strip()):
            return None  # pandas writes a missing value as NaN
        if not isinstance(value, (str, bool, int, float, list, dict)):
            return _written(value)
        if name not in self.types or not isinstance(value, str):
            return value
        try:
            return _TYPES[self.types[name]](value)
        except ValueError as error:
            raise Unreadable(f"{name} is no {self.types[name]}: {error}") from None

    def _instant(self, text: str, what: str) -> Instant:
        if self.zone is not None:
            try:
                parsed = datetime.fromisoformat(text.strip())
            except ValueError:
                return instant(text, what)
            return instant(parsed if parsed.tzinfo else parsed.replace(tzinfo=self.zone), what)
        return instant(text, what)


def zone_named(name: Any) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        message = f"unknown timezone {name!r} in the mapping. Give 'UTC', 'Europe/Berlin' …"
        raise InvalidError(message) from None


def _link_plan(link: Any) -> _LinkPlan:
    if not isinstance(link, Mapping) or not {"kind", "target"} <= link.keys():
        raise InvalidError(f"a link in the mapping needs kind and target, got {link!r}.")
    for setting in link:
        if setting not in LINK_SETTINGS:
            raise InvalidError.choice("setting of a link in the mapping", setting, LINK_SETTINGS)
    separator = link.get("separator")
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise InvalidError(f"the separator {separator!r} of a link in the mapping is no text.")
    reason = _Template("links.reason", link["reason"]) if "reason" in link else None
    return _LinkPlan(link["kind"], _Template("links.target", link["target"]), separator, reason)


# ---- writing ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _PendingRow:
    """A record to write, with what was written of it so far."""

    line: int
    record: _Record
    number: int = 0
    links: list[str] = field(default_factory=list)
    over: bool = False


@dataclass(slots=True)
class _RowBatch:
    """Holds what one transaction writes: rows no longer believed, and rows believed from then on."""

    closed: list[_PendingRow] = field(default_factory=list)
    opened: list[_PendingRow] = field(default_factory=list)


GONE = "not in the source any more"
_SUPERSEDING = ("supersedes", "superseded_by")
"""These links begin with the successor, not with the row that names it."""


class _RowsImport(Importing[RowsReport]):
    """Imports records. It knows all their ids, so rows may name later ones."""

    def __init__(self, store: Store, file: str) -> None:
        super().__init__(store, file, RowsReport)
        self.rows: list[_PendingRow] = []
        self.known: set[str] = set()  # ids that the store has
        self.ids: set[str] = set()
        self.written: dict[str, _PendingRow] = {}
        self.standing: defaultdict[str, list[tuple[_PendingRow, Period]]] = defaultdict(list)
        self.waiting: dict[str, list[tuple[_PendingRow, int]]] = {}
        self.stated: Counter[str] = Counter()

    def add(self, line: int, record: _Record) -> None:
        """Add a record."""
        self.rows.append(_PendingRow(line, record))

    def load(self, progress: Progress | None) -> None:
        """Write everything. Rows and links that the store refuses are reported as damaged."""
        if any(row.record.times["tx_from"] is not None for row in self.rows):
            with self.store.together():
                self._leave_other_kinds()
                self._replay(progress)
        else:
            self._leave_other_kinds()
            if self.rows and not self._load_at_once(progress):
                with self.store.transaction():
                    self._find_known()
                    self._write(_RowBatch(opened=self.rows), progress)
        for target, waiting in self.waiting.items():
            for row, at in waiting:
                self.leave(row.line, _no_target(row.record.links[at][0], target))

    def _leave_other_kinds(self) -> None:
        """Leave out records whose node has another kind: in the store, else in its first record."""
        self._find_known()
        kinds: dict[str, str] = {}
        for row in self.rows:
            id, kind = row.record.id, row.record.kind
            if id not in kinds:
                thing = self.store.inspect(id).node if id in self.known else None
                kinds[id] = kind if thing is None else thing.type if isinstance(thing, Event) else thing.kind
            if kinds[id] != kind:
                self.leave(row.line, f"{id!r} is a {kinds[id]!r}, not a {kind!r}")
        self.rows = [row for row in self.rows if kinds[row.record.id] == row.record.kind]
        self.ids = {row.record.id for row in self.rows}

    def _find_known(self) -> None:
        """Find which of the records' nodes the store has. A prefix of another id does not count."""
        with self.store.reading(is_narrow=True) as sight:
            self.known = {row.record.id for row in self.rows if sight.entity(row.record.id) >= 0}

    def _is_known(self, id: str) -> bool:
        """Return True if the store has exactly this id."""
        return id in self.known or self.store.knows(id)

    def _maker(self, kind: str) -> str:
        """Return the creator of a link that a row states: an extractor, or the user if extractors may not make this kind."""
        name = self.store.vocabulary.canonical(kind)
        return "extractor" if "extractor" in self.store.vocabulary.kinds[name].creators else "user"

    # everything is recorded now: one bulk load, unless it refuses a row

    def _load_at_once(self, progress: Progress | None) -> bool:
        new = {row.record.id: row.record for row in reversed(self.rows) if row.record.id not in self.known}
        nodes = [{"id": id, "kind": one.kind, "key": one.key, "scope": one.scope} for id, one in new.items()]
        versions = [{**row.record.version, "trigger": "import", **_period(row.record)} for row in self.rows]
        links, missing = [], []
        for row in self.rows:
            for kind, target, reason in row.record.links:
                if not (target in self.ids or self._is_known(target)):
                    missing.append((row.line, _no_target(kind, target)))
                    continue
                period = {} if kind in _SUPERSEDING else _period(row.record)
                ends = {"source": row.record.id, "kind": kind, "target": target}
                links.append({**ends, "reason": reason, "created_by": self._maker(kind), **period})
        try:
            done = self.store.bulk_load(nodes=nodes, versions=versions, links=links, progress=progress)
        except (InvalidError, ConflictError):
            return False
        for line, reason in missing:
            self.leave(line, reason)
        self.counts.update({name: done.get(name, 0) for name in ("nodes", "versions", "links")})
        return True

    # a history: one transaction for each instant

    def _replay(self, progress: Progress | None) -> None:
        batches: dict[Instant, _RowBatch] = {}
        for row in self.rows:
            begin, end = row.record.times["tx_from"], row.record.times["tx_to"]
            assert begin is not None
            batches.setdefault(begin, _RowBatch()).opened.append(row)
            if end is not None:
                batches.setdefault(end, _RowBatch()).closed.append(row)
        for at in sorted(batches):
            batch = batches[at]
            try:
                with self.store.transaction(at=moment(at)):
                    self._write(batch, progress)
            except InvalidError as refused:
                for row in (*batch.closed, *batch.opened):
                    self.leave(row.line, str(refused))

    def _write(self, batch: _RowBatch, progress: Progress | None) -> None:
        for row in batch.closed:
            self._take_back(row)
        known = []
        for row in batch.opened:
            try:
                self._describe(row)
            except (InvalidError, ConflictError) as refused:
                self.leave(row.line, str(refused))
                continue
            known.append(row)
            if progress and self.counts["versions"] % 256 == 0:
                progress(self.counts["versions"], len(self.rows))
        for row in known:
            for at in range(len(row.record.links)):
                self._link(row, at)
            for earlier, at in self.waiting.pop(row.record.id, ()):
                if not earlier.over:
                    self._link(earlier, at)
        for row in batch.closed:
            self._unlink(row)

    def _describe(self, row: _PendingRow) -> None:
        record, store = row.record, self.store
        rest = {name: value for name, value in record.version.items() if name not in ("node_id", "content")}
        start = record.times["valid_from"]
        began = store.at.tx if start is None else moment(start)
        end = moment(OPEN if record.times["valid_to"] is None else record.times["valid_to"])
        content = record.version["content"]
        if record.id in self.known:
            node = store.revise(record.id, content, valid_from=began, valid_to=end, trigger="import", **rest)
        else:
            node = store.add_node(
                record.kind, content, id=record.id, key=record.key, scope=record.scope,
                valid_from=began, valid_to=end, trigger="import", **rest,
            )  # fmt: skip
            self.known.add(record.id)
            self.counts["nodes"] += 1
        before = self.written.get(record.id)
        same_tx = before and before.record.times["tx_from"] == record.times["tx_from"]
        if before and same_tx and before.number == node.number:
            before.number = 0  # wholly replaced at the same instant: its number is used again
        row.number = node.number
        self.written[record.id] = row
        self.standing[record.id].append((row, (instant(began), instant(end))))
        self.counts["versions"] += 1

    def _take_back(self, row: _PendingRow) -> None:
        """Retract what remains of a row, except where a later row replaced it or states the same."""
        others = [(other, during) for other, during in self.standing[row.record.id] if other is not row]
        self.standing[row.record.id] = others
        if not row.number:
            return
        shared = [during for other, during in others if other.number == row.number]
        with self.store.reading(is_narrow=True) as sight:
            believed = sight.believed_periods(row.record.id, row.number)
        for whole in believed:
            for start, stop in without_all(whole, shared):
                during: dict[str, Any] = {"valid_from": moment(start), "valid_to": moment(stop)}
                self.store.retract(row.record.id, **during, reason=GONE)

    def _link(self, row: _PendingRow, at: int) -> None:
        kind, target, reason = row.record.links[at]
        if not self._is_known(target):
            if target in self.ids:  # a row that comes later
                self.waiting.setdefault(target, []).append((row, at))
            else:
                self.leave(row.line, _no_target(kind, target))
            return
        period: dict[str, Any] = {} if kind in _SUPERSEDING else _period(row.record)
        try:
            link = self.store.link(
                row.record.id, kind, target, reason=reason, created_by=self._maker(kind), **period
            )
        except GraphStoreError as refused:
            self.leave(row.line, f"link {kind} {target!r}: {refused}")
            return
        self.counts["links"] += not self.stated[link.id]
        self.stated[link.id] += 1
        row.links.append(link.id)

    def _unlink(self, row: _PendingRow) -> None:
        """Unlink the links that no row states any more."""
        row.over = True
        for id in row.links:
            self.stated[id] -= 1
            if not self.stated[id]:
                self.store.unlink(id, reason=GONE)


def _period(record: _Record) -> dict[str, datetime | None]:
    return {
        name: None if (at := record.times[name]) is None else moment(at)
        for name in ("valid_from", "valid_to")
    }


def _no_target(kind: str, target: str) -> str:
    return f"link {kind}: there is no {target!r}"
