"""Exports and imports nodes of agent sessions as a folder of JSON files: one for each version of a node, and one for the edges.

`YYYY/MM/{id}-v{n}.json` holds a segment's node, `sessions/{id}-v{n}.json` a session's, `edges.json` the links between them. A file's `graphstore`
holds what only this store knows, unless an import would conclude it by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from graphstore.errors import GraphStoreError, InvalidError
from graphstore.imports.records import Progress
from graphstore.ledger.files import new_folder
from graphstore.sessions.segments.nodes import (
    IDENTITY,
    SEGMENT,
    SESSION,
    NodeEdge,
    SessionNode,
    checked,
    loaded,
)
from graphstore.store import registry
from graphstore.store.import_report import Importing, ImportReport
from graphstore.values.inputs import at_least_one
from graphstore.values.models import Json, Link, Value, Version
from graphstore.values.period import OPEN, Instant, Period, coalesce, instant, iso, moment, without_all
from graphstore.values.text import given_text
from graphstore.values.time_range import plural
from graphstore.view.view import Reader

if TYPE_CHECKING:
    from graphstore.store.store import Store

EDGES, SESSIONS = "edges.json", "sessions"
OURS = "graphstore"
APART = "piBrain"
"""The field of a link's metadata for unknown fields of an edge."""
FIRST, AGAIN = "initial", "prompt_update"
"""The triggers of a first version, and of a later one, if the file names none."""
_BOUNDARIES = frozenset({"fork", "branch", "tree_jump", "resume", "compaction", "continuation"})
_PLAIN_NAME = re.compile(r"[\w.-]+\Z")
_WHOLE = 1  # the line for damage to a whole file


class Exported(Value):
    """What an export wrote, and what has no place in it."""

    nodes: int
    versions: int
    edges: int
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        done = f"{self.nodes} nodes in {self.versions} versions, {self.edges} edges"
        return f"{done}; {len(self.warnings)} left out" if self.warnings else done


class PiBrainReport(ImportReport):
    """What an import wrote, what was there already, and what it left out."""

    files: int
    nodes: int
    versions: int
    links: int
    known: int

    _read, _written, _unchanged = "files", ("versions", "links"), "known"
    _counted = {"known": "known already", "damaged": "damaged"}

    def _headline(self) -> str:
        return f"{self.files} files: {self.nodes} new nodes, {self.versions} new versions, {self.links} new links"


# ---- export -------------------------------------------------------------------------------------


@registry.read("pi_brain", files=("folder",))
def export_pi_brain(view: Reader, folder: str | Path) -> Exported:
    """Write every version, believed or once believed, of the nodes of sessions that a view knows, and the links between them that hold there.

    Raises ConflictError when there is something in the folder, EngineError when the disk refuses.
    """
    with new_folder(Path(folder)) as fresh:
        export = _SessionExport(view.fixed())
        for path, content in export.files():
            file = fresh / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_json(content))
    return Exported(**export.counts, warnings=tuple(export.warnings()))


def _json(content: Any) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


class _SessionExport:
    """Exports the session nodes that a view knows as files."""

    def __init__(self, view: Reader) -> None:
        self.view = view
        self.counts = {"nodes": 0, "versions": 0, "edges": 0}
        self.left: list[str] = []
        self.elsewhere = 0  # links with an end that is not a session node
        self.past = 0  # links that are known but do not hold here
        self.began: dict[str, Instant] = {}  # when each written node began, as first recorded
        with view.reading() as sight:
            ents = sight.of_kinds((SEGMENT, SESSION), events=False)
            sight.read_names(ents)
            self.names = list(map(sight.id, ents))

    def files(self) -> Iterator[tuple[str, Any]]:
        """Yield each file with its path: the nodes in the order they were first known, then the edges."""
        for id in self.names:
            written = 0
            for path, content in self._versions(id):
                yield path, content
                written += 1
            self.counts["nodes"] += written > 0
            self.counts["versions"] += written
        edges = sorted(self._edges(), key=lambda edge: (edge["createdAt"], edge["id"]))
        self.counts["edges"] = len(edges)
        yield EDGES, edges

    def warnings(self) -> list[str]:
        """Return descriptions of what could not be exported."""
        left = list(self.left)
        if self.elsewhere:
            left.append(f"{plural(self.elsewhere, 'link')} with what is no node of a session")
        if self.past:
            left.append(f"{plural(self.past, 'link')} not held here: unlinked, ended, or to begin later")
        return left

    def _versions(self, id: str) -> Iterator[tuple[str, Json]]:
        rows: dict[int, list[Version]] = {}
        for row in self.view.versions(id):
            rows.setdefault(row.number, []).append(row)
        for number in sorted(rows):
            its = rows[number]
            following = rows.get(number + 1)
            try:
                path, content, plain = _file_of(its[0])
            except InvalidError as error:
                self.left.append(f"{id}-v{number}: {'no content' if not its[0].content else error}")
                continue
            ours = _kept_of(its[0])
            until = instant(following[0].tx_from) if following else OPEN
            if [_period_of(row) for row in its] != [(*plain, until)]:
                ours["periods"] = [_dated(row) for row in its]
                if following is None and self._standing(id) == "retracted":
                    ours["standing"] = "retracted"
            self.began.setdefault(id, instant(its[0].valid_from))
            yield path, {**content, OURS: ours} if ours else content

    def _standing(self, id: str) -> str:
        return self.view.inspect(id).node.standing

    def _edges(self) -> Iterator[Json]:
        for link in self._links():
            if {link.source, link.target} <= self.began.keys():
                yield self._edge(link)
            else:
                self.elsewhere += 1

    def _links(self) -> list[Link]:
        """Return the links that hold at a node or at both ends, each once and as it is stored."""
        with self.view.reading() as sight:
            ents = list(map(sight.entity, self.began))
            sight.read_ends(ents)
            edges = [edge for ent in ents for way in ("out", "into") for edge in sight.edges(ent, way)]
            held = {edge.link: sight.held(edge.link) for edge in edges}
            self.past = len(sight.made_by_now(link for link, row in held.items() if row < 0))
            return [sight.link(row) for row in held.values() if row >= 0]

    def _edge(self, link: Link) -> Json:
        metadata, type = dict(link.metadata), link.kind
        if type == "related_to" and isinstance(metadata.get("relationship"), str):
            type = metadata.pop("relationship")
        apart = metadata.pop(APART, {})
        metadata = _renamed(link.kind, metadata, _SNAKE, _camel)
        since, begins = instant(link.valid_from), max(self.began[link.source], self.began[link.target])
        ours = {
            "reason": link.reason,
            "strength": link.strength,
            "confidence": None if link.confidence == _confidence(link.created_by) else link.confidence,
            "validFrom": None if since == begins else iso(since),
            "validTo": None if link.valid_to is None else iso(instant(link.valid_to)),
        }
        ours = {name: value for name, value in ours.items() if value is not None}
        edge = {
            "id": link.id,
            "sourceNodeId": link.source,
            "targetNodeId": link.target,
            "type": type,
            "metadata": metadata,
            "createdAt": iso(instant(link.tx_from)),
            "createdBy": link.created_by,
            **apart,
        }
        return {**edge, OURS: ours} if ours else edge


def _file_of(version: Version) -> tuple[str, Json, tuple[Instant, Instant, Instant]]:
    """Return the path and content of a version's file, and the periods that an import would conclude: valid from, valid to, recorded at.

    Raise InvalidError for a segment that is not a session node.
    """
    plain_id = version.id if _PLAIN_NAME.match(version.id) else quote(version.id, safe="")
    name = f"{plain_id}-v{version.number}.json"
    if version.kind == SESSION:
        before = [f"{version.id}-v{number}" for number in range(1, version.number)]
        identity = {"id": version.id, "version": version.number, "previousVersions": before}
        return f"{SESSIONS}/{name}", {**identity, SESSION: version.content}, (0, 0, 0)
    node = loaded(version)
    began = instant(node.metadata.timestamp)
    at = moment(began)
    plain = (began, OPEN, instant(node.metadata.analyzed_at))
    return f"{at.year:04}/{at.month:02}/{name}", node.json_object(), plain


def _kept_of(version: Version) -> Json:
    """Return what the store has for a version besides its content, unless it follows from the content."""
    text, tags = _searched(version.kind, version.content)
    kept = {
        "key": version.key if version.number == 1 else None,
        "scope": version.scope or None if version.number == 1 else None,
        "triggerReason": None if version.trigger == _trigger(version.number) else version.trigger,
        "source": version.source,
    }
    ours: Json = {name: value for name, value in kept.items() if value is not None}
    given = given_text(version.content, version.text)
    if given != given_text(version.content, text):
        ours["text"] = given
    if version.tags != tags:
        ours["tags"] = list(version.tags)
    return ours


def _searched(kind: str, content: Json) -> tuple[str | None, tuple[str, ...]]:
    """Return the text and tags that a node gets if its file has no others."""
    if kind == SESSION:
        return None, ()
    node = checked(SessionNode, content)
    return node.text or None, node.tags


def _trigger(number: int) -> str:
    return FIRST if number == 1 else AGAIN


def _confidence(created_by: str) -> str:
    return "inferred" if created_by == "daemon" else "explicit"


_SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)+\Z")
_CAMEL = re.compile(r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+\Z")


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _renamed(kind: str, value: Any, which: re.Pattern[str], rename: Callable[[str], str]) -> Any:
    """Return the metadata of a boundary with renamed fields: `gap_minutes` here, `gapMinutes` in files."""
    if kind not in _BOUNDARIES:
        return value
    if isinstance(value, list):
        return [_renamed(kind, each, which, rename) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        rename(name) if which.match(name) else name: _renamed(kind, each, which, rename)
        for name, each in value.items()
    }


def _period_of(row: Version) -> tuple[Instant, Instant, Instant, Instant]:
    return (instant(row.valid_from), _end(row.valid_to), instant(row.tx_from), _end(row.tx_to))


def _end(at: Any) -> Instant:
    return OPEN if at is None else instant(at)


def _dated(row: Version) -> Json:
    periods = zip(("validFrom", "validTo", "txFrom", "txTo"), _period_of(row), strict=True)
    return {name: iso(at) for name, at in periods if at < OPEN}


# ---- import -------------------------------------------------------------------------------------


@registry.write("pi_brain", files=("folder",))
def import_pi_brain(store: Store, folder: str | Path, *, progress: Progress | None = None) -> PiBrainReport:
    """Import the nodes, in all their versions, and the edges of a folder. Ids are kept. The same folder again changes nothing.

    What was recorded at an instant becomes a transaction at that instant, if the store's last one and its clock allow it; else a transaction
    of now, in the same order, with the instant in `analyzedAt` of the content. `progress` is called with files done and in all. Raises
    InvalidError when there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InvalidError(f"there is no folder {str(root)!r}. Give one with YYYY/MM/…-v1.json files.")
    taken = _SessionImport(store, root)
    paths = sorted(root.rglob("*.json"))
    for number, path in enumerate(paths, start=1):
        taken.read(path)
        if progress:
            progress(number, len(paths))
    taken.write()
    return taken.report(files=len(paths))


@dataclass(frozen=True, slots=True)
class _VersionFile:
    """One version, as in its file. `rows`: its periods, as valid from and to, believed from and to."""

    path: Path
    id: str
    kind: str
    number: int
    content: Json
    ours: Json
    rows: tuple[tuple[Instant, Instant, Instant, Instant], ...]

    @property
    def recorded(self) -> Instant:
        return min(row[2] for row in self.rows)


@dataclass(slots=True)
class _DatedWrite:
    """An action at an instant. Versions come first, then links, then retractions."""

    at: Instant
    rank: int
    order: tuple[str, int]
    path: Path
    do: Callable[[], None]


class _SessionImport(Importing[PiBrainReport]):
    """Imports one folder into a store."""

    def __init__(self, store: Store, root: Path) -> None:
        super().__init__(store, root, PiBrainReport)
        self.root = root
        self.nodes: dict[str, dict[int, _VersionFile]] = {}
        self.edges: list[tuple[Path, NodeEdge]] = []
        self.began: dict[str, Instant] = {}

    # ---- reading

    def read(self, path: Path) -> None:
        """Read a file for later, or report why it cannot be read."""
        try:
            given = orjson.loads(path.read_bytes())
            if path.name == EDGES:
                self._read_edges(path, given)
            else:
                self._keep(_read_file(path, given, path.parent.name == SESSIONS))
        except OSError as error:
            self.leave(_WHOLE, f"cannot be read: {error.strerror}", path)
        except orjson.JSONDecodeError as error:
            self.leave(error.lineno, f"no JSON: {error.msg}", path)
        except InvalidError as error:
            self.leave(_WHOLE, str(error), path)

    def _keep(self, file: _VersionFile) -> None:
        versions = self.nodes.setdefault(file.id, {})
        other = versions.setdefault(file.number, file)
        if other is not file:
            self.leave(_WHOLE, f"{file.id}-v{file.number} stands in {other.path.name} already", file.path)

    def _read_edges(self, path: Path, given: Any) -> None:
        entries = given.get("edges") if isinstance(given, dict) else given
        if not isinstance(entries, list):
            raise InvalidError("no list of edges")
        for number, entry in enumerate(entries):
            try:
                self.edges.append((path, checked(NodeEdge, entry)))
            except InvalidError as error:
                self.leave(_WHOLE, f"edge {number}: {error}", path)

    # ---- writing

    def write(self) -> None:
        """Write everything in the order it was recorded, with a transaction for each instant."""
        acts = [*self._of_nodes(), *self._of_edges()]
        acts.sort(key=lambda act: (act.at, act.rank, act.order))
        with self.store.together():
            for at, together in groupby(acts, key=lambda act: act.at):
                self._at(at, list(together))

    def _at(self, at: Instant, acts: list[_DatedWrite]) -> None:
        allowed = None if at <= self.store.last_tx else moment(at)
        try:
            self._do(allowed, acts)
        except InvalidError:  # ahead of the clock, or before a view that was already used
            self._do(None, acts)

    def _do(self, at: Any, acts: list[_DatedWrite]) -> None:
        with self.store.transaction(at=at, reason=f"imported from {self.root.name}"):
            for act in acts:
                try:
                    act.do()
                except GraphStoreError as refused:
                    self.leave(_WHOLE, str(refused), act.path)

    def _of_nodes(self) -> Iterator[_DatedWrite]:
        for id, versions in self.nodes.items():
            files = [versions[number] for number in sorted(versions)]
            self.began[id] = min(files[0].rows, key=itemgetter(2, 0))[0]
            missing = sorted(set(range(1, files[-1].number)) - versions.keys())
            if missing:
                lost = ", ".join(f"v{number}" for number in missing)
                self.warnings.append(f"{id}: {lost} is missing; the versions after it get lower numbers.")
            files = self._fresh(id, files)
            before = -OPEN
            for file in files:
                before = max(file.recorded, before + 1)
                yield _DatedWrite(before, 0, (id, file.number), file.path, partial(self._write_version, file))
            yield from self._withdrawals(id, files)

    def _fresh(self, id: str, files: list[_VersionFile]) -> list[_VersionFile]:
        """Return the versions that the store does not have."""
        try:
            rows = self.store.versions(id) if self.store.knows(id) else []
        except InvalidError as error:
            self.leave(_WHOLE, str(error), files[0].path)
            return []
        there = {row.number: row.content for row in rows}
        fresh = []
        for file in files:
            if file.content in there.values():
                self.counts["known"] += 1
            elif file.number in there:
                self.leave(
                    _WHOLE, f"{id}-v{file.number} is known with another content, which stays", file.path
                )
            else:
                fresh.append(file)
        return fresh

    def _write_version(self, file: _VersionFile) -> None:
        first = [row for row in file.rows if row[2] == file.recorded]
        during = {"valid_from": moment(first[0][0]), "valid_to": moment(max(row[1] for row in first))}
        text, tags = _searched(file.kind, file.content)
        described: Json = {
            "text": file.ours.get("text", text),
            "tags": file.ours.get("tags", tags),
            "trigger": file.ours.get("triggerReason", _trigger(file.number)),
            "source": file.ours.get("source"),
            **during,
        }
        if self.store.knows(file.id):
            self.store.revise(file.id, file.content, **described)
        else:
            place = {"key": file.ours.get("key"), "scope": file.ours.get("scope", "")}
            self.store.add_node(file.kind, file.content, id=file.id, **place, **described)
            self.counts["nodes"] += 1
        self.counts["versions"] += 1

    def _withdrawals(self, id: str, files: list[_VersionFile]) -> Iterator[_DatedWrite]:
        """Yield what was retracted of a node and not written again, at each instant."""
        rows = [row for file in files for row in file.rows]
        for file, following in pairwise(files):
            if "periods" not in file.ours:  # the version ended with the next one
                ended_at = max(following.recorded, file.recorded + 1)
                rows[rows.index(file.rows[0])] = (*file.rows[0][:3], ended_at)
        retracted = bool(files) and files[-1].ours.get("standing") == "retracted"
        for at in sorted({*(row[3] for row in rows if row[3] < OPEN), *(file.recorded for file in files)}):
            ended = [row[:2] for row in rows if row[3] == at]
            begun = [row[:2] for row in rows if row[2] == at]
            if len(begun) > 1:  # it was written over all of them at once, so there are no gaps
                ended.append((min(row[0] for row in begun), max(row[1] for row in begun)))
            gone = [gap for whole in coalesce(ended) for gap in without_all(whole, begun)]
            again = [row[:2] for file in files for row in file.rows if row[2] > max(at, file.recorded)]
            kept = [part for gap in gone for part in without_all(gap, again)]
            if kept != gone:
                words = f"{id}: what was taken at {iso(at)} and given back later is held throughout."
                self.warnings.append(words)
            if kept:
                withdraw = partial(self._withdraw, id, kept, retracted)
                yield _DatedWrite(at, 2, (id, 0), files[-1].path, withdraw)

    def _withdraw(self, id: str, gone: list[Period], retracted: bool) -> None:
        if not retracted:
            self._supersede_again(id, gone)
        held = [(instant(row.valid_from), _end(row.valid_to)) for row in self.store.history(id)]
        for start, stop in gone:
            if without_all((start, stop), held) == [(start, stop)]:
                continue  # a supersession has already closed it
            if retracted or stop < OPEN:
                self.store.retract(id, valid_from=moment(start), valid_to=moment(stop), reason="as imported")
            else:
                self.store.end(id, at=moment(start), reason="as imported")

    def _supersede_again(self, id: str, gone: list[Period]) -> None:
        """Supersede again what was revised after a supersession, if that closes only what is gone."""
        for link in self.store.backlinks_to(id, "supersedes"):
            since, rows = instant(link.valid_from), self.store.history(id)
            held = [(max(since, instant(row.valid_from)), _end(row.valid_to)) for row in rows]
            if not any(without_all(part, gone) for part in held if part[0] < part[1]):
                self.store.supersede(id, by=link.source, reason=link.reason, valid_from=link.valid_from)

    def _of_edges(self) -> Iterator[_DatedWrite]:
        for path, edge in self.edges:
            with self.store.reading(is_narrow=True) as sight:
                is_known = sight.knows_link(edge.id)
            if is_known:
                self.counts["known"] += 1
                continue
            instants = [instant(edge.created_at)]
            for end in (edge.source_node_id, edge.target_node_id):
                if end in self.nodes:
                    instants.append(min(file.recorded for file in self.nodes[end].values()))
            yield _DatedWrite(max(instants), 1, (edge.id, 0), path, partial(self._write_link, edge))

    def _write_link(self, edge: NodeEdge) -> None:
        ours = (edge.model_extra or {}).get(OURS)
        ours = ours if isinstance(ours, dict) else {}
        apart = {name: value for name, value in (edge.model_extra or {}).items() if name != OURS}
        metadata, type = _renamed(edge.type, edge.metadata, _CAMEL, _snake), edge.type
        try:
            self.store.vocabulary.canonical(type)
        except InvalidError:
            metadata, type = {**metadata, "relationship": type}, "related_to"
        metadata = {**metadata, APART: apart} if apart else metadata
        self.store.link(
            edge.source_node_id,
            type,
            edge.target_node_id,
            id=edge.id,
            metadata=metadata,
            created_by=edge.created_by,
            reason=ours.get("reason"),
            strength=ours.get("strength"),
            confidence=ours.get("confidence", _confidence(edge.created_by)),
            valid_from=ours.get("validFrom") or moment(self._since(edge)),
            valid_to=ours.get("validTo"),
        )
        self.counts["links"] += 1

    def _since(self, edge: NodeEdge) -> Instant:
        """Return the start of a link: the later start of its ends, by the first version of each."""
        ends = (edge.source_node_id, edge.target_node_id)
        for end in ends:
            if end not in self.began:
                self.began[end] = instant(self.store.versions(end)[0].valid_from)
        return max(self.began[end] for end in ends)


def _read_file(path: Path, given: Any, session: bool) -> _VersionFile:
    """Return the checked content of a file. Raise InvalidError if it is not a node."""
    if not isinstance(given, Mapping):
        raise InvalidError(f"no JSON object but {type(given).__name__}")
    id, number = given.get("id"), given.get("version")
    if not isinstance(id, str) or not id.strip():
        raise InvalidError(f"id {id!r} is no text. A node has an id.")
    number = at_least_one("version", number)
    ours = given.get(OURS)
    ours = dict(ours) if isinstance(ours, dict) else {}
    periods = ours.get("periods", [])
    if not isinstance(periods, list):
        raise InvalidError(f"{OURS}.periods {periods!r} is no list.")
    rows = tuple(map(_row_of, periods))
    if session:
        content = given.get(SESSION)
        if not isinstance(content, dict):
            raise InvalidError(f"{SESSION} is missing: what is known of the session.")
        if not rows:
            raise InvalidError(f"{OURS}.periods is missing: it says when a session was known.")
        return _VersionFile(path, id, SESSION, number, content, ours, rows)
    node = checked(SessionNode, {name: value for name, value in given.items() if name != OURS})
    content = {name: value for name, value in given.items() if name not in (*IDENTITY, OURS)}
    plain = (instant(node.metadata.timestamp), OPEN, instant(node.metadata.analyzed_at), OPEN)
    return _VersionFile(path, id, SEGMENT, number, content, ours, rows or (plain,))


def _row_of(given: Any) -> tuple[Instant, Instant, Instant, Instant]:
    if not isinstance(given, dict) or not {"validFrom", "txFrom"} <= given.keys():
        raise InvalidError(f"{OURS}.periods: {given!r} has no validFrom, or no txFrom.")
    return (
        instant(given["validFrom"], "validFrom"),
        instant(given["validTo"], "validTo") if "validTo" in given else OPEN,
        instant(given["txFrom"], "txFrom"),
        instant(given["txTo"], "txTo") if "txTo" in given else OPEN,
    )
