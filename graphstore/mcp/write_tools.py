"""The tools by which an agent writes. Each is one transaction under the name the client gave of itself, and says what became of other things by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field

from graphstore.errors import InvalidError, NotFoundError
from graphstore.mcp import answers
from graphstore.mcp.answers import STATEMENT, at, disagreement, link_line, thing, things
from graphstore.mcp.desk import (
    UNNAMED,
    Desk,
    OfConnection,
    Rare,
    RareKind,
    RareScope,
    RareUser,
    Scope,
    ToolWrite,
    User,
    in_scope,
)
from graphstore.mcp.read_tools import Id
from graphstore.mcp.schemas import RARE
from graphstore.mcp.tooling import Tools, writing
from graphstore.memory import recall
from graphstore.store.store import Store
from graphstore.values import sameness
from graphstore.values.findings import Change, Inspection, Recorded, WriteWarnings, words
from graphstore.values.models import UPRIGHT, Event, Node
from graphstore.values.period import BEGINNING, OPEN, instant, iso, moment
from graphstore.values.text import given_text, line
from graphstore.values.vocabulary import spelled
from graphstore.view.view import View
from graphstore.view.write_warnings import confirmed

_ALIKE = 10  # of what a search finds, so many are looked at for the same and for the opposite
_SHOWN = 20
Reason = str | None
From = Annotated[str | None, Field(description="or beginning")]
To = Annotated[str | None, Field(description="or open")]
IfNumber = Annotated[int | None, Field(ge=1)]
Ids = list[str]
Key = Annotated[str | None, Field(description="slot, e.g. deploy_day")]
Revises = Annotated[str | None, Field(description="id it describes better")]


class NewStatement(NamedTuple):
    """What an agent wants remembered."""

    statement: str
    kind: str
    content: dict[str, Any]
    text: str | None
    key: str | None
    tags: Ids | None
    valid_from: str | None
    valid_to: str | None
    reason: str | None
    source: str | None
    id: str | None
    linked: Any
    scope: str | None = None
    user: str | None = None


_LINKS = ("supersedes", "corrects", "derived_from")
_FIELDS = (
    "statement",
    "kind",
    "key",
    "tags",
    "valid_from",
    "valid_to",
    *_LINKS,
    "reason",
    "source",
    "content",
    "id",
    "scope",
    "user",
)


def _stated(statement: str, content: dict[str, Any] | None, user: str | None) -> dict[str, Any]:
    """Return the content of a statement, with whose it is."""
    whose = {} if user is None else {"user": user}
    return {"says": statement, **whose, **(content or {})}


def _each_an_object(given: Any) -> Any:
    """Return statements with each text among them as a statement that says no more."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list):
        return given
    return [{"statement": each} if isinstance(each, str) else each for each in listed]


class WriteTools(Tools):
    """The tools that write."""

    @writing("supersedes", "corrects", "derived_from", "revises")
    def remember(
        self,
        *,
        statement: Annotated[str, Field(min_length=1)],
        kind: Annotated[str, Field(description="[fact]"), OfConnection("kind")] = "fact",
        scope: Scope = None,
        user: User = None,
        key: Key = None,
        tags: Ids | None = None,
        valid_from: From = None,
        valid_to: To = None,
        supersedes: Annotated[Ids | None, Field(description="ids it replaces")] = None,
        corrects: Annotated[Ids | None, Field(description="ids that were never so")] = None,
        derived_from: Annotated[Ids | None, Field(description="ids it rests on")] = None,
        revises: Revises = None,
        reason: Reason = None,
        source: str | None = None,
        content: dict[str, Any] | None = None,
        id: str | None = None,
        if_number: IfNumber = None,
    ) -> answers.RememberAnswer:
        """Know something from now on or valid_from; said again it is confirmed. Says what it replaced, contradicts, shakes."""
        if not statement.strip():
            raise InvalidError("statement is blank. Say what is to be known, as a sentence.")
        linked = {
            "supersedes": supersedes or (),
            "corrects": corrects or (),
            "derived_from": derived_from or (),
        }
        new = NewStatement(
            statement, kind, _stated(statement, content, user), statement if content else None, key, tags,
            valid_from, valid_to, reason, source, id, linked, scope, user,
        )  # fmt: skip
        before = self.desk.view()
        if revises is None and if_number is not None:
            raise InvalidError("if_number= is of a node that revises= names. Leave it out for something new.")
        known = None if revises is not None else self._known(new)
        with self.desk.writing() as written:
            node = self._write(new, known, revises, if_number)
        return _remembered("new" if revises is None else "revised", [node], before, written)[0]

    @writing()
    def remember_many(
        self,
        *,
        statements: Annotated[
            list[dict[str, Any]],
            BeforeValidator(_each_an_object),
            Field(min_length=1, description="each with arguments of remember"),
        ],
        scope: RareScope = None,
        user: RareUser = None,
        kind: RareKind = None,
    ) -> answers.RememberManyAnswer:
        """Several at once: all or none."""
        before = self.desk.view()
        common = {"scope": scope, "user": user, "kind": kind}
        made = [self._given(number, common | each) for number, each in enumerate(statements, 1)]
        with self.desk.writing() as written:
            done = [self._write(new, known, None, None) for new, known in made]
        told = _remembered("new", done, before, written)
        return written.answer(
            answers.RememberManyAnswer,
            things=tuple(each.thing for each in told),
            confirmed=tuple(each.thing.id for each in told if each.outcome == "confirmed"),
            closed=_once(thing for each in told for thing in each.closed),
            conflicts=_once(thing for each in told for thing in each.conflicts),
            similar=tuple(line for each in told for line in each.similar),
            maybe_contrary=tuple(line for each in told for line in each.maybe_contrary),
            now_shaky=_once(thing for each in told for thing in each.now_shaky),
        )

    def _given(self, number: int, given: dict[str, Any]) -> tuple[NewStatement, Node | None]:
        """One of several statements, and what says it already. Raises InvalidError for one that is none."""
        for name in given:
            if name not in _FIELDS:
                raise InvalidError.choice(f"argument of statement {number}", name, _FIELDS)
        text, content = given.get("statement"), given.get("content")
        if not isinstance(text, str) or not text.strip():
            raise InvalidError(f"statement {number} is blank. Say what is to be known, as a sentence.")
        if content is not None and not isinstance(content, dict):
            raise InvalidError(f"content of statement {number} is no JSON object.")
        lists = {
            name: [value] if isinstance(value := given.get(name) or [], str) else value
            for name in ("tags", *_LINKS)
        }
        linked = {name: self.desk.whole(lists[name]) for name in _LINKS}
        names = ("key", "valid_from", "valid_to", "reason", "source", "id", "scope", "user")
        said = {name: given.get(name) for name in names}
        new = NewStatement(
            statement=text, kind=given.get("kind") or "fact", content=_stated(text, content, said["user"]), text=text if content else None,
            tags=lists["tags"] or None, linked=linked, **said,
        )  # fmt: skip
        return new, self._known(new)

    def _write(
        self, new: NewStatement, known: Node | None, revises: str | None, if_number: int | None
    ) -> Node:
        if revises is not None:
            return self._revise(revises, new, if_number)
        return self._add(new) if known is None else self._confirm(known, new)

    def _origin(self, new: NewStatement) -> str:
        """Where a statement is from: the agent itself, unless it says otherwise."""
        return new.source or self.desk.origin()

    def _confirm(self, known: Node, new: NewStatement) -> Node:
        self.desk.store.confirm(known.id, reason=new.reason or "stated again", source=self._origin(new))
        return known

    def _add(self, new: NewStatement) -> Node:
        begin, end = self._period(new)
        return self.desk.store.add_node(
            new.kind, new.content, id=new.id, key=new.key, text=new.text, tags=new.tags or (),
            valid_from=begin, valid_to=end, reason=new.reason, source=self._origin(new), **in_scope(new.scope), **new.linked,
        )  # fmt: skip

    def _period(self, new: NewStatement) -> tuple[str | datetime | None, str | datetime | None]:
        """Return when a statement holds. One that corrects others and says no beginning holds since they began, and, where all of them have an end, until the last: in a slot a past one, since later values bound it there."""
        if new.valid_from or not new.linked["corrects"]:
            return new.valid_from, new.valid_to
        view = self.desk.view()
        never_so = [each for id in new.linked["corrects"] for each in view.inspect(id).history]
        begin = min((each.valid_from for each in never_so), default=None)
        latest = OPEN if new.key is None else instant(view.at.valid)
        ends = [
            each.valid_to
            for each in never_so
            if each.valid_to is not None and instant(each.valid_to) <= latest
        ]
        return begin, new.valid_to or (max(ends) if ends and len(ends) == len(never_so) else None)

    def _revise(self, id: str, new: NewStatement, if_number: int | None) -> Node:
        if any((new.key, new.id, *new.linked.values())):
            raise InvalidError(
                "revises= describes a node anew; key=, id=, supersedes=, corrects= and derived_from= are for something new. Leave them out."
            )
        return self.desk.store.revise(
            id, new.content, valid_from=new.valid_from, valid_to=new.valid_to, reason=new.reason,
            source=self._origin(new), text=new.text, tags=new.tags, trigger="agent", if_number=if_number,
        )  # fmt: skip

    def _known(self, new: NewStatement) -> Node | None:
        """A node that states the same already where this would begin to hold. A key, an id, an end or links make it something new."""
        if new.key or new.id or new.valid_to or any(new.linked.values()):
            return None
        always = (new.valid_from or "").strip().lower() == "beginning"
        view = self.desk.view()
        if new.valid_from:
            since = iso(BEGINNING) if always else new.valid_from
            view = self.desk.view(moment(view.instant_of(since, "valid_from")).isoformat())
        alike = recall.recall(
            view, new.statement.replace(":", " "), _ALIKE, kinds=new.kind, standing=UPRIGHT, hops=0
        )
        for hit in alike:
            node = hit.node
            if not isinstance(node, Node) or node.key or node.scope != (new.scope or ""):
                continue
            if node.content.get("user") == new.user and _says(node, new):
                return node
        return None

    @writing("id")
    def amend(
        self,
        *,
        id: Id,
        fields: Annotated[dict[str, Any], Field(min_length=1, json_schema_extra={"minProperties": 1})],
        reason: Reason = None,
        valid_from: str | None = None,
        valid_to: str | None = None,
        source: Rare = None,
        if_number: IfNumber = None,
    ) -> answers.RememberAnswer:
        """Change some fields of a content, over all or part of its time."""
        store, before = self.desk.store, self.desk.view()
        with self.desk.writing() as written:
            done = store.amend(
                id,
                fields,
                valid_from=valid_from,
                valid_to=valid_to,
                reason=reason,
                source=source,
                if_number=if_number,
            )
        return _remembered("amended", [done], before, written)[0]

    @writing("related_to")
    def record_event(
        self,
        *,
        type: Annotated[str, Field(description="e.g. error, fix, deploy; TEXT: a message")],
        description: str,
        occurred_at: str | None = None,
        source: str | None = None,
        related_to: Annotated[Ids | None, Field(description="ids; a fix resolves")] = None,
        metadata: dict[str, Any] | None = None,
        thread: str | None = None,
        sender: str | None = None,
        scope: RareScope = None,
        user: RareUser = None,
        trace_id: Rare = None,
        span_id: Rare = None,
        parent_span_id: Rare = None,
        id: Rare = None,
    ) -> answers.RecordEventAnswer:
        """Record what happened; what recurs is counted."""
        store = self.desk.store
        whose = {name: value for name, value in (("scope", scope), ("user", user)) if value}
        if whose:
            metadata = whose | (metadata or {})
        with self.desk.writing() as written:
            done = store.record_event(
                type, description, id=id, occurred_at=occurred_at, source=source, origin="agent", agent=self.desk.who(),
                related_to=related_to, metadata=metadata, thread=thread, sender=sender, trace_id=trace_id, span_id=span_id,
                parent_span_id=parent_span_id,
            )  # fmt: skip
        return happened(written, done, resolved=tuple(_resolved(written.view, done.event.id, written.tx)))

    @writing("old", "by")
    def supersede(
        self,
        *,
        old: str,
        by: str,
        reason: Reason = None,
        valid_from: str | None = None,
        if_number: IfNumber = None,
    ) -> answers.SupersedeAnswer:
        """The world moved on: `old` was true until `by` began."""
        store = self.desk.store
        with self.desk.writing() as written:
            link = store.supersede(
                old,
                by=by,
                reason=reason,
                valid_from=valid_from,
                created_by=self.desk.origin(),
                if_number=if_number,
            )[0]
        return written.answer(
            answers.SupersedeAnswer,
            link=link_line(link),
            old=written.thing(link.target),
            by=written.thing(link.source),
            now_shaky=tuple(_shaken(written.view, link.target)),
        )

    @writing("id", destructive=True)
    def retract(
        self,
        *,
        id: Id,
        reason: Annotated[str, Field(min_length=1)],
        valid_from: str | None = None,
        valid_to: str | None = None,
        ended_at: str | None = None,
        if_number: IfNumber = None,
    ) -> answers.RetractAnswer:
        """It should not have been said, in all or part of its time; history keeps it. With ended_at: it was true until then."""
        if ended_at is not None and (valid_from or valid_to):
            raise InvalidError(
                "ended_at= says it was true until then; valid_from= and valid_to= take back a part. Give the one or the others."
            )
        store, before = self.desk.store, self.desk.view()
        with self.desk.writing() as written:
            if ended_at is not None:
                store.end(id, at=ended_at, reason=reason, if_number=if_number)
            else:
                store.retract(
                    id, valid_from=valid_from, valid_to=valid_to, reason=reason, if_number=if_number
                )
        about, view = written.thing(id), written.view
        return written.answer(
            answers.RetractAnswer,
            how="retracted" if ended_at is None else "ended",
            thing=about,
            now_shaky=tuple(_shaken(view, about.id)),
            holds_again=tuple(_again(self.desk, view, before, about.id)),
        )

    @writing()
    def undo(
        self,
        *,
        tx: Annotated[str, Field(min_length=1, description="`tx` of its answer")],
        reason: Annotated[str, Field(min_length=1)],
    ) -> answers.UndoAnswer:
        """Take back a slip: all that one call wrote."""
        store, before = self.desk.store, self.desk.view()
        done = store.undo(tx, reason=reason, author=self.desk.who())
        of = moment(instant(done.subject))
        changes = undone = _changes(store, of)
        while undone and undone[0].verb == "undo":  # the undo of an undo is about what that took back
            undone = _changes(store, moment(instant(undone[0].subject)))
        view = self.desk.view()
        ids = _concerned(view, undone)
        again = [each for id in ids for each in _again(self.desk, view, before, id)]
        closed = [target for id in ids for target in _replaced(self.desk, view, id)]
        shaken = {node.id for id in (*ids, *(each.id for each in again)) for node in _resting(before, id)}
        firm = [view.node(id) for id in sorted(shaken) if _standing(view, id) == "stands"]
        return answers.UndoAnswer(
            at=at(view),
            tx=done.tx,
            undone=of,
            operations=tuple(f"{each.verb} {each.subject}" for each in changes[:_SHOWN]),
            things=tuple(things(view, [view.inspect(id).node for id in ids[:_SHOWN]])),
            holds_again=_once([*again, *things(view, firm)])[:_SHOWN],
            now_shaky=tuple(_newly_shaken(view, before, [*ids, *closed])),
            readers=self.desk.readers(tx=done.tx),
        )

    @writing("source", "target", "also")
    def link(
        self,
        *,
        source: str,
        kind: Annotated[
            str,
            Field(description="e.g. caused_by, derived_from, supports, contradicts, part_of, related_to"),
        ],
        target: str,
        reason: Reason = None,
        strength: Annotated[int | None, Field(ge=1, le=5, json_schema_extra=RARE)] = None,
        inferred: Annotated[bool, Field(json_schema_extra=RARE)] = False,
        valid_from: str | None = None,
        valid_to: Rare = None,
        also: Annotated[Sequence[Sequence[str]], Field(description="more [source, target] pairs")] = (),
        history: Annotated[bool, Field(json_schema_extra=RARE)] = False,
    ) -> answers.LinkAnswer:
        """Say `source kind target`."""
        store, before = self.desk.store, self.desk.view()
        for pair in also:
            if len(pair) != 2:
                raise InvalidError(f"also has {list(pair)!r}, which is no pair. Give [source, target].")
        with self.desk.writing() as written:
            relation, kind = (
                kind,
                self.desk.any_kind(kind) if self.desk.defaults().any_kind else spelled(kind),
            )
            made = [
                store.link(
                    one, kind, other, reason=reason, strength=strength, created_by=self.desk.origin(),
                    confidence="inferred" if inferred else "explicit", valid_from=valid_from, valid_to=valid_to,
                    history=history, metadata={"relation": relation} if kind == UNNAMED != relation else None,
                )
                for one, other in ((source, target), *also)
            ]  # fmt: skip
        links = [(link_line(each), each.recorded_at > before.at.tx) for each in made]
        lines = tuple(answers.linked(*each) for each in links[1:])
        ends = [id for each in made for id in (each.source, each.target)]
        return written.answer(
            answers.LinkAnswer,
            link=links[0][0],
            is_new=links[0][1],
            also=lines or None,
            now_shaky=tuple(_newly_shaken(written.view, before, ends)),
        )

    @writing("source", "target", destructive=True)
    def unlink(
        self,
        *,
        source: str,
        kind: str,
        target: str,
        reason: Annotated[str, Field(min_length=1)],
        valid_from: Rare = None,
        valid_to: Rare = None,
    ) -> answers.UnlinkAnswer:
        """Stop believing a link."""
        store, kind = self.desk.store, spelled(kind)
        with self.desk.writing() as written:
            said = {"source": source, "kind": kind, "target": target}
            store.unlink(**said, valid_from=valid_from, valid_to=valid_to, reason=reason)
        ends = {"source": written.thing(source), "target": written.thing(target)}
        return written.answer(answers.UnlinkAnswer, kind=kind, **ends)

    @writing("id", "into")
    def join(
        self,
        *,
        id: Id,
        into: Annotated[str | None, Field(description="none: take its join back")] = None,
        reason: Annotated[str, Field(min_length=1)],
    ) -> answers.JoinAnswer:
        """Two ids are one thing: id means into from now on."""
        store, said = self.desk.store, _words(self.desk.view(), id)
        with self.desk.writing() as written:
            if into is None:
                store.split(id, reason=reason)
            else:
                store.join(id, into=into, reason=reason)
        kept = into is None or sameness.same(_words(written.view, into), said)
        joined = (written.thing(into or id),)
        return written.answer(
            answers.JoinAnswer, id=id, into=into, things=joined, unsaid=None if kept else said
        )

    @writing()
    def define_kind(
        self,
        *,
        name: str,
        inverse: str | None = None,
        symmetric: Annotated[bool, Field(json_schema_extra=RARE)] = False,
        causal: Annotated[bool, Field(json_schema_extra=RARE)] = False,
        acyclic: Annotated[bool, Field(json_schema_extra=RARE)] = False,
        rests: Annotated[Ids | None, Field(json_schema_extra=RARE)] = None,
    ) -> answers.DefineKindAnswer:
        """Add a kind of link."""
        name, inverse = spelled(name), inverse and spelled(inverse)
        with self.desk.writing() as written:
            self.desk.store.define_kind(
                name, inverse=inverse, symmetric=symmetric, causal=causal, acyclic=acyclic, rests=rests or ()
            )
        return written.answer(answers.DefineKindAnswer, kind=name)

    @writing("id", "other", "keep", destructive=True)
    def resolve(
        self,
        *,
        id: str,
        other: str,
        keep: Annotated[str, Field(description="the right id, or both")],
        reason: Annotated[str, Field(min_length=1)],
    ) -> answers.ResolveAnswer:
        """Decide which of two that contradict each other is right."""
        store = self.desk.store
        view = self.desk.view()
        view.inspect(id), view.inspect(other)
        try:
            found = view.contradiction(id, other)
        except NotFoundError:
            found = None
        if found is None or found.settled:
            raise NotFoundError(
                f"{id!r} and {other!r} do not contradict each other, or that is decided already."
            )
        with self.desk.writing() as written:
            store.resolve(found, keep=keep, reason=reason)
        fallen = () if keep == "both" else _shaken(written.view, other if keep == id else id)
        both = (written.thing(id), written.thing(other))
        return written.answer(answers.ResolveAnswer, kept=keep, things=both, now_shaky=tuple(fallen))

    @writing(destructive=True, erases=True)
    def forget(
        self,
        *,
        id: str,
        reason: Annotated[str, Field(min_length=1)],
    ) -> answers.ForgetAnswer:
        """Erase a secret from every file and the past. Cannot be undone."""
        before, readers = self.desk.view().at.tx, self.desk.readers(id)
        trunk: Any = self.desk.store  # a branch refuses it in its words
        trunk.erase(id, reason=reason, author=self.desk.who())
        view = self.desk.view()
        done = [each.tx for each in view.operations(id) if each.tx > before]
        return answers.ForgetAnswer(
            at=at(view),
            tx=done[-1] if done else None,
            thing=thing(view, view.inspect(id).node),
            readers=readers,
        )

    @writing(destructive=True, erases=True)
    def forget_person(
        self,
        *,
        who: Annotated[str, Field(min_length=1, description="id or name")],
        names: Annotated[Ids | None, Field(description="more names, e-mail")] = None,
        mentions: bool = False,
        plan: Annotated[str | None, Field(description="of the first answer: erase exactly that")] = None,
    ) -> answers.ForgetPersonAnswer:
        """Show what would be erased of a person and what stays; with the plan of that answer, erase it. Cannot be undone."""
        store: Any = self.desk.store  # a branch refuses it in its words
        found = store.forget(who, names=names or (), mentions=mentions, plan=plan, author=self.desk.who())
        return answers.ForgetPersonAnswer(at=at(self.desk.view()), tx=found.tx, found=found, readers=())


def _remembered(
    outcome: Any, nodes: Sequence[Node], before: View, written: ToolWrite
) -> list[answers.RememberAnswer]:
    """What was done with each; what was said before already was confirmed at most."""
    warned = written.view.warnings_of([node.id for node in nodes])
    return [_remembered_one(outcome, *each, before, written) for each in zip(nodes, warned, strict=True)]


def _remembered_one(
    outcome: Any, node: Node, warned: WriteWarnings, before: View, written: ToolWrite
) -> answers.RememberAnswer:
    view = written.view
    closed = _replaced(written.desk, view, node.id, before.at.tx)
    found = view.inspect(node.id).node
    is_new = node.recorded_at > before.at.tx
    similar = warned.similar if is_new else (confirmed(node), *warned.similar)
    return written.answer(
        answers.RememberAnswer,
        outcome=outcome if is_new else "confirmed",
        thing=thing(view, found),
        closed=tuple(map(written.thing, closed)),
        conflicts=tuple(_conflicts(view, found)) if isinstance(found, Node) else (),
        similar=answers.earlier_lines(similar, is_contrary=False),
        maybe_contrary=answers.earlier_lines(warned.maybe_contrary, is_contrary=True),
        now_shaky=tuple(_newly_shaken(view, before, [node.id, *closed])),
    )


def _replaced(desk: Desk, view: View, id: str, since: datetime | None = None) -> list[str]:
    """Return the ids of what a thing superseded or corrected, by links that were recorded after `since`; of a plan, when it begins."""
    node, at = view.inspect(id).node, view
    if isinstance(node, Node) and node.valid_from > view.at.valid:
        at = desk.view(iso(instant(node.valid_from)), iso(instant(view.at.tx)))
    links = at.links_from(id, ("supersedes", "transition", "corrects"))
    return list(dict.fromkeys(link.target for link in links if since is None or link.recorded_at > since))


def happened(written: ToolWrite, done: Recorded, **more: Any) -> answers.RecordEventAnswer:
    """What recording an event did."""
    event = done.event
    return written.answer(
        answers.RecordEventAnswer, event=thing(written.view, event), is_new=done.is_new, count=event.count,
        status=event.status, warnings=done.warnings, **more,
    )  # fmt: skip


def _changes(store: Store, tx: datetime) -> list[Change]:
    """The operations of one transaction."""
    return [each for each in store.changes(since=tx - timedelta(microseconds=1)) if each.tx == tx]


def _once(found: Iterable[answers.ThingLine]) -> tuple[answers.ThingLine, ...]:
    return tuple({each.id: each for each in found}.values())


def _newly_shaken(view: View, before: View, ids: Iterable[str]) -> list[answers.ThingLine]:
    """What rests on any of these and is shaky, and was not before."""
    found = {node.id: node for id in ids for node in _resting(view, id)}
    return things(view, [node for node in found.values() if _standing(before, node.id) != "shaky"][:_SHOWN])


def _standing(view: View, id: str) -> str | None:
    try:
        return view.inspect(id).node.standing
    except NotFoundError:
        return None


def _again(desk: Desk, view: View, before: View, id: str) -> list[answers.ThingLine]:
    """What a thing had taken the place of, or was to take, and stands again now, is planned again or holds for longer."""
    if _standing(before, id) is None:
        return []
    taken = [
        (view.inspect(target).node, before.inspect(target).node) for target in _replaced(desk, before, id)
    ]
    return things(
        view,
        [now for now, then in taken if _holds(now) and not (_holds(then) and _until(now) == _until(then))],
    )


def _words(view: View, id: str) -> str:
    return line(words(view.inspect(id).node), STATEMENT)


def _holds(node: Node | Event) -> bool:
    return node.standing in (*UPRIGHT, "not_yet")


def _until(node: Node | Event) -> datetime | None:
    return node.valid_to if isinstance(node, Node) else None


def _resolved(view: View, id: str, tx: datetime | None) -> list[answers.ThingLine]:
    """What an event resolved in a transaction."""
    links = view.backlinks_to(id, kinds=("resolved_by",))
    return things(view, [view.inspect(link.source).node for link in links if link.recorded_at == tx])


def _says(node: Node, new: NewStatement) -> bool:
    """Whether a node states the same: of a statement alone its words count, whatever the node's fields are."""
    if new.text is None:
        return sameness.same(
            sameness.statement(node.content, given_text(node.content, node.text)), new.statement
        )
    return sameness.alike(node.content, new.content)


def _conflicts(view: View, node: Node) -> list[answers.ThingLine]:
    """What stands and contradicts a node by a link."""
    if node.standing not in UPRIGHT:
        return []
    found = view.contradictions(limit=_SHOWN, of=node.id, candidates=False)
    return things(view, [disagreement(each, node.id) for each in found])


def _concerned(view: View, changes: Iterable[Change]) -> list[str]:
    """The ids of the nodes and events that operations were about, and of the ends of the links."""
    found: dict[str, None] = {}
    for id in dict.fromkeys(each.subject for each in changes):
        with suppress(NotFoundError):
            about = view.inspect(id)
            found |= dict.fromkeys(
                [about.node.id]
                if isinstance(about, Inspection)
                else [about.source.id, about.target.id]  # of a link
            )
    return list(found)


def _shaken(view: View, id: str) -> list[answers.ThingLine]:
    """What rests on a thing, at once or by way of others, and is shaky."""
    return things(view, _resting(view, id)[:_SHOWN])


def _resting(view: View, id: str) -> list[Node | Event]:
    found = view.walk(id, view.vocabulary.from_dependants, 10, "in")
    return [node for node in found.nodes if node.standing == "shaky"]
