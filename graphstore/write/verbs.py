"""The verbs of a store, each with its arguments: what it changes in the working set of a transaction. `GraphStore` documents them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graphstore.errors import InvalidError, NotFoundError
from graphstore.read.columns import ENDED
from graphstore.values.inputs import id_of, ids, json_object, optional_text, part, span, text_of, version_body
from graphstore.values.keys import slot_name
from graphstore.values.models import Json, Link, Node
from graphstore.values.period import ALWAYS, OPEN, Instant, TimeLike, coalesce, exactly, overlap
from graphstore.values.vocabulary import JOINED, maker_of, refuse_creator, strength_of
from graphstore.view.rows import of_sentence
from graphstore.write.act import Act, new_id
from graphstore.write.bounds import Bounds
from graphstore.write.given_arguments import (
    PERIOD,
    Noted,
    Verb,
    instant_given,
    is_given,
    known_ids,
    value_given,
)
from graphstore.write.linking import LinkClaim, LinkEnds, Wanted
from graphstore.write.slots import Filling, Slot, confirm
from graphstore.write.transaction import refuse_forgotten, refuse_taken_slot

_DESCRIBING = ("content", "text", "tags", "trigger", "source")  # the fields of a version's body
_NONE: tuple[str, ...] = ()  # the default of `add_node`: no ids


def _id_in_slot(act: Act, verb: AddNode, name: str) -> Json:
    return {name: True} if verb.key is not None else {}


@dataclass(frozen=True, slots=True)
class AddNode(Verb[Node]):
    """See `GraphStore.add_node`."""

    kind: str
    content: Mapping[str, Any]
    id: str | None = None
    key: str | None = None
    text: str | None = None
    tags: Iterable[str] = ()
    valid_from: TimeLike | None = None
    valid_to: TimeLike | None = None
    scope: str = ""
    supersedes: str | Iterable[str] = ()
    corrects: str | Iterable[str] = ()
    derived_from: str | Iterable[str] = ()
    reason: str | None = None
    source: str | None = None
    trigger: str = "initial"
    name: ClassVar = "add_node"
    recorded: ClassVar[dict[str, Noted]] = {
        **PERIOD, "supersedes": known_ids, "corrects": known_ids, "derived_from": known_ids, "id": _id_in_slot,
    }  # fmt: skip

    def apply(self, act: Act) -> Node:
        """Add the node, or confirm the value of the slot that has the same content."""
        index, work = act.index, act.work
        text_of("kind", self.kind)
        slot = None if self.key is None else slot_name(self.key)
        body = version_body(self.content, self.text, self.tags, self.trigger, self.source)
        text_of("scope", self.scope, empty=True)
        during = span(self.valid_from, self.valid_to, work.tx, act.time)
        named = named_ids(act, self, ("supersedes", "corrects", "derived_from"))
        filling = None
        if slot is not None:
            stop = None if self.valid_to is None else during[1]
            over, wrong = (frozenset(named.get(kind, ())) for kind in ("supersedes", "corrects"))
            filling = Filling(
                act,
                Slot(self.kind, slot, self.scope),
                during[0],
                stop,
                named=over,
                corrected=wrong,
                source=self.source,
            )
            during = filling.spans[0]
            there = -1 if self.id is not None else filling.restated(body)
            if there >= 0:
                ent = index.r_ent[there]
                confirm(act, there, self.reason, dict.fromkeys(_DESCRIBING) | body)
                others = {kind: [id for id in named[kind] if id != ent] for kind in named}
                link_named(act, ent, others, during[0], self.reason, source=self.source)
                return act.shown(ent, there)
            filling.refuse_untrusted()
        name = new_id(index) if self.id is None else act.free_id(self.id)
        op = work.op("add_node", name, self.reason)
        ent = index.add_entity(name, False, self.kind, slot, self.scope, work.tx)
        if self.valid_to is not None:
            index.note_given_end(ent)
        row = work.describe(ent, filling.spans if filling is not None else [during], body, op)
        if filling is not None:
            filling.close(ent, self.reason, op)
        if named:
            link_named(act, ent, named, None, self.reason, op, source=self.source)
        if filling is not None:
            filling.link_next(ent, op)
        refuse_taken_slot(index, ent, op)
        return act.written(ent, row, body)


@dataclass(frozen=True, slots=True)
class EndNode(Verb[None]):
    """See `GraphStore.end`."""

    id: str
    at: TimeLike | None = None
    reason: str | None = None
    if_number: int | None = None
    name: ClassVar = "end"
    recorded: ClassVar[dict[str, Noted]] = {"at": instant_given, "if_number": value_given}

    def apply(self, act: Act) -> None:
        """End the node."""
        index, work = act.index, act.work
        ent = act.known(self.id, node=True)
        refuse_forgotten(index, ent)
        name, start = index.names[ent], index.stated_start(ent)
        cut = work.tx if self.at is None else act.time(self.at, "at")
        if start is None or not index.stated_over(ent, (cut, OPEN)):
            raise NotFoundError(
                f"nothing is believed of {name!r} from {exactly(cut)} on: there is nothing to end."
            )
        if cut <= start:
            raise InvalidError(
                f"{name!r} cannot end at {exactly(cut)}: it begins at {exactly(start)}. If it was true before that, first say since when: "
                f"revise({name!r}, content, valid_from=…). To take it back altogether use retract({name!r}, reason=…)."
            )
        act.expect(ent, self.if_number)
        act.trust().guard(ent, [(cut, OPEN)])
        gone = [
            (start, stop)
            for _, start, stop in work.stop_believing(ent, (cut, OPEN), work.op("end", name, self.reason))
        ]
        gone += work.drop_kept(ent, (cut, OPEN))
        if index.key[ent] is not None or index.of_kinds(index.out, ent, ("corrects",)):
            work.keep(ent, [(ENDED, *part) for part in coalesce(gone)])


@dataclass(frozen=True, slots=True)
class Retract(Verb[None]):
    """See `GraphStore.retract`."""

    id: str
    valid_from: TimeLike | None = None
    valid_to: TimeLike | None = None
    reason: str = ""
    if_number: int | None = None
    name: ClassVar = "retract"
    recorded: ClassVar[dict[str, Noted]] = {**PERIOD, "if_number": value_given}

    def __post_init__(self) -> None:
        text_of("reason", self.reason)

    def apply(self, act: Act) -> None:
        """Retract the thing over the period."""
        index, work = act.index, act.work
        ent = act.known(self.id)
        name = index.names[ent]
        if index.is_event[ent] and (self.valid_from is not None or self.valid_to is not None):
            raise InvalidError(
                f"{name!r} is an event: it is retracted whole. Leave valid_from and valid_to out."
            )
        during = part(self.valid_from, self.valid_to, act.time)
        refuse_forgotten(index, ent)
        if index.over(index.now_of[ent], during):
            act.expect(ent, self.if_number)
        act.trust().guard(ent, [during])
        op = work.op("retract", name, self.reason)
        stated = index.stated_over(ent, during)
        gone = [(start, stop) for _, start, stop in work.stop_believing(ent, during, op)]
        if not gone:
            raise NotFoundError(
                f"nothing is believed of {name!r} over that time: there is nothing to retract."
            )
        if not index.now_of[ent]:
            during, stated = ALWAYS, coalesce([*stated, *index.stated_over(ent, ALWAYS)])
        gone += index.ended_over(ent, during)
        work.drop_kept(ent, during)  # if nothing is left, all of it is taken back
        Bounds(act.core, work, op=op).let_go(ent, during, stated, gone)


@dataclass(frozen=True, slots=True)
class Fold(Verb[Node]):
    """See `GraphStore.fold`."""

    members: Sequence[str]
    into: str | Node | Mapping[str, Any]
    reason: str | None = None
    name: ClassVar = "fold"
    recorded: ClassVar[dict[str, Noted]] = {"members": known_ids}

    def __post_init__(self) -> None:
        if not self.members:
            raise InvalidError("fold() of nothing. Give the ids of what is summed up.")

    def apply(self, act: Act) -> Node:
        """Link the summary to the things that it sums up, in their state at that time. Existing `derived_from` links stay as they are."""
        work, into = act.work, self.into
        if not isinstance(into, (str, Node)):
            into = AddNode("summary", into, reason=self.reason).perform(act)
        ent = act.known(id_of(into), node=True)
        summed = [act.known(name) for name in self.members]
        before = work.point()
        op = work.op("fold", act.index.names[ent], optional_text("reason", self.reason))
        self._derive(act, ent, summed, op)
        if len(act.index.k_link) == before.mark.link_rows:
            act.core.hide_rows()
            work.back(before)  # everything was recorded already

        def make() -> Node:
            found = act.sight().thing(ent)
            assert isinstance(found, Node)
            return found

        return work.answer(Node, make, id=act.index.names[ent])

    def _derive(self, act: Act, ent: int, members: Iterable[int], op: int) -> None:
        index, linking = act.index, Bounds(act.core, act.work, op=op)
        kind = linking.kind("derived_from")
        claim = LinkClaim(reason=self.reason, created_by=maker_of(None, act.work.author), history=True)
        for member in members:
            said = index.saying(ent, kind.name, member)
            if not any(index.believed_link(link, act.work.tx) for link in said):
                linking.say(LinkEnds(ent, kind, member), None, OPEN, claim)


@dataclass(frozen=True, slots=True)
class Confirm(Verb[None]):
    """See `GraphStore.confirm`."""

    id: str
    reason: str
    source: str | None = None
    if_number: int | None = None
    name: ClassVar = "confirm"
    recorded: ClassVar[dict[str, Noted]] = {"source": is_given, "if_number": value_given}

    def __post_init__(self) -> None:
        text_of("reason", self.reason)

    def apply(self, act: Act) -> None:
        """Confirm what holds now of the thing, else what is believed of it last."""
        index, tx = act.index, act.work.tx
        ent = act.known(self.id)
        if not index.now_of[ent]:
            raise NotFoundError(f"nothing is believed of {index.names[ent]!r}: there is nothing to confirm.")
        act.expect(ent, self.if_number)
        now = index.find(ent, tx, tx)
        row = now if now >= 0 else index.now_of[ent][-1]
        said = {} if self.source is None else {"source": text_of("source", self.source, empty=True)}
        confirm(act, row, self.reason, said)


def _by_known(act: Act, verb: Supersede, name: str) -> Json:
    index, by = act.index, act.known(verb.by)
    said = index.saying(by, "supersedes", act.known(verb.olds[0]))
    return {name: index.names[by]} if any(index.believed_link(link, act.work.tx) for link in said) else {}


@dataclass(frozen=True, slots=True)
class Supersede(Verb[list[Link]]):
    """See `GraphStore.supersede`."""

    olds: Sequence[str]
    by: str
    reason: str | None = None
    valid_from: TimeLike | None = None
    if_number: int | None = None
    created_by: str | None = None
    name: ClassVar = "supersede"
    recorded: ClassVar[dict[str, Noted]] = {
        "valid_from": instant_given, "if_number": value_given, "by": _by_known,
    }  # fmt: skip

    def apply(self, act: Act) -> list[Link]:
        """Let `by` supersede each of the others."""
        new = act.known(self.by)
        since = None if self.valid_from is None else act.time(self.valid_from, "valid_from")
        linking = Bounds(act.core, act.work, verb="supersede")
        maker = (
            maker_of(None, act.work.author)
            if self.created_by is None
            else text_of("created_by", self.created_by)
        )
        refuse_creator(linking.kind("supersedes"), maker)
        claim = LinkClaim(reason=optional_text("reason", self.reason), created_by=maker)
        known = [act.known(name) for name in self.olds]
        if self.if_number is not None and len(known) > 1:
            raise InvalidError(
                "if_number is of one version, and several things are superseded. Name one of them."
            )
        for old in known:
            act.expect(old, self.if_number)
        rows = [linking.supersede(new, old, claim, since=since) for old in known]
        return act.linked(rows)


def _sentence(act: Act, verb: Unlink, name: str) -> Json:
    """Return the entry of the sentence whose links are unlinked, in canonical ids and kind."""
    said = act.core.vocabulary.sentence(*verb.sentence, "explicit")
    names = act.index.names
    return {
        "source": names[act.known(said.source)],
        "kind": said.kind.name,
        "target": names[act.known(said.target)],
    }


@dataclass(frozen=True, slots=True)
class Unlink(Verb[None]):
    """See `GraphStore.unlink`."""

    link_id: str | None = None
    source: str | None = None
    kind: str | None = None
    target: str | None = None
    valid_from: TimeLike | None = None
    valid_to: TimeLike | None = None
    reason: str | None = None
    name: ClassVar = "unlink"
    recorded: ClassVar[dict[str, Noted]] = {**PERIOD, "source": _sentence}

    @property
    def sentence(self) -> tuple[str, str, str]:
        """Return the sentence whose links are unlinked. Requires that no link id is given."""
        assert self.source is not None
        assert self.kind is not None
        assert self.target is not None
        return self.source, self.kind, self.target

    def __post_init__(self) -> None:
        said = (self.source, self.kind, self.target)
        if (self.link_id is None) == (None in said) or (self.link_id is not None and any(said)):
            raise InvalidError(
                "unlink() takes the id of a link, or source=, kind= and target=. Give one of the two."
            )

    def apply(self, act: Act) -> None:
        """Stop believing the link, or every link with the sentence, over the period."""
        index, work = act.index, act.work
        if self.link_id is not None:
            links = [act.known_link(self.link_id)]
            what = f"link {index.l_name[links[0]]!r}"
        else:
            said = act.core.vocabulary.sentence(*self.sentence, "explicit")
            exact = said.kind.name == JOINED
            ends = [act.known(id, is_exact=exact) for id in (said.source, said.target)]
            links = of_sentence(index, ends[0], said.kind, ends[1])
            what = f"'{said.source} {said.kind.name} {said.target}'"
        over = part(self.valid_from, self.valid_to, act.time)
        rows = [row for link in links for row in index.believed_link(link, work.tx)]
        rows = [row for row in rows if overlap((index.k_from[row], index.k_to[row]), over)]
        if not rows:
            raise NotFoundError(f"nothing is believed of {what} over that time: there is nothing to unlink.")
        act.trust().guard_links(rows)
        there = sorted({index.k_link[row] for row in rows})
        if any(index.l_kind[link] == JOINED for link in there):
            raise InvalidError(
                f"{what} is of a join, which moved other links too. Take it back by split(id, reason=…)."
            )
        for link in there:
            op = work.op("unlink", index.l_name[link], self.reason)
            if index.l_kind[link] in ("supersedes", "corrects"):
                Bounds(act.core, work, op=op).unlink(link, over)
            else:
                work.take_link(link, over, op)


@dataclass(frozen=True, slots=True)
class AddLink(Verb[Link]):
    """See `GraphStore.link`."""

    source: str
    kind: str
    target: str
    reason: str | None = None
    strength: int | None = None
    confidence: str = "explicit"
    created_by: str = "user"
    valid_from: TimeLike | None = None
    valid_to: TimeLike | None = None
    metadata: Mapping[str, Any] | None = None
    id: str | None = None
    history: bool = False
    name: ClassVar = "link"
    recorded: ClassVar[dict[str, Noted]] = PERIOD

    def apply(self, act: Act) -> Link:
        """Return the link, added or existing."""
        return act.linked([self.row(act)])[0]

    def row(self, act: Act, exactly_over: Wanted | None = None) -> int:
        """Return the row of the link, added or existing. `exactly_over`: a period that replaces `valid_from` and `valid_to`."""
        sentence = act.core.vocabulary.sentence(self.source, self.kind, self.target, self.confidence)
        if sentence.kind.name == JOINED:
            raise InvalidError(
                f"{self.kind!r} is written by a join: join({sentence.target!r}, into={sentence.source!r})."
            )
        refuse_creator(sentence.kind, text_of("created_by", self.created_by))
        claim = LinkClaim(
            None if self.reason is None else text_of("reason", self.reason, empty=True),
            strength_of(self.strength),
            self.created_by,
            json_object("metadata", self.metadata) if self.metadata else {},
            sentence.confidence == "inferred",
            self.history,
            None if self.id is None else text_of("link id", self.id),
        )
        if claim.inferred and sentence.kind.name == "supersedes":
            raise InvalidError(
                "a supersession is always explicit. Leave confidence out, or record a suspicion with another kind."
            )
        if not isinstance(self.history, bool):
            raise InvalidError.choice("history", self.history, (True, False))
        if claim.history and not sentence.kind.rests:
            raise InvalidError(
                f"history=True states that one end was made from the other as it was, but by {sentence.kind.name!r} neither end rests on the other. "
                "Leave it out, or use derived_from."
            )
        ends = LinkEnds(act.known(sentence.source), sentence.kind, act.known(sentence.target))
        if exactly_over is None:
            since = None if self.valid_from is None else act.time(self.valid_from, "valid_from")
            until = OPEN if self.valid_to is None else act.time(self.valid_to, "valid_to")
        else:
            since, until = exactly_over
        return act.linking.say(ends, since, until, claim)


def named_ids(act: Act, verb: AddNode, kinds: Iterable[str]) -> dict[str, list[int]]:
    """Return the entities that a new node names, by kind of link; kinds without entities are absent."""
    named = {}
    for kind in kinds:
        given = getattr(verb, kind)
        if given is not _NONE and (names := ids(kind, given)):
            named[kind] = [act.known(id) for id in names]
    return named


def link_named(
    act: Act,
    ent: int,
    named: dict[str, list[int]],
    since: Instant | None,
    reason: str | None,
    op: int = -1,
    *,
    source: str | None = None,
) -> None:
    """Link a node to the entities it names, by kind of link. Other kinds than `supersedes` have their default start.

    `since`: the start of its supersessions, None for their default. `source`: the source of the node.
    """
    linking = Bounds(act.core, act.work, source=source, op=op)
    claim = LinkClaim(reason=reason, created_by=maker_of(source, act.work.author))
    for kind, others in named.items():
        start = since if kind == "supersedes" else None
        for other in others:
            linking.say(LinkEnds(ent, linking.kind(kind), other), start, OPEN, claim)
