"""The tools about agents' sessions, and about what is known for a user: the context of an answer, layers of memory, scratchpads, what was noticed,
and how well it goes in a domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import Field

from graphstore.context import observer, sections, working
from graphstore.context.observer import Observer
from graphstore.errors import InvalidError
from graphstore.mcp import answers
from graphstore.mcp.answers import at, fields, like
from graphstore.mcp.desk import BUDGET, Budget, OfConnection, Rare, ToolQuestion, Tx, User, Valid, parts
from graphstore.mcp.tooling import Tools, reading, writing
from graphstore.mcp.write_tools import happened
from graphstore.memory import memory
from graphstore.search.search import words
from graphstore.sessions import lineages, questions, worked
from graphstore.sessions.segments_read import WorkPiece, pieces
from graphstore.values.models import Value
from graphstore.values.period import instant, moment
from graphstore.view.view import View

T = TypeVar("T")
_Answered = tuple[list[Any], str | None]
Asked = Literal["work", "decisions", "lessons", "errors", "files", "lineage", "costs"]
Outcome = Literal["success", "partial", "failure"]
WhoseUser = Annotated[str, OfConnection("user")]


class SessionsAnswer(answers.Answer):
    """What is known of agents' work: `found` in the order of the question; `summary` adds it up where there is something to add."""

    summary: str | None = None
    found: tuple[Any, ...] = ()

    def _lines(self) -> Iterable[str]:
        if self.summary:
            yield self.summary
        yield from map(str, self.found) if self.found else ("Nothing is known of that here.",)


class KinLine(lineages.Relative):
    """A session of a lineage, and what it is to the one that was asked for."""

    relation: Literal["ancestor", "asked", "descendant"]

    def __str__(self) -> str:
        return f"{self.relation}, {self.generations} away: {super().__str__()}"


class ContextAnswer(answers.Answer):
    """What an agent should know before it answers: `context` is the text; `left_out` counts what had no room. `note` says how memory was searched."""

    context: str
    note: str

    def _lines(self) -> Iterable[str]:
        yield self.context or "Nothing is known."
        if self.left_out:
            yield f"({self.left_out} left out: there was no room)"
        yield f"({self.note})"


class LayerLine(Value):
    """A layer of memory: how many chunks stand in it, how many of these expire within a day, and for how many days each is kept (no `days`: no end)."""

    layer: str | None
    chunks: int
    expiring: int
    days: float | None = None

    def __str__(self) -> str:
        kept = (
            ""
            if self.days is None
            else f", each kept {self.days:g} days, {self.expiring} expire within a day"
        )
        return f"{self.layer or '(no layer)'}: {self.chunks} chunks{kept}"


class LayersAnswer(answers.Answer):
    """What was called to mind, best first, or without a query the layers there are."""

    hits: tuple[answers.HitLine, ...] = ()
    layers: tuple[LayerLine, ...] = ()
    note: str | None = None

    def _lines(self) -> Iterable[str]:
        yield from map(str, (*self.hits, *self.layers))
        if self.note:
            yield f"({self.note})"


class ScratchpadAnswer(answers.WriteAnswer):
    """What is on a scratchpad now; no `pad`: nothing."""

    pad: str | None = None

    def _lines(self) -> Iterable[str]:
        yield self.pad or "The scratchpad is empty."


class ObserveAnswer(answers.WriteAnswer):
    """What became of a message: so many wait in the thread to be compressed."""

    waiting: int

    def _lines(self) -> Iterable[str]:
        yield f"{self.waiting} messages wait to be observed"


class ExpertiseAnswer(answers.Answer):
    """How well it goes, domain by domain, the best first."""

    scores: tuple[Any, ...] = ()

    def _lines(self) -> Iterable[str]:
        yield from map(str, self.scores) if self.scores else ("No outcome is known.",)


class UserTools(Tools):
    """The tools."""

    # ------------------------------------------------------------------ agents' sessions

    @reading()
    def sessions(
        self,
        question: ToolQuestion,
        *,
        ask: Asked,
        project: str | None = None,
        about: Annotated[
            str | None,
            Field(
                description="a tag of lessons, words of an error, a file, a session of a lineage; costs by project, model, session or day"
            ),
        ] = None,
        since: str | None = None,
        until: str | None = None,
    ) -> SessionsAnswer:
        """Agents' work, from their sessions: what was done, decided, learned, what failed, who touched a file, which session was forked from which, what
        it cost."""
        found, summary = _ASKED[ask](_Question(question.view, project, about, since, until))
        return question.page(SessionsAnswer, parts("found", found), summary=summary)

    # ------------------------------------------------------------------ what to know before an answer

    @reading()
    def context(
        self,
        *,
        user: WhoseUser,
        thread: str | None = None,
        query: Annotated[str, Field(description="what the user asks")] = "",
        valid: Valid = None,
        tx: Tx = None,
        budget_tokens: Budget = BUDGET,
    ) -> ContextAnswer:
        """What to know before you answer a user: their files, scratchpad, observations, what the query calls to mind, the latest messages."""
        view = self.desk.view(valid, tx)
        found = sections.context(view, user, thread, query, budget_tokens)
        out = sum(each.count for each in found.left_out)
        return ContextAnswer(at=at(view), left_out=out, context=found.text, note=found.note)

    @reading()
    def layers(
        self,
        question: ToolQuestion,
        *,
        query: Annotated[str, Field(description="none: the layers and their sizes")] = "",
        layer: Annotated[
            str | None, Field(description="soul, conversation, tool, group, er1, observation or your own")
        ] = None,
        user: User = None,
        thread: str | None = None,
        limit: Annotated[int, Field(ge=1, le=200)] = 20,
    ) -> LayersAnswer:
        """What the layers of memory hold for a user that a text calls to mind."""
        view = question.view
        if not query.strip() and layer is None and user is None:
            return question.page(LayersAnswer, parts("layers", self._counted(view)))
        found = memory.recollect(view, query, limit, layers=layer, user=user, thread=thread)
        hits = [
            answers.HitLine(
                **fields(view, each.node), score=round(each.score, 6), strength=each.strength, via=each.layer
            )
            for each in found.hits
        ]
        return question.page(LayersAnswer, parts("hits", hits), note=found.note)

    def _counted(self, view: View) -> list[LayerLine]:
        kept = memory.Memory(self.desk.store).layers
        return [
            like(LayerLine, each, days=_days(kept.get(each.layer or "")))
            for each in memory.Memory(self.desk.store).stats(view).layers
        ]

    @reading()
    def expertise(
        self,
        question: ToolQuestion,
        *,
        domain: Annotated[str | None, Field(description="none: all")] = None,
        agent: str | None = None,
    ) -> ExpertiseAnswer:
        """How well it goes in a domain, by the outcomes recorded: a score from 0 to 1, rising or falling."""
        view = question.view
        if domain is None:
            scores = working.expertises(view, agent=agent)
        else:
            scores = [working.expertise(view, domain, agent=agent)]
        return question.page(ExpertiseAnswer, parts("scores", scores))

    # ------------------------------------------------------------------ what is written

    @writing()
    def keep(
        self,
        *,
        text: str,
        layer: Annotated[str, Field(description="as of layers")] = "conversation",
        user: User = None,
        thread: str | None = None,
        key: Annotated[str | None, Field(description="slot: replaces what it held")] = None,
        tags: list[str] | None = None,
        source: Rare = None,
        valid_from: Rare = None,
    ) -> answers.RememberAnswer:
        """Keep a text in a layer of memory, for as long as the layer keeps things."""
        before = self.desk.view()
        with self.desk.writing() as written:
            node = memory.Memory(self.desk.store).remember(
                text, layer=layer, user=user, thread=thread, key=key, tags=tags or (), source=source, valid_from=valid_from,
            )  # fmt: skip
        closed = [link for link in written.view.supersedes(node.id) if link.recorded_at > before.at.tx]
        return written.answer(
            answers.RememberAnswer,
            outcome="new" if node.recorded_at > before.at.tx else "confirmed",
            thing=written.thing(node.id),
            closed=tuple(written.thing(link.target) for link in closed),
        )

    @writing()
    def scratchpad(
        self,
        *,
        user: WhoseUser,
        text: Annotated[str, Field(description="blank: clear it")],
        thread: Annotated[str | None, Field(description="none: the user's own")] = None,
        append: Annotated[bool, Field(description="a line more, not instead")] = False,
    ) -> ScratchpadAnswer:
        """Note on a scratchpad what `context` shows from now on."""
        store = self.desk.store
        with self.desk.writing() as written:
            if not text.strip():
                working.clear(store, user, thread)
            else:
                (working.append if append else working.set)(store, user, thread, text)
        pad = working.get(written.view, user, thread)
        return written.answer(ScratchpadAnswer, pad=None if pad is None else pad.text)

    @writing()
    def observe(
        self,
        *,
        user: WhoseUser,
        message: str,
        thread: str | None = None,
        sender: str | None = None,
        occurred_at: str | None = None,
        end: bool = False,
    ) -> ObserveAnswer:
        """Give the observer a message of a conversation: enough of them become observations, which `context` shows."""
        watching = Observer(self.desk.store)
        with self.desk.writing() as written:
            whose: dict[str, Any] = {"user": user, "thread": thread, "sender": sender}
            watching.enqueue(message, **whose, occurred_at=occurred_at, end=end, author=self.desk.who())
        return written.answer(ObserveAnswer, waiting=len(observer.queue(written.view, user, thread)))

    @writing()
    def record_outcome(
        self,
        *,
        domain: str,
        outcome: Outcome,
        note: str | None = None,
        occurred_at: str | None = None,
    ) -> answers.RecordEventAnswer:
        """Note how something in a domain ended: expertise counts it."""
        with self.desk.writing() as written:
            done = working.record_outcome(
                self.desk.store, domain, outcome, note=note, occurred_at=occurred_at, agent=self.desk.who()
            )
        return happened(written, done)


def _days(layer: Any) -> float | None:
    return None if layer is None or layer.ttl is None else layer.ttl.total_seconds() / 86_400


# ---------------------------------------------------------------- what is asked of sessions


class _Question(NamedTuple):
    """What is asked of the sessions of a view. `begin` and `end` bound when something was last met."""

    view: View
    project: str | None
    about: str | None
    since: str | None
    until: str | None

    def within(self, found: Iterable[T], at: Callable[[T], datetime]) -> list[T]:
        """What lies in [since, until)."""
        begin, end = self.view.bounds_of(self.since, self.until)
        return [each for each in found if begin <= instant(at(each)) < end]

    def saying(self, found: Iterable[T], said: Callable[[T], str]) -> list[T]:
        """What says all the words of `about`."""
        asked = words(self.about or "")
        return [each for each in found if not asked or set(asked) <= set(words(said(each)))]

    def refuse(self, what: str, *names: str) -> None:
        """Raise InvalidError for an argument that this question does not have: left out it would answer another one."""
        for name in names:
            if getattr(self, name) is not None:
                raise InvalidError(f"{what} are not asked by {name}. Leave it out.")


def _work(asked: _Question) -> _Answered:
    projects = [asked.project] if asked.project else _projects(asked, pieces(asked.view))
    answers = [worked.work_on(asked.view, each, asked.since, asked.until) for each in projects]
    summary = "\n".join(str(each).partition("\n")[0] for each in answers)
    work = [piece for each in answers for piece in each.work]
    return asked.saying(work, lambda each: each.summary), summary or None


def _projects(asked: _Question, found: Iterable[WorkPiece]) -> list[str]:
    begun = asked.within(found, lambda piece: moment(piece.since))
    return sorted({piece.project for piece in begun} - {""})


def _decisions(asked: _Question) -> _Answered:
    found = asked.within(questions.decisions(asked.view, asked.project).decisions, lambda each: each.last_at)
    return asked.saying(found, lambda each: f"{each.what} {each.why}"), None


def _lessons(asked: _Question) -> _Answered:
    found = questions.lessons(asked.view, asked.about or (), project=asked.project).lessons
    return asked.within(found, lambda each: each.last_at), None


def _errors(asked: _Question) -> _Answered:
    found = asked.within(
        questions.recurring_errors(asked.view, 1, project=asked.project).errors, lambda each: each.last_at
    )
    return asked.saying(found, lambda each: f"{each.type} {each.message}"), None


def _files(asked: _Question) -> _Answered:
    if not asked.about:
        raise InvalidError("which file? Give its path, or the end of it, as about=.")
    end = PurePosixPath(asked.about).parts

    def touched(files: Iterable[str]) -> bool:
        return any(PurePosixPath(each).parts[-len(end) :] == end for each in files)

    there = [piece for piece in pieces(asked.view) if touched(piece.texts("content", "filesTouched"))]
    projects = [asked.project] if asked.project else _projects(asked, there)
    answers = [worked.work_on(asked.view, each, asked.since, asked.until) for each in projects]
    found = [work for each in answers for work in each.work if touched(work.files)]
    return sorted(found, key=lambda work: work.started_at, reverse=True), None


def _lineage(asked: _Question) -> _Answered:
    asked.refuse("lineages", "project", "since", "until")
    if not asked.about:
        raise InvalidError("the lineage of which session? Give its id as about=.")
    found = lineages.lineage(asked.view, asked.about)
    kin: list[tuple[Any, lineages.Relative]] = [
        *(("ancestor", each) for each in reversed(found.ancestors)),
        ("asked", found.subject),
        *(("descendant", each) for each in found.descendants),
    ]
    return [like(KinLine, each, relation=relation) for relation, each in kin], None


def _costs(asked: _Question) -> _Answered:
    by = asked.about or "project"
    found = questions.costs(asked.view, by, project=asked.project, since=asked.since, until=asked.until)
    return list(found.rows), str(found).rpartition("\n")[2].strip()


_ASKED: dict[Asked, Callable[[_Question], _Answered]] = {
    "work": _work,
    "decisions": _decisions,
    "lessons": _lessons,
    "errors": _errors,
    "files": _files,
    "lineage": _lineage,
    "costs": _costs,
}
