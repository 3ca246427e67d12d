"""The pieces of work in a view: its segments of agent sessions, read field by field, oldest first.

A content need not be as an analyser writes it, it may come from any import: what is missing, or of another shape, reads as nothing.
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

_NAMED = 5  # projects that an error names


class LessonOfWork(NamedTuple):
    """A lesson of a piece of work, and its name: the same for the same summary at the same level."""

    id: str
    level: str
    summary: str
    content: Json

    @property
    def tags(self) -> list[str]:
        return as_texts(self.content.get("tags"))


class ErrorOfWork(NamedTuple):
    """An error of a piece of work, and its pattern: the same for errors that differ only in ids, instants, addresses and long numbers."""

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
        """Where it was done: the folder its session says. `project` is the whole project, without sub-folder and worktree."""
        return self.text("classification", "project")

    @property
    def parent(self) -> str:
        """The session that a sub-agent worked for; empty for what is no sub-agent's."""
        return self.text("source", "parentSessionId") if self.text("source", "agent") else ""

    @property
    def is_idle(self) -> bool:
        """Whether nothing was done: a start-up, commands of the program alone."""
        return bool(self.text("content", "idle"))

    @property
    def title(self) -> str:
        """What was done, in a line."""
        return self.text("content", "title") or self.summary

    @property
    def summary(self) -> str:
        return self.text("content", "summary")

    @property
    def unpriced(self) -> bool:
        """Whether its session says what it took in tokens and not in money."""
        return any(each.get("decision") == UNPRICED for each in self.objects("daemonMeta", "decisions"))

    def at(self, *path: str) -> Any:
        """The value there; None where there is none."""
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
        """Its lessons, level by level."""
        for level in LEVELS:
            for each in self.objects("lessons", level):
                summary = as_text(each.get("summary"))
                if summary:
                    yield LessonOfWork(fingerprint(f"{level} lesson", summary), level, summary, each)

    def errors(self) -> Iterator[ErrorOfWork]:
        """The errors it met."""
        for each in self.objects("content", "errorsSeen"):
            type, message = as_text(each.get("type")), as_text(each.get("message"))
            if type or message:
                yield ErrorOfWork(fingerprint(type, message), type, message, each.get("resolved") is True)


def value_at(content: Json, *path: str) -> Any:
    """Return the value at a path into a content; None where there is none."""
    value: Any = content
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def pieces(view: Reader) -> list[WorkPiece]:
    """The segments that stand in a view, by start, then id."""
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
    """The project of each folder: a worktree is its repository, a sub-folder is the nearest known folder above it that is no home or root."""
    plain: dict[str, str] = {}
    for folder in folders:
        path = folder.replace("\\", "/") if _WORKTREE.search(folder.replace("\\", "/")) else folder
        found = _WORKTREE.search(path)
        plain[folder] = path[: found.start()] if found is not None and found.start() else folder
    known = {path for path in plain.values() if path and not _NO_PROJECT.fullmatch(path.replace("\\", "/"))}
    return {folder: _top(path, known) for folder, path in plain.items()}


def _top(path: str, known: set[str]) -> str:
    """The highest known folder above a path that is a project; the path itself where none is."""
    top = path
    for at, char in enumerate(path):
        if char in "/\\" and path[:at] in known:
            top = path[:at]
            break
    return top


def between(found: Iterable[WorkPiece], begin: Instant, end: Instant) -> list[WorkPiece]:
    """Those that began in [begin, end)."""
    return [piece for piece in found if begin <= piece.since < end]


def pieces_of(
    view: Reader, project: str | None, since: TimeLike | None, until: TimeLike | None
) -> list[WorkPiece]:
    """Return those of one project, or of every one, that began in [since, until)."""
    return between(of_project(pieces(view), project), *view.bounds_of(since, until))


def of_project(found: Iterable[WorkPiece], project: str | None) -> list[WorkPiece]:
    """Those of one project, given by its path or by the end of it (`pi-brain`), sub-folders and worktrees included; of every project for None.

    A sub-folder or a worktree named itself is that alone. Raises NotFoundError for a project that has no piece here, InvalidError for an end that several projects have.
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
    """The path of the project that is meant."""
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
    """The paths that are this one, or end with it."""
    end = PurePosixPath(project.replace("\\", "/")).parts
    for path in known:
        if path == project or PurePosixPath(path.replace("\\", "/")).parts[-len(end) :] == end:
            yield path


def number(value: Any) -> float:
    """A number that counts: finite, not below 0; 0 for anything else."""
    counts = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    return value if counts else 0


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
