"""Answers questions about agents' sessions: decisions, lessons, recurring errors and costs.

Each question is a function of a view, so it can be answered at any coordinate. Each answer prints as text, and holds plain values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from graphstore.errors import InvalidError
from graphstore.sessions.pricing import Prices, prices
from graphstore.sessions.segments.likeness import plain
from graphstore.sessions.segments.nodes import LEVELS
from graphstore.sessions.segments_read import (
    ErrorOfWork,
    LessonOfWork,
    WorkPiece,
    between,
    number,
    of_project,
    pieces,
    pieces_of,
)
from graphstore.sessions.session_answers import SessionAnswer, priced, summed
from graphstore.sessions.transcripts.steps import as_text, as_texts
from graphstore.store import registry
from graphstore.values.inputs import at_least_one, ids
from graphstore.values.models import Json, Value
from graphstore.values.period import TimeLike, instant, moment, when
from graphstore.values.text import line
from graphstore.values.time_range import plural
from graphstore.view.view import Reader

BY = ("project", "model", "session", "day")
CONFIDENCES = {"high": 0, "medium": 1, "low": 2}
_LINE = 100


# ---- decisions ------------------------------------------------------------------------------------


class Decided(Value):
    """A decision that stands: that of a segment that stands. A repetition in the same words is the same decision; `why` and `node` are the latest."""

    what: str
    why: str
    alternatives: tuple[str, ...]
    project: str
    node: str
    first_at: datetime
    last_at: datetime
    times: int

    def __str__(self) -> str:
        why = f" because {self.why}" if self.why else ""
        return f"{when(self.first_at)}  {line(self.what + why, 2 * _LINE)}  [{self.node}]"


class Decisions(SessionAnswer):
    """The decisions that stand, the latest first."""

    project: str | None
    decisions: tuple[Decided, ...]

    _listed = "decisions"

    def _nothing(self) -> str:
        return "No decision is known here."


@registry.read("sessions")
def decisions(
    view: Reader,
    project: str | None = None,
    *,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
) -> Decisions:
    """The decisions that stand, on one project or all, the latest first. What a retracted or superseded segment decided does not stand.

    `project`, `since`, `until`: as for `work_on`.
    """
    there = of_project(pieces(view), project)
    name = there[0].project if project is not None else None
    there = between(there, *view.bounds_of(since, until))
    groups: dict[tuple[str, str], list[tuple[WorkPiece, Json]]] = {}
    for piece in there:
        for each in piece.objects("content", "keyDecisions"):
            what = each.get("what")
            if isinstance(what, str) and what:
                groups.setdefault((piece.project, what), []).append((piece, each))
    found = [_decided(what, group) for (_, what), group in groups.items()]
    found.sort(key=lambda each: (-instant(each.last_at), each.project, each.what))
    return Decisions(project=name, decisions=tuple(found))


def _decided(what: str, group: list[tuple[WorkPiece, Json]]) -> Decided:
    _, decision = group[-1]
    return Decided(
        what=what,
        why=as_text(decision.get("why")),
        alternatives=tuple(as_texts(decision.get("alternativesConsidered"))),
        **_times(group),
    )


def _times(group: Sequence[tuple[WorkPiece, object]]) -> dict[str, Any]:
    """Return the first and last time of an observation, how often it was made, and its latest project and node."""
    first, latest = group[0][0], group[-1][0]
    return {
        "project": latest.project,
        "node": latest.id,
        "first_at": moment(first.since),
        "last_at": moment(latest.since),
        "times": len(group),
    }


# ---- lessons --------------------------------------------------------------------------------------


class Learned(Value):
    """A lesson. Learned again in the same words at the same level on the same project it is the same; all but the words are the latest's."""

    id: str
    level: str
    summary: str
    details: str
    confidence: str
    actionable: str | None
    tags: tuple[str, ...]
    project: str
    node: str
    first_at: datetime
    last_at: datetime
    times: int

    def __str__(self) -> str:
        todo = f" → {self.actionable}" if self.actionable else ""
        return f"{self.confidence:<6} {self.level}: {line(self.summary + todo, 2 * _LINE)}  [{self.node}]"


class Lessons(SessionAnswer):
    """The lessons that apply, the surest first, of equally sure ones the latest."""

    tags: tuple[str, ...]
    lessons: tuple[Learned, ...]

    _listed = "lessons"

    def _nothing(self) -> str:
        return f"No lesson is known here{f' for {self._tags()}' if self.tags else ''}."

    def _tags(self) -> str:
        return ", ".join(self.tags)


@registry.read("sessions")
def lessons(
    view: Reader,
    tags: Iterable[str] | str = (),
    *,
    level: str | None = None,
    project: str | None = None,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
) -> Lessons:
    """The lessons with any of these tags (whatever their case), or all without: by confidence, then the latest first.

    `level`: of that level only. `project`, `since`, `until`: learned on it and then, as for `work_on`. Raises InvalidError for an unknown level.
    """
    if level is not None and level not in LEVELS:
        raise InvalidError.choice("level", level, LEVELS)
    requested = ids("tags", tags)
    wanted = plain(requested)
    groups: dict[tuple[str, str, str], list[tuple[WorkPiece, LessonOfWork]]] = {}
    for piece in pieces_of(view, project, since, until):
        for lesson in piece.lessons():
            if level in (None, lesson.level) and (not wanted or wanted & plain(lesson.tags)):
                groups.setdefault((piece.project, lesson.level, lesson.summary), []).append((piece, lesson))
    found = [_learned(each) for each in groups.values()]
    found.sort(key=_by_confidence)
    return Lessons(tags=tuple(requested), lessons=tuple(found))


def _by_confidence(each: Learned) -> tuple[Any, ...]:
    sure = CONFIDENCES.get(each.confidence, len(CONFIDENCES))
    return sure, -instant(each.last_at), each.summary, each.level, each.project


def _learned(group: list[tuple[WorkPiece, LessonOfWork]]) -> Learned:
    _, lesson = group[-1]
    actionable = lesson.content.get("actionable")
    return Learned(
        id=lesson.id,
        level=lesson.level,
        summary=lesson.summary,
        details=as_text(lesson.content.get("details")),
        confidence=as_text(lesson.content.get("confidence")),
        actionable=actionable if isinstance(actionable, str) else None,
        tags=tuple(lesson.tags),
        **_times(group),
    )


# ---- recurring errors -----------------------------------------------------------------------------


class RecurringError(Value):
    """An error that came in several sessions. Errors that differ only in ids, instants, addresses and long numbers are one, named by `pattern`;
    the words are the latest's, and so is `resolved`.
    """

    pattern: str
    type: str
    message: str
    sessions: tuple[str, ...]
    nodes: tuple[str, ...]
    first_at: datetime
    last_at: datetime
    resolved: bool

    def __str__(self) -> str:
        lasted = f"{when(self.first_at)} to {when(self.last_at)}"
        end = "resolved the last time" if self.resolved else "not resolved the last time"
        return f"{plural(len(self.sessions), 'session')}, {lasted}, {end}: {line(f'{self.type}: {self.message}', _LINE)}"


class RecurringErrors(SessionAnswer):
    """The errors that recur, those of the most sessions first, then the latest."""

    at_least: int
    errors: tuple[RecurringError, ...]

    _listed = "errors"

    def _nothing(self) -> str:
        return f"No error is known here that came in {self.at_least} sessions or more."


@registry.read("sessions")
def recurring_errors(
    view: Reader,
    at_least: int = 2,
    *,
    project: str | None = None,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
) -> RecurringErrors:
    """The errors that came in `at_least` sessions or more. `project`, `since`, `until`: as for `work_on`."""
    at_least_one("at_least", at_least)
    met: dict[str, list[tuple[WorkPiece, ErrorOfWork]]] = {}
    for piece in pieces_of(view, project, since, until):
        for error in piece.errors():
            met.setdefault(error.pattern, []).append((piece, error))
    found = [_recurring(each) for each in met.values()]
    found = [each for each in found if len(each.sessions) >= at_least]
    found.sort(key=lambda each: (-len(each.sessions), -instant(each.last_at), each.pattern))
    return RecurringErrors(at_least=at_least, errors=tuple(found))


def _recurring(met: list[tuple[WorkPiece, ErrorOfWork]]) -> RecurringError:
    last, error = met[-1]
    return RecurringError(
        pattern=error.pattern,
        type=error.type,
        message=error.message,
        sessions=tuple(dict.fromkeys(piece.session for piece, _ in met)),
        nodes=tuple(dict.fromkeys(piece.id for piece, _ in met)),
        first_at=moment(met[0][0].since),
        last_at=moment(last.since),
        resolved=error.resolved,
    )


# ---- costs ----------------------------------------------------------------------------------------


class Cost(Value):
    """What one project, model (`provider/model`), session or day took: US dollars, and tokens in and out; of how many pieces of work,
    and of how many of them no cost is known.

    `cache_read`, `cache_write`: tokens that came from and went into a cache, not among `tokens`.
    """

    key: str
    cost: float
    tokens: int
    cache_read: int
    cache_write: int
    pieces: int
    unpriced: int = 0

    def __str__(self) -> str:
        return f"{priced(self.cost, self.unpriced):>10}  {self.took}"

    @property
    def took(self) -> str:
        """The tokens, and of what."""
        cached = self.cache_read + self.cache_write
        more = f", {cached:,} cached" if cached else ""
        return f"{plural(self.tokens, 'token')}{more}  {self.key or '(unknown)'}"


class Costs(SessionAnswer):
    """What it took: the dearest first, days in their order."""

    by: str
    rows: tuple[Cost, ...]
    cost: float
    tokens: int
    unpriced: int = 0
    """Of how many pieces of work no cost is known: their sessions say tokens only."""

    _listed = "rows"

    def __str__(self) -> str:
        total = f"{plural(self.tokens, 'token')} in all, by {self.by}"
        if self.unpriced and not self.cost:  # no price is known: show only tokens
            return "\n".join([*(row.took for row in self.rows), total])
        total = f"{priced(self.cost, self.unpriced):>10}  {total}"
        total += f"; no cost is known of {plural(self.unpriced, 'piece')} of work" if self.unpriced else ""
        return "\n".join([*map(str, self.rows), total])


class _Spent(NamedTuple):
    key: str
    cost: float
    tokens: float
    cache_read: float
    cache_write: float
    node: str
    unpriced: bool


@registry.read("sessions")
def costs(
    view: Reader,
    by: str = "project",
    *,
    project: str | None = None,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
) -> Costs:
    """What the sessions took, by `project`, `model`, `session` or `day` (UTC, of the start of a piece of work). What a fork copied counts once, and
    what a sub-agent took counts to the session it worked for. Money is what the sessions say, else what `set_prices` says; without either, tokens.

    `project`, `since`, `until`: as for `work_on`. Raises InvalidError for another `by`.
    """
    if by not in BY:
        raise InvalidError.choice("by", by, BY)
    by_key: dict[str, list[_Spent]] = {}
    there, table = pieces_of(view, project, since, until), prices(view)
    for piece in there:
        for spent in _by_model(piece, table) if by == "model" else [_spent(piece, by, table)]:
            by_key.setdefault(spent.key, []).append(spent)
    rows = [_cost(key, spent) for key, spent in by_key.items()]
    rows.sort(key=lambda row: (row.key,) if by == "day" else (-row.cost, -row.tokens, row.key))
    return Costs(
        by=by,
        rows=tuple(rows),
        cost=summed(row.cost for row in rows),
        tokens=sum(row.tokens for row in rows),
        unpriced=sum(table.is_unpriced(piece) for piece in there),
    )


def _spent(piece: WorkPiece, by: str, table: Prices) -> _Spent:
    session = piece.parent or piece.session
    key = {"project": piece.project, "session": session, "day": f"{moment(piece.since):%Y-%m-%d}"}[by]
    used = _by_model(piece, table)
    return _Spent(
        key,
        table.cost(piece),
        piece.number("metadata", "tokensUsed"),
        sum(each.cache_read for each in used),
        sum(each.cache_write for each in used),
        piece.id,
        table.is_unpriced(piece),
    )


def _by_model(piece: WorkPiece, table: Prices) -> list[_Spent]:
    found = []
    for each in piece.objects("observations", "modelsUsed"):
        name = "/".join(filter(None, (as_text(each.get("provider")), as_text(each.get("model")))))
        cost, is_known = table.of_model(each)
        tokens = number(each.get("tokensInput")) + number(each.get("tokensOutput"))
        read, written = number(each.get("cacheRead")), number(each.get("cacheWrite"))
        unpriced = piece.unpriced and not is_known
        found.append(_Spent(name, cost, tokens, read, written, piece.id, unpriced))
    return found


def _cost(key: str, spent: list[_Spent]) -> Cost:
    return Cost(
        key=key,
        cost=summed(each.cost for each in spent),
        tokens=int(sum(each.tokens for each in spent)),
        cache_read=int(sum(each.cache_read for each in spent)),
        cache_write=int(sum(each.cache_write for each in spent)),
        pieces=len({each.node for each in spent}),
        unpriced=len({each.node for each in spent if each.unpriced}),
    )
