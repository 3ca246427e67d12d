"""What the graph says of the sessions it has: who is whose parent, which came first in a project, and where an entry lies."""

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
"""A valid time at which everything open-ended stands, sessions of a clock that runs ahead included."""


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
    """Whether a segment or a link that is no longer believed was taken back because a file was read better, and not by a person."""
    with store.reading() as sight:
        last = sight.closed_by(id)
        return last >= 0 and sight.change(last).reason in _OF_ITSELF


@dataclass(slots=True)
class KnownSession:
    """A session as the graph has it."""

    id: str
    content: Json

    @property
    def missing(self) -> bool:
        """Whether only another session names it: its own file was never seen."""
        return bool(self.content.get("missing"))

    @property
    def agent(self) -> str | None:
        """The sub-agent whose session it is."""
        return self.content.get("agent")

    @property
    def file_node(self) -> str | None:
        """The node that a session would have by the id in the name of its file."""
        file = self.content.get("file")
        return None if file is None or self.missing else session_node(session_id_in(file))

    @property
    def strays(self) -> dict[str, str]:
        """Entries that hang elsewhere than the segment they are in, each with the entry that starts it."""
        return dict(self.content.get("strays", {}))

    @property
    def nodes(self) -> list[str]:
        return list(self.content.get("nodes", ()))

    @property
    def parent(self) -> str | None:
        """The node of its parent session."""
        named = self.content.get("parentSessionId")
        return None if named is None else session_node(named)

    @property
    def begun(self) -> datetime | None:
        """When its first entry was, where its own file says so."""
        at = self.content.get("startedAt")
        return None if self.missing or at is None else moment(instant(at))

    @property
    def since(self) -> tuple[Instant, str]:
        """What orders the sessions of a project: those that do not say when they began come last."""
        began = self.content.get("startedAt")
        return (OPEN if began is None else instant(began)), self.id


class Catalog:
    """The sessions of a store, read once and kept up while they are written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.sessions: dict[str, KnownSession] = {}
        self._children: dict[str, set[str]] = {}
        self._by_path: dict[str, str] = {}
        self._files: dict[str, str] = {}  # sessions whose file is named for another id, by that
        self._first: dict[str, tuple[Instant, str]] = {}
        self._begun: dict[datetime, set[str]] = {}
        self.titles: dict[str, str] = {}
        """What files of sessions call the work at entries of others."""
        for node in store.as_of(valid=EVER).nodes(SESSION):
            self.put(node.id, node.content)

    def put(self, id: str, content: Json) -> None:
        """Take note of a session as it is written now."""
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
        """Take note of what a file calls the work at entries of others, the longest where several do; gives the entries of which that is new."""
        known = self.titles
        new = [
            at
            for at, title in titles.items()
            if (len(title), title) > (len(known.get(at, "")), known.get(at, ""))
        ]
        known.update({at: titles[at] for at in new})
        return new

    def begun_with(self, at: datetime) -> list[KnownSession]:
        """The sessions whose first entry was at an instant, in the order of their ids."""
        return [self.sessions[id] for id in sorted(self._begun.get(at, ()))]

    def of_file(self, file: str) -> KnownSession | None:
        """The session that was read from the file at a path."""
        known = self.sessions.get(self._by_path.get(file, ""))
        return known if known is not None and known.content.get("file") == file else None

    def first_of(self, project: str) -> str | None:
        """The earliest session of a project."""
        first = self._first.get(project)
        return None if first is None else first[1]

    def drop(self, id: str) -> None:
        """Forget a session that only others named."""
        del self.sessions[id]

    def parent_of(self, header: Header, file: Path) -> KnownSession | None:
        """The session that a file names as its parent, by its id or by the name of its file, if its own file was seen."""
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
        """The sessions that name a file as their parent, and so far hang on the id in its name, of which nothing else is known."""
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
        """The sessions that were forked from this one."""
        return [self.sessions[child] for child in sorted(self._children.get(id, ()))]

    def descendants(self, id: str) -> list[KnownSession]:
        """The sessions forked from this one, from those, and so on."""
        found: dict[str, KnownSession] = {}
        todo = self.children(id)
        while todo:
            child = todo.pop()
            if child.id not in found and child.id != id:
                found[child.id] = child
                todo += self.children(child.id)
        return list(found.values())

    def lineage(self, id: str | None) -> Iterator[KnownSession]:
        """A session, its parent, the parent of that, and so on as far as they are known."""
        seen: set[str] = set()
        while id is not None and id not in seen and id in self.sessions:
            seen.add(id)
            yield self.sessions[id]
            id = self.sessions[id].parent

    def locate(self, entry_id: str, transcript: Transcript, session: str) -> str:
        """The node of the segment that holds an entry of this session or of one that it was forked from; where none is known to, the
        node of the session where it waits for one. `transcript`: any file that has the entry.
        """
        lineage = list(self.lineage(session))
        homes = [
            (each.content["sessionId"], set(each.nodes), each.strays) for each in lineage if not each.missing
        ]
        # between cuts a segment is one chain of the tree: on the way to the root its start is met, or what strays after it
        entry = transcript.entry(entry_id)
        chain = [entry, *transcript.ancestors(entry_id)]
        for steps, each in enumerate(each for each in chain if each.is_content):
            for session_id, nodes, strays in homes:
                start = strays.get(each.id)
                node = segment_node(session_id, start or each.id)
                if node in nodes:
                    if steps + (start is not None) < self._length(node):
                        return node
                    return self._waiting(lineage)  # it came after what is known of that segment
        return self._waiting(lineage)

    @staticmethod
    def _waiting(lineage: list[KnownSession]) -> str:
        return next((each.id for each in lineage if each.missing), lineage[0].id)

    def _length(self, node: str) -> float:
        """How many entries with content a segment is known to have."""
        found = self._store.inspect(node).node
        source = found.content.get("source", {}) if isinstance(found, Node) else {}
        count = source.get("segment", {}).get("entryCount")
        return count if isinstance(count, int) else float("inf")  # forgotten: nothing says otherwise
