"""Imports and exports the event log of Gasoline: one JSON object per line, with its links.

A log states what the store derives from links and times. So a status becomes the link that makes it true, what was evicted there is evicted here,
and unknown fields of the log are kept in the metadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.imports.gasoline_lines import APART, Record, Stated, is_same, record_of, set_apart, stated_of
from graphstore.imports.records import Progress
from graphstore.imports.row_files import Row, json_rows
from graphstore.ledger.files import new_file
from graphstore.store import registry
from graphstore.store.import_report import Importing, ImportReport
from graphstore.values.event_fields import EVENT_TEXTS, differing
from graphstore.values.fingerprints import MENDING, NEVER_OPEN, fingerprint
from graphstore.values.models import Event, Json, Link
from graphstore.values.period import OPEN, Instant, instant, iso, moment
from graphstore.values.vocabulary import Kind
from graphstore.view.rows import NumberedRows
from graphstore.view.view import Reader
from graphstore.write.recording import occur

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

LOG = "events.jsonl"
CONFIG = ".gasoline.json"
EVICTED_TYPE, EVICTED = "unknown", "[evicted]"
"""The type and description of an event that the log names but does not contain."""
RESOLVED = "Resolved, as imported"
FORGOTTEN = ("evicted", "erased")
SUSPECTED = ("caused_by", "resolved_by")
"""The kinds that a log calls `possibly_…` when they are inferred."""
_REFUSED = (InvalidError, ConflictError, NotFoundError)
_Ends = tuple[str, str, str]  # source, kind, target


class GasolineReport(ImportReport):
    """What an import of a log wrote and what it left out. `warnings`: what it could keep only in other words."""

    lines: int
    events: int
    occurrences: int
    links: int
    known: int
    resolutions: int = 0
    """Made for events whose line says resolved and names nothing that resolved them."""
    evicted: int = 0
    """Events that the log only names."""
    retention_days: int | None = None

    _read, _written, _unchanged = "lines", ("events", "occurrences", "links", "resolutions"), "known"
    _counted = {
        "occurrences": "occurrences",
        "known": "known already",
        "resolutions": "resolutions made",
        "evicted": "evicted before",
        "damaged": "damaged",
    }

    def _headline(self) -> str:
        return f"{self.lines} lines: {self.events} new events, {self.links} new links"


@registry.write("gasoline", files=("path",))
def import_gasoline(
    store: GraphStore, path: str | Path, *, progress: Progress | None = None
) -> GasolineReport:
    """Write the events and links of a log in one transaction. The same log again changes nothing.

    `path` is an `events.jsonl`, or a folder that has one at `.gasoline/history` or `history`. `progress` is called with lines done and in all.
    The `history_retention_days` of a `.gasoline.json` becomes the store's, unless it has its own. Raises InvalidError when there is no log.
    """
    log = _log_at(Path(path))
    with log.open("rb") as file:
        total = sum(1 for _ in file)
    taken = _LogImport(store, log)
    with store.transaction(reason=f"imported from {log.name}"):
        for line, row in json_rows(log):
            taken.line(line, row)
            if progress and line % 512 == 0:
                progress(line, total)
        taken.finish()
    taken.forget()
    days = _keep_retention(store, log, taken.warnings)
    if progress:
        progress(total, total)
    return taken.report(retention_days=days)


# ---- finding the log -------------------------------------------------------------------------


def _log_at(path: Path) -> Path:
    if path.is_file():
        return path
    places = [path / ".gasoline" / "history" / LOG, path / "history" / LOG, path / LOG]
    for place in places:
        if place.is_file():
            return place
    raise InvalidError(
        f"there is no Gasoline log at {str(path)!r}. Give an {LOG}, or a folder with .gasoline/history/{LOG}."
    )


def _keep_retention(store: GraphStore, log: Path, warnings: list[str]) -> int | None:
    """Set the store's retention from the log's configuration, unless the store has its own. Return the days now in effect."""
    kept: int | None = store.retention["days"]
    config = config_of(log)
    if config is None:
        return kept
    try:
        days = _retention_in(config)
    except InvalidError as wrong:
        warnings.append(f"{config}: {wrong}")
        return kept
    if days is None or days == kept:
        return kept
    if kept is not None:
        warnings.append(
            f"{config}: history_retention_days is {days}, this store keeps {kept} days already and goes on to."
        )
        return kept
    store.set_retention(**{**store.retention, "days": days})
    return days


def config_of(log: Path) -> Path | None:
    """Return the configuration in the log's folder, or in the folder that holds its `.gasoline` or `history`; None if there is none."""
    folder = log.absolute().parent
    while True:
        if (folder / CONFIG).is_file():
            return folder / CONFIG
        if folder.name not in ("history", ".gasoline"):
            return None
        folder = folder.parent


def _retention_in(config: Path) -> int | None:
    try:
        settings = orjson.loads(config.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise InvalidError(f"it cannot be read ({error}). The store's retention is as it was.") from None
    days = settings.get("history_retention_days") if isinstance(settings, dict) else None
    if days is None and isinstance(settings, dict):
        return None
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        raise InvalidError(
            f"history_retention_days {days!r} is no whole number of days, 1 or more. The store's retention is as it was."
        )
    return days


# ---- writing the events -----------------------------------------------------------------------


class _LogImport(Importing[GasolineReport]):
    """Imports the events of a log line by line, then what needs all of them: links, statuses, and events that the log only names."""

    store: GraphStore

    def __init__(self, store: GraphStore, log: Path) -> None:
        super().__init__(store, log, GasolineReport)
        self.named: dict[str, tuple[str, Instant]] = {}  # what the log has or names: type, first instant
        self.fresh: set[str] = set()
        self.links: list[Stated] = []
        self.broken: set[str] = set()  # ids of lines that were left out
        self.absent: list[str] = []  # ids that are named but exist nowhere
        self.later: list[tuple[_Ends, Stated]] = []  # links that the instant made up for such an id forbids
        self.waiting: list[Record] = []  # status superseded: the link may come later
        self.forgotten: list[str] = []  # ids in the log that were evicted or erased here
        self.statuses: dict[str, tuple[int, str, Instant]] = {}  # status and last instant of new events

    def line(self, line: int, row: Row | str) -> None:
        """Import one line. A damaged part is reported, and the rest of the line is kept."""
        self.counts["lines"] += 1
        if isinstance(row, str):
            return self.leave(line, row)
        try:
            record = record_of(line, row)
            if record.status == "superseded":
                self.waiting.append(record)
            else:
                self._event(record)
        except _REFUSED as refused:
            if isinstance(row.get("id"), str):
                self.broken.add(row["id"])
            return self.leave(line, str(refused))
        self.named.setdefault(record.id, (record.type, record.instants[0]))
        return self._read_links(record, row.get("links"))

    def finish(self) -> None:
        """Write what needs the whole log."""
        stated = self._sentences()
        replaced = {target for _, kind, target in stated if kind == "supersedes"}
        for record in self.waiting:
            self._superseded(record, record.id in replaced)
        for ends, one in stated.items():
            self._link(ends, one)
        linked = {source for source, kind, _ in stated if kind == "resolved_by"}
        for id, (line, status, last) in self.statuses.items():
            self._status(id, line, status, None if id in linked else last)
        if self.forgotten:
            few = ", ".join(self.forgotten[:3]) + (" …" if len(self.forgotten) > 3 else "")
            self.warnings.append(
                f"{self.file}: {len(self.forgotten)} events were forgotten here before, and were left so: {few}"
            )

    def forget(self) -> None:
        """Evict the events that the log only names, so that links to them show it. Then write the links that had to wait."""
        if self.absent:
            self.counts["evicted"] = len(self.store.evict(ids=self.absent))
            self.absent.clear()
        if self.later:
            with self.store.transaction(reason=f"imported from {Path(self.file).name}"):
                for ends, one in self.later:
                    self._link(ends, one)

    # ---- events

    def _thing(self, id: str) -> Any:
        """Return what the store has under exactly this id, with any standing; None if there is nothing."""
        if not self.store.knows(id):
            return None
        return self.store.inspect(id).node

    def _event(self, record: Record) -> None:
        known = self._thing(record.id)
        if known is not None:
            self._again(record, known)
            return
        first = record.reported
        again = (Counter(record.instants) - Counter([first])).elements()
        self.store.record_event(
            record.type, record.description, id=record.id, occurred_at=moment(first), **record.fields
        )
        self._occur(record, again)
        self.counts["events"] += 1
        self.fresh.add(record.id)
        if record.status is not None:
            self.statuses[record.id] = (record.line, record.status, record.instants[-1])

    def _again(self, record: Record, known: Any) -> None:
        """Handle an event that is already known. The log may know more occurrences of it. Raise ConflictError if its content differs."""
        if known.standing in FORGOTTEN:
            self.forgotten.append(record.id)
            return
        told, first = self._told(record.id) if isinstance(known, Event) else ([], {})
        there = Counter(at for at, _ in told)
        if not there.keys() & set(record.instants) or not is_same(record, known, first):
            raise ConflictError(f"{record.id!r} is known with other content. An event is never revised.")
        self.counts["known"] += 1
        if known.standing == "retracted":
            return
        self._occur(record, (Counter(record.instants) - there).elements())
        if record.status == "resolved":
            self.statuses[record.id] = (record.line, record.status, record.instants[-1])

    def _told(self, id: str) -> tuple[list[tuple[Instant, Json]], Json]:
        with self.store.reading(ahead=OPEN, is_narrow=True) as sight:
            return _told(sight, id)

    def _occur(self, record: Record, instants: Iterable[Instant]) -> None:
        fields = {**record.fields, "metadata": record.metadata or None, "description": record.description}
        first: Json = {}
        for at in instants:
            first = first or self._told(record.id)[1]
            with self.store.verb(is_narrow=True) as work:
                occur(work, record.id, at, differing(first, {**fields, **record.said.get(at, {})}))
            self.counts["occurrences"] += 1

    def _superseded(self, record: Record, linked: bool) -> None:
        if not linked:
            metadata = record.metadata
            if "status" in metadata:
                metadata = set_apart(metadata, {"status": "superseded"})
            else:
                metadata["status"] = "superseded"
            record = replace(record, fields={**record.fields, "metadata": metadata}, status=None)
            words = f"{record.id!r} has status superseded and nothing supersedes it; kept in its metadata."
            self.warn(record.line, words)
        try:
            self._event(record)
        except _REFUSED as refused:
            self.leave(record.line, str(refused))

    # ---- links

    def _read_links(self, record: Record, entries: Any) -> None:
        if entries is None:
            return
        if not isinstance(entries, list):
            self.leave(record.line, f"links {entries!r} are no list; the event was kept")
            return
        for entry in entries:
            try:
                self.links.append(stated_of(record.line, record.id, entry))
            except InvalidError as refused:
                self.leave(record.line, f"{refused}; the event was kept")

    def _sentences(self) -> dict[_Ends, Stated]:
        """Return each link once, as it will be stored; of two lines with the same link the explicit one. Also handle ids that exist nowhere."""
        found: dict[_Ends, Stated] = {}
        for one in self.links:
            try:
                self._name(one)
                kind, stored = self._sentence(one)
            except _REFUSED as refused:
                self.leave(one.line, f"link {one.name} {one.target!r}: {refused}")
                continue
            ends = (stored.source, kind, stored.target)
            back = (stored.target, kind, stored.source)
            if self.store.vocabulary.kinds[kind].symmetric and back in found:
                ends = back
            before = found.get(ends)
            if before is None or (before.confidence, stored.confidence) == ("inferred", "explicit"):
                found[ends] = stored
            elif before.fields != stored.fields:
                self.warn(
                    one.line,
                    f"{one.source!r} {one.name} {one.target!r} stands at line {before.line} with other fields, which were kept.",
                )
        return found

    def _name(self, one: Stated) -> None:
        """Find type and instant of both ends. Record an id that exists nowhere as an event, to be evicted later."""
        for id in (one.source, one.target):
            if id in self.named:
                continue
            if id in self.broken:
                raise NotFoundError("its own line is damaged")
            thing = self._thing(id)
            if thing is None:
                at = min(
                    self.named[other.source][1]
                    for other in self.links
                    if other.target == id and other.source in self.named
                )
                self.store.record_event(EVICTED_TYPE, EVICTED, id=id, occurred_at=moment(at), origin="system")
                self.absent.append(id)
                self.named[id] = (EVICTED_TYPE, at)
                continue
            event = isinstance(thing, Event)
            begun = thing.occurred_at if event else thing.valid_from
            self.named[id] = (thing.type if event else "", instant(begun))
            if event and (thing.type, thing.description, thing.standing) == (EVICTED_TYPE, EVICTED, "stands"):
                self.absent.append(id)  # an earlier import was interrupted before evicting it

    def _sentence(self, one: Stated) -> tuple[str, Stated]:
        """Return the kind of a link in the store's vocabulary, and the link in that kind's direction."""
        vocabulary = self.store.vocabulary
        try:
            sentence = vocabulary.sentence(one.source, one.name, one.target, one.confidence)
        except InvalidError:
            fields = {**one.fields, "metadata": {**one.fields["metadata"], "relationship": one.name}}
            words = f"{one.source!r} {one.name} {one.target!r}: no such kind of link; kept as related_to."
            self.warn(one.line, words)
            return "related_to", replace(one, fields=fields)
        source, target = sentence.source, sentence.target
        types = self.named[source][0], self.named[target][0]
        if sentence.kind.name == "resolved_by" and types[0] in MENDING and types[1] not in NEVER_OPEN:
            source, target = target, source
        return sentence.kind.name, replace(one, source=source, target=target, confidence=sentence.confidence)

    def _link(self, ends: _Ends, one: Stated) -> None:
        source, kind, target = ends
        if self._is_there(ends, one.confidence):
            return
        since = self._since(ends)
        fields: dict[str, Any] = {
            "created_by": _maker(one.confidence, self.store.vocabulary.kinds[kind]),
            "valid_from": moment(since),
            **one.fields,
        }
        try:
            self.store.link(source, kind, target, confidence=one.confidence, **fields)
        except _REFUSED as refused:
            if source in self.absent or target in self.absent:
                self.later.append((ends, one))
            else:
                self.leave(one.line, f"link {one.name} {one.target!r}: {refused}; the event was kept")
            return
        self.counts["links"] += 1

    def _since(self, ends: _Ends) -> Instant:
        """Return the start of a link: the later of its ends. A resolution begins at its target, a causal link at its source."""
        source, kind, target = ends
        if kind == "resolved_by":
            return self.named[target][1]
        if self.store.vocabulary.kinds[kind].causal:
            return self.named[source][1]
        return max(self.named[source][1], self.named[target][1])

    def _is_there(self, ends: _Ends, confidence: str) -> bool:
        source, kind, target = ends
        if source in self.fresh or target in self.fresh or target in self.absent:
            return False
        links = [link for link in self.store.links_from(source, kinds=kind) if link.target == target]
        if self.store.vocabulary.kinds[kind].symmetric:
            links += [link for link in self.store.backlinks_to(source, kinds=kind) if link.source == target]
        return any(confidence in ("inferred", link.confidence) for link in links)

    # ---- statuses

    def _status(self, id: str, line: int, stated: str, last: Instant | None) -> None:
        """Resolve an event with status resolved at its `last` instant, if the log has no link for it. Warn if links and times contradict the status."""
        is_now = self._thing(id).status
        if stated == "resolved" and is_now == "active" and last is not None:
            self._resolve(id, last)
            is_now = self._thing(id).status
        if id not in self.fresh or is_now == stated or (is_now is None and stated != "resolved"):
            return  # a log gives a status even to types without one, such as deploys
        found = f"by its links and their times it is {is_now}" if is_now else "events of its type have none"
        self.warn(line, f"{id!r} has status {stated}; {found}.")

    def _resolve(self, id: str, at: Instant) -> None:
        same = fingerprint("resolution", RESOLVED, id)
        name, when = f"evt_{at // 1000}_{same[:8]}", moment(at)
        recorded = self.store.record_event(
            "resolution", RESOLVED, id=name, occurred_at=when, origin="system", fingerprint=same
        )
        if recorded.is_new:
            inferred: Any = {"confidence": "inferred", "created_by": "store", "valid_from": when}
            self.store.link(id, "resolved_by", name, reason=RESOLVED, **inferred)
            self.counts["resolutions"] += 1


# ---- export -----------------------------------------------------------------------------------


@registry.read("gasoline", files=("path",))
def export_gasoline(view: Reader, path: str | Path) -> int:
    """Write the events that have happened in a view as a log, the newest last. Gives their number.

    A line has the fields of the document, and beside them what only this store knows: `fingerprint`, `occurrences` after the first,
    what each `said` otherwise, when the first was `reported`, `recorded`, and of a link what an import would not conclude. Links are those between events, the forgotten among them.
    Raises ConflictError when the file is there already.
    """
    pinned = view.fixed()
    with new_file(Path(path)) as sink:
        export = _LogExport(pinned)
        for line in export.lines():
            sink.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    return len(export.began)


def _told(sight: NumberedRows, id: str) -> tuple[list[tuple[Instant, Json]], Json]:
    """Return the occurrences of an event in order, each with description, source and metadata; and these fields of its first report."""
    ent = sight.entity(id)
    first = sight.body(ent)
    return [(at, {**first, **own}) for at, own in sight.happened.told(ent)], first


_AT_ONCE = 256  # events read at once


class _LogExport:
    """Exports the events of a view as lines of a log."""

    def __init__(self, view: Reader) -> None:
        self.view = view
        self.vocabulary = view.vocabulary
        with view.reading() as sight:
            events = list(sight.entities(events=True))
            sight.read_names(events)
            self.events = set(map(sight.id, events))
        self.began = {row.id: row.valid_from for row in view.scan(events=True)}

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield each event as an object, by the time it happened and its id."""
        ids = sorted(self.began, key=lambda name: (self.began[name], name))
        for at in range(0, len(ids), _AT_ONCE):
            for event, told in self._told(ids[at : at + _AT_ONCE]):
                yield self._line(event, *told)

    def _told(self, ids: list[str]) -> list[tuple[Event, tuple[list[tuple[Instant, Json]], Json]]]:
        with self.view.reading() as sight:
            sight.read_events(map(sight.entity, ids))
            return [(event, _told(sight, event.id)) for event in sight.events_of(ids)]

    def _line(self, event: Event, told: list[tuple[Instant, Json]], first: Json) -> dict[str, Any]:
        metadata = dict(first.get("metadata") or {})
        said = {iso(at): own for at, body in told if (own := differing(first, body))}
        reported = next((at for at, body in told if not differing(first, body)), told[0][0])
        recorded = _iso(event.tx_from)
        if isinstance(metadata.get(APART), dict) and isinstance(metadata[APART].get("recorded"), str):
            apart = dict(metadata.pop(APART))
            recorded = apart.pop("recorded")
            metadata.update({APART: apart} if apart else {})
        line = {
            "id": event.id,
            "type": event.type,
            "timestamp": _iso(event.occurred_at),
            "description": event.description,
            "source": event.source,
            "origin": event.origin,
            "agent": event.agent,
            "status": event.status,
            "metadata": metadata or None,
            "links": self._links(event) or None,
            "fingerprint": event.fingerprint,
            "occurrences": [iso(at) for at, _ in told[1:]] or None,
            "said": said or None,
            "reported": iso(reported) if reported != told[0][0] else None,
            "recorded": recorded,
            "authorized": event.authorized,
            **{
                name: getattr(event, name)
                for name in EVENT_TEXTS
                if name not in ("source", "agent", "fingerprint")
            },
        }
        return {name: value for name, value in line.items() if value is not None}

    def _links(self, event: Event) -> list[dict[str, Any]]:
        def place(link: Link) -> tuple[datetime, str, str, bool]:
            """Return the same key for a symmetric link in either direction."""
            other = link.target if event.id == link.source else link.source
            return link.valid_from, link.kind, other, event.id == link.source

        links = sorted(event.links or (), key=place)
        shown = (self._link(event.id, link) for link in links)
        return [link for link in shown if link is not None]

    def _link(self, id: str, link: Link) -> dict[str, Any] | None:
        """Return a link as a field of an event's line: on the source's line, or the target's if the source is forgotten. Return None on any other line."""
        kind, metadata = link.kind, dict(link.metadata)
        if id == link.source:
            name, other, standing = kind, link.target, link.target_standing
        else:
            name, other, standing = self.vocabulary.kinds[kind].inverse, link.source, link.source_standing
        forgotten = standing in FORGOTTEN and other in self.events
        if not forgotten and (id != link.source or other not in self.began):
            return None
        if kind == "related_to" and isinstance(metadata.get("relationship"), str):
            name = metadata.pop("relationship")
        maker, inferred = _maker(link.confidence, self.vocabulary.kinds[kind]), link.confidence == "inferred"
        if inferred and kind in SUSPECTED:
            name = f"possibly_{name}"
        ends = [self.began[end] for end in (link.source, link.target) if end in self.began]
        since = ends[-1] if kind == "resolved_by" else max(ends)
        at = instant(link.valid_from)
        fields = {
            "target": other,
            "relationship": name,
            "confidence": link.confidence,
            "reason": link.reason,
            "strength": link.strength,
            "created_by": None if link.created_by == maker else link.created_by,
            "metadata": metadata or None,
            "valid_from": iso(at) if forgotten or at != since else None,
            "valid_to": None if link.valid_to is None else _iso(link.valid_to),
        }
        return {part: value for part, value in fields.items() if value is not None}


def _maker(confidence: str, kind: Kind) -> str:
    """Return the creator of a link that an import finds in a log. For an inferred link it is the store, if the store makes links of this kind."""
    if confidence == "explicit":
        return "user"
    return next(creator for creator in ("store", "extractor", "daemon") if creator in kind.creators)


def _iso(at: datetime) -> str:
    return iso(instant(at))
