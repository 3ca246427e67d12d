"""Reads the pieces of work in a view: its segments of agent sessions, field by field, oldest first.

A content may come from any import, so it need not have the shape that an analyser writes. A missing field, or one of another type, reads as empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from graphstore.errors import InvalidError, NotFoundError
from graphstore.sessions.segments.nodes import LEVELS, SEGMENT, UNPRICED
from graphstore.sessions.transcripts.steps import as_objects, as_text, as_texts
from graphstore.values.fingerprints import fingerprint
from graphstore.values.inputs import text_of
from graphstore.values.models import Json, Node
from graphstore.values.period import Instant, TimeLike, instant
from graphstore.view.view import Reader

_NAMED = 5  # the most projects that an error names


class LessonOfWork(NamedTuple):
    """Holds a lesson of a piece of work. The id is the same for the same summary at the same level."""

    id: str
    level: str
    summary: str
    content: Json

    @property
    def tags(self) -> list[str]:
        return as_texts(self.content.get("tags"))


class ErrorOfWork(NamedTuple):
    """Holds an error of a piece of work. The pattern is the same for errors that differ only in ids, instants, addresses and long numbers."""

    pattern: str
    type: str
    message: str
    resolved: bool


class WorkPiece:
    """One segment, as described at the coordinate of its view."""

    __slots__ = ("content", "node", "project", "since")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.content = node.content
        self.since: Instant = instant(node.valid_from)
        self.project = self.folder

    @property
    def id(self) -> str:
        return self.node.id

    @property
    def session(self) -> str:
        return self.text("source", "sessionId")

    @property
    def folder(self) -> str:
        """Return the working folder that the session states. `project` is the whole project, without sub-folder and worktree."""
        return self.text("classification", "project")

    @property
    def parent(self) -> str:
        """Return the session that a sub-agent worked for; an empty string if this is not a sub-agent's work."""
        return self.text("source", "parentSessionId") if self.text("source", "agent") else ""

    @property
    def is_idle(self) -> bool:
        """Return True if nothing was done: a start-up, or only commands of the program."""
        return bool(self.text("content", "idle"))

    @property
    def title(self) -> str:
        """Return a line that states what was done."""
        return self.text("content", "title") or self.summary

    @property
    def summary(self) -> str:
        return self.text("content", "summary")

    @property
    def unpriced(self) -> bool:
        """Return True if the session states tokens but no cost."""
        return any(each.get("decision") == UNPRICED for each in self.objects("daemonMeta", "decisions"))

    def at(self, *path: str) -> Any:
        """Return the value at a path into the content; None if there is none."""
        return value_at(self.content, *path)

    def text(self, *path: str) -> str:
        return as_text(self.at(*path))

    def texts(self, *path: str) -> list[str]:
        return as_texts(self.at(*path))

    def number(self, *path: str) -> float:
        return number(self.at(*path))

    def objects(self, *path: str) -> list[Json]:
        return as_objects(self.at(*path))

    def lessons(self) -> Iterator[LessonOfWork]:
        """Yield its lessons, level by level."""
        for level in LEVELS:
            for each in self.objects("lessons", level):
                summary = as_text(each.get("summary"))
                if summary:
                    yield LessonOfWork(fingerprint(f"{level} lesson", summary), level, summary, each)

    def errors(self) -> Iterator[ErrorOfWork]:
        """Yield the errors that occurred in it."""
        for each in self.objects("content", "errorsSeen"):
            type, message = as_text(each.get("type")), as_text(each.get("message"))
            if type or message:
                yield ErrorOfWork(fingerprint(type, message), type, message, each.get("resolved") is True)


def value_at(content: Json, *path: str) -> Any:
    """Return the value at a path into a content; None if there is none."""
    value: Any = content
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def pieces(view: Reader) -> list[WorkPiece]:
    """Return the segments that stand in a view, by start, then id."""
    found = sorted(map(WorkPiece, view.nodes(kind=SEGMENT)), key=lambda piece: (piece.since, piece.id))
    projects = whole_projects({piece.folder for piece in found})
    for piece in found:
        piece.project = projects[piece.folder]
    return found


_WORKTREE = re.compile(r"(?:/\.claude)?(?:/\.?|-|\.)worktrees?/[^/]+")
_NO_PROJECT = re.compile(
    r"(?:[A-Za-z]:)?/?(?:(?:home|Users)/[^/]+(?:/(?:projects?|src|code|dev|repos?|work|workspaces?|git|github|Documents|Desktop|Downloads))?|root|tmp|private/tmp|home|Users)?/?"
)


def whole_projects(folders: Iterable[str]) -> dict[str, str]:
    """Return the project of each folder: the repository of a worktree, or the nearest known folder above that is neither a home nor a root."""
    plain: dict[str, str] = {}
    for folder in folders:
        path = folder.replace("\\", "/") if _WORKTREE.search(folder.replace("\\", "/")) else folder
        found = _WORKTREE.search(path)
        plain[folder] = path[: found.start()] if found is not None and found.start() else folder
    known = {path for path in plain.values() if path and not _NO_PROJECT.fullmatch(path.replace("\\", "/"))}
    return {folder: _top(path, known) for folder, path in plain.items()}


def _top(path: str, known: set[str]) -> str:
    """Return the highest known folder above a path; the path itself if there is none."""
    top = path
    for at, char in enumerate(path):
        if char in "/\\" and path[:at] in known:
            top = path[:at]
            break
    return top


def between(found: Iterable[WorkPiece], begin: Instant, end: Instant) -> list[WorkPiece]:
    """Return the pieces that began in [begin, end)."""
    return [piece for piece in found if begin <= piece.since < end]


def pieces_of(
    view: Reader, project: str | None, since: TimeLike | None, until: TimeLike | None
) -> list[WorkPiece]:
    """Return the pieces of one project, or of all projects, that began in [since, until)."""
    return between(of_project(pieces(view), project), *view.bounds_of(since, until))


def of_project(found: Iterable[WorkPiece], project: str | None) -> list[WorkPiece]:
    """Return the pieces of one project, given by its path or the end of it, with sub-folders and worktrees; of all projects for None.

    A sub-folder or worktree that is named itself stands alone. Raise NotFoundError for a project without a piece, InvalidError for an ambiguous end.
    """
    found = list(found)
    if project is None:
        return found
    projects = {piece.project for piece in found} - {""}
    folders = {piece.folder for piece in found} - projects - {""}
    wanted = text_of("project", project)
    if any(paths_meant(folders, wanted)) and not any(paths_meant(projects, wanted)):
        name = whole_name(folders, project)
        return [piece for piece in found if piece.folder == name]
    name = whole_name(projects, project)
    return [piece for piece in found if piece.project == name]


def whole_name(known: set[str], project: str) -> str:
    """Return the full path of a project named by its path or the end of it. Raise NotFoundError if none matches, InvalidError if several do."""
    wanted = text_of("project", project)
    if wanted in known:
        return wanted
    end = PurePosixPath(wanted.replace("\\", "/")).parts
    meant = sorted(paths_meant(known, wanted))
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise InvalidError(
            f"project {project!r} may be any of {_list(meant)}. Give the whole path, or more of its end."
        )
    ends = {PurePosixPath(path.replace("\\", "/")).name: path for path in sorted(known, reverse=True)}
    near = [ends[name] for name in get_close_matches(end[-1] if end else "", ends, _NAMED, 0.5)]
    there = _list(near or sorted(known)) if known else "no project at all"
    raise NotFoundError(f"no work on project {project!r} is known here. Known: {there}.")


def paths_meant(known: Iterable[str], project: str) -> Iterator[str]:
    """Yield the known paths that equal this one or end with it."""
    end = PurePosixPath(project.replace("\\", "/")).parts
    for path in known:
        if path == project or PurePosixPath(path.replace("\\", "/")).parts[-len(end) :] == end:
            yield path


def number(value: Any) -> float:
    """Return the value if it is a number of 0 or more, else 0."""
    counts = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    return value if counts else 0


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
