"""Answers what agents did: pieces of work by day and session, who touched a file, and which pieces contain given words.

A sub-agent's work counts towards the piece of work that started it. Pieces in which nothing was done (start-ups, program commands) are omitted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from graphstore.errors import InvalidError, NotFoundError
from graphstore.sessions.joints import has_entry, segment_node, session_node
from graphstore.sessions.pricing import Prices, prices
from graphstore.sessions.segments.nodes import SESSION
from graphstore.sessions.segments.sayings import is_trivial
from graphstore.sessions.segments_read import WorkPiece, between, of_project, pieces, pieces_of
from graphstore.sessions.session_answers import SessionAnswer, priced, span, summed
from graphstore.sessions.transcripts import transcript as transcripts
from graphstore.store import registry
from graphstore.values import file_access
from graphstore.values.inputs import at_least_one, text_of
from graphstore.values.models import Node, Value
from graphstore.values.period import OPEN, TimeLike, end_moment, moment, when
from graphstore.values.sameness import words
from graphstore.values.text import line
from graphstore.values.time_range import plural
from graphstore.view.view import Reader

_LINE, _SNIPPET = 100, 160
_TITLE, _ASKED = 200, 140
_FILES = 6  # the most files that a line names
_MINUTE = 60_000_000


class Worked(Value):
    """One piece of work: what a segment of a session was about, how it went and what it took. `node`: the segment's id.

    `title`: what was done; `summary`: what was asked for; `written`: the files that were written, of those in `files`. `session_name`: None where nothing but the piece is known of its session. `agents`: so many
    sub-agents worked for it; their files, cost and tokens are among its own, `minutes` are by the clock on the wall. `agent`: of which sub-agent
    it is, where the session that this one worked for is not listed.
    """

    node: str
    session: str
    started_at: datetime
    minutes: float
    type: str
    outcome: str
    summary: str
    files: tuple[str, ...]
    cost: float
    tokens: int
    title: str = ""
    commits: tuple[str, ...] = ()
    project: str = ""
    session_name: str | None = None
    agents: int = 0
    agent: str | None = None
    written: tuple[str, ...] = ()
    request: str = ""
    """What was asked for, where the user said it and it names work."""
    session_request: str = ""
    """What the session began with."""

    def __str__(self) -> str:
        return f"{when(self.started_at)}  {self.told}"

    @property
    def session_label(self) -> str:
        """What its session is called, else what it began with."""
        return self.session_name or self.session_request or ("a sub-agent" if self.agent else "a session")

    def details(self, before: str = "") -> Iterator[str]:
        """What was asked for, where neither the title nor the session nor the piece `before` says it; the commits; the files that were written."""
        known = {line(each, _LINE) for each in (self.title, self.session_label, before)}
        if self.title and self.request and line(self.request, _LINE) not in known:
            yield f"asked: {line(self.request, _ASKED)}"
        yield from (f"commit: {line(subject, _TITLE)}" for subject in self.commits)
        if self.written:
            yield f"wrote: {_named(self.written)}"

    @property
    def told(self) -> str:
        """The piece in a line, without its time."""
        how = " ".join(filter(None, (self.type, self.outcome)))
        more = f" (+{plural(self.agents, 'sub-agent')})" if self.agents else ""
        said = line(self.title, _TITLE) if self.title else line(self.summary or "(no summary)", _LINE)
        return f"{how}: {said}{more}  [{self.node}]"


class WorkOn(SessionAnswer):
    """What was done on a project, or on all (`project` is empty), the oldest first."""

    project: str
    since: datetime | None
    until: datetime | None
    work: tuple[Worked, ...]
    sessions: int
    minutes: float
    """By the clock on the wall: what ran side by side counts once."""
    cost: float
    tokens: int
    unpriced: int = 0
    """Of how many no cost is known: their sessions say tokens only."""

    _listed = "work"

    def __str__(self) -> str:
        head = f"{self.project or 'all projects'}{span(self.since, self.until)}"
        if not self.work:
            return f"{head}: nothing."
        work = f"{plural(len(self.work), 'piece')} of work in {plural(self.sessions, 'session')}"
        money = f"{priced(self.cost, self.unpriced)}, " if self.cost or not self.unpriced else ""
        spent = f"{self.minutes:,.0f} minutes, {money}{plural(self.tokens, 'token')}"
        return "\n".join([f"{head}: {work}, {spent}.", *self._days()])

    def _days(self) -> Iterator[str]:
        """The pieces below their day and session; those of which no session is known in a line each."""
        day = session = asked = ""
        for each in sorted(self.work, key=self._place):
            if each.session_name is None:
                yield str(each)
                day = session = ""
                continue
            if day != f"{each.started_at:%Y-%m-%d}":
                day, session = f"{each.started_at:%Y-%m-%d}", ""
                yield f"{day}{self._made_on(day)}"
            if session != each.session:
                session = each.session
                where = "" if self.project else f"{PurePosixPath(each.project).name}: "
                yield f"  {where}{line(each.session_label, _TITLE)}  [{each.session}]"
            yield f"    {each.started_at:%H:%M}  {each.told}"
            yield from (f"           {detail}" for detail in each.details(asked))
            asked = each.request

    def _made_on(self, day: str) -> str:
        """How much was made on a day: commits, files."""
        of_day = [each for each in self.work if f"{each.started_at:%Y-%m-%d}" == day]
        commits = sum(len(each.commits) for each in of_day)
        written = {(each.project, file) for each in of_day for file in each.written}
        made = [plural(commits, "commit")] if commits else []
        made += [f"{plural(len(written), 'file')} written"] if written else []
        return f"  {', '.join(made)}" if made else ""

    def _place(self, each: Worked) -> tuple[object, ...]:
        """By day, then by session, the earliest first."""
        if each.session_name is None:
            return each.started_at, each.started_at, "", each.started_at
        day = each.started_at.replace(hour=0, minute=0, second=0, microsecond=0)
        first = min(
            one.started_at for one in self.work if one.session == each.session and one.started_at >= day
        )
        return day, first, each.session, each.started_at


@registry.read("sessions")
def work_on(
    view: Reader, project: str | None = None, since: TimeLike | None = None, until: TimeLike | None = None
) -> WorkOn:
    """What was done on a project, or on all: each piece of work that began in [since, until), those of one day and session together.

    `project`: its path, or the end of it; worktrees and sub-folders belong to it. What sub-agents did counts to the piece they worked for. Raises
    NotFoundError for a project that no work is known of here, InvalidError when several are meant or `since` is after `until`.
    """
    begin, end = view.bounds_of(since, until)
    there = of_project(pieces(view), project)
    found = between(there, begin, end)
    table = prices(view)
    work = tuple(_listed(found, _names(view), _requests(there), table))
    return WorkOn(
        project=there[0].project if project is not None else "",
        since=None if since is None else moment(begin),
        until=end_moment(end),
        work=work,
        sessions=len({each.session for each in work}),
        minutes=_wall_clock(found),
        cost=summed(table.cost(piece) for piece in found),
        tokens=sum(int(piece.number("metadata", "tokensUsed")) for piece in found),
        unpriced=sum(table.is_unpriced(piece) for piece in found if not piece.is_idle),
    )


def _names(view: Reader) -> dict[str, str]:
    """Return the known sessions with their names."""
    contents = (node.content for node in view.nodes(kind=SESSION))
    return {
        str(content.get("sessionId")): str(content.get("name") or "")
        for content in contents
        if not content.get("missing")
    }


def _requests(found: Iterable[WorkPiece]) -> dict[str, str]:
    """Return the first request of each session that names work."""
    first: dict[str, str] = {}
    for piece in found:
        asked = piece.texts("content", "requests")
        said = next((each for each in asked if not is_trivial(each)), "")
        if said and piece.session not in first:
            first[piece.session] = " ".join(said.split())
    return first


def _named(files: tuple[str, ...]) -> str:
    """Return the names of as many files as fit on a line."""
    more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
    return line(", ".join(files[:_FILES]), _TITLE * 2) + more


def _listed(
    found: list[WorkPiece], names: dict[str, str], requests: dict[str, str], table: Prices
) -> Iterator[Worked]:
    """Yield each piece in which something was done, with the work of its sub-agents."""
    own: dict[str, list[WorkPiece]] = {}
    for piece in found:
        if not piece.is_idle and not piece.parent:
            own.setdefault(piece.session, []).append(piece)
    starts = {session: [piece.since for piece in pieces] for session, pieces in own.items()}
    agents: dict[str, list[WorkPiece]] = {}
    alone = []
    for piece in found:
        if piece.is_idle or not piece.parent:
            continue
        if piece.parent in own:
            at = max(0, bisect_right(starts[piece.parent], piece.since) - 1)
            agents.setdefault(own[piece.parent][at].id, []).append(piece)
        else:
            alone.append(piece)
    listed = [*(piece for pieces in own.values() for piece in pieces), *alone]
    for piece in sorted(listed, key=lambda piece: (piece.since, piece.id)):
        yield _worked(piece, agents.get(piece.id, []), names, requests, table)


def _worked(
    piece: WorkPiece, agents: list[WorkPiece], names: dict[str, str], requests: dict[str, str], table: Prices
) -> Worked:
    every = [piece, *agents]

    def texts(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each for one in every for each in one.texts("content", field)))

    return Worked(
        node=piece.id,
        session=piece.session,
        started_at=moment(piece.since),
        minutes=piece.number("metadata", "durationMinutes"),
        type=piece.text("classification", "type"),
        outcome=piece.text("content", "outcome"),
        summary=piece.summary,
        files=texts("filesTouched"),
        cost=summed(table.cost(each) for each in every),
        tokens=sum(int(each.number("metadata", "tokensUsed")) for each in every),
        title=piece.text("content", "title"),
        commits=texts("commits"),
        project=piece.project,
        session_name=names.get(piece.session),
        agents=len({each.session for each in agents}),
        agent=piece.text("source", "agent") or None,
        written=texts("filesWritten"),
        request="" if is_trivial(piece.summary) or not piece.texts("content", "requests") else piece.summary,
        session_request=line(requests.get(piece.session, ""), _LINE),
    )


def _wall_clock(found: Iterable[WorkPiece]) -> float:
    """Return the minutes during which at least one piece was active."""
    took, latest = 0, -OPEN
    for piece in sorted(found, key=lambda piece: piece.since):
        end = piece.since + int(piece.number("metadata", "durationMinutes") * _MINUTE)
        took += max(0, end - max(piece.since, latest))
        latest = max(latest, end)
    return round(took / _MINUTE, 2)


# ---- who touched a file ---------------------------------------------------------------------------


class Touched(Value):
    """A piece of work that read or wrote a file: which, who (the session, its name, the sub-agent, the models), when and why."""

    path: str
    node: str
    session: str
    session_name: str | None
    agent: str | None
    models: tuple[str, ...]
    project: str
    at: datetime
    why: str
    commits: tuple[str, ...]

    def __str__(self) -> str:
        who = self.session_name or self.session
        by = f" by sub-agent {self.agent}" if self.agent else ""
        return f"{when(self.at)}  {self.path}: {line(self.why, _SNIPPET)} ({line(who, _LINE)}{by})  [{self.node}]"


class FileWork(SessionAnswer):
    """Who touched a file, the latest first."""

    path: str
    touched: tuple[Touched, ...]

    _listed = "touched"

    def _nothing(self) -> str:
        return f"No session that is known here touched {self.path}."


@registry.read("sessions")
def files(
    view: Reader,
    path: str,
    *,
    project: str | None = None,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
) -> FileWork:
    """Who touched a file or the files of a folder, when, and why, the latest first. `path`: whole or its end.

    `project`, `since`, `until`: as for `work_on`. Raises InvalidError for an empty path.
    """
    wanted = PurePosixPath(text_of("path", path).replace("\\", "/")).parts
    names = _names(view)
    found = [
        _touched(piece, each, names)
        for piece in reversed(pieces_of(view, project, since, until))
        for each in piece.texts("content", "filesTouched")
        if _names_file(wanted, each)
    ]
    return FileWork(path=path, touched=tuple(found))


def _names_file(wanted: tuple[str, ...], path: str) -> bool:
    """Return True if a path begins or ends with these consecutive parts."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return parts[-len(wanted) :] == wanted or parts[: len(wanted)] == wanted


def _who(piece: WorkPiece, names: dict[str, str]) -> dict[str, Any]:
    """Return the fields that every answer about a piece has: the piece, its session and the time."""
    session = piece.parent or piece.session
    return {
        "node": piece.id,
        "session": session,
        "session_name": names.get(session),
        "agent": piece.text("source", "agent") or None,
        "project": piece.project,
        "at": moment(piece.since),
    }


def _touched(piece: WorkPiece, path: str, names: dict[str, str]) -> Touched:
    models = (each.get("model") for each in piece.objects("observations", "modelsUsed"))
    return Touched(
        path=path,
        models=tuple(dict.fromkeys(model for model in models if isinstance(model, str) and model)),
        why=piece.title,
        commits=tuple(piece.texts("content", "commits")),
        **_who(piece, names),
    )


# ---- search for words -----------------------------------------------------------------------------


class Said(Value):
    """A piece of work that says the words that were looked for. `where`: in its title, requests, answers, files or commits; `text`: around them."""

    node: str
    session: str
    session_name: str | None
    agent: str | None
    project: str
    at: datetime
    title: str
    where: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{when(self.at)}  {line(self.title, _LINE)} ({', '.join(self.where)}: {line(self.text, _SNIPPET)})  [{self.node}]"


class Sayings(SessionAnswer):
    """The pieces of work that say some words, the latest first. `sessions`: in how many sessions; `left_out`: how many more pieces there are."""

    text: str
    sessions: int
    found: tuple[Said, ...]
    left_out: int = 0

    _listed = "found"

    def _nothing(self) -> str:
        return f"No session that is known here says {self.text!r}."

    def __str__(self) -> str:
        if not self.found:
            return self._nothing()
        more = f", {self.left_out:,} more pieces" if self.left_out else ""
        return "\n".join(
            [f"{self.text!r} in {plural(self.sessions, 'session')}{more}:", *map(str, self.found)]
        )


@registry.read("sessions")
def search(
    view: Reader,
    text: str,
    *,
    project: str | None = None,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
    limit: int = 100,
) -> Sayings:
    """The pieces of work that say all the words of a text, in any order and case: in titles, requests, answers, commits, decisions, lessons, files.

    `project`, `since`, `until`: as for `work_on`. Raises InvalidError for a text without a word.
    """
    asked = list(dict.fromkeys(words(text_of("text", text))))
    if not asked:
        raise InvalidError(f"text {text!r} has no word to look for. Give one.")
    most = at_least_one("limit", limit)
    names, there = _names(view), pieces_of(view, project, since, until)
    found = [said for piece in reversed(there) if (said := _said(piece, asked, names)) is not None]
    return Sayings(
        text=text,
        sessions=len({each.session for each in found}),
        found=tuple(found[:most]),
        left_out=max(0, len(found) - most),
    )


def _said(piece: WorkPiece, asked: list[str], names: dict[str, str]) -> Said | None:
    places = dict(_places(piece))
    lowered = {where: text.casefold() for where, text in places.items()}
    if not all(any(word in text for text in lowered.values()) for word in asked):
        return None  # a cheap test that excludes most pieces before they are split into words
    spoken = {where: set(words(text)) for where, text in places.items()}
    if not set(asked) <= set().union(*spoken.values()):
        return None
    where = [place for place, told in spoken.items() if told & set(asked)]
    best = max(where, key=lambda place: len(spoken[place] & set(asked)))
    return Said(
        **_who(piece, names),
        title=piece.title,
        where=tuple(where),
        text=_around(places[best], asked),
    )


def _places(piece: WorkPiece) -> Iterator[tuple[str, str]]:
    yield "title", f"{piece.title}\n{piece.summary}"
    for where in ("requests", "answers", "commits", "files"):
        field = "filesTouched" if where == "files" else where
        yield where, "\n".join(piece.texts("content", field))
    decided = (
        f"{each.get('what', '')} {each.get('why', '')}" for each in piece.objects("content", "keyDecisions")
    )
    yield "decisions", "\n".join(decided)
    yield "lessons", "\n".join(lesson.summary for lesson in piece.lessons())


def _around(text: str, asked: list[str]) -> str:
    """Return the text near the first of the words."""
    low = text.casefold()
    at = min((found for word in asked if (found := low.find(word)) >= 0), default=0)
    begin = max(0, at - _SNIPPET // 3)
    return " ".join(text[begin : begin + _SNIPPET].split())


# ---- the segment of an entry ----------------------------------------------------------------------


@registry.read("sessions")
def find_by_entry(view: Reader, session: str, entry: str) -> Node:
    """The segment that holds an entry of a session, by the session's id and the entry's. An entry in the midst of a segment is looked up in the session's file.

    Raises NotFoundError for an unknown session, an entry it does not have, and one that only its file could tell when that is gone.
    """
    name, id = text_of("session", session), text_of("entry", entry)
    own = [piece for piece in pieces(view) if piece.session == name]
    for piece in own:
        if id in (piece.at("source", "segment", "startEntryId"), piece.at("source", "segment", "endEntryId")):
            return piece.node
    known = view.inspect(session_node(name)).node if view.knows(session_node(name)) else None
    if not isinstance(known, Node):
        raise NotFoundError(f"no session {name!r} is known here. `sessions list` shows those that are.")
    file = Path(str(known.content.get("file", "")))
    if not file_access.is_file(file):
        raise NotFoundError(
            f"no segment of {name} begins or ends with entry {id!r}, and its file is gone ({file}). Give another entry."
        )
    read = transcripts.read(file)
    if has_entry(read, id):
        at = read.entry(id).position
        found = next(each for each in transcripts.segments(read) if each.start <= at < each.stop)
        wanted = segment_node(name, found.start_entry_id)
        for piece in own:
            if piece.id == wanted:
                return piece.node
    raise NotFoundError(f"no segment of session {name} that stands here has entry {id!r}.")
