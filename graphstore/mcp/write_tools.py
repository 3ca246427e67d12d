"""The tools by which an agent writes. Each is one transaction under the name the client gave of itself, and says what became of other things by it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, NamedTuple

from mcp.server.mcpserver import Context
from pydantic import Field

from graphstore.core.read.view import View
from graphstore.errors import InvalidError, NotFoundError
from graphstore.mcp.answers import (
    Happened,
    Linked,
    Remembered,
    Replaced,
    TakenBack,
    Thing,
    Undone,
    at,
    disagreement,
    link_line,
    thing,
    things,
)
from graphstore.mcp.desk import Desk, Written, who, whole_ids
from graphstore.mcp.read_tools import RESTS, Id
from graphstore.memory import recall
from graphstore.values import sameness
from graphstore.values.models import UPRIGHT, Change, Inspection, Link, Node
from graphstore.values.period import BEGINNING, instant, iso, moment
from graphstore.values.text import given_text

_ALIKE = 10  # of what a search finds, so many are looked at for the same and for the opposite
_SHOWN = 20
Reason = Annotated[str | None, Field(description="Why, in your words. It is kept and shown by `why`.")]
From = Annotated[
    str | None,
    Field(description="It holds from here on: a date, an instant, or beginning. Left out: from now on."),
]
To = Annotated[
    str | None, Field(description="It holds until here; open: it has no end. Left out: no end is known.")
]
IfNumber = Annotated[
    int | None,
    Field(
        ge=1, description="Only if this version holds now (2 of id-v2): else refused with what holds instead."
    ),
]
Ids = list[str]
Key = Annotated[
    str | None,
    Field(
        description="The slot it is the value of, such as deploy_day: a new value closes the one that held."
    ),
]
Revises = Annotated[
    str | None,
    Field(description="The id of a node that this describes better: a new version of it, nothing new."),
]


class _Statement(NamedTuple):
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
    author: str

    @property
    def origin(self) -> str:
        """Where it is from: the agent itself, unless it says otherwise."""
        return self.source or f"agent:{self.author}"


class Writes:
    """The tools that write."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # ------------------------------------------------------------------ remember

    @whole_ids("supersedes", "corrects", "derived_from", "revises")
    def remember(
        self,
        statement: Annotated[
            str, Field(min_length=1, description="What is to be known, as a sentence that can stand alone.")
        ],
        kind: Annotated[
            str, Field(description="What it is: fact, decision, preference, plan, lesson …")
        ] = "fact",
        key: Key = None,
        tags: Annotated[Ids | None, Field(description="Topics it belongs to.")] = None,
        valid_from: From = None,
        valid_to: To = None,
        supersedes: Annotated[
            Ids | None, Field(description="Ids of what it takes the place of: these end where it begins.")
        ] = None,
        corrects: Annotated[
            Ids | None,
            Field(
                description="Ids of what it corrects: these were never so while this holds, and are taken back there."
            ),
        ] = None,
        derived_from: Annotated[
            Ids | None, Field(description="Ids of what it rests on: when these fall, it is shaky.")
        ] = None,
        revises: Revises = None,
        reason: Reason = None,
        source: Annotated[
            str | None, Field(description="Where it is from, such as a URL or a file. Left out: you.")
        ] = None,
        content: Annotated[
            dict[str, Any] | None, Field(description="More to keep with it, as a JSON object.")
        ] = None,
        id: Annotated[
            str | None, Field(description="An id of your choice for something new. Left out: one is made.")
        ] = None,
        if_number: IfNumber = None,
        ctx: Context | None = None,
    ) -> Remembered:
        """Know something from now on, or from `valid_from`. The same statement again is confirmed, not doubled. Says what it took the place
        of and what that stands seems to disagree: then use supersede, retract, or leave both. Give a `key` when only one value can hold at a time."""
        if not statement.strip():
            raise InvalidError("statement is blank. Say what is to be known, as a sentence.")
        linked = {
            "supersedes": supersedes or (),
            "corrects": corrects or (),
            "derived_from": derived_from or (),
        }
        new = _Statement(
            statement, kind, {"says": statement, **(content or {})}, statement if content else None, key, tags,
            valid_from, valid_to, reason, source, id, linked, author=who(ctx),
        )  # fmt: skip
        before = self._desk.view()
        if revises is None and if_number is not None:
            raise InvalidError("if_number= is of a node that revises= names. Leave it out for something new.")
        known = None if revises is not None else self._known(new)
        with self._desk.writing(new.author) as written:
            node = self._write(new, known, revises, if_number)
        return self._remembered("new" if revises is None else "revised", node, before, written)

    def _write(self, new: _Statement, known: Node | None, revises: str | None, if_number: int | None) -> Node:
        if revises is not None:
            return self._revise(revises, new, if_number)
        return self._add(new) if known is None else self._confirm(known, new)

    def _confirm(self, known: Node, new: _Statement) -> Node:
        self._desk.store.confirm(known.id, reason=new.reason or "stated again", source=new.origin)
        return known

    def _add(self, new: _Statement) -> Node:
        return self._desk.store.add_node(
            new.kind, new.content, id=new.id, key=new.key, text=new.text, tags=new.tags or (),
            valid_from=new.valid_from, valid_to=new.valid_to, reason=new.reason, source=new.origin, **new.linked,
        )  # fmt: skip

    def _revise(self, id: str, new: _Statement, if_number: int | None) -> Node:
        if any((new.key, new.id, *new.linked.values())):
            raise InvalidError(
                "revises= describes a node anew; key=, id=, supersedes=, corrects= and derived_from= are for something new. Leave them out."
            )
        return self._desk.store.revise(
            id, new.content, valid_from=new.valid_from, valid_to=new.valid_to, reason=new.reason,
            source=new.origin, text=new.text, tags=new.tags, trigger="agent", if_number=if_number,
        )  # fmt: skip

    def _known(self, new: _Statement) -> Node | None:
        """A node that states the same already where this would begin to hold. A key, an id, an end or links make it something new."""
        if new.key or new.id or new.valid_to or any(new.linked.values()):
            return None
        always = (new.valid_from or "").strip().lower() == "beginning"
        view = self._desk.view(iso(BEGINNING) if always else new.valid_from)
        for hit in recall.recall(view, new.statement.replace(":", " "), _ALIKE, kinds=new.kind, hops=0):
            node = hit.node
            if isinstance(node, Node) and not (node.key or node.scope) and _says(node, new):
                return node
        return None

    def _remembered(self, outcome: Any, node: Node, before: View, written: Written) -> Remembered:
        """What was done; what was said before already was confirmed at most."""
        view = self._desk.view()
        closed = [link for link in view.supersedes(node.id) if link.recorded_at > before.at.tx]
        found = view.inspect(node.id).node
        return Remembered(
            at=at(view),
            tx=written.tx,
            outcome=outcome if node.recorded_at > before.at.tx else "confirmed",
            thing=thing(view, found),
            closed=tuple(_ends(view, closed)),
            conflicts=tuple(_conflicts(view, found)) if isinstance(found, Node) else (),
        )

    # ------------------------------------------------------------------ amend

    @whole_ids("id")
    def amend(
        self,
        id: Id,
        fields: Annotated[
            dict[str, Any],
            Field(min_length=1, description="Top-level fields of its content, and what they are to be."),
        ],
        reason: Reason = None,
        valid_from: Annotated[str | None, Field(description="Only from here on.")] = None,
        valid_to: Annotated[str | None, Field(description="Only until here.")] = None,
        source: Annotated[
            str | None, Field(description="Where it is from. Left out: where it was from.")
        ] = None,
        if_number: IfNumber = None,
        ctx: Context | None = None,
    ) -> Remembered:
        """Change fields of something over what is believed of it, or a part of that time, and nowhere else: its other fields, its gaps and its end
        stay. A whole new description is `remember` with `revises`."""
        store, before = self._desk.store, self._desk.view()
        with self._desk.writing(who(ctx)) as written:
            done = store.amend(
                id,
                fields,
                valid_from=valid_from,
                valid_to=valid_to,
                reason=reason,
                source=source,
                if_number=if_number,
            )
        return self._remembered("amended", done, before, written)

    # ------------------------------------------------------------------ record_event

    @whole_ids("related_to")
    def record_event(
        self,
        type: Annotated[
            str,
            Field(
                description="error, regression, resolution, deploy, fix, or a word of your own; TEXT for a message."
            ),
        ],
        description: Annotated[str, Field(description="What happened, in a line or two.")],
        occurred_at: Annotated[
            str | None, Field(description="When: a date or an instant. Left out: now.")
        ] = None,
        source: Annotated[str | None, Field(description="Where: a file and line, a service.")] = None,
        related_to: Annotated[
            Ids | None, Field(description="Ids it has to do with. A fix or resolution resolves what is open.")
        ] = None,
        metadata: Annotated[
            dict[str, Any] | None, Field(description="More to keep with it, as a JSON object.")
        ] = None,
        thread: Annotated[str | None, Field(description="Of a message: its conversation.")] = None,
        sender: Annotated[str | None, Field(description="Of a message: its sender.")] = None,
        trace_id: Annotated[str | None, Field(description="The trace it belongs to.")] = None,
        span_id: Annotated[str | None, Field(description="The span it belongs to.")] = None,
        parent_span_id: Annotated[str | None, Field(description="The span above that.")] = None,
        id: Annotated[str | None, Field(description="An id of your choice. Left out: one is made.")] = None,
        ctx: Context | None = None,
    ) -> Happened:
        """Record something that happened. Events are never changed, only linked; an error that comes again is counted as another
        occurrence of the same event."""
        name, store = who(ctx), self._desk.store
        with self._desk.writing(name) as written:
            done = store.record_event(
                type, description, id=id, occurred_at=occurred_at, source=source, origin="agent", agent=name,
                related_to=related_to, metadata=metadata, thread=thread, sender=sender, trace_id=trace_id, span_id=span_id,
                parent_span_id=parent_span_id,
            )  # fmt: skip
        event, view = done.event, self._desk.view()
        return Happened(
            at=at(view),
            tx=written.tx,
            event=thing(view, event),
            is_new=done.is_new,
            count=event.count,
            status=event.status,
            warnings=done.warnings,
        )

    # ------------------------------------------------------------------ supersede

    @whole_ids("old", "by")
    def supersede(
        self,
        old: Annotated[str, Field(description="The id of what no longer holds.")],
        by: Annotated[
            str,
            Field(description="The id of what holds instead. Not known yet: use remember(supersedes=[old])."),
        ],
        reason: Reason = None,
        valid_from: Annotated[
            str | None, Field(description="Since when. Left out: since `by` began to hold.")
        ] = None,
        if_number: IfNumber = None,
        ctx: Context | None = None,
    ) -> Replaced:
        """The world moved on: `old` was true until `by` began. Its past stays readable. Says what rests on the old one and is shaky now."""
        name, store = who(ctx), self._desk.store
        with self._desk.writing(name) as written:
            link = store.supersede(
                old,
                by=by,
                reason=reason,
                valid_from=valid_from,
                created_by=f"agent:{name}",
                if_number=if_number,
            )[0]
        view = self._desk.view()
        return Replaced(
            at=at(view),
            tx=written.tx,
            link=link_line(link),
            old=thing(view, view.inspect(link.target).node),
            by=thing(view, view.inspect(link.source).node),
            now_shaky=tuple(_shaken(view, link.target)),
        )

    # ------------------------------------------------------------------ retract

    @whole_ids("id")
    def retract(
        self,
        id: Id,
        reason: Annotated[str, Field(min_length=1, description="Why. It is kept for ever.")],
        valid_from: Annotated[str | None, Field(description="Only from here on.")] = None,
        valid_to: Annotated[str | None, Field(description="Only until here.")] = None,
        ended_at: Annotated[
            str | None,
            Field(
                description="It was right and ceased to be true then, with nothing in its place: it ends, and is not taken back."
            ),
        ] = None,
        if_number: IfNumber = None,
        ctx: Context | None = None,
    ) -> TakenBack:
        """It should not have been recorded: stop believing it, over all time or a part. What was believed before stays readable with `tx`.
        When something took its place use supersede; when it was true and ceased to be, give `ended_at`."""
        if ended_at is not None and (valid_from or valid_to):
            raise InvalidError(
                "ended_at= says it was true until then; valid_from= and valid_to= take back a part. Give the one or the others."
            )
        store = self._desk.store
        with self._desk.writing(who(ctx)) as written:
            if ended_at is not None:
                store.end(id, at=ended_at, reason=reason, if_number=if_number)
            else:
                store.retract(
                    id, valid_from=valid_from, valid_to=valid_to, reason=reason, if_number=if_number
                )
        view = self._desk.view()
        node = view.inspect(id).node
        return TakenBack(
            at=at(view),
            tx=written.tx,
            how="retracted" if ended_at is None else "ended",
            thing=thing(view, node),
            now_shaky=tuple(_shaken(view, node.id)),
        )

    # ------------------------------------------------------------------ undo

    def undo(
        self,
        tx: Annotated[
            str,
            Field(
                min_length=1,
                description="The transaction: `tx` in the answer of the call that wrote it, or a recorded_at.",
            ),
        ],
        reason: Annotated[
            str, Field(min_length=1, description="Why it should not have been written. It is kept for ever.")
        ],
        ctx: Context | None = None,
    ) -> Undone:
        """Take back a slip: all that one call wrote, as if it had not been made; what it closed holds again. Refused, with the ids, where something
        was built on it since. Undo the undo to have it again."""
        store = self._desk.store
        done = store.undo(tx, reason=reason, author=who(ctx))
        of = moment(instant(done.subject))
        changes = [each for each in store.changes(since=of - timedelta(microseconds=1)) if each.tx == of]
        view = self._desk.view()
        return Undone(
            at=at(view),
            tx=done.tx,
            undone=of,
            operations=tuple(f"{each.verb} {each.subject}" for each in changes[:_SHOWN]),
            things=tuple(_subjects(view, changes)),
        )

    # ------------------------------------------------------------------ link

    @whole_ids("source", "target")
    def link(
        self,
        source: Annotated[
            str, Field(description="The id it begins at: read `source kind target` as a sentence.")
        ],
        kind: Annotated[
            str,
            Field(
                description="caused_by, derived_from, supports, contradicts, part_of, resolved_by, related_to, uses, blocks … (schema lists those in use; an unknown one is refused with the list)."
            ),
        ],
        target: Annotated[str, Field(description="The id it ends at.")],
        reason: Reason = None,
        strength: Annotated[int | None, Field(ge=1, le=5, description="How strong, from 1 to 5.")] = None,
        inferred: Annotated[bool, Field(description="It is suspected, not known.")] = False,
        valid_from: From = None,
        valid_to: To = None,
        ctx: Context | None = None,
    ) -> Linked:
        """Say how two things hang together. The same link again is the same link."""
        store, before = self._desk.store, self._desk.view()
        name = who(ctx)
        with self._desk.writing(name) as written:
            made = store.link(
                source, kind, target, reason=reason, strength=strength, created_by=f"agent:{name}",
                confidence="inferred" if inferred else "explicit", valid_from=valid_from, valid_to=valid_to,
            )  # fmt: skip
        view = self._desk.view()
        return Linked(
            at=at(view), tx=written.tx, link=link_line(made), is_new=made.recorded_at > before.at.tx
        )


def _says(node: Node, new: _Statement) -> bool:
    """Whether a node states the same: of a statement alone its words count, whatever the node's fields are."""
    if new.text is None:
        return sameness.same(
            sameness.statement(node.content, given_text(node.content, node.text)), new.statement
        )
    return sameness.alike(node.content, new.content)


def _ends(view: View, closed: Iterable[Link]) -> list[Thing]:
    return things(view, (view.inspect(link.target).node for link in closed))


def _conflicts(view: View, node: Node) -> list[Thing]:
    """What stands and contradicts a node, linked or suspected."""
    if node.standing not in UPRIGHT:
        return []
    found = view.contradictions(limit=_SHOWN, of=node.id)
    return things(view, [disagreement(each, node.id) for each in found])


def _subjects(view: View, changes: Iterable[Change]) -> list[Thing]:
    """The nodes and events that operations were about, as they stand in a view."""
    found = []
    for id in dict.fromkeys(each.subject for each in changes):
        with suppress(NotFoundError):
            about = view.inspect(id)
            if isinstance(about, Inspection):
                found.append(about.node)
    return things(view, found[:_SHOWN])


def _shaken(view: View, id: str) -> list[Thing]:
    """What rests on a thing, at once or by way of others, and is shaky."""
    chain = view.walk(id, RESTS, 10, "in")
    return things(view, [node for node in chain.nodes if node.standing == "shaky"][:_SHOWN])
