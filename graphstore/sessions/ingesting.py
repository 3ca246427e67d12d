"""Writes session files into the graph: a node for each session and each segment, and the links between them.

A file is read, compared with the graph, analysed without an open transaction, and written in one transaction per session. The result depends only on
the files, not on their order: ids are derived from the content, and links that wait for a missing parent move when its file arrives.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphstore.errors import ConflictError, EngineError, InvalidError, NotFoundError
from graphstore.sessions import revisions
from graphstore.sessions.catalog import EVER, Catalog, KnownSession, taken_back_by_reading
from graphstore.sessions.joints import begins, has_entry, segment_node, session_node, strays
from graphstore.sessions.segments.analysing import Analyser, Work, builtin
from graphstore.sessions.segments.nodes import SCHEMA_VERSION, SessionNode
from graphstore.sessions.transcripts import session_bytes
from graphstore.sessions.transcripts import transcript as transcripts
from graphstore.sessions.transcripts.file_formats import FORMATS, why_not_read
from graphstore.sessions.transcripts.other_agents import document_in
from graphstore.sessions.transcripts.transcript import Transcript
from graphstore.sessions.writing import OwnSegment, SessionPlan, SessionWriting
from graphstore.store import registry
from graphstore.store.import_report import CountedImport
from graphstore.values import file_access
from graphstore.values.inputs import json_object
from graphstore.values.models import UPRIGHT, Json, Node, Value
from graphstore.values.period import instant, iso
from graphstore.values.time_range import plural

if TYPE_CHECKING:
    from graphstore.store.store import Store

Progress = Callable[[int, int], None]
Ended = Callable[[Transcript], bool]
"""Returns True if a session has ended, so that its last segment is complete."""
_REFUSED = (InvalidError, ConflictError, NotFoundError)


class SessionIngested(Value):
    """The report of one session file. `new`, `revised`, `unchanged`, `retracted`: how many segments. With an `error` nothing of it was written."""

    file: str
    session: str | None = None
    """The id of the session's node."""
    new: int = 0
    revised: int = 0
    unchanged: int = 0
    retracted: int = 0
    open: bool = False
    """Its last segment may still grow and was left for later."""
    warnings: tuple[str, ...] = ()
    error: str | None = None


class Ingested(CountedImport):
    """What an ingest did, session by session."""

    sessions: tuple[SessionIngested, ...]

    _written, _unchanged = ("new", "revised"), "unchanged"

    @property
    def new(self) -> int:
        """How many segments were written for the first time."""
        return sum(each.new for each in self.sessions)

    @property
    def revised(self) -> int:
        """How many segments were revised."""
        return sum(each.revised for each in self.sessions)

    @property
    def unchanged(self) -> int:
        """How many segments were known as they are."""
        return sum(each.unchanged for each in self.sessions)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was noticed, each with its file."""
        return tuple(f"{each.file}: {words}" for each in self.sessions for words in each.warnings)

    @property
    def damaged(self) -> tuple[str, ...]:
        """The files of which nothing was written, each with the reason."""
        return tuple(example for _, example in self._left_out())

    def _left_out(self) -> list[tuple[str, str]]:
        return [
            (each.error, f"{each.file}: {each.error}") for each in self.sessions if each.error is not None
        ]

    def __str__(self) -> str:
        new = plural(self.new, "new segment")
        text = f"{plural(len(self.sessions), 'session')}: {new}, {self.revised:,} revised, {self.unchanged:,} unchanged"
        taken = sum(each.retracted for each in self.sessions)
        text += f", {taken:,} taken back" if taken else ""
        failed = len(self.damaged)
        return f"{text}; {failed} left out" if failed else text


@registry.write("sessions", files=("path",))
def ingest(
    store: Store,
    path: str | Path,
    *,
    analyze: Analyser = builtin,
    computer: str | None = None,
    format: str | None = None,
    progress: Progress | None = None,
) -> Ingested:
    """Ingest a session file, or every one below a folder (`.jsonl`, and `.json` that is a session): one transaction for each session. The same again writes nothing.

    `computer`: where the sessions ran (default: this one's name, for those not known yet). `format`: `pi`, `claude`, `codex`, `copilot`, `gemini` or `opencode`, refuses others. `progress` is called
    with bytes done and in all. What fails is reported with its file, and the others go on. Raises InvalidError when there is no such file or folder.
    """
    files = session_files(path, but=store.path)
    ingesting = Ingesting(store, analyze=analyze, computer=computer, format=format)
    done, total = 0, sum(size_of(file) for file in files)
    reports: list[SessionIngested] = []
    for file in files:
        reports += ingesting.ingest_file(file)
        done += size_of(file)
        if progress is not None:
            progress(min(done, total), total)
    return Ingested(sessions=tuple(reports))


@registry.write("sessions")
def reanalyze(store: Store, *, analyze: Analyser = builtin, progress: Progress | None = None) -> Ingested:
    """Describe anew what another version of the analyser, or an older schema, wrote, from the session files. What a user corrected stays corrected.

    `progress` is called with sessions done and in all. A session whose file is gone is reported and left as it is.
    """
    ingesting = Ingesting(store, analyze=analyze)
    due = [known for known in ingesting.catalog.sessions.values() if ingesting.outdated(known)]
    reports: list[SessionIngested] = []
    for number, known in enumerate(due, 1):
        reports += ingesting.again(known)
        if progress is not None:
            progress(number, len(due))
    return Ingested(sessions=tuple(reports))


def session_files(path: str | Path, *, but: Path | None) -> list[Path]:
    """Return the session files at a path in order, without files below `but`, a store's folder. Raise InvalidError if there is nothing at the path."""
    place = Path(path).expanduser().absolute()
    if place.is_dir():
        own = None if but is None else but.absolute()
        lines = (file for file in place.rglob("*.jsonl") if own not in file.parents)
        documents = (file for file in place.rglob("*.json") if own not in file.parents and _is_document(file))
        found = sorted(file for file in (*lines, *documents) if file_access.is_file(file))
        return found or sorted(
            file for file in place.rglob("*.*") if own not in file.parents and _is_not_read(file)
        )
    if file_access.is_file(place):
        return [place]
    raise InvalidError(
        f"there is nothing at {str(place)!r}. Give a session file, or a folder with .jsonl files."
    )


def _is_document(file: Path) -> bool:
    """Return True if a file is a session stored as one JSON document."""
    try:
        with session_bytes.opened(file, 1 << 16) as opened:
            return document_in(opened) is not None
    except (OSError, ValueError):
        return False


def _is_not_read(file: Path) -> bool:
    """Return True if a file holds sessions of an agent in a format that cannot be read."""
    if file.suffix not in (".db", ".json") or not file_access.is_file(file):
        return False
    try:
        with file_access.opened(file) as opened:
            return why_not_read(opened) is not None
    except OSError:
        return False


def size_of(file: Path) -> int:
    """Return the size of a file in bytes; 0 if the file is gone."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


# ---- one file ------------------------------------------------------------------------------------


class Ingesting:
    """Ingests session files one by one."""

    def __init__(
        self, store: Store, *, analyze: Analyser, computer: str | None = None, format: str | None = None
    ) -> None:
        if not callable(analyze) or not isinstance(getattr(analyze, "version", None), str):
            raise InvalidError(
                f"analyze {analyze!r} is no analyser. Give a callable with a `version` that is text."
            )
        if format is not None and format not in FORMATS:
            raise InvalidError.choice("format", format, FORMATS)
        self._store, self._analyze, self._computer, self._format = store, analyze, computer, format
        self.catalog = Catalog(store)

    def ingest_file(self, file: Path, *, ended: Ended | None = None) -> list[SessionIngested]:
        """Ingest one file, and again its forks if it now shows better what they copied. `ended` returns True if the last segment is complete."""
        if ended is None and (known := self._as_it_was(file)) is not None:
            return [known]
        report, plan, awaited = self._one(file, None, ended)
        if plan is None:
            return [report]
        again = [self._one(place, file, None)[0] for place in self._misread(plan, awaited)]
        again += [self._one(place, None, None)[0] for place in self._untitled(plan)]
        return [report, *(each for each in again if each.error or each.new or each.revised or each.retracted)]

    def _as_it_was(self, file: Path) -> SessionIngested | None:
        """Return the report of a file that has not changed and whose segments all stand as this analyser writes them. Return None for any other file."""
        known = self.catalog.of_file(file_access.called(file))
        if known is None:
            return None
        content = known.content
        asked = {"computer": self._computer, "format": self._format}
        if any(value not in (None, content.get(name)) for name, value in asked.items()):
            return None
        if content.get("fileDigest") != digest_of(file):
            return None
        nodes = [self._standing(id) for id in known.nodes]
        if any(node is None or revisions.outdated(node.content, self._analyze.version) for node in nodes):
            return None
        return SessionIngested(
            file=file_access.called(file),
            session=known.id,
            unchanged=len(known.nodes),
            warnings=_counted(content.get("warnings", {})),
        )

    def _one(
        self, file: Path, parent: Path | None, ended: Ended | None
    ) -> tuple[SessionIngested, SessionPlan | None, bool]:
        """Ingest one file. Return its report, the executed plan, and whether only other sessions had named its session before."""
        name = file_access.called(file)
        try:
            transcript = self._read(file, parent)
        except (*_REFUSED, EngineError, OSError) as error:
            return SessionIngested(file=name, error=str(error)), None, False
        if not transcript.entries:
            return SessionIngested(file=name, open=True, warnings=("it has no entries yet",)), None, False
        try:
            plan = self._planned(transcript, ended)
            known = self.catalog.sessions.get(plan.id)
            return self._written(plan), plan, known is None or known.missing
        except _REFUSED as error:
            return SessionIngested(file=name, error=str(error)), None, False

    def _misread(self, plan: SessionPlan, awaited: bool) -> list[Path]:
        """Return files forked from this one that were read without it, or with less of it. This file now shows which entries they copied."""
        children = self.catalog.children(plan.id)
        if not awaited:
            begun = (each for each in children if each.nodes)
            children = [each for each in begun if self._is_in(plan.transcript, each.nodes[0])]
        children += self.catalog.waiting_for(plan.transcript.path)
        places = [Path(child.content["file"]) for child in children]
        return [place for place in places if file_access.is_file(place)]

    def _untitled(self, plan: SessionPlan) -> list[Path]:
        """Return files in the same folder that hold entries which this file gives a title, and that were read without those titles."""
        if not plan.titles:
            return []
        folder = plan.transcript.path.parent
        files = {Path(each.content["file"]) for each in self.catalog.sessions.values() if each.nodes}
        beside = sorted(file for file in files if file.parent == folder and file != plan.transcript.path)
        return [file for file in beside if file_access.is_file(file) and _holds(file, plan.titles)]

    def outdated(self, known: KnownSession) -> bool:
        """Return True if another analyser version, or an older schema, wrote any segment of the session."""
        nodes = () if known.missing else map(self._standing, known.nodes)
        return any(node and revisions.outdated(node.content, self._analyze.version) for node in nodes)

    def again(self, known: KnownSession) -> list[SessionIngested]:
        """Ingest a session again from its known file."""
        file = Path(known.content["file"])
        reports: list[SessionIngested] = []
        if not file_access.is_file(file):
            error = "its file is gone, so it stays as it was analysed. Import it from where it is now."
        else:
            reports = self.ingest_file(file)
            if reports[0].session in (known.id, None):
                return reports
            error = (
                f"its file is another session's now ({reports[0].session}), so it stays as it was analysed."
            )
        return [SessionIngested(file=str(file), session=known.id, error=error)]

    # ---- reading

    def _read(self, file: Path, parent: Path | None) -> Transcript:
        transcript = transcripts.read(file, parent=parent)
        header = transcript.header
        if self._format is not None and header.format != self._format:
            raise InvalidError(f"it is a session of {header.format}, not of {self._format}.")
        if not header.raw and not any(entry.role for entry in transcript.entries):
            raise InvalidError(
                f"its format is not known: it is no session file, and has neither a header nor a message. Known are {', '.join(FORMATS)}."
            )
        if parent is not None:
            return transcript
        there = self._parent_elsewhere(transcript)
        return self._unforked(transcript) if there is None else transcripts.read(file, parent=there)

    def _unforked(self, transcript: Transcript) -> Transcript:
        """Return a session without a named parent as a fork, if a known session begins with the same entries. Return any other session unchanged."""
        header = transcript.header
        if header.format != "claude" or header.parent_session_id or header.timestamp is None:
            return transcript
        own = session_node(header.session_id)
        for known in self.catalog.begun_with(header.timestamp):
            place = Path(known.content["file"])
            if own in (known.id, known.parent) or place == transcript.path or not file_access.is_file(place):
                continue
            found = transcripts.read(transcript.path, parent=place)
            if found.copied:
                return found
        return transcript

    def _parent_elsewhere(self, transcript: Transcript) -> Path | None:
        """Return the path of the parent's file if it is known and reading did not look there."""
        header = transcript.header
        if header.parent_session_id is None:
            return None
        known = self.catalog.parent_of(header, transcript.path)
        if known is None:
            return None
        there = Path(known.content["file"])
        named = header.parent_session
        if named is not None and (file_access.is_file(Path(named)) or there.parent == transcript.path.parent):
            return None
        return there if file_access.is_file(there) and there != transcript.path else None

    def _planned(self, transcript: Transcript, ended: Ended | None) -> SessionPlan:
        segments = transcripts.segments(transcript)
        session_id = transcript.header.session_id
        pieces = []
        for segment, at in zip(segments, begins(transcript, segments), strict=True):
            if not segment.copied and segment.entry_count:
                id = segment_node(session_id, segment.start_entry_id)
                pieces.append(OwnSegment(segment, id, transcript.digest(segment), at))
        open = ended is not None and not ended(transcript)
        if open and pieces:
            pieces.pop()
        plan = SessionPlan(transcript, session_node(session_id), pieces, segments, open)
        plan.titles = self.catalog.take_titles(transcript.titles_elsewhere)
        known = self.catalog.sessions.get(plan.id)
        plan.content = self._content(plan, known)
        if known is not None and not known.missing:
            self._compare(plan, known)
        else:
            for piece in pieces:
                piece.trigger = self._wanted(plan, piece, here=True)
        return plan

    def _content(self, plan: SessionPlan, known: KnownSession | None) -> Json:
        """Return the content of the session's node."""
        transcript, pieces = plan.transcript, plan.pieces
        header = transcript.header
        stop = plan.segments[-1].stop
        if plan.open:
            stop = pieces[-1].segment.stop if pieces else transcript.copied
        counts = transcript.warning_counts
        if plan.open:
            counts = transcript.warnings_until(transcript.entries[stop - 1].line if stop else 0)
        began = header.timestamp or next((piece.begins for piece in pieces if piece.begins), None)
        ended = pieces[-1].segment.end_timestamp if pieces else None
        computer = self._computer or (known and known.content.get("computer")) or socket.gethostname()
        above = self.catalog.parent_of(header, transcript.path)
        content: dict[str, Any] = {
            "sessionId": header.session_id,
            "file": file_access.called(transcript.path),
            "computer": computer,
            "project": header.cwd,
            "name": transcript.name or transcript.title_from(self.catalog.titles),
            "format": header.format,
            "startedAt": None if began is None else iso(instant(began)),
            "endedAt": None if ended is None else iso(instant(ended)),
            "entries": stop,
            "copiedEntries": transcript.copied,
            "lastShared": transcript.last_shared,
            "digest": _digest(plan),
            "fileDigest": None if plan.open else digest_of(transcript.path),
            "parentSession": header.parent_session,
            "parentSessionId": header.parent_session_id if above is None else above.content["sessionId"],
            "analyzerVersion": self._analyze.version,
            "schemaVersion": SCHEMA_VERSION,
            "nodes": [piece.id for piece in pieces],
            "titles": transcript.titles_elsewhere or None,
            "agent": header.agent,
            "strays": strays(transcript, [piece.segment for piece in pieces]) or None,
            "warnings": dict(sorted(counts.items())),
            "missing": False,
        }
        return {name: value for name, value in content.items() if value is not None}

    def _compare(self, plan: SessionPlan, known: KnownSession) -> None:
        """Compare the plan with the graph and set the trigger of each segment."""
        place = known.content["file"]
        here = place == file_access.called(plan.transcript.path)
        is_gone = not file_access.is_file(Path(place))
        if self._same(plan.content, known.content):
            if here or not is_gone:
                plan.content = known.content  # the file is unchanged, or a copy of the known one
            for piece in plan.pieces:
                piece.trigger = self._outdated(plan, piece)
            return
        here = here or is_gone
        for piece in plan.pieces:
            piece.trigger = self._wanted(plan, piece, here)
        length, before = plan.content["entries"], known.content.get("entries", 0)
        other = length == before and not here and plan.content["digest"] != known.content.get("digest")
        plan.older = length < before or other
        if plan.older and not plan.open:
            words = "differs from" if other else "holds less than"
            plan.warnings.append(
                f"it {words} what is known of its session ({length} entries; known are {before}, from {place}); what is known was kept"
            )

    @staticmethod
    def _same(one: Json, other: Json) -> bool:
        names = ("digest", "analyzerVersion", "schemaVersion", "copiedEntries", "entries", "parentSessionId")
        return all(one.get(name) == other.get(name) for name in names)

    def _wanted(self, plan: SessionPlan, piece: OwnSegment, here: bool) -> str | None:
        """Return the reason to write a segment; None to leave it as it is. `here`: the file is at the path recorded for the session."""
        node = self._node(piece.id)
        if node is None or self._taken_back(node):
            return revisions.INITIAL
        if node.standing not in UPRIGHT:
            plan.warnings.append(f"segment {piece.id} is {node.standing}; it was left so")
            return None
        digest, count = revisions.known_as(node.content)
        if digest == piece.digest:
            return self._renewed(plan, piece, node)
        if piece.segment.entry_count < count or (piece.segment.entry_count == count and not here):
            return None
        return revisions.GROWN

    def _taken_back(self, node: Node) -> bool:
        return node.standing == "retracted" and taken_back_by_reading(self._store, node.id)

    def _renewed(self, plan: SessionPlan, piece: OwnSegment, node: Node) -> str | None:
        """Return the reason to revise a segment of unchanged bytes (new title, `kept` flag or analyser); None if there is none."""
        said = node.content.get("metadata", {})
        called = plan.transcript.title(piece.segment, self.catalog.titles)
        if called is not None and called != said.get("called"):
            return revisions.GROWN
        if "kept" in said and said["kept"] != bool(plan.transcript.is_kept(piece.segment)):
            return revisions.GROWN
        return revisions.outdated(node.content, self._analyze.version)

    def _outdated(self, plan: SessionPlan, piece: OwnSegment) -> str | None:
        """Return the reason to write a segment of an unchanged session; None if there is no reason."""
        node = self._standing(piece.id)
        if node is None:
            return None
        digest, _ = revisions.known_as(node.content)
        return self._renewed(plan, piece, node) if digest == piece.digest else None

    def _node(self, id: str) -> Node | None:
        """Return the node with this id and any standing; None if the id is unknown. Raise ConflictError if it belongs to an event."""
        if not self._store.knows(id):
            return None
        found = self._store.as_of(valid=EVER).inspect(id).node
        if not isinstance(found, Node):
            raise ConflictError(
                f"{id!r} is an event here, and would be a session's node. Import into another store."
            )
        return found

    def _standing(self, id: str) -> Node | None:
        """Return the node with this id if it stands, else None."""
        node = self._node(id)
        return None if node is None or node.standing not in UPRIGHT else node

    # ---- writing

    def _written(self, plan: SessionPlan) -> SessionIngested:
        """Write the session in one transaction. Open no transaction if nothing has changed."""
        known = self.catalog.sessions.get(plan.id)
        there = self._node(plan.id) if known is None else None
        if there is not None and not self._taken_back(there):
            plan.warnings.append(f"session {plan.id} is {there.standing}; it was left so")
            return self._report(plan, [], 0)
        if known is None and plan.open and not plan.pieces:
            return self._report(plan, [], 0)  # the session has just begun
        stale = self._stale(plan, known)
        plan.content = self._joined(plan, known, stale)
        due = [piece for piece in plan.pieces if piece.trigger is not None]
        if known is not None and not due and not stale and plan.content == known.content:
            return self._report(plan, [], 0)
        for piece in due:
            piece.analysed = self._analysed(plan, piece)
        try:
            with self._store.transaction(reason=f"ingested from {plan.transcript.path.name}"):
                SessionWriting(self._store, self.catalog, plan).write(known, due, stale)
        except BaseException:
            self.catalog = Catalog(self._store)
            raise
        return self._report(plan, due, len(stale))

    def _report(self, plan: SessionPlan, due: list[OwnSegment], retracted: int) -> SessionIngested:
        new = sum(piece.trigger == revisions.INITIAL for piece in due)
        read = _counted(plan.transcript.warning_counts)
        return SessionIngested(
            file=file_access.called(plan.transcript.path),
            session=plan.id,
            new=new,
            revised=len(due) - new,
            unchanged=len(plan.pieces) - len(due),
            retracted=retracted,
            open=plan.open,
            warnings=(*read, *plan.warnings),
        )

    def _stale(self, plan: SessionPlan, known: KnownSession | None) -> list[str]:
        """Return known segments that no longer begin at any cut of the file: their entries belong to the parent or to another segment."""
        if known is None or plan.older:
            return []
        session_id = plan.transcript.header.session_id
        begin = {segment_node(session_id, each.start_entry_id) for each in plan.segments if not each.copied}
        return [id for id in known.nodes if id not in begin and self._is_in(plan.transcript, id)]

    def _is_in(self, transcript: Transcript, id: str) -> bool:
        node = self._standing(id)
        if node is None:
            return False
        start = node.content.get("source", {}).get("segment", {}).get("startEntryId")
        return isinstance(start, str) and has_entry(transcript, start)

    @staticmethod
    def _joined(plan: SessionPlan, known: KnownSession | None, stale: list[str]) -> Json:
        """Return the content of the session's node, with the segments that only another copy of its file has."""
        own = [piece.id for piece in plan.pieces]
        before = [] if known is None else [id for id in known.nodes if id not in stale]
        if known is None:
            return plan.content
        nodes = dict.fromkeys([*before, *own] if plan.older else [*own, *before])
        session_id = known.content["sessionId"]
        others = nodes.keys() - set(own)
        strays = known.strays.items()
        elsewhere = {entry: at for entry, at in strays if segment_node(session_id, at) in others}
        aside = {**elsewhere, **plan.content.get("strays", {})}
        content = {**(known.content if plan.older else plan.content), "nodes": list(nodes)}
        content.pop("strays", None)
        return {**content, "strays": aside} if aside else content

    def _analysed(self, plan: SessionPlan, piece: OwnSegment) -> SessionNode:
        """Run the analyser on a segment and check its result. Raise InvalidError if the analyser raises, or returns something that is not a node."""
        transcript, segment = plan.transcript, piece.segment
        titles = self.catalog.titles
        work = Work(transcript, segment, plan.content["computer"], transcript.header.cwd or "", titles)
        who = f"the analyser {self._analyze.version!r} failed on the segment at {segment.start_entry_id}"
        try:
            given = self._analyze(work)
        except Exception as error:
            raise InvalidError(
                f"{who}: {type(error).__name__}: {error}. Nothing of the session was written."
            ) from error
        try:
            content = given.json_object() if isinstance(given, SessionNode) else dict(given)
            source, metadata = content.get("source", {}), content.get("metadata", {})
            if called := work.called():
                content["metadata"] = metadata = {**metadata, "called": called}
            if source.get("digest") != piece.digest:
                content["source"] = {**source, **work.source()}
            if metadata.get("analyzerVersion") != self._analyze.version:
                content["metadata"] = {**metadata, "analyzerVersion": self._analyze.version}
            return SessionNode.from_content(json_object("the node", content))
        except (InvalidError, TypeError, ValueError, AttributeError) as error:
            raise InvalidError(
                f"{who}: what it gave is no node. {error} Nothing of the session was written."
            ) from error


def _holds(file: Path, entries: Iterable[str]) -> bool:
    """Return True if a file has an entry with one of these ids."""
    with file_access.opened(file, 1 << 20) as opened:
        return any(b'"uuid"' in line and any(entry.encode() in line for entry in entries) for line in opened)


def _counted(warnings: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"{reason} ({count} ×)" if count > 1 else reason for reason, count in warnings.items())


def digest_of(file: Path) -> str | None:
    """Return a digest of all bytes of a file, 32 hex characters; None if the file cannot be read."""
    found = blake2b(digest_size=16)
    try:
        with session_bytes.opened(file, 1 << 20) as opened:
            while block := opened.read(1 << 20):
                found.update(block)
    except (OSError, ValueError):
        return None
    return found.hexdigest()


def _digest(plan: SessionPlan) -> str:
    """Return a digest of the session's own segments that are written, 32 hex characters."""
    found = blake2b(digest_size=16)
    for piece in plan.pieces:
        found.update(f"{piece.id} {piece.digest}\n".encode())
    return found.hexdigest()
