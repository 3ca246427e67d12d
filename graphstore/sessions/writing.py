"""Writes one session in one transaction: its node, its segments, the links into them, and the links that waited for them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING, Any

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.sessions import revisions
from graphstore.sessions.catalog import (
    COPIED,
    EVER,
    MOVED,
    OTHERWISE,
    Catalog,
    KnownSession,
    taken_back_by_reading,
)
from graphstore.sessions.joints import STRUCTURAL, Joint, Joints, has_entry, link_id, session_node, time_in
from graphstore.sessions.segments.nodes import SEGMENT, SESSION, SessionNode, stored
from graphstore.sessions.transcripts.transcript import Segment, Transcript
from graphstore.values.models import Json, Link, Node
from graphstore.values.period import OPEN, instant, iso, moment

if TYPE_CHECKING:
    from graphstore.store.store import Store

MAKER = "boundary"
"""The `created_by` of structural links."""


@dataclass(slots=True)
class OwnSegment:
    """An own segment of a file, and the action planned for it."""

    segment: Segment
    id: str
    digest: str
    begins: datetime | None
    trigger: str | None = None
    """The reason to write it; None: leave it as it is."""
    analysed: SessionNode | None = None


@dataclass(slots=True)
class SessionPlan:
    """Holds what a session file should become in the graph."""

    transcript: Transcript
    id: str
    pieces: list[OwnSegment]
    segments: Sequence[Segment]
    open: bool
    """The last segment is left for later."""
    warnings: list[str] = field(default_factory=list)
    older: bool = False
    """The file holds less than the graph."""
    content: Json = field(default_factory=dict)
    titles: list[str] = field(default_factory=list)
    """The entries of other files that this file is the first to give a title."""


class SessionWriting:
    """Executes the steps of one transaction, and updates the catalog."""

    def __init__(self, store: Store, catalog: Catalog, plan: SessionPlan) -> None:
        self._store, self._catalog, self._plan = store, catalog, plan
        self._now = store.at.tx
        self._view = store.as_of(valid=EVER)
        self._adrift: list[Link] = []  # structural links from retracted segments
        self._source = f"sessions:{plan.content['format']}"

    def write(self, known: KnownSession | None, due: list[OwnSegment], stale: list[str]) -> None:
        """Write the session. `known`: its earlier state; `due`: segments to write; `stale`: segments to retract."""
        plan, catalog = self._plan, self._catalog
        project = plan.content.get("project")
        first = catalog.first_of(project) if project else None
        self._session(known)
        catalog.put(plan.id, plan.content)
        is_first = bool(project) and catalog.first_of(str(project)) == plan.id
        for piece in due:
            self._segment(piece, is_first)
        if is_first and first is not None and first != plan.id:
            self._no_longer_first(catalog.sessions[first])
        for id in stale:
            self._take_back(id)
        self._parent()
        joints, before = Joints(plan.transcript, plan.segments), None
        for piece in plan.pieces:
            self._link(piece, joints.into(piece.segment, before))
            before = piece.segment
        self._settle()
        if known is not None and known.parent is not None:
            self._leave(known.parent)

    # ---- nodes

    def _session(self, known: KnownSession | None) -> None:
        plan, store = self._plan, self._store
        name = plan.content.get("name")
        since = plan.content.get("startedAt")
        if known is None:
            self._first_told(plan.id, plan.content, text=name, valid_from=since)
        elif known.missing:
            self._found(since)
        elif plan.content != known.content:
            how: Any = {"trigger": revisions.GROWN, "source": self._source, "minor": True}
            store.revise(plan.id, plan.content, text=name, tags=(), **how)

    def _first_told(self, id: str, content: Json, **more: Any) -> None:
        """Write a session that is unknown, or that a reading retracted."""
        if self._store.knows(id):
            self._store.revise(id, content, trigger=revisions.INITIAL, source=self._source, **more)
        else:
            self._store.add_node(SESSION, content, id=id, source=self._source, **more)

    def _found(self, since: str | None) -> None:
        """Revise a session that only others had named: its own file was read now, so its start is known."""
        plan, store = self._plan, self._store
        agents = [each.since[0] for each in self._catalog.children(plan.id) if "agent" in each.content]
        earliest = min([OPEN if since is None else instant(since), *agents])
        store.revise(
            plan.id,
            plan.content,
            text=plan.content.get("name"),
            valid_from=since if earliest == OPEN else moment(earliest),
            trigger=revisions.INITIAL,
            source=self._source,
            reason="its file was found",
            minor=True,
        )
        began = self._view.node(plan.id).valid_from
        first = min(version.valid_from for version in self._view.history(plan.id))
        if first < began:
            store.retract(plan.id, valid_from=first, valid_to=began, reason="it had not begun")
        for link in self._view.links_from(plan.id, "fork", created_by=MAKER):
            if agents and since is not None and link.valid_from < moment(instant(since)):
                store.unlink(link.id, valid_to=since, reason="it had not begun")

    def _segment(self, piece: OwnSegment, is_first: bool) -> None:
        assert piece.analysed is not None and piece.trigger is not None
        store = self._store
        fresh = revisions.in_new_project(stored(piece.analysed, analyzed_at=self._now), is_first)
        if piece.trigger == revisions.INITIAL and not store.knows(piece.id):
            found: Any = {"text": piece.analysed.text, "tags": piece.analysed.tags}
            store.add_node(SEGMENT, fresh, id=piece.id, valid_from=piece.begins, source=self._source, **found)
        else:
            versions = self._view.versions(piece.id)
            content = revisions.carried(versions, fresh)
            since = piece.begins if piece.trigger == revisions.INITIAL else None  # it was retracted before
            minor = bool(versions) and revisions.still_says(versions[-1].content, content)
            self._revise(piece.id, content, piece.trigger, piece.analysed, valid_from=since, minor=minor)

    def _revise(
        self,
        id: str,
        content: Json,
        trigger: str,
        analysed: SessionNode | None,
        *,
        minor: bool = True,
        **how: Any,
    ) -> None:
        """Describe a segment again, with text and tags from its new content. If a person's changes are not a valid node, take them from the analysis."""
        node: SessionNode | None = analysed
        with suppress(InvalidError):
            node = SessionNode.from_content(content)
        text, tags = (None, None) if node is None else (node.text, node.tags)
        about: Any = {"text": text, "tags": tags, "source": self._source, **how}
        self._store.revise(id, content, trigger=trigger, minor=minor, **about)

    def _no_longer_first(self, session: KnownSession) -> None:
        """Mark the segments of a session as not in a new project, because an earlier session of that project was read."""
        for id in session.nodes:
            node = self._standing(id)
            if node is None:
                continue
            fresh = revisions.in_new_project(node.content, False)
            content = revisions.carried(self._view.versions(id), fresh)
            if content != node.content:
                reason = "an earlier session of the project was read"
                self._revise(id, content, revisions.EARLIER, None, reason=reason)

    def _take_back(self, id: str) -> None:
        onward = self._view.links_from(id, STRUCTURAL, created_by=MAKER)
        self._store.retract(id, reason=COPIED)
        for link in [*self._into(id), *onward]:
            self._store.unlink(link.id, reason=COPIED)
        self._adrift += onward

    def _standing(self, id: str) -> Node | None:
        try:
            return self._view.node(id)
        except NotFoundError:
            return None

    # ---- the parent

    def _parent(self) -> None:
        """Create a placeholder for a parent whose file was not read, valid from before the first session that names it."""
        plan = self._plan
        named = plan.content.get("parentSessionId")
        if named is None or session_node(named) == plan.id:
            return
        id = session_node(named)
        begins = [piece.begins for piece in plan.pieces[:1] if piece.begins is not None]
        if "startedAt" in plan.content:
            begins.append(moment(instant(plan.content["startedAt"])))
        if id in self._catalog.sessions:
            self._reach(id, min(begins, default=None))
        elif not self._store.knows(id) or taken_back_by_reading(self._store, id):
            self._placeholder(id, named, begins)  # otherwise a person retracted or forgot it

    def _placeholder(self, id: str, named: str, begins: list[datetime]) -> None:
        path = self._plan.content.get("parentSession")
        content: Json = {"sessionId": named, "missing": True, "nodes": []}
        if path is not None:
            content["file"] = PureWindowsPath(path).name
        stated = None if path is None else time_in(path)
        since = min([*begins, *([] if stated is None else [stated])], default=None)
        content |= _begun(since)
        reason = f"{self._plan.transcript.path.name} names it as its parent"
        self._first_told(id, content, valid_from=since, reason=reason)
        self._catalog.put(id, content)

    def _leave(self, id: str) -> None:
        """Retract the placeholder of a parent that proved to be another session, once nothing hangs on it."""
        place = self._catalog.sessions.get(id)
        if place is not None and place.missing and not self._catalog.children(id):
            self._store.retract(id, reason=MOVED)
            self._catalog.drop(id)

    # ---- links

    def _link(self, piece: OwnSegment, joints: list[Joint]) -> None:
        """Create and remove links until the links into a segment match the joints."""
        parent = self._plan.content.get("parentSessionId")
        wanted: dict[str, tuple[str, str, Json]] = {}
        for joint in joints:
            source = joint.source
            if source is None:
                above = None if parent is None else session_node(parent)
                if above is None or above not in self._catalog.sessions or above == self._plan.id:
                    continue
                source = above
                if joint.entry is not None:
                    source = self._catalog.locate(joint.entry, self._plan.transcript, above)
            id = link_id(joint.kind, source, joint.target, joint.metadata)
            wanted[id] = (joint.kind, source, joint.metadata)
        there = {self._key(link): link for link in self._into(piece.id)}
        for key in there.keys() - wanted.keys():
            self._store.unlink(there[key].id, reason=OTHERWISE)
        for id, (kind, source, metadata) in wanted.items():
            if id not in there:
                self._say(kind, source, piece.id, metadata, piece.begins)

    @staticmethod
    def _key(link: Link) -> str:
        """Return the id that the link had when it was first made."""
        return link_id(link.kind, link.source, link.target, link.metadata)

    def _say(self, kind: str, source: str, target: str, metadata: Json, since: datetime | None) -> None:
        """Create a link, under the next id if a reading retracted it before. A link that a person retracted stays retracted."""
        turn = 0
        while self._is_known(id := link_id(kind, source, target, metadata, turn)):
            if not taken_back_by_reading(self._store, id):
                return
            turn += 1
        self._reach(source, since)
        above = self._catalog.sessions.get(source)
        if since is not None and above is not None and self._plan.transcript.header.agent:
            since = max(since, above.begun or since)
        try:
            self._store.link(
                source, kind, target, id=id, created_by=MAKER, metadata=metadata, valid_from=since
            )
        except (InvalidError, ConflictError, NotFoundError) as refused:
            self._plan.warnings.append(f"{source} {kind} {target} was not linked: {refused}")

    def _is_known(self, link: str) -> bool:
        with self._store.reading(is_narrow=True) as sight:
            return sight.knows_link(link)

    def _reach(self, id: str, since: datetime | None) -> None:
        """Extend a session's validity back to `since`: its agents may start before its first entry, or only others name it."""
        known = self._catalog.sessions.get(id)
        if known is None or since is None or not (known.missing or self._plan.transcript.header.agent):
            return
        if since < self._view.node(id).valid_from:
            content = {**known.content, **_begun(since)} if known.missing else known.content
            self._store.revise(id, content, valid_from=since, trigger=revisions.INITIAL, minor=True)
            self._catalog.put(id, content)

    def _into(self, id: str) -> list[Link]:
        return self._view.backlinks_to(id, STRUCTURAL, created_by=MAKER)

    def _settle(self) -> None:
        """Move links that wait at a session to the segment that holds their entry, where this is now known."""
        owners = {id: session for session in self._catalog.descendants(self._plan.id) for id in session.nodes}
        for link in self._adrift:
            if link.target in owners:
                self._move(link, owners[link.target])
        for id, session in owners.items():
            for link in self._into(id):
                if link.source in self._catalog.sessions:
                    self._move(link, session)

    def _move(self, link: Link, session: KnownSession) -> None:
        """Move a link into a session to the segment that is now known to hold its entry."""
        entry = link.metadata.get("last_shared_entry") or link.metadata.get("from_entry")
        transcript = self._plan.transcript
        if entry is None or session.parent is None or not has_entry(transcript, entry):
            return
        source = self._catalog.locate(entry, transcript, session.parent)
        if source == link.source:
            return
        if link not in self._adrift:
            self._store.unlink(link.id, reason=MOVED)
        self._say(link.kind, source, link.target, link.metadata, link.valid_from)


def _begun(since: datetime | None) -> Json:
    """Return the content that states the latest possible start of a session whose file was not read."""
    return {} if since is None else {"startedBefore": iso(instant(since))}
