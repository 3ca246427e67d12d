"""Finds ancestors and descendants of sessions through the fork links that hold at a coordinate."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from graphstore.errors import InvalidError
from graphstore.sessions.segments.nodes import SEGMENT, SESSION
from graphstore.sessions.segments_read import value_at
from graphstore.sessions.transcripts.steps import as_text
from graphstore.store import registry
from graphstore.values.models import Json, Link, Node, Value
from graphstore.values.period import when
from graphstore.view.view import Reader


class Relative(Value):
    """A session in a lineage. `missing`: only those forked from it name it. `parent`: the session it was forked from, at the node `forked_at`, with
    so many entries shared; `generations` away from the requested one. `file`: where it was read from, or what those forked from it call that.
    """

    session: str
    node: str | None
    project: str
    name: str | None
    started_at: datetime | None
    missing: bool
    generations: int
    parent: str | None
    forked_at: str | None
    shared_entries: int | None
    file: str | None = None

    def __str__(self) -> str:
        known = [f"started {when(self.started_at)}"] if self.started_at else []
        known += [self.project] if self.project else []
        known += ["missing: its file was not read"] if self.missing else []
        name = f" {self.name!r}" if self.name else ""
        about = f" ({', '.join(known)})" if known else ""
        return f"{self.session}{name}{about}"


class Lineage(Value):
    """Where a session comes from, the parent first, and what was forked from it, children before grandchildren."""

    subject: Relative
    ancestors: tuple[Relative, ...]
    descendants: tuple[Relative, ...]

    def __str__(self) -> str:
        above = [f"{'  ' * at}{each}" for at, each in enumerate(reversed(self.ancestors))]
        depth = len(above)
        here = f"{'  ' * depth}{self.subject}  ←"
        below = [
            f"{'  ' * (depth + each.generations)}{each}" for each in self._in_order(self.subject.session)
        ]
        return "\n".join([*above, here, *below])

    def _in_order(self, parent: str) -> Iterator[Relative]:
        """Yield the descendants depth first: each child, then its own descendants."""
        for each in self.descendants:
            if each.parent == parent:
                yield each
                yield from self._in_order(each.session)


class _Fork(NamedTuple):
    parent: str
    child: str
    link: Link


@registry.read("sessions")
def lineage(view: Reader, session_or_node: str) -> Lineage:
    """The ancestors and descendants of a session over fork links. A session whose file is missing is marked.

    `session_or_node`: the id of a session (its own, or that of its node), or of one of its segments. Raises NotFoundError for an unknown one,
    InvalidError for the id of something else.
    """
    family = _Family(view)
    start = family.session_of(session_or_node)
    ancestors: list[Relative] = []
    here = start
    seen = {start}
    while (fork := family.forks.get(here)) is not None and fork.parent not in seen:
        seen.add(fork.parent)
        here = fork.parent
        ancestors.append(family.relative(here, len(ancestors) + 1))
    descendants, todo = [], [(start, 0)]
    for parent, generations in todo:
        for fork in sorted(family.into.get(parent, ()), key=lambda fork: (fork.link.valid_from, fork.child)):
            if fork.child not in seen:
                seen.add(fork.child)
                todo.append((fork.child, generations + 1))
                descendants.append(family.relative(fork.child, generations + 1))
    return Lineage(
        subject=family.relative(start, 0), ancestors=tuple(ancestors), descendants=tuple(descendants)
    )


class _Family:
    """Holds the sessions of a view and the forks between them."""

    def __init__(self, view: Reader) -> None:
        self._view = view
        self._sessions: dict[str, Node] = {}
        self._of_node: dict[str, str] = {}
        for node in view.nodes(kind=SESSION):
            name = _text(node.content, "sessionId") or node.id
            self._sessions[name] = node
            self._of_node[node.id] = name
        self._segments: dict[str, Node] = {}  # by session: its first segment
        segments = sorted(view.nodes(kind=SEGMENT), key=lambda node: (node.valid_from, node.id))
        for node in segments:
            name = self._of_node[node.id] = _session_id(node) or node.id
            self._segments.setdefault(name, node)
        self.into: dict[str, list[_Fork]] = {}
        self.forks: dict[str, _Fork] = {}
        links = [link for id in self._of_node for link in view.links_from(id, "fork")]
        for link in sorted(links, key=lambda link: (link.recorded_at, link.id)):
            self._join(_Fork(self._of(link.source), self._of(link.target), link))

    def _join(self, fork: _Fork) -> None:
        if fork.parent != fork.child:
            self.into.setdefault(fork.parent, []).append(fork)
            self.forks.setdefault(fork.child, fork)

    def _of(self, id: str) -> str:
        """Return the session of a node with any standing."""
        if id not in self._of_node:
            node = self._view.inspect(id).node
            found = _session_id(node) if isinstance(node, Node) else ""
            self._of_node[id] = found or id
        return self._of_node[id]

    def session_of(self, id: str) -> str:
        """Return the session that an id names: a session or one of its segments. Raise InvalidError for the id of anything else."""
        if id in self._sessions or id in self._segments:
            return id
        node = self._view.inspect(id).node
        if not isinstance(node, Node) or node.kind not in (SESSION, SEGMENT):
            raise InvalidError(f"{id!r} is no session and no segment of one. Give the id of one of these.")
        return self._of(node.id)

    def relative(self, session: str, generations: int) -> Relative:
        node, first, fork = self._sessions.get(session), self._segments.get(session), self.forks.get(session)
        content: Json = node.content if node is not None else {}
        of_first: Json = first.content if first is not None else {}
        missing = content.get("missing") is True
        known = first or (None if missing else node)
        return Relative(
            session=session,
            node=node.id if node is not None else None,
            project=_text(content, "project") or _text(of_first, "classification", "project"),
            name=_text(content, "name") or None,
            started_at=known.valid_from if known is not None else None,
            missing=missing,
            generations=generations,
            parent=fork.parent if fork else None,
            forked_at=fork.link.source if fork else None,
            shared_entries=_count(fork.link.metadata) if fork else None,
            file=_text(content, "file") or _text(of_first, "source", "sessionFile") or None,
        )


def _session_id(node: Node) -> str:
    return _text(node.content, "source", "sessionId") or _text(node.content, "sessionId")


def _count(metadata: Json) -> int | None:
    found = metadata.get("sharedEntries", metadata.get("shared_entries"))
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _text(content: Json, *path: str) -> str:
    return as_text(value_at(content, *path))
