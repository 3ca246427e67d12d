"""Reads the sessions in the graph: their parents, which session of a project was first, and which segment holds an entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from graphstore.sessions.joints import names, segment_node, session_node
from graphstore.sessions.segments.nodes import SESSION
from graphstore.sessions.segments_read import paths_meant, pieces, whole_projects
from graphstore.sessions.transcripts.lines import session_id_in
from graphstore.sessions.transcripts.transcript import Header, Transcript
from graphstore.store import registry
from graphstore.values.inputs import text_of
from graphstore.values.models import Json, Node, Value
from graphstore.values.period import OPEN, Instant, TimeLike, instant, moment
from graphstore.view.view import Reader

if TYPE_CHECKING:
    from graphstore.store.store import Store

EVER = "9999-12-31"
"""The valid time to read at: everything open-ended stands there, even sessions of a computer whose clock runs ahead."""


class SessionInfo(Value):
    """A session in short. `segments`: how many are its own. `missing`: only sessions forked from it name it."""

    id: str
    session_id: str
    name: str | None = None
    project: str | None = None
    format: str | None = None
    file: str | None = None
    computer: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    entries: int = 0
    copied: int = 0
    segments: int = 0
    parent: str | None = None
    """The id of the node of the session it was forked from."""
    missing: bool = False
    agents: int = 0
    """How many sub-agents worked for it."""
    agent: str | None = None
    """The sub-agent whose session it is."""


@registry.read("sessions")
def listed(
    view: Reader,
    *,
    project: str | None = None,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
    every: bool = False,
) -> list[SessionInfo]:
    """The sessions that are known and began in [since, until), those that began first first; those that do not say when come last.

    `project`: its path, or the end of it; worktrees and sub-folders belong to it. Sub-agents are counted at the session they worked for, and sessions in
    which nothing was done (start-ups, commands of the program) are left out; with `every` each is listed.
    """
    known = sorted(
        (KnownSession(node.id, node.content) for node in view.nodes(SESSION)), key=lambda each: each.since
    )
    if project is not None:
        known = _of_project(known, project)
    if since is not None or until is not None:
        begin, end = view.bounds_of(since, until)
        known = [each for each in known if begin <= each.since[0] < end]
    there = {each.id for each in known}
    agents = Counter(str(each.parent) for each in known if each.agent and each.parent in there)
    if not every:
        idle = {piece.id for piece in pieces(view) if piece.is_idle}
        busy = {each.parent for each in known if not each.agent or not idle.issuperset(each.nodes)}
        known = [each for each in known if not each.missing or each.id in busy]
        known = [each for each in known if not (each.agent and each.parent in there)]
        is_done = {each.id for each in known if not each.nodes or not idle.issuperset(each.nodes)}
        known = [each for each in known if each.id in is_done or agents[each.id]]
    return [_info(each, agents[each.id]) for each in known]


def _of_project(known: list[KnownSession], project: str) -> list[KnownSession]:
    folders = {each.id: str(each.content.get("project") or "") for each in known}
    projects = whole_projects(folders.values())
    meant = set(paths_meant({*projects, *projects.values()}, text_of("project", project)))
    return [each for each in known if (path := folders[each.id]) and meant & {path, projects[path]}]


def _info(known: KnownSession, agents: int) -> SessionInfo:
    content = known.content

    def at(name: str) -> datetime | None:
        return None if content.get(name) is None else moment(instant(content[name]))

    return SessionInfo(
        id=known.id,
        session_id=content["sessionId"],
        name=content.get("name"),
        project=content.get("project"),
        format=content.get("format"),
        file=content.get("file"),
        computer=content.get("computer"),
        started_at=at("startedAt"),
        ended_at=at("endedAt"),
        entries=content.get("entries", 0),
        copied=content.get("copiedEntries", 0),
        segments=len(known.nodes),
        parent=known.parent,
        missing=known.missing,
        agents=agents,
        agent=known.agent,
    )


COPIED = "its entries belong to another segment"
MOVED = "where it comes from is known now"
OTHERWISE = "the session's file says otherwise"
_OF_ITSELF = frozenset({COPIED, MOVED, OTHERWISE})


def taken_back_by_reading(store: Store, id: str) -> bool:
    """Return True if a segment or link that is no longer believed was retracted by a better reading of a file, and not by a person."""
    with store.reading() as sight:
        last = sight.closed_by(id)
        return last >= 0 and sight.change(last).reason in _OF_ITSELF


@dataclass(slots=True)
class KnownSession:
    """Holds a session as the graph describes it."""

    id: str
    content: Json

    @property
    def missing(self) -> bool:
        """Return True if only another session names this one: its own file was never read."""
        return bool(self.content.get("missing"))

    @property
    def agent(self) -> str | None:
        """Return the name of the sub-agent that ran this session; None for a session of the main agent."""
        return self.content.get("agent")

    @property
    def file_node(self) -> str | None:
        """Return the node id derived from the id in the session's file name; None if there is no file."""
        file = self.content.get("file")
        return None if file is None or self.missing else session_node(session_id_in(file))

    @property
    def strays(self) -> dict[str, str]:
        """Return entries that hang on another segment than the one that holds them, each with the first entry of the holding segment."""
        return dict(self.content.get("strays", {}))

    @property
    def nodes(self) -> list[str]:
        return list(self.content.get("nodes", ()))

    @property
    def parent(self) -> str | None:
        """Return the id of the node of the parent session."""
        named = self.content.get("parentSessionId")
        return None if named is None else session_node(named)

    @property
    def begun(self) -> datetime | None:
        """Return the instant of the first entry; None unless the session's own file states it."""
        at = self.content.get("startedAt")
        return None if self.missing or at is None else moment(instant(at))

    @property
    def since(self) -> tuple[Instant, str]:
        """Return the sort key for the sessions of a project. Sessions without a start come last."""
        began = self.content.get("startedAt")
        return (OPEN if began is None else instant(began)), self.id


class Catalog:
    """Keeps the sessions of a store in memory: reads them once, and follows each write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.sessions: dict[str, KnownSession] = {}
        self._children: dict[str, set[str]] = {}
        self._by_path: dict[str, str] = {}
        self._files: dict[str, str] = {}  # by the node id derived from the name of the file
        self._first: dict[str, tuple[Instant, str]] = {}
        self._begun: dict[datetime, set[str]] = {}
        self.titles: dict[str, str] = {}
        """The titles that session files give to work at entries of other files, by entry id."""
        for node in store.as_of(valid=EVER).nodes(SESSION):
            self.put(node.id, node.content)

    def put(self, id: str, content: Json) -> None:
        """Record a session as it is now written."""
        before, known = self.sessions.get(id), KnownSession(id, content)
        self.take_titles(content.get("titles", {}))
        if not known.missing:
            self._by_path[content["file"]] = id
        self.sessions[id] = known
        if before is not None and before.parent not in (None, known.parent):
            self._children[str(before.parent)].discard(id)
        if known.file_node not in (None, id):
            self._files[str(known.file_node)] = id
        if known.begun is not None:
            self._begun.setdefault(known.begun, set()).add(id)
        if known.parent is not None:
            self._children.setdefault(known.parent, set()).add(id)
        project = content.get("project")
        if project and not known.missing:
            self._first[project] = min(self._first.get(project, known.since), known.since)

    def take_titles(self, titles: Mapping[str, str]) -> list[str]:
        """Record the titles that a file gives to entries of other files; the longest title of an entry wins. Return the entries whose title is new."""
        known = self.titles
        new = [
            at
            for at, title in titles.items()
            if (len(title), title) > (len(known.get(at, "")), known.get(at, ""))
        ]
        known.update({at: titles[at] for at in new})
        return new

    def begun_with(self, at: datetime) -> list[KnownSession]:
        """Return the sessions whose first entry has this instant, ordered by id."""
        return [self.sessions[id] for id in sorted(self._begun.get(at, ()))]

    def of_file(self, file: str) -> KnownSession | None:
        """Return the session that was read from the file at this path."""
        known = self.sessions.get(self._by_path.get(file, ""))
        return known if known is not None and known.content.get("file") == file else None

    def first_of(self, project: str) -> str | None:
        """Return the node id of the earliest session of a project."""
        first = self._first.get(project)
        return None if first is None else first[1]

    def drop(self, id: str) -> None:
        """Remove a session that only other sessions named."""
        del self.sessions[id]

    def parent_of(self, header: Header, file: Path) -> KnownSession | None:
        """Return the session that a file names as its parent, by session id or by file name. Return None if the parent's own file was never read."""
        if header.parent_session_id is None:
            return None
        id = session_node(header.parent_session_id)
        known = self.sessions.get(id)
        if known is not None and not known.missing:
            return known
        other = self.sessions.get(self._files.get(id, ""))
        if other is None or header.parent_session is None:
            return None
        return other if names(header.parent_session, file, Path(other.content["file"])) else None

    def waiting_for(self, file: Path) -> list[KnownSession]:
        """Return the sessions that name this file as their parent and still hang on a placeholder: a node known only by the id in the file's name."""
        place = self.sessions.get(session_node(session_id_in(file.name)))
        if place is None or not place.missing:
            return []
        return [
            child
            for child in self.children(place.id)
            if "parentSession" in child.content
            and names(child.content["parentSession"], Path(child.content["file"]), file)
        ]

    def children(self, id: str) -> list[KnownSession]:
        """Return the sessions that were forked from this one."""
        return [self.sessions[child] for child in sorted(self._children.get(id, ()))]

    def descendants(self, id: str) -> list[KnownSession]:
        """Return the sessions forked from this one, directly or through other forks."""
        found: dict[str, KnownSession] = {}
        todo = self.children(id)
        while todo:
            child = todo.pop()
            if child.id not in found and child.id != id:
                found[child.id] = child
                todo += self.children(child.id)
        return list(found.values())

    def lineage(self, id: str | None) -> Iterator[KnownSession]:
        """Yield a session, its parent, and further ancestors as far as they are known."""
        seen: set[str] = set()
        while id is not None and id not in seen and id in self.sessions:
            seen.add(id)
            yield self.sessions[id]
            id = self.sessions[id].parent

    def locate(self, entry_id: str, transcript: Transcript, session: str) -> str:
        """Return the node of the segment that holds an entry of this session or of an ancestor. If no known segment holds it, return the
        node of the session where the entry must wait. `transcript`: any file that contains the entry."""
        lineage = list(self.lineage(session))
        homes = [
            (each.content["sessionId"], set(each.nodes), each.strays) for each in lineage if not each.missing
        ]
        # Between two cuts a segment is one chain of the tree. So the walk to the root meets its first entry, or an entry listed in `strays`.
        entry = transcript.entry(entry_id)
        chain = [entry, *transcript.ancestors(entry_id)]
        for steps, each in enumerate(each for each in chain if each.is_content):
            for session_id, nodes, strays in homes:
                start = strays.get(each.id)
                node = segment_node(session_id, start or each.id)
                if node in nodes:
                    if steps + (start is not None) < self._length(node):
                        return node
                    return self._waiting(lineage)  # the entry came after the known end of that segment
        return self._waiting(lineage)

    @staticmethod
    def _waiting(lineage: list[KnownSession]) -> str:
        return next((each.id for each in lineage if each.missing), lineage[0].id)

    def _length(self, node: str) -> float:
        """Return the known number of content entries of a segment."""
        found = self._store.inspect(node).node
        source = found.content.get("source", {}) if isinstance(found, Node) else {}
        count = source.get("segment", {}).get("entryCount")
        return count if isinstance(count, int) else float("inf")  # forgotten: no limit is known
