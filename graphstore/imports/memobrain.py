"""Imports messages and MemoBrain's graphs from files: each message or thought becomes a node, by the conventions that its text may follow.

Reading again adds nothing. What cannot be read is reported with its place and left out; the rest is kept. A known node that differs gets a new
version. Everything is recorded now, or, as a replay, each message at its own time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from graphstore.errors import GraphStoreError, InvalidError, NotFoundError
from graphstore.imports.records import Progress, zone_named
from graphstore.store import registry
from graphstore.store.import_report import Importing, ImportReport
from graphstore.topics.conventions import Note, note_of
from graphstore.topics.topics import note_down, replace_named
from graphstore.values.inputs import optional_text
from graphstore.values.period import OPEN, Instant, instant, moment
from graphstore.values.text import given_text
from graphstore.values.time_range import plural

if TYPE_CHECKING:
    from graphstore.store.store import Store

TIMES = ("timestamp", "created_at")
_IMPORT = "import"
_RECORDED_NOW = "recorded now: ask for a day with as_of(valid=…); knowledge_at(…) knows nothing of it before"
_TOO_LATE = "not replayed, as the store has recorded or shown something later than the first of them"


class MemoBrainReport(ImportReport):
    """What an import of messages or thoughts wrote and what it left out. `hint`: how to ask for a day, where all was recorded now."""

    records: int
    added: int
    revised: int
    unchanged: int
    links: int
    hint: str | None = None

    _read, _written, _unchanged = "records", ("added", "revised", "links"), "unchanged"

    def _headline(self) -> str:
        return f"{plural(self.records, 'record')}: {self.added} added, {self.revised} revised, {self.unchanged} unchanged, {plural(self.links, 'link')}"

    def __str__(self) -> str:
        return super().__str__() + (f"; {self.hint}" if self.hint else "")


@registry.write("memobrain", files=("path",))
def import_messages(
    store: Store,
    path: str | Path,
    *,
    session: str | None = None,
    timezone: str | None = None,
    replay: bool = False,
    progress: Progress | None = None,
) -> MemoBrainReport:
    """Write the messages of a file as `topics.memorize` does: a JSON list, an object with `messages`, or an object a line.

    A message without an id gets one from its session, role, time and words, and from how often the same came before it. Places are lines, in a list
    the numbers of the messages. `timezone`: of times that name none. `replay`: record each at its own time, so that `knowledge_at` answers; one without
    a time at that of the message before it. A store that recorded or showed something later records all now, and the report says so. Raises
    InvalidError for a file that is not there or holds no messages.
    """
    optional_text("session", session)
    name, zone = str(path), zone_named(timezone)
    work = _NoteImport(store, name)
    seen: Counter[bytes] = Counter()
    for place, message in messages_in(_read(path), name):
        if isinstance(message, _Broken):
            work.leave(place, str(message))
            continue
        try:
            note = note_of(_timed(message, zone), session)
            if note.id is None:
                note = replace(note, id=_id_of(message, session, seen))
        except InvalidError as error:
            work.leave(place, str(error))
        else:
            work.add_note(place, note, _said(_timed(message, zone), note))
    return work.write(progress, replay=replay)


@registry.write("memobrain", files=("path",))
def import_memobrain(
    store: Store,
    path: str | Path,
    *,
    timezone: str | None = None,
    replay: bool = False,
    progress: Progress | None = None,
) -> MemoBrainReport:
    """Write a graph that MemoBrain saved: a node `node_5` for each thought, with the supersessions, and a `related_to` link for each edge, which
    holds as long as both its ends.

    A thought holds from its `created_at`; `timezone` is that of times that name none. Thoughts that were folded or flushed stand, with `active` in their content:
    they left a working memory and are still true. Places are the numbers of nodes. `replay` as in `import_messages`. Raises InvalidError for a file that
    is no such graph.
    """
    name, zone = str(path), zone_named(timezone)
    graph = _graph_in(_read(path), name)
    work = _NoteImport(store, name)
    superseded: dict[str, list[str]] = {}
    notes: list[tuple[int, Note, Instant | None]] = []
    for place, row in enumerate(_nodes_of(graph, name), 1):
        try:
            if not isinstance(row, Mapping):
                raise InvalidError(f"{row!r} is no node. It needs node_id, kind and thought.")
            number = row.get("node_id", place)
            note = _thought(row, number, zone)
        except InvalidError as error:
            work.leave(place, str(error))
            continue
        if row.get("superseded_by") is not None:
            superseded.setdefault(node_name(row["superseded_by"]), []).append(node_name(number))
        notes.append((place, note, _said(_timed(row, zone), note)))
    for place, note, said in notes:
        named = tuple(dict.fromkeys([*note.supersedes, *superseded.get(note.id or "", ())]))
        work.add_note(place, replace(note, supersedes=named), said)
    edges = [_edge(edge, zone) for edge in graph.get("edges") or ()]
    return work.write(progress, edges, replay=replay)


def node_name(number: Any) -> str:
    """Return the id of a thought from its number: `node_5`."""
    text = str(number)
    return text if text.startswith("node_") else f"node_{text}"


# ---- reading files ----------------------------------------------------------------------------


class _Broken(str):
    """The reason why there is no message at a place."""


def _read(path: str | Path) -> bytes:
    place = Path(path)
    if not place.is_file():
        raise InvalidError(f"there is no file {str(place)!r}.")
    return place.read_bytes()


def messages_in(raw: bytes, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the messages of a document with their places, from 1. A line that is not JSON yields the reason.

    Raise InvalidError for a document without messages.
    """
    text = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError:
        yield from _lines(text)
        return
    if isinstance(whole, Mapping):
        # a single object is a message
        whole = whole["messages"] if "messages" in whole else [whole]
    if not isinstance(whole, list):
        raise InvalidError(
            f"{name!r} holds no messages. Give a JSON list, an object with messages, or an object a line."
        )
    yield from enumerate(whole, 1)


def whole_messages(raw: bytes, name: str, timezone: str | None = None) -> list[Any]:
    """Return all messages of a document. Raise InvalidError that names the line which is not JSON."""
    zone = zone_named(timezone)
    found = []
    for place, message in messages_in(raw, name):
        if isinstance(message, _Broken):
            raise InvalidError(f"{name}:{place}: {message}. Nothing was written.")
        found.append(_timed(message, zone))
    return found


def _lines(text: bytes) -> Iterator[tuple[int, Any]]:
    for number, each in enumerate(text.splitlines(), 1):
        if not each.strip():
            continue
        try:
            yield number, orjson.loads(each)
        except orjson.JSONDecodeError as error:
            yield number, _Broken(f"no JSON: {error}")


def _graph_in(raw: bytes, name: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidError(f"{name!r} is no JSON: {error}.") from None
    for part in ("graph", "memory"):  # a graph may be saved together with its messages
        if isinstance(found, Mapping) and "nodes" not in found and isinstance(found.get(part), Mapping):
            found = found[part]
    if isinstance(found, list):
        return {"nodes": found}
    if not isinstance(found, Mapping) or "nodes" not in found:
        raise InvalidError(f"{name!r} is no graph of MemoBrain: it has no nodes. Give what it saved as JSON.")
    return found


def _nodes_of(graph: Mapping[str, Any], name: str) -> list[Any]:
    nodes = graph["nodes"]
    if isinstance(nodes, Mapping):
        return [
            {"node_id": number, **node} if isinstance(node, Mapping) else node
            for number, node in nodes.items()
        ]
    if not isinstance(nodes, list):
        raise InvalidError(f"{name!r} is no graph of MemoBrain: its nodes are neither an object nor a list.")
    return nodes


def _timed(row: Any, zone: tzinfo | None) -> Any:
    """Return a record in which times without a zone have the zone of the file."""
    if zone is None or not isinstance(row, Mapping):
        return row
    timed = dict(row)
    for name in TIMES:
        at = timed.get(name)
        if not isinstance(at, str):
            continue
        try:
            parsed = datetime.fromisoformat(at)
        except ValueError:
            continue  # refused later, where it is read
        if parsed.tzinfo is None:
            timed[name] = parsed.replace(tzinfo=zone).isoformat()
    return timed


def _said(row: Any, note: Note) -> Instant | None:
    """Return the time of a message: its own field, else the date in its text."""
    own = (row.get(name) for name in TIMES) if isinstance(row, Mapping) else ()
    at = next((each for each in own if each is not None), None)
    return note.at if at is None else instant(at, "timestamp")


def _id_of(message: Any, session: str | None, seen: Counter[bytes]) -> str:
    """Return an id derived from the message, its session and its repetitions, so that it stays the same when the file grows."""
    key = orjson.dumps([session, message], option=orjson.OPT_SORT_KEYS)
    seen[key] += 1
    if seen[key] > 1:
        key += str(seen[key]).encode()
    return blake2b(key, digest_size=8).hexdigest()


def _thought(row: Mapping[str, Any], number: Any, zone: tzinfo | None) -> Note:
    """Return a node of MemoBrain as a note. Its thought is text, or a list of messages."""
    timed = _timed(row, zone)
    thought = timed.get("thought")
    if isinstance(thought, list):
        parts = [each.get("content") if isinstance(each, Mapping) else each for each in thought]
        thought = "\n".join(each for each in parts if isinstance(each, str))
    if not isinstance(thought, str):
        raise InvalidError(f"node {number!r} has no thought. It needs text, or a list of messages.")
    own = ("thought", "node_id", "supersedes", "superseded_by", "participant")
    kept = {name: value for name, value in timed.items() if name not in own and value is not None}
    old = timed.get("supersedes") or ()
    old = [old] if isinstance(old, (int, str)) else old
    kept |= {"role": timed.get("participant"), "content": thought, "id": node_name(number)}
    return note_of({**kept, "supersedes": [node_name(each) for each in old]})


# ---- writing ----------------------------------------------------------------------------------


_Edge = dict[str, Any]
_Placed = tuple[int, Note]  # the place of a note in the file, and the note


@dataclass
class _NoteBatch:
    """Holds what one transaction records: notes, superseded ids with the notes that supersede them, edges."""

    notes: list[_Placed] = field(default_factory=list)
    olds: list[tuple[_Placed, str]] = field(default_factory=list)
    edges: list[_Edge] = field(default_factory=list)


class _NoteImport(Importing[MemoBrainReport]):
    """Writes notes into the store, and records what was left out."""

    def __init__(self, store: Store, file: str) -> None:
        super().__init__(store, file, MemoBrainReport)
        self.notes: list[_Placed] = []
        self.said: list[Instant | None] = []  # the time of each note
        self.names: dict[int, str] = {}  # the node of a note, by its place
        self.held: dict[str, list[_Edge]] = defaultdict(list)  # the edges written, by each end

    def add_note(self, place: int, note: Note, said: Instant | None) -> None:
        self.notes.append((place, note))
        self.said.append(said)
        for remark in note.remarks:
            self.warn(place, remark)

    def write(
        self, progress: Progress | None, edges: list[_Edge] | None = None, *, replay: bool
    ) -> MemoBrainReport:
        """Write everything: in one transaction now, or as a replay in one for each instant."""
        records = len(self.notes) + len(self.damaged)
        batches = self._by_time(edges or []) if replay else None
        if batches is None:
            olds = [((place, note), old) for place, note in self.notes for old in note.supersedes]
            with self.store.verb():
                self._write(_NoteBatch(self.notes, olds, edges or []), progress)
        else:
            with self.store.together():
                for at, batch in batches:
                    with self.store.transaction(at=at):
                        self._write(batch, progress)
        hint = None
        if batches is None and self.counts["added"] + self.counts["revised"]:
            hint = f"{_TOO_LATE}; {_RECORDED_NOW}" if replay else _RECORDED_NOW
        return self.report(records=records, hint=hint)

    def _by_time(self, edges: list[_Edge]) -> list[tuple[datetime | None, _NoteBatch]] | None:
        """Return the batches of a replay with their instants in order; None as instant: now. Return None if the store has passed the first instant.

        A supersession or an edge is recorded once both its ends are. What is ahead of the clock, or already known, is recorded now.
        """
        store = self.store
        times = self._times()
        now = store._now()
        found: dict[Instant, _NoteBatch] = defaultdict(_NoteBatch)
        recorded: dict[str, Instant] = {}
        for (place, note), said in zip(self.notes, times, strict=True):
            is_new = note.id is None or not store.knows(note.id)
            at = said if is_new and said is not None and said <= now else OPEN
            found[at].notes.append((place, note))
            if note.id is not None and is_new:
                recorded[note.id] = at
        for at, batch in list(found.items()):
            for placed in batch.notes:
                for old in placed[1].supersedes:
                    found[max(at, recorded.get(old, at))].olds.append((placed, old))
        for edge in edges:
            ends = [recorded[edge[end]] for end in ("source", "target") if edge.get(end) in recorded]
            made = edge.get("valid_from")
            at = max(*ends, *([] if made is None else [instant(made)]), -OPEN) if ends else OPEN
            found[at if at <= now else OPEN].edges.append(edge)
        first = min(found, default=OPEN)
        if first == OPEN:
            return None
        try:
            store._next_tx(first, store.last_tx)
        except InvalidError:
            return None
        return [(None if at == OPEN else moment(at), found[at]) for at in sorted(found)]

    def _times(self) -> list[Instant | None]:
        """Return the time of each note. A note without one has that of the note before it, or at the start that of the first note with a time."""
        last = next((said for said in self.said if said is not None), None)
        times = []
        for said in self.said:
            last = last if said is None else said
            times.append(last)
        return times

    def _write(self, batch: _NoteBatch, progress: Progress | None) -> None:
        """Write the nodes, then what they supersede, then the edges."""
        for place, note in batch.notes:
            if name := self._describe(place, note):
                self.names[place] = name
                if self.held and note.key is not None:  # the new value of a key may have ended another node
                    self._hold_on(link.target for link in self.store.supersedes(name))
            if progress and (number := len(self.names)) % 256 == 0:
                progress(number, len(self.notes))
        for (place, note), old in batch.olds:
            if place in self.names:
                self._supersede(place, self.names[place], note, old)
                self._hold_on([old])
        for edge in batch.edges:
            self._link(edge)

    def _describe(self, place: int, note: Note) -> str | None:
        """Add the node of a note, or revise the known one if it differs. Return None if the store refuses it."""
        store = self.store
        try:
            if note.id is None or not store.knows(note.id):
                name = note_down(store, note)
                self.counts["added"] += 1
                return name
            described = (note.content, given_text(note.content, note.text), note.tags)
            # an earlier content of the file is not written again, whatever was recorded since
            known = store.versions(note.id)
            if any((one.content, given_text(one.content, one.text), one.tags) == described for one in known):
                self.counts["unchanged"] += 1
            else:
                store.revise(note.id, note.content, text=note.text, tags=note.tags, trigger=_IMPORT)
                self.counts["revised"] += 1
            return note.id
        except GraphStoreError as error:
            self.leave(place, str(error))
            return None

    def _supersede(self, place: int, name: str, note: Note, old: str) -> None:
        """Record that a note supersedes a node. An unknown node is a warning: the note is kept."""
        if not self.store.knows(old):
            error = NotFoundError.nearest("node", old, partial(self._ids_beside, old))
            self.warn(place, f"{name!r} supersedes what is not known: {error}")
            return
        with self._counting():
            try:
                replace_named(self.store, name, replace(note, supersedes=(old,)))
            except GraphStoreError as refused:
                self.warn(place, str(refused))

    def _link(self, edge: _Edge) -> None:
        with self._counting():
            try:
                if "damage" in edge:
                    raise InvalidError(edge["damage"])
                for end in ("source", "target"):
                    if not self.store.knows(edge[end]):
                        raise NotFoundError.nearest("node", edge[end], partial(self._ids_beside, edge[end]))
                self._hold(edge)
            except GraphStoreError as error:
                self.warnings.append(f"{self.file}: edge: {error}")
                return
        for end in ("source", "target"):
            self.held[edge[end]].append(edge)

    def _hold(self, edge: _Edge) -> None:
        """Link the ends of an edge while both hold. An existing link that lasts longer is cut."""
        made = edge["valid_from"]
        starts, ends = [] if made is None else [instant(made)], set[Instant]()
        for name in (edge["source"], edge["target"]):
            if rows := self.store.history(name):
                starts.append(min(instant(row.valid_from) for row in rows))
                ends.add(max(OPEN if row.valid_to is None else instant(row.valid_to) for row in rows))
        since = max(starts, default=None)
        until = min((end for end in ends if since is not None and end > since), default=OPEN)
        period = {
            "valid_from": None if since is None else moment(since),
            "valid_to": None if until == OPEN else moment(until),
        }
        link = self.store.link(**{**edge, **period})
        if until != OPEN and (link.valid_to is None or instant(link.valid_to) > until):
            self.store.unlink(link.id, valid_from=moment(until), reason="one of its ends ended")

    def _hold_on(self, ended: Iterable[str]) -> None:
        """Update the edges of nodes that have ended."""
        for name in ended:
            for edge in self.held.get(name, ()):
                self._hold(edge)

    def _ids_beside(self, id: str) -> list[str]:
        with self.store.reading(is_narrow=True) as sight:
            return sight.ids_beside(id)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Count the links created inside the block."""
        before = self._links_made()
        yield
        self.counts["links"] += self._links_made() - before

    def _links_made(self) -> int:
        with self.store.reading(is_narrow=True) as sight:
            return sight.links_made()


def _edge(edge: Any, zone: tzinfo | None) -> dict[str, Any]:
    """Return an edge as arguments of a link, or the reason in `damage` if it cannot be one."""
    ends = ("src", "dst") if isinstance(edge, Mapping) and "src" in edge else ("source", "target")
    if not isinstance(edge, Mapping) or any(edge.get(end) is None for end in ends):
        return {"damage": f"{edge!r} is no edge. It needs src and dst."}
    timed = _timed(edge, zone)
    at = timed.get("created_at")
    try:
        since = None if at is None else moment(instant(at, "created_at"))
    except InvalidError as error:
        return {"damage": str(error)}
    return {
        "source": node_name(edge[ends[0]]),
        "kind": "related_to",
        "target": node_name(edge[ends[1]]),
        "reason": edge.get("rationale") or None,
        "created_by": edge.get("created_by") or "extractor",
        "valid_from": since,
    }
