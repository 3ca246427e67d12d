"""Brief an agent before it works: what stands and matters, what changed since its last visit, what of its answers fell, what is open, and what is due.

Each section asks a bounded number of rows, so a briefing costs about the same in a large store. A thing that names another user, project or path than
the ones asked for is left out; one that names none belongs to all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from math import log2
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from graphstore.errors import InvalidError
from graphstore.ledger import readings
from graphstore.ledger.readings import Agent, AnswerToRecord
from graphstore.ledger.statements import Statement
from graphstore.read.operations import done_by
from graphstore.read.points import Point, as_json
from graphstore.store import readers
from graphstore.values.decay import DAY, Decay, share
from graphstore.values.findings import words
from graphstore.values.fingerprints import MESSAGES
from graphstore.values.inputs import optional_text, whole_number
from graphstore.values.models import UPRIGHT, Coordinate, Event, Json, Node, Value
from graphstore.values.period import Instant, TimeLike, during, instant, moment, when
from graphstore.values.text import because, estimate, line
from graphstore.view import conflicts

if TYPE_CHECKING:
    from graphstore.ledger.readings import ReadingsRecorder
    from graphstore.view.sight import Sight
    from graphstore.view.view import View
    from graphstore.write.writer import Writer

__all__ = ["Brief", "BriefLine", "BriefSection", "SectionName", "brief"]

BUDGET, LEAST_BUDGET = 2_000, 100
"""Tokens of a briefing: the default, and the fewest that hold its frame."""
WINDOW = 7 * DAY
"""Seconds before now from which changes are listed for an agent of which no visit is recorded."""
SOON = 14 * DAY
"""Seconds before and after now within which a plan is due."""
SectionName = Literal["standing", "changed", "outdated", "open", "contradictions", "shaky", "plans"]
_SHARES: dict[SectionName, float] = {
    "standing": 0.35, "changed": 0.2, "outdated": 0.12, "open": 0.1, "contradictions": 0.08, "shaky": 0.07, "plans": 0.08,
}  # fmt: skip
_WORDS: dict[SectionName, str] = {
    "standing": "decisions and facts", "changed": "changes", "outdated": "outdated answers", "open": "open items",
    "contradictions": "contradictions", "shaky": "shaky items", "plans": "plans due",
}  # fmt: skip
_LINES = 40  # of a section, for each 2,000 tokens of the budget
_STATEMENT, _REASON = 160, 80  # columns
_LOOKED, _WINDOW = 120, 10_000  # things of a sort, and the last rows among which some are sought
_COMPARED = 120  # things that are compared with one another for contradictions
_KINDS = 500
_FRAME = 250  # bytes for the line that counts what is left out
_FADING = Decay()
_WORD = re.compile(r"[a-z]+")
_DECISIONS = frozenset("decision constraint preference rule policy convention requirement standard principle adr agreement".split())  # fmt: skip
_OPEN = frozenset("task todo question issue bug goal problem risk blocker ticket incident request action plan proposal milestone deadline error failure failed alert alarm outage regression exception crash defect open".split())  # fmt: skip
_DONE = frozenset("done closed resolved completed complete cancelled canceled rejected answered fixed abandoned finished obsolete wontfix merged implemented shipped".split())  # fmt: skip
_UNFINISHED = frozenset({"partial", "failed", "abandoned"})
_KEPT_FOR_OTHERS = frozenset({"session", "message_batch", "cursor", "bootstrap_file", "working_memory", "domain", "outcome", "session_item", "message"}) | MESSAGES  # fmt: skip
_SEGMENT, _CHUNK = "segment", "chunk"
_DATES = ("due", "due_date", "due_at", "deadline", "date", "by", "until", "target_date", "when")
_PATHS = ("path", "paths", "file", "files", "files_touched", "filesTouched", "folder", "cwd")
_BEGIN = """\
This memory is empty. To begin:
- record a decision or a fact with its reason: the tool `remember`, or graphstore add-node STORE decision '{"text": "…"}' --reason WHY
- bring in what there is: graphstore import sessions STORE FOLDER; graphstore import git STORE REPOSITORY
- then ask: search, what_superseded, why. The next briefing lists what stands, what changed, and what is open.
"""


class FoundThing(NamedTuple):
    """The number and id of a node or event."""

    number: int
    id: str


class KindName(NamedTuple):
    """A kind of node, or a type of event."""

    kind: str


class ThingWeight(NamedTuple):
    """How often a node was confirmed, when last, and how much rests on it."""

    id: str
    confirmations: int
    confirmed_at: Instant | None
    dependants: int


class WrittenThing(NamedTuple):
    """A thing with the last operation on it. `found`: how many such things there are."""

    id: str
    operation: int
    tx: Instant
    verb: str
    found: int


class PlannedThing(NamedTuple):
    """A thing that was recorded before it begins."""

    id: str
    valid_from: Instant


class ShakenThing(NamedTuple):
    """A thing that is shaky. `found`: how many such things there are."""

    id: str
    found: int


KINDS = Statement("brief_kinds", KindName)
OF_KINDS = Statement("brief_of_kinds", FoundThing)
CANDIDATES = Statement("brief_candidates", FoundThing)
WEIGHTS = Statement("brief_weights", ThingWeight)
CHANGES = Statement("brief_changes", WrittenThing)
PLANS = Statement("brief_plans", PlannedThing)
INSIDE = Statement("brief_inside", FoundThing)
SHAKEN = Statement("brief_shaky", ShakenThing)


class BriefLine(Value):
    """One line: the id of its thing, its text, and of a contradiction the id of the `other` thing. `weight`: of a decision or fact."""

    id: str
    text: str
    other: str | None = None
    weight: float | None = None


class BriefSection(Value):
    """One section: its title, its lines, and how many more there were no room for, as far as they were looked for."""

    name: SectionName
    title: str
    lines: tuple[BriefLine, ...]
    left_out: int


class Brief(Value):
    """A briefing. `text` is for the agent, of `tokens` tokens. `since`: from when on changes are listed; `last_visit`: the tx up to which the agent had seen the
    store, None if no visit is recorded. `left_out`: how many lines there was no room for."""

    text: str
    at: Coordinate
    agent: str | None
    since: datetime
    last_visit: datetime | None
    sections: tuple[BriefSection, ...]
    left_out: int
    tokens: int

    def __str__(self) -> str:
        return self.text


class BriefQuestion(NamedTuple):
    """What a briefing is asked for: the budget, and whose things are wanted."""

    budget_tokens: int = BUDGET
    user: str | None = None
    project: str | None = None
    path: str | None = None
    scope: str | None = None

    def checked(self) -> BriefQuestion:
        """Return it. Raises InvalidError for a budget that is too small, and for what is no text."""
        budget = whole_number("budget_tokens", self.budget_tokens)
        if budget is None or budget < LEAST_BUDGET:
            raise InvalidError(
                f"budget_tokens {self.budget_tokens!r} is too small. Give {LEAST_BUDGET} or more."
            )
        for name in ("user", "project", "path", "scope"):
            optional_text(name, getattr(self, name))
        return self

    def admits(self, thing: Node | Event) -> bool:
        """Return True if a thing names no other user, project or path, and is no message that was not authorized."""
        if isinstance(thing, Event) and thing.authorized is False:
            return False
        content = thing.metadata if isinstance(thing, Event) else thing.content
        wanted: tuple[tuple[str | None, Iterable[str], Callable[[str, str], bool]], ...] = (
            (self.user, ("user",), str.__eq__),
            (self.project, ("project",), _is_same_project),
            (self.path, _PATHS, _touches),
        )
        return all(
            asked is None or _fits(_named(content, fields), asked, fits) for asked, fields, fits in wanted
        )

    def words(self) -> str:
        """Return whose things are wanted, in words."""
        asked = ((name, getattr(self, name)) for name in ("user", "project", "path", "scope"))
        return ", ".join(f"{name} {line(value, 40)}" for name, value in asked if value)


def brief(
    store: Writer,
    agent: Agent | None,
    question: BriefQuestion,
    recorder: ReadingsRecorder | None,
    *,
    since: TimeLike | None = None,
    valid: TimeLike | None = None,
    tx: TimeLike | None = None,
) -> Brief:
    """Return the briefing of an agent at a coordinate, by default now.

    `recorder` records a visit of now with what the briefing contained; None records nothing. Raises InvalidError for a budget or a time that is none.
    """
    view = store.as_of(valid=valid, tx=tx)
    is_now = valid is None and tx is None
    seen = None
    if agent is not None:
        agent = agent._replace(scopes=store._seen_scopes)
        if recorder is not None and not store._ledger.database.writes_here:
            recorder.flush(readers.SECONDS)
        seen = readings.last_seen(store._ledger.database, agent, readers.branch_of(store))
    valid_at, tx_at = view.coordinate()
    begin = min(view.instant_of(since, "since", "tx"), tx_at) if since is not None else seen
    is_first = begin is None
    begin = valid_at - int(WINDOW * 1_000_000) if begin is None else begin
    with view.reading() as sight:
        made = _Briefing(store, view, sight, question.checked(), agent if is_now else None)
        found = made.sections(begin, _since_words(agent, since is not None, is_first, begin))
    head = _head(question, agent, view.at)
    text, sections = _composed(head, found, question.budget_tokens, is_empty=not made.kinds)
    if recorder is not None and agent is not None and is_now:
        ids = dict.fromkeys(
            id for one in sections for each in one.lines for id in (each.id, each.other) if id
        )
        recorder.add(
            AnswerToRecord(agent, "brief", recorder.now(), valid_at, tx_at, None, tuple(ids), readers.branch_of(store))
        )  # fmt: skip
    return Brief(
        text=text, at=view.at, agent=None if agent is None else agent.name, since=moment(begin),
        last_visit=None if seen is None else moment(seen), sections=sections,
        left_out=sum(one.left_out for one in sections), tokens=estimate(text),
    )  # fmt: skip


def _head(question: BriefQuestion, agent: Agent | None, at: Coordinate) -> str:
    who = f" for {line(agent.name, 40)}" if agent is not None else ""
    whose = question.words()
    return f"# Briefing{who}, as of {when(at.valid)}{f' ({whose})' if whose else ''}\n"


def _since_words(agent: Agent | None, is_given: bool, is_first: bool, begin: Instant) -> str:
    """Return the title of what changed: since when, and why since then."""
    if is_given:
        return f"Changed since {when(begin)}"
    if not is_first:
        return f"Changed since your last visit ({when(begin)})"
    why = "no agent is named" if agent is None else f"no earlier visit of {line(agent.name, 40)} is recorded"
    return f"Changed in the last 7 days ({why})"


class _Found(NamedTuple):
    """What was found for a section: its lines, the most important first, and how many more there are."""

    name: SectionName
    title: str
    lines: list[BriefLine]
    more: int = 0


class _Briefing:
    """Asks the sections of one briefing at one coordinate."""

    def __init__(
        self, store: Writer, view: View, sight: Sight, question: BriefQuestion, agent: Agent | None
    ) -> None:
        self._store, self._view, self._sight, self._question, self._agent = (
            store,
            view,
            sight,
            question,
            agent,
        )
        self._point: Point = sight.point
        self._valid, self._tx = view.coordinate()
        self._most = _LINES * max(1, question.budget_tokens // BUDGET)
        self.kinds = [each.kind for each in self._point.rows(KINDS, most=_KINDS)]
        self._dated: set[str] = set()
        """The ids of open items that have a date: they are plans."""
        self._left_out = as_json(sorted(_KEPT_FOR_OTHERS))
        self._resting = [
            name for name, kind in self._point.vocabulary.kinds.items() if kind.rests and name != "supports"
        ]

    def sections(self, begin: Instant, changed: str) -> list[_Found]:
        """Return what was found for each section, in their order."""
        work = self._of_kinds([_SEGMENT], 100)
        candidates = self._candidates()
        items = self._open_items()
        plans = self._plans(items)
        return [
            self._standing(candidates, work),
            self._changed(begin, changed),
            self._outdated(),
            self._open(items, work),
            self._contradictions(candidates),
            self._shaky(),
            plans,
        ]

    # ------------------------------------------------------------------ things

    def _things(self, ids: Iterable[str]) -> list[Node | Event]:
        """Return the things of these ids that fit the question, with any standing."""
        found = self._sight.things_of(dict.fromkeys(ids))
        return [thing for thing in found.values() if self._question.admits(thing)]

    def _of_kinds(self, kinds: Sequence[str], most: int) -> list[Any]:
        """Return the last of each of these kinds that hold, the last first."""
        rows = self._point.rows(OF_KINDS, kinds=as_json(list(kinds)), scope=self._question.scope, most=most)
        return [thing for thing in self._things(row.id for row in rows) if thing.standing in UPRIGHT]

    # ------------------------------------------------------------------ decisions and facts

    def _candidates(self) -> dict[str, tuple[int, Node]]:
        """Return the nodes among which the weightiest are sought, with their numbers."""
        decisions = [kind for kind in self.kinds if _is_of(kind, _DECISIONS)]
        others = [kind for kind in self.kinds if kind not in decisions and not self._is_left_out(kind)]
        scope = self._question.scope
        rows = [
            *self._point.rows(OF_KINDS, kinds=as_json(decisions), scope=scope, most=_LOOKED),
            *self._point.rows(OF_KINDS, kinds=as_json(others), scope=scope, most=max(_LOOKED // max(len(others), 1), 5)),
            *self._point.rows(
                CANDIDATES, without=as_json([*_KEPT_FOR_OTHERS, _SEGMENT]), resting=as_json(self._resting), scope=scope, window=_WINDOW, most=_LOOKED,
            ),
        ]  # fmt: skip
        asked = self._question
        near = " ".join(filter(None, (asked.user, _last(asked.project), _last(asked.path))))
        numbers = {row.id: row.number for row in rows}
        if near and scope is None:  # what names the project may be older than all of these
            names = self._sight.index.names
            numbers |= {names[ent]: ent for ent, _ in self._sight.found(near, _LOOKED).matches}
        return {
            thing.id: (numbers[thing.id], thing)
            for thing in self._things(numbers)
            if isinstance(thing, Node) and thing.standing in UPRIGHT and not self._is_left_out(thing.kind)
        }

    def _is_left_out(self, kind: str) -> bool:
        return kind in _KEPT_FOR_OTHERS or kind == _SEGMENT or _is_of(kind, _OPEN)

    def _standing(self, candidates: dict[str, tuple[int, Node]], work: list[Node]) -> _Found:
        numbers = [number for number, _ in candidates.values()]
        weights = {
            row.id: row
            for row in self._point.rows(
                WEIGHTS,
                numbers=as_json(numbers),
                resting=as_json(self._resting),
                undone=self._point.undone,
                most=1_000,
            )
        }
        none = ThingWeight("", 0, None, 0)
        ranked = [
            (self._weight_of(node, row := weights.get(id, none)), node, row)
            for id, (_, node) in candidates.items()
        ]
        ranked.sort(key=lambda one: -one[0])
        lines = [self._stated(*one) for one in ranked[: self._most]]
        said = {
            each.text.partition("] ")[2].rpartition(" (")[0]: each
            for node in reversed(work)
            for each in self._said_in(node)
        }
        lines = sorted([*lines, *said.values()], key=lambda each: -(each.weight or 0))
        return self._found(
            "standing", "Standing decisions and facts", lines, max(len(ranked) - self._most, 0)
        )

    def _weight_of(self, node: Node, known: ThingWeight) -> float:
        """Return the weight of a decision or fact."""
        emphasis = 2.0 if _is_of(node.kind, _DECISIONS) else 0.5 if node.kind == _CHUNK else 1.0
        affirmed = max(instant(node.recorded_at), known.confirmed_at or 0)
        return self._weight(
            affirmed, emphasis * (0.5 if node.standing == "shaky" else 1), share(node.content.get("importance")), known.confirmations, known.dependants,
        )  # fmt: skip

    def _stated(self, weight: float, node: Node, known: ThingWeight) -> BriefLine:
        """Return the line of a decision or fact."""
        how = [f"confirmed {known.confirmations} times"] if known.confirmations else []
        how += [f"{known.dependants} rest on it"] if known.dependants else []
        how += [f"by {line(node.author, 40)}"] if node.author else []
        text = _text(node, "; ".join([_held(node), ", ".join(how)] if how else [_held(node)]))
        return BriefLine(id=node.id, text=text, weight=weight)

    def _weight(self, affirmed: Instant, emphasis: float, importance: float | None, confirmed: int = 0, dependants: int = 0) -> float:  # fmt: skip
        """Return emphasis · 4^(importance − ½) · (1 + log2(1 + confirmations) + log2(1 + dependants)) · fading with the days since it was affirmed."""
        days = (self._valid - affirmed) / (DAY * 1_000_000)
        fading = _FADING.weight(days, confirmed, dependants, importance)
        ranked = 4 ** ((0.5 if importance is None else importance) - 0.5)
        return round(emphasis * ranked * (1 + log2(1 + confirmed) + log2(1 + dependants)) * fading, 4)

    def _said_in(self, node: Node) -> Iterator[BriefLine]:
        """Yield the decisions and lessons of a piece of an agent's work."""
        begun = instant(node.valid_from)
        for each in _objects(node.content, "content", "keyDecisions"):
            if what := _as_text(each.get("what")):
                text = f"{line(what, _STATEMENT)}{because(line(_as_text(each.get('why')), _REASON) or None)}"
                yield BriefLine(id=node.id, text=_listed(node.id, "decision", text, when(node.valid_from)), weight=self._weight(begun, 2.0, None))  # fmt: skip
        levels = node.content.get("lessons")
        for level, lessons in levels.items() if isinstance(levels, dict) else ():
            for each in _objects({level: lessons}, level):
                if what := _as_text(each.get("summary")):
                    sure = {"high": 1.0, "medium": 0.5, "low": 0.0}.get(_as_text(each.get("confidence")))
                    yield BriefLine(id=node.id, text=_listed(node.id, "lesson", line(what, _STATEMENT), when(node.valid_from)), weight=self._weight(begun, 1.0, sure))  # fmt: skip

    # ------------------------------------------------------------------ what changed, and what of it the agent was told

    def _changed(self, begin: Instant, title: str) -> _Found:
        rows = self._point.rows(CHANGES, after=begin, without=self._left_out, scope=self._question.scope, window=_WINDOW, most=4 * self._most)  # fmt: skip
        things = {thing.id: thing for thing in self._things(row.id for row in rows)}
        shown = [row for row in rows if row.id in things]
        done = done_by(self._point, [row.operation for row in shown[: self._most]])
        lines = []
        for row in shown[: self._most]:
            _, author, reason = done.get(row.operation, ("", None, None))
            by = f" by {line(author, 40)}" if author else ""
            how = f"{_PAST.get(row.verb, row.verb.replace('_', ' '))} {when(row.tx)}{by}"
            lines.append(BriefLine(id=row.id, text=_text(things[row.id], how + because(line(reason or "", _REASON) or None))))  # fmt: skip
        more = max(rows[0].found - len(rows), 0) + len(shown) - len(lines) if rows else 0
        return _Found("changed", title, lines, more)

    def _outdated(self) -> _Found:
        title = "No longer holds in answers you received"
        if self._agent is None:
            return _Found("outdated", title, [])
        found = readers.no_longer_hold(self._store, self._agent, self._tx, most=self._most + 1)
        lines = []
        for each in found:
            if self._question.admits(each.node):
                by = (
                    f" by {line(each.change.author, 40)}"
                    if each.change is not None and each.change.author
                    else ""
                )
                why = each.change.reason if each.change is not None else None
                how = f"answered {when(each.reading.at)}, since then {each.became}{by}"
                lines.append(BriefLine(id=each.node.id, text=_text(each.node, how + because(line(why or "", _REASON) or None))))  # fmt: skip
        return self._found("outdated", title, self._inside(lines))

    def _inside(self, lines: list[BriefLine]) -> list[BriefLine]:
        """Return the lines of which every thing is in the scope that is asked for."""
        scope = self._question.scope
        if scope is None:
            return lines
        ids = as_json(list({id for each in lines for id in (each.id, each.other) if id}))
        inside = {row.id for row in self._point.rows(INSIDE, ids=ids, scope=scope)}
        return [each for each in lines if {each.id, each.other or each.id} <= inside]

    # ------------------------------------------------------------------ what is to be done

    def _open_items(self) -> list[Node | Event]:
        """Return the nodes and events that are open, the last first."""
        kinds = [kind for kind in self.kinds if _is_of(kind, _OPEN) and kind not in _KEPT_FOR_OTHERS]
        return [each for each in self._of_kinds(kinds, _LOOKED // 2) if self._is_open(each)]

    def _is_open(self, thing: Node | Event) -> bool:
        if isinstance(thing, Event):
            return thing.status == "active"
        content = thing.content
        state = _as_text(content.get("status") or content.get("state")).strip().lower().replace(" ", "")
        if state in _DONE or any(content.get(name) is True for name in ("done", "closed", "resolved", "completed")):  # fmt: skip
            return False
        return not self._view.links_from(thing.id, "resolved_by")

    def _open(self, items: list[Node | Event], work: list[Node]) -> _Found:
        lines = [BriefLine(id=each.id, text=_text(each, _held(each))) for each in items if each.id not in self._dated]  # fmt: skip
        late = self._valid - int(SOON * 1_000_000)
        for node in work:
            said = node.content.get("content")
            outcome = said.get("outcome") if isinstance(said, dict) else None
            if outcome in _UNFINISHED and instant(node.valid_from) >= late:
                lines.append(BriefLine(id=node.id, text=_text(node, f"{outcome}, {when(node.valid_from)}")))
        return self._found("open", "Open items", lines)

    def _plans(self, items: list[Node | Event]) -> _Found:
        since, until = (self._valid + int(by * SOON * 1_000_000) for by in (-1, 1))
        rows = self._point.rows(PLANS, since=since, until=until, without=self._left_out, scope=self._question.scope)  # fmt: skip
        begins = {row.id: row.valid_from for row in rows}
        due = [(at, each) for each in self._things(begins) if each.standing in (*UPRIGHT, "not_yet") for at in (begins[each.id],)]  # fmt: skip
        for each in items:
            at = _date_of(each.content if isinstance(each, Node) else each.metadata)
            if at is not None and at < until and each.id not in begins:
                due.append((at, each))
                self._dated.add(each.id)
        due.sort(key=lambda one: one[0])
        lines = []
        for at, each in due:
            verb = "begins" if at > self._valid else "began" if each.id in begins else "was due"
            if each.id not in begins and at > self._valid:
                verb = "due"
            lines.append(BriefLine(id=each.id, text=_text(each, f"{verb} {when(at)}, {_distance(at - self._valid)}")))  # fmt: skip
        return self._found("plans", "Plans due", lines)

    # ------------------------------------------------------------------ what is in doubt

    def _contradictions(self, candidates: dict[str, tuple[int, Node]]) -> _Found:
        first = sorted((number for number, _ in candidates.values()), reverse=True)[:_COMPARED]
        lines = []
        found = conflicts.contradictions(
            self._sight, settled=False, candidates=True, limit=4 * self._most, among=first
        )
        for each in found:
            if self._question.admits(each.source) and self._question.admits(each.target):
                about = f" about {each.about}" if each.about and each.link is None else ""
                kind = each.source.type if isinstance(each.source, Event) else each.source.kind
                unsure = "may contradict" if each.link is None else "contradicts"
                other = f"{each.target.id}: {line(words(each.target), _REASON)}"
                text = f"{line(words(each.source), _REASON)} — {unsure}{about} {other}"
                lines.append(BriefLine(id=each.source.id, other=each.target.id, text=_listed(each.source.id, kind, text, "")))  # fmt: skip
        return self._found("contradictions", "Contradictions", self._inside(lines))

    def _shaky(self) -> _Found:
        rows = self._point.rows(SHAKEN, without=self._left_out, scope=self._question.scope, most=2 * self._most)  # fmt: skip
        lines = []
        for thing in self._things(row.id for row in rows):
            lines.append(BriefLine(id=thing.id, text=_text(thing, _held(thing))))
        lines = [*(self._shaken(each) for each in lines[:10]), *lines[10:]]
        more = rows[0].found - len(rows) if rows else 0
        return self._found("shaky", "Shaky: what it rests on was invalidated", lines, more)

    def _shaken(self, said: BriefLine) -> BriefLine:
        """Return the line of a shaky thing with what it rests on that fell, and why."""
        links = [
            (link.target, link.target_standing) for link in self._view.links_from(said.id, self._resting)
        ]
        links += [
            (link.source, link.source_standing) for link in self._view.backlinks_to(said.id, "supports")
        ]
        fallen = [each for each in links if each[1] != "stands"] or links
        if not fallen:
            return said
        id, standing = fallen[0]
        why = None if standing in UPRIGHT else self._view.operations(id)[-1].reason
        how = "was revised" if standing == "stands" else f"is {standing}"
        fell = f"{id}, on which it rests, {how}" + because(line(why or "", _REASON) or None)
        return said.model_copy(update={"text": f"{said.text.removesuffix(')')}; {fell})"})

    def _found(self, name: SectionName, title: str, lines: list[BriefLine], more: int = 0) -> _Found:
        return _Found(name, title, lines[: self._most], more + max(len(lines) - self._most, 0))


_PAST = {
    "add": "added", "add_node": "added", "revise": "revised", "amend": "amended", "end": "ended", "retract": "retracted", "confirm": "confirmed",
    "event": "happened", "record_event": "happened", "correct": "corrected", "undo": "undone", "supersede": "superseded", "fold": "summed up", "load": "loaded", "erase": "erased", "evict": "evicted",
}  # fmt: skip


# ---------------------------------------------------------------- composing


def _composed(head: str, found: list[_Found], budget: int, *, is_empty: bool) -> tuple[str, tuple[BriefSection, ...]]:  # fmt: skip
    """Return the text in at most `budget` tokens, and its sections. Each section first has its share, then the first ones have what is left."""
    if _size(head) > 4 * budget - _FRAME:
        head = "# Briefing\n"
    room = 4 * budget - _size(head)  # bytes
    if is_empty:
        return head + "".join(_while_room(_BEGIN.splitlines(keepends=True), room)), ()
    if sum(map(_needs, found)) > room or any(each.more for each in found):
        room -= _size(_note({each.name: len(each.lines) + each.more for each in found}))
    kept = dict.fromkeys((each.name for each in found), 0)
    whole = room
    for share_of in (_SHARES, None):
        for each in found:
            count = kept[each.name]
            used = _needs(each, count)
            left = room + used if share_of is None else min(room + used, int(whole * share_of[each.name]))
            while count < len(each.lines) and _needs(each, count + 1) <= left:
                count += 1
            room -= _needs(each, count) - used
            kept[each.name] = count
    sections = tuple(
        BriefSection(
            name=each.name, title=each.title, lines=tuple(each.lines[: kept[each.name]]), left_out=len(each.lines) - kept[each.name] + each.more
        )
        for each in found
    )  # fmt: skip
    parts = [f"\n## {one.title}\n" + "".join(f"{each.text}\n" for each in one.lines) for one in sections if one.lines]  # fmt: skip
    text = head + "".join(parts) + _note({one.name: one.left_out for one in sections})
    empty = [one for one in sections if not one.lines and not one.left_out]
    others = ", ".join(_WORDS[one.name] for one in empty if one.name != "changed")
    unchanged = [f"\n{one.title}: nothing.\n" for one in empty if one.name == "changed"]
    for said in (*unchanged, *([f"\nNothing to report: {others}.\n"] if others else [])):
        text += said if _size(text + said) <= 4 * budget else ""
    return text, sections


def _note(left_out: dict[SectionName, int]) -> str:
    missing = ", ".join(f"{_WORDS[name]} {count:,}" for name, count in left_out.items() if count)
    return f"\n(Left out for want of room: {missing}.)\n" if missing else ""


def _needs(found: _Found, count: int | None = None) -> int:
    """Return the bytes of a section with its first lines."""
    lines = found.lines if count is None else found.lines[:count]
    return sum(_size(each.text) + 1 for each in lines) + (_size(found.title) + 5 if lines else 0)


def _size(text: str) -> int:
    return len(text.encode())


def _while_room(lines: Iterable[str], room: int) -> Iterator[str]:
    for each in lines:
        room -= _size(each)
        if room < 0:
            return
        yield each


# ---------------------------------------------------------------- words


def _text(thing: Node | Event, how: str) -> str:
    says = words(thing)
    if isinstance(thing, Node) and thing.kind == _SEGMENT:
        said = thing.content.get("content")
        says = _as_text(said.get("title") if isinstance(said, dict) else None) or says
    return _listed(
        thing.id, thing.type if isinstance(thing, Event) else thing.kind, line(says, _STATEMENT), how
    )


def _listed(id: str, kind: str, text: str, how: str) -> str:
    return f"- {id} [{line(kind, 40)}] {text}{f' ({how})' if how else ''}"


def _held(thing: Node | Event) -> str:
    """Return since when a thing holds, or when it happened; and that it is shaky."""
    if isinstance(thing, Event):
        times = f", {thing.count} times" if thing.count > 1 else ""
        return f"{when(thing.last_seen)}{times}"
    held = f"since {when(thing.valid_from)}" if thing.valid_to is None else during(thing.valid_from, thing.valid_to)  # fmt: skip
    return f"{held}, shaky" if thing.standing == "shaky" else held


def _distance(by: Instant) -> str:
    days = round(abs(by) / (DAY * 1_000_000))
    words = "today" if not days else f"{days} day{'s' if days > 1 else ''}"
    return words if not days else f"in {words}" if by > 0 else f"{words} ago"


def _is_of(kind: str, words: frozenset[str]) -> bool:
    return not words.isdisjoint(_WORD.findall(kind.lower()))


# ---------------------------------------------------------------- whose a thing is


def _named(content: Json, fields: Iterable[str]) -> list[str]:
    """Return the texts that a content has under some fields: its own, and those of `metadata`, `classification` and `content` in it."""
    parts: list[Any] = [content, *(content.get(name) for name in ("metadata", "classification", "content"))]
    values = [part.get(name) for part in parts if isinstance(part, dict) for name in fields]
    texts = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return [text for text in texts if isinstance(text, str) and text]


def _fits(named: list[str], asked: str, fits: Callable[[str, str], bool]) -> bool:
    return not named or any(fits(name, asked) for name in named)


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part]


def _is_same_project(one: str, asked: str) -> bool:
    """Return True if a project is the one that is asked for: the same path, the end of it, or a folder below."""
    here, there = _parts(one), _parts(asked)
    return _ends_alike(here, there) or (bool(there) and here[: len(there)] == there)


def _touches(one: str, asked: str) -> bool:
    """Return True if one of two paths is the other, lies below it, or is its end."""
    here, there = _parts(one), _parts(asked)
    count = min(len(here), len(there))
    return _ends_alike(here, there) or (bool(count) and here[:count] == there[:count])


def _ends_alike(one: list[str], other: list[str]) -> bool:
    count = min(len(one), len(other))
    return bool(count) and one[-count:] == other[-count:]


def _last(path: str | None) -> str | None:
    parts = _parts(path or "")
    return parts[-1] if parts else None


# ---------------------------------------------------------------- contents of any shape


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _objects(content: Any, *path: str) -> list[Json]:
    for name in path:
        content = content.get(name) if isinstance(content, dict) else None
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


def _date_of(content: Json) -> Instant | None:
    """Return the date by which a content is due; None if it has none."""
    for name in _DATES:
        value = content.get(name)
        if isinstance(value, str):
            try:
                return instant(value if "T" in value or len(value) > 10 else f"{value}T00:00:00Z", name)
            except InvalidError:
                continue
    return None
