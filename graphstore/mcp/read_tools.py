"""The tools by which an agent asks about one thing: found by words, in full, what superseded it, its history, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from graphstore.errors import InvalidError
from graphstore.events import report as log
from graphstore.mcp import answers
from graphstore.mcp.answers import (
    STATEMENT,
    done_line,
    fields,
    link_line,
    reached,
    thing,
    things,
    version_lines,
)
from graphstore.mcp.desk import (
    BUDGET,
    AnswerPart,
    Budget,
    Kind,
    LaterParts,
    OfConnection,
    Scope,
    ToolQuestion,
    User,
    parts,
)
from graphstore.mcp.meant import (
    ambiguous,
    meant,
    nearest,
    outcome,
    ref,
    state,
    steps,
    successors,
    supersession,
    why,
)
from graphstore.mcp.schemas import RARE
from graphstore.mcp.tooling import Tools, reading
from graphstore.memory import recall
from graphstore.search import search as texts
from graphstore.store import briefing
from graphstore.values import decay as decay_of
from graphstore.values import words as terms
from graphstore.values.findings import Chain
from graphstore.values.findings import words as words_of
from graphstore.values.models import Event, Json, Link, Node
from graphstore.values.text import because, given_text, line
from graphstore.view import filters
from graphstore.view.view import View

_READERS = 20  # that one answer names
_LOOKED_THROUGH = 500  # of what may contradict: each is compared word by word
_FOR_A_USER = 10  # times as many hits are looked through for those of one user
_PIECE = 1_500  # characters of a content in pieces
_EVENT = ("description", "type", "status", "count", "first_seen", "last_seen", "source", "origin", "agent", "metadata", "sender",
          "thread", "classification", "trace_id", "span_id", "parent_span_id", "media_path")  # fmt: skip
_CALLS = {
    "contradiction": "resolve(id={0!r}, other={1!r}, keep={0!r}, {1!r} or 'both', reason=…)",
    "shaky": "say it again: remember(revises={0!r}, statement=…), or retract(id={0!r}, reason=…)",
    "unsure": "amend(id={0!r}, fields={{…}}, reason=…)",
    "join": "join(id={0!r}, into={1!r}, reason=…), or if they are two: link(source={0!r}, kind='contrasts_with', target={1!r}, reason=…)",
}
"""The call that settles an item of a review, by what it is."""

Id = str
Standing = Literal["stands", "any", "shaky", "contested"]


class ReadTools(Tools):
    """The tools about one thing."""

    @reading()
    def search(
        self,
        question: ToolQuestion,
        *,
        query: str = "",
        kind: Annotated[str | None, Field(description="or type of event"), OfConnection("kind")] = None,
        tag: str | None = None,
        author: str | None = None,
        scope: Scope = None,
        user: User = None,
        since: str | None = None,
        until: str | None = None,
        standing: Annotated[
            Standing,
            Field(description="any: past, planned too; shaky: on what fell"),
        ] = "stands",
        decay: Annotated[float | None, Field(gt=0, json_schema_extra=RARE)] = None,
        limit: Annotated[int, Field(ge=1, le=200)] = 20,
    ) -> answers.SearchAnswer:
        """Find things by words or filters, best first. Begin here without an id. since, until: when it began or happened."""
        fits = {"kind": kind, "tag": tag, "author": author, "scope": scope, "since": since, "until": until}
        if decay is not None and standing != "stands":
            raise InvalidError("decay weighs what stands. Leave it out, or standing.")
        if not query.strip() and standing in ("stands", "any") and not any(fits.values()):
            raise InvalidError(
                "search for what? Give some words in query, or a filter: kind, tag, author, scope, since, until. list shows all."
            )
        given = {name: value for name, value in fits.items() if value is not None}
        if standing == "shaky":
            hits, note = (
                _shaky(question.view, query, given),
                "what stands and rests on something that has fallen",
            )
        elif standing == "contested":
            hits, note = _contested(question.view, query, given, limit)
        else:
            most = limit if user is None else _FOR_A_USER * limit
            hits, note = _remembered(question.view, query, standing, most, decay, given)
        hits = [
            hit for hit in hits if user is None or _is_of(user, _content(question.view.inspect(hit.id).node))
        ]
        return question.page(answers.SearchAnswer, parts("hits", hits[:limit]), note=note)

    @reading()
    def list(
        self,
        question: ToolQuestion,
        *,
        kind: Kind = None,
        scope: Scope = None,
        user: User = None,
        tag: str | None = None,
        limit: Annotated[int | None, Field(ge=1, json_schema_extra=RARE)] = None,
    ) -> answers.ListAnswer:
        """All that stands, newest first."""
        view = question.view
        found = view.scan(kind, scope=scope, tag=tag, content=user is not None)
        if tag is None:
            events = view.scan(kind, events=True, content=(user, scope) != (None, None))
            found += [
                row for row in events if scope is None or _metadata(row.content).get("scope", "") == scope
            ]
        found = [row for row in found if _is_of(user, row.content)]
        found.sort(key=lambda row: (row.valid_from, row.id), reverse=True)
        one = partial(_listed, view)
        return question.page(
            answers.ListAnswer,
            LaterParts([("things", one, row.id) for row in found[:limit]]),
            total=len(found),
        )

    @reading(rare=("valid", "tx"), slow=True)
    def review(self, question: ToolQuestion) -> answers.ReviewAnswer:
        """What somebody should look at, each with the call that settles it: contradictions, shaky things, doubts, what may be one thing."""
        from graphstore.sessions.review import review

        items = [
            answers.ReviewLine(
                what=each.what, ids=each.ids, text=each.text, call=_CALLS[each.what].format(*each.ids)
            )
            for each in review(question.view)
        ]
        return question.page(answers.ReviewAnswer, parts("items", items))

    @reading("id")
    def get(self, question: ToolQuestion, id: Id) -> answers.GetAnswer:
        """One node or event in full: content, standing, links, what is believed of it over time. id-v2 is its version 2."""
        view = question.view
        with self.desk.asking(view, id):
            found = view.inspect(id)
        node = found.node
        links = (*found.links, *found.same_topic)
        others = _others(view, node.id, (*links, *found.backlinks))
        content = _content(node)
        whole = question.has_room_for(content)
        listed = [
            *parts("content_pieces", () if whole else _pieces(content)),
            *_links("links", links, others, node.id),
            *_links("backlinks", found.backlinks, others, node.id),
            *parts("history", version_lines(found.history, view.operations(node.id))),
            *parts("occurrences", _occurrences(view, node)),
        ]
        return question.page(
            answers.GetAnswer,
            listed,
            thing=thing(view, node),
            version=None if isinstance(node, Event) else node.number,
            source=node.source,
            confirmations=found.confirmations,
            content=content if whole else None,
        )

    @reading("id_or_text", rare=("cursor",))
    def what_superseded(self, question: ToolQuestion, id_or_text: str) -> answers.SupersededAnswer:
        """What took the place of something (id, id-v2 or its words): who, why, when, step by step; what stands now."""
        view = question.view
        found, fitting, complete = meant(view, id_or_text, self.desk.refusal(view, id_or_text))
        if found is None:
            candidates = things(view, (each.subject for each in fitting))
            which = (ambiguous if complete else nearest)(id_or_text, candidates)
            return question.page(
                answers.SupersededAnswer, parts("candidates", candidates), answer=which, paragraph=which
            )
        asked_for = ref(found.subject)
        others = things(view, (each.subject for each in fitting if ref(each.subject) != asked_for))
        chain, versions = steps(view, found), _descriptions(view, found.subject)
        listed = [
            *parts("current", things(view, found.current)),
            *parts("chain", chain),
            *parts("candidates", others),
        ]
        return question.page(
            answers.SupersededAnswer,
            listed,
            answer=outcome(found, versions),
            paragraph=supersession(found, chain, versions),
            subject=thing(view, found.subject),
            standing=found.standing,
            retracted=found.standing == "retracted",
            forked=len(successors(found)) > 1,
        )

    @reading("id")
    def history(self, question: ToolQuestion, id: Id) -> answers.HistoryAnswer:
        """Every version ever believed, also those taken back: who said it, when and why."""
        view = question.view
        with self.desk.asking(view, id):
            node = view.inspect(id).node
        versions, done = view.versions(id), view.operations(id)
        return question.page(
            answers.HistoryAnswer,
            parts("versions", version_lines(versions, done)),
            id=node.id,
            kind=node.type if isinstance(node, Event) else node.kind,
            standing=node.standing,
        )

    @reading("id", rare=("cursor",))
    def why(
        self,
        question: ToolQuestion,
        *,
        id: Id,
        depth: Annotated[int, Field(ge=1, le=20, json_schema_extra=RARE)] = 5,
    ) -> answers.WhyAnswer:
        """Who recorded it and why, what led to it, what it rests on and whether that fell, what it replaced."""
        view = question.view
        with self.desk.asking(view, id):
            found = view.inspect(id)
        node = found.node
        done = [done_line(change) for change in view.operations(node.id)]
        led = view.causes(node.id, depth)
        causes = reached(view, led, upward=True)
        resting = [link for link in found.links if link.kind in view.vocabulary.from_dependants]
        resting += [link for link in found.backlinks if link.kind == "supports"]
        replaced = [link for link in found.links if link.kind in ("supersedes", "corrects")]
        others = _others(view, node.id, (*resting, *replaced))
        listed = [
            *parts("said", done),
            *parts("causes", causes),
            *_links("rests_on", resting, others, node.id),
            *_links("replaces", replaced, others, node.id),
        ]
        subject = thing(view, node)
        return question.page(
            answers.WhyAnswer,
            listed,
            answer=state(node, subject.valid_to),
            paragraph=why(node, done, causes, found.grounds, replaced, subject.valid_to),
            subject=subject,
            shaky=None if found.grounds is None or found.grounds.shaky is None else str(found.grounds.shaky),
            readers=self.desk.readers(node.id)[:_READERS],
            truncated=led.truncated,
        )

    @reading()
    def brief(
        self,
        *,
        user: User = None,
        project: str | None = None,
        path: str | None = None,
        scope: Scope = None,
        since: str | None = None,
        valid: str | None = None,
        tx: str | None = None,
        budget_tokens: Budget = BUDGET,
    ) -> answers.BriefAnswer:
        """Begin a session here: what stands and matters, changed since your last visit, no longer holds in answers to you, is open, in doubt or due."""
        asked = briefing.BriefQuestion(budget_tokens, user, project, path, scope)
        found = self.desk.brief(asked, since=since, valid=valid, tx=tx)
        lines = (each for section in found.sections for each in section.lines)
        return answers.BriefAnswer(
            at=answers.AnswerTime(valid=found.at.valid, tx=found.at.tx),
            left_out=found.left_out,
            brief=found.text,
            since=found.since,
            last_visit=found.last_visit,
            ids=tuple(dict.fromkeys(id for each in lines for id in (each.id, each.other) if id)),
        )


def _listed(view: View, id: str) -> answers.ThingLine:
    return thing(view, view.inspect(id).node)


def _metadata(content: Json | None) -> Json:
    found = (content or {}).get("metadata")
    return found if isinstance(found, dict) else {}


def _is_of(user: str | None, content: Json | None) -> bool:
    """Return True for what is of a user, or of none. An event has its user in its metadata."""
    whose = (content or {}).get("user") or _metadata(content).get("user")
    return user is None or whose in (None, "", user)


# ---------------------------------------------------------------- what was found


def _remembered(
    view: View, query: str, standing: Standing, limit: int, decay: float | None, given: dict[str, str]
) -> tuple[list[answers.HitLine], str]:
    """What a query and filters find among what stands, or of all that was ever recorded."""
    how: dict[str, Any] = {"kinds" if name == "kind" else name: value for name, value in given.items()}
    if standing == "any":
        found = recall.mentions(view, query, limit, **how)
    else:
        fading = None if decay is None else decay_of.Decay(half_life=decay)
        found = recall.recall(view, query, limit, decay=fading, **how)
    note = line(found.note, STATEMENT)
    if found.truncated:
        counted = (
            f"{found.left_out} more"
            if not texts.words(terms.remaining(query))
            else f"there is more than these {len(found)}"
        )
        note += f"; {counted}: give a higher limit"
    return [_hit(view, hit) for hit in found], note


def _hit(view: View, hit: recall.Hit) -> answers.HitLine:
    way = str(hit).partition("  [")[2].removesuffix("]") or None
    node, note = hit.node, None
    if isinstance(node, Node) and node.standing == "superseded":
        now = view.inspect(node.id).node
        if isinstance(now, Node) and now.number != node.number:
            node, note = now, f"{node.ref} said: {line(words_of(node), STATEMENT)}"
    return answers.HitLine(
        **fields(view, node),
        score=round(hit.score, 6),
        coverage=round(hit.coverage, 2),
        strength=hit.strength,
        via=way,
        note=note or _snippet(node, hit),
    )


def _snippet(node: Node | Event, hit: recall.Hit) -> str | None:
    """The part of a text that the words found, where the statement is cut off before it."""
    words = hit.snippet.strip("… ")
    return None if not words or words in line(words_of(node), STATEMENT) else f"says: {hit.snippet}"


def _shaky(view: View, query: str, given: dict[str, str]) -> list[answers.HitLine]:
    admits = _admitting(view, query, given)
    shaky = (each for each in view.shaky() if getattr(each.node, "authorized", None) is not False)
    found = (each for each in shaky if admits(each.node))
    return _about(
        (answers.HitLine(**fields(view, each.node), other=each.root.id, note=str(each)) for each in found),
        query,
    )


def _contested(
    view: View, query: str, given: dict[str, str], limit: int
) -> tuple[list[answers.HitLine], str]:
    """What contradicts something; of very much that may, the newest is looked through."""
    note = "what contradicts something else that stands"
    most = limit if not given and not query.strip() else _LOOKED_THROUGH
    contradictions = view.contradictions(limit=most + 1)
    if len(contradictions) > most:
        note += f"; there is more than these {most}" if most == limit else f", of the first {most} there are"
    found, admits = [], _admitting(view, query, given)
    for each in contradictions[:most]:
        if not admits(each.source):
            continue
        how = "contradicts" if each.link else f"says otherwise ({each.about}) than"
        why = because(each.link.reason if each.link else None)
        other = thing(view, each.target)
        found.append(
            answers.HitLine(
                **fields(view, each.source), other=other.id, note=f"{how} {other.id}: {other.statement}{why}"
            )
        )
    return _about(found, query), note


def _admitting(view: View, query: str, given: dict[str, str]) -> Callable[[Node | Event], bool]:
    """Whether a thing fits the filters that are given and those in a query."""
    times: dict[str, Any] = {name: given[name] for name in ("since", "until") if name in given}
    values = {name: value for name, value in given.items() if name not in times}
    return filters.Filters.from_question(view, values, times, terms.asked_fields(query)).admits


def _about(hits: Iterable[answers.HitLine], query: str) -> list[answers.HitLine]:
    """Those whose statement or note has one of the words of a query; all when there are none."""
    asked = set(texts.words(terms.remaining(query)))
    return [
        hit for hit in hits if not asked or asked & set(texts.words(f"{hit.id} {hit.statement} {hit.note}"))
    ]


# ---------------------------------------------------------------- one thing


def _descriptions(view: View, node: Node | Event) -> int:
    """How many descriptions of a thing are believed over time."""
    return 1 if isinstance(node, Event) else len({each.number for each in view.history(node.id)})


def _occurrences(view: View, node: Node | Event) -> list[Json]:
    """What each occurrence of an event that came again says, newest first."""
    return log.occurrences(view, node.id)[::-1] if isinstance(node, Event) and node.count > 1 else []


def _content(node: Node | Event) -> Json:
    if isinstance(node, Node):
        text = given_text(node.content, node.text)
        return {**node.content, **({"text": text} if text else {})}
    values = {name: getattr(node, name) for name in _EVENT}
    return {name: value for name, value in values.items() if value not in (None, {})}


def _pieces(content: Json) -> list[str]:
    text = orjson.dumps(content, default=str).decode()
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def _others(view: View, id: str, links: Sequence[Link]) -> dict[str, Node | Event]:
    """What is at the other ends of links, by id, in one read."""
    kinds = sorted({link.kind for link in links})
    if not kinds:
        return {}
    around: Chain = view.walk(id, kinds, hops=1)
    return {node.id: node for node in (around.root, *around.nodes)}


def _links(field: str, links: Iterable[Link], others: dict[str, Node | Event], id: str) -> list[AnswerPart]:
    lines: list[answers.LinkLine] = [
        link_line(link, others.get(link.target if link.source == id else link.source)) for link in links
    ]
    return parts(field, lines)
