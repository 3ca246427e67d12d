"""Decides what each verb changes, and changes it in the working set of a transaction. `GraphStore` has their signatures and documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from graphstore.errors import InvalidError, NotFoundError
from graphstore.read.columns import ENDED
from graphstore.values.inputs import ids, json_object, optional_text, part, span, text_of, version_body
from graphstore.values.keys import slot_name
from graphstore.values.models import Link, Node
from graphstore.values.period import ALWAYS, OPEN, Instant, TimeLike, coalesce, exactly, overlap
from graphstore.values.vocabulary import maker_of, refuse_creator, strength_of
from graphstore.view.rows import of_sentence
from graphstore.write.act import Act, new_id
from graphstore.write.bounds import Bounds
from graphstore.write.linking import Claim, Ends, Wanted
from graphstore.write.slots import Filling, Slot, confirm
from graphstore.write.transaction import refuse_forgotten, refuse_taken_slot

_DESCRIBING = ("content", "text", "tags", "trigger", "source")  # the fields of a version's body
_NONE: tuple[str, ...] = ()  # what names nothing: the default of `add_node`


class NewNode(NamedTuple):
    """What `GraphStore.add_node` was given. `named`: the ids that it names, by kind of link."""

    kind: str
    content: Mapping[str, Any]
    id: str | None
    key: str | None
    text: str | None
    tags: Iterable[str]
    valid_from: TimeLike | None
    valid_to: TimeLike | None
    scope: str
    named: Mapping[str, str | Iterable[str]]
    reason: str | None
    source: str | None
    trigger: str


def add_node(act: Act, new: NewNode) -> Node:
    """See `GraphStore.add_node`."""
    index, work = act.index, act.work
    text_of("kind", new.kind)
    slot = None if new.key is None else slot_name(new.key)
    body = version_body(new.content, new.text, new.tags, new.trigger, new.source)
    text_of("scope", new.scope, empty=True)
    during = span(new.valid_from, new.valid_to, work.tx, act.time)
    named = named_ids(act, new.named)
    filling = None
    if slot is not None:
        stop = None if new.valid_to is None else during[1]
        over, wrong = (frozenset(named.get(kind, ())) for kind in ("supersedes", "corrects"))
        filling = Filling(act, Slot(new.kind, slot, new.scope), during[0], stop, over, wrong, new.source)
        during = filling.spans[0]
        there = -1 if new.id is not None else filling.restated(body)
        if there >= 0:
            ent = index.r_ent[there]
            confirm(act, there, new.reason, dict.fromkeys(_DESCRIBING) | body)
            others = {kind: [id for id in named[kind] if id != ent] for kind in named}
            link_named(act, ent, others, during[0], new.reason, source=new.source)
            return act.shown(ent, there)
        filling.refuse_untrusted()
    name = new_id(index) if new.id is None else act.free_id(new.id)
    op = work.op("add_node", name, new.reason)
    ent = index.add_entity(name, False, new.kind, slot, new.scope, work.tx)
    if new.valid_to is not None:
        index.note_given_end(ent)
    row = work.describe(ent, filling.spans if filling is not None else [during], body, op)
    if filling is not None:
        filling.close(ent, new.reason, op)
    if named:
        link_named(act, ent, named, None, new.reason, op, source=new.source)
    if filling is not None:
        filling.follow(ent, op)
    refuse_taken_slot(index, ent, op)
    return act.written(ent, row, body)


def end(act: Act, id: str, at: TimeLike | None, reason: str | None, if_number: int | None) -> None:
    """See `GraphStore.end`."""
    index, work = act.index, act.work
    ent = act.known(id, node=True)
    refuse_forgotten(index, ent)
    name, start = index.names[ent], index.stated_start(ent)
    cut = work.tx if at is None else act.time(at, "at")
    if start is None or not index.stated_over(ent, (cut, OPEN)):
        raise NotFoundError(
            f"nothing is believed of {name!r} from {exactly(cut)} on: there is nothing to end."
        )
    if cut <= start:
        raise InvalidError(
            f"{name!r} cannot end at {exactly(cut)}: it begins at {exactly(start)}. If it was true before that, first say since when: "
            f"revise({name!r}, content, valid_from=…). To take it back altogether use retract({name!r}, reason=…)."
        )
    act.expect(ent, if_number)
    act.trust().guard(ent, [(cut, OPEN)])
    gone = [(start, stop) for _, start, stop in work.take(ent, (cut, OPEN), work.op("end", name, reason))]
    gone += work.drop_kept(ent, (cut, OPEN))
    if index.key[ent] is not None or index.of_kinds(index.out, ent, ("corrects",)):
        work.keep(ent, [(ENDED, *part) for part in coalesce(gone)])


def retract(
    act: Act,
    id: str,
    valid_from: TimeLike | None,
    valid_to: TimeLike | None,
    reason: str,
    if_number: int | None = None,
) -> None:
    """See `GraphStore.retract`."""
    index, work = act.index, act.work
    ent = act.known(id)
    name = index.names[ent]
    if index.is_event[ent] and (valid_from is not None or valid_to is not None):
        raise InvalidError(f"{name!r} is an event: it is retracted whole. Leave valid_from and valid_to out.")
    during = part(valid_from, valid_to, act.time)
    refuse_forgotten(index, ent)
    if index.over(index.now_of[ent], during):
        act.expect(ent, if_number)
    act.trust().guard(ent, [during])
    op = work.op("retract", name, reason)
    stated = index.stated_over(ent, during)
    gone = [(start, stop) for _, start, stop in work.take(ent, during, op)]
    if not gone:
        raise NotFoundError(f"nothing is believed of {name!r} over that time: there is nothing to retract.")
    if not index.now_of[ent]:
        during, stated = ALWAYS, coalesce([*stated, *index.stated_over(ent, ALWAYS)])
    gone += index.ended_over(ent, during)
    work.drop_kept(ent, during)  # what leaves nothing takes back all of it
    Bounds(act.core, work, op=op).let_go(ent, during, stated, gone)


def supersede(
    act: Act,
    olds: Iterable[str],
    by: str,
    reason: str | None,
    valid_from: TimeLike | None,
    if_number: int | None,
    created_by: str | None,
) -> list[Link]:
    """See `GraphStore.supersede`."""
    new = act.known(by)
    since = None if valid_from is None else act.time(valid_from, "valid_from")
    linking = Bounds(act.core, act.work, verb="supersede")
    maker = maker_of(None, act.work.author) if created_by is None else text_of("created_by", created_by)
    refuse_creator(linking.kind("supersedes"), maker)
    claim = Claim(reason=optional_text("reason", reason), created_by=maker)
    known = [act.known(name) for name in olds]
    if if_number is not None and len(known) > 1:
        raise InvalidError(
            "if_number is of one version, and several things are superseded. Name one of them."
        )
    for old in known:
        act.expect(old, if_number)
    rows = [linking.supersede(new, old, claim, since=since) for old in known]
    return act.linked(rows)


def unlink(
    act: Act,
    link_id: str,
    bounds: tuple[TimeLike | None, TimeLike | None],
    reason: str | None,
    sentence: tuple[str, str, str] | None = None,
) -> None:
    """See `GraphStore.unlink`. `sentence`: the source, the kind and the target of every link that says so, in place of one link."""
    index, work = act.index, act.work
    if sentence is None:
        links = [act.known_link(link_id)]
        what = f"link {index.l_name[links[0]]!r}"
    else:
        said = act.core.vocabulary.sentence(*sentence, "explicit")
        links = of_sentence(index, act.known(said.source), said.kind, act.known(said.target))
        what = f"'{said.source} {said.kind.name} {said.target}'"
    over = part(*bounds, act.time)
    rows = [row for link in links for row in index.believed_link(link, work.tx)]
    rows = [row for row in rows if overlap((index.k_from[row], index.k_to[row]), over)]
    if not rows:
        raise NotFoundError(f"nothing is believed of {what} over that time: there is nothing to unlink.")
    act.trust().guard_links(rows)
    there = sorted({index.k_link[row] for row in rows})
    for link in there:
        op = work.op("unlink", index.l_name[link], reason)
        if index.l_kind[link] in ("supersedes", "corrects"):
            Bounds(act.core, work, op=op).unlink(link, over)
        else:
            work.take_link(link, over, op)


def named_ids(act: Act, named: Mapping[str, str | Iterable[str]]) -> dict[str, list[int]]:
    """Return the entities that a new node names, by kind of link; kinds without any are left out."""
    return {
        kind: [act.known(id) for id in names]
        for kind, given in named.items()
        if given is not _NONE and (names := ids(kind, given))
    }


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
    """Link a node with the entities it names, by kind of link: it supersedes from `since` on, if that is given; other links begin as their kind does by itself.

    `source`: that of the node.
    """
    linking = Bounds(act.core, act.work, source=source, op=op)
    claim = Claim(reason=reason, created_by=maker_of(source, act.work.author))
    for kind, others in named.items():
        start = since if kind == "supersedes" else None
        for other in others:
            linking.say(Ends(ent, linking.kind(kind), other), start, OPEN, claim)


def fold(act: Act, ent: int, members: Iterable[int], reason: str | None, op: int) -> None:
    """Link a summary with what it sums up, as that was: what it is derived from already stays as it is."""
    index, linking = act.index, Bounds(act.core, act.work, op=op)
    kind, claim = (
        linking.kind("derived_from"),
        Claim(reason=reason, created_by=maker_of(None, act.work.author), history=True),
    )
    for member in members:
        if not any(index.believed_link(link, act.work.tx) for link in index.saying(ent, kind.name, member)):
            linking.say(Ends(ent, kind, member), None, OPEN, claim)


class NewLink(NamedTuple):
    """What `GraphStore.link` was given."""

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


def link_row(act: Act, new: NewLink, exactly_over: Wanted | None = None) -> int:
    """Return the row of a link, added or existing. See `GraphStore.link`. `exactly_over`: instants in place of `valid_from` and `valid_to`."""
    sentence = act.core.vocabulary.sentence(new.source, new.kind, new.target, new.confidence)
    refuse_creator(sentence.kind, text_of("created_by", new.created_by))
    claim = Claim(
        None if new.reason is None else text_of("reason", new.reason, empty=True),
        strength_of(new.strength),
        new.created_by,
        json_object("metadata", new.metadata) if new.metadata else {},
        sentence.confidence == "inferred",
        new.history,
        None if new.id is None else text_of("link id", new.id),
    )
    if claim.inferred and sentence.kind.name == "supersedes":
        raise InvalidError(
            "a supersession is always explicit. Leave confidence out, or record a suspicion with another kind."
        )
    if not isinstance(new.history, bool):
        raise InvalidError.choice("history", new.history, (True, False))
    if claim.history and not sentence.kind.rests:
        raise InvalidError(
            f"history=True states that one end was made from the other as it was, but by {sentence.kind.name!r} neither end rests on the other. "
            "Leave it out, or use derived_from."
        )
    ends = Ends(act.known(sentence.source), sentence.kind, act.known(sentence.target))
    if exactly_over is None:
        since = None if new.valid_from is None else act.time(new.valid_from, "valid_from")
        until = OPEN if new.valid_to is None else act.time(new.valid_to, "valid_to")
    else:
        since, until = exactly_over
    return act.linking.say(ends, since, until, claim)
