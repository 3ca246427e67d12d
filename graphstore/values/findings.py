"""The values of answers about several things: differences, supersessions, merges, what is shaky. They are made of those in `models`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NoReturn

from pydantic import field_serializer

from graphstore.errors import NotFoundError
from graphstore.values.models import (
    UPRIGHT,
    Coordinate,
    Event,
    How,
    Link,
    Node,
    Shown,
    Standing,
    Value,
    Version,
    in_words,
)
from graphstore.values.period import during, when
from graphstore.values.text import because, described, given_text, line
from graphstore.values.vocabulary import Fall


class Recorded(Value):
    """The result of `record_event`: the event, whether it is new, and what could not be done."""

    event: Event
    is_new: bool
    warnings: tuple[str, ...] = ()


class FieldChange(Value):
    """One difference between two contents: `path` such as `summary` or `lessons.model[0]`."""

    path: str
    type: Literal["added", "removed", "changed"]
    old: Any = None
    new: Any = None


class NodeChange(Value):
    """A node that both of two views have, described differently."""

    id: str
    before: Node
    after: Node
    fields: tuple[FieldChange, ...]


class LeftOutOperation(Value):
    """An operation that a counterfactual view has not: it could not be done without what is omitted. `reason` says why."""

    tx: datetime
    verb: str
    subject: str
    reason: str
    branch: str | None = None


class ViewDiff(Shown):
    """The difference of two coordinates: added, removed and changed things."""

    added: tuple[Node, ...]
    removed: tuple[Node, ...]
    changed: tuple[NodeChange, ...]
    events_added: tuple[Event, ...] = ()
    events_removed: tuple[Event, ...] = ()
    links_added: tuple[Link, ...] = ()
    links_removed: tuple[Link, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in type(self).model_fields)


class Inspection(Shown):
    """One thing with all about it: any standing, links both ways, every believed version."""

    node: Node | Event
    links: tuple[Link, ...]
    backlinks: tuple[Link, ...]
    history: tuple[Version, ...]
    same_topic: tuple[Link, ...] = ()
    confirmations: int = 0
    grounds: Grounds | None = None
    """What it rests on; None where it rests on nothing."""


class LinkInspection(Value):
    """One link with all about it: whether it holds at the coordinate, its ends with any standing, every believed period of it.

    `link`: the period that holds, else the last that did.
    """

    link: Link
    holds: bool
    source: Node | Event
    target: Node | Event
    history: tuple[Link, ...]

    @property
    def node(self) -> NoReturn:
        """There is none. Raises NotFoundError."""
        _refuse_link(self.link)

    def __str__(self) -> str:
        ends = f"{_name(self.source)} {_is(self.source)}, {_name(self.target)} {_is(self.target)}."
        return f"{_link_text(self.link, self.holds)} {ends} Believed: {', '.join(map(_period, self.history)) or 'nothing'}."


OUTSIDE = "something outside your scope"
"""The id of a foundation that a token with scopes does not see."""


class Foundation(Value):
    """One thing that another rests on, by which link, and what became of it as far as it counts for that link."""

    id: str
    standing: Standing
    link: Link
    stands: bool
    """No invalidation of it reaches the coordinate, but for a revision."""
    how: Fall | None
    """How it was invalidated; `shaky`: by what it rests on itself. None: it was not."""
    who: str | None
    why: str | None
    recorded_at: datetime | None
    """When the invalidation was recorded."""
    rechecked: bool
    """What rests on it was confirmed, or its content changed, since: the invalidation shakes it no more."""

    def __str__(self) -> str:
        if self.how is None:
            return (
                f"{self.id} stands"
                if self.standing == "stands"
                else f"{self.id} ({self.standing.replace('_', ' ')}) is as it was"
            )
        if self.recorded_at is None:
            return f"{self.id} is shaky itself"
        checked = ", and was rechecked since" if self.rechecked else ""
        return f"{self.id} was {self.how}, recorded {when(self.recorded_at)}{because(self.why)}{checked}"


class Grounds(Value):
    """What a thing rests on: `stand` of its `of` foundations still stand. `shaky`: what makes it shaky, if anything does."""

    node: Node | Event
    stand: int
    of: int
    foundations: tuple[Foundation, ...]
    shaky: Shaky | None

    def __str__(self) -> str:
        if not self.foundations:
            return f"{_name(self.node)} rests on nothing."
        return f"{_name(self.node)}: {counted(self)}."


def counted(found: Grounds | Shaky) -> str:
    """Return the words for how many foundations still stand, and what became of each."""
    word = "foundation" if found.of == 1 else "foundations"
    return f"{found.stand} of {found.of} {word} still {'stands' if found.of == 1 else 'stand'}: {'; '.join(map(str, found.foundations))}"


class Shaky(Value):
    """A thing that stands and rests on one that has fallen: by which links, how and why that fell, and when the fall was recorded. `stand` of its `of`
    foundations still stand."""

    node: Node | Event
    root: Node | Event
    links: Sequence[Link]
    """The way to the root, the nearest first. Of many things along one chain each shares the rest of the way with the next."""
    why: str | None
    recorded_at: datetime
    stand: int = 0
    of: int = 0
    foundations: tuple[Foundation, ...] = ()

    @field_serializer("links")
    def _links(self, links: Sequence[Link]) -> list[Link]:
        return list(links)

    @property
    def call(self) -> str:
        """Return the call that settles it."""
        return f"confirm({self.node.id!r}, reason=…) or retract({self.node.id!r}, reason=…)"

    def __str__(self) -> str:
        path = "; ".join(map(str, self.links))
        if self.root.id == OUTSIDE:
            by = f"{path}; and then by a link to it" if path else "a link to it"
            return f"{_name(self.node)} is shaky: {OUTSIDE} has fallen, recorded {when(self.recorded_at)}. It rests on that by {by}."
        fell = (
            "had fallen before it was evicted"
            if self.root.standing == "evicted" and isinstance(self.root, Event)
            else f"was {'revised' if self.root.standing in UPRIGHT else self.root.standing}"
        )
        others = f" {counted(self)}." if self.of > 1 else ""
        return f"{_name(self.node)} is shaky: {self.root.id} {fell}, recorded {when(self.recorded_at)}{because(self.why)}.{others} It rests on it by {path}."


class Step(Value):
    """One step of a supersession: how, by which link, to which node; `who` and `why` in the writer's words.

    `planned`: it begins later than the valid time.
    """

    how: How
    link: Link | None
    node: Node | Event | None
    who: str | None
    why: str | None
    since: datetime | None
    recorded_at: datetime
    planned: bool = False


class Supersession(Shown):
    """What became of one thing: the steps away from it, over the whole time line, and what stands now at the ends of those that hold."""

    subject: Node | Event
    chain: tuple[Step, ...]
    current: tuple[Node | Event, ...]
    standing: Standing

    @property
    def of_steps(self) -> tuple[str, ...]:
        """Return the id of the thing that each step of the chain is of. One with a link is of its target; an end without a successor is of the thing that
        ended, which may be further along than the subject."""
        ends = _ends(self)
        found = []
        for step in self.chain:
            of = self.subject.id if step.link is None else step.link.target
            if step.node is None:
                of = next((id for id, standing in ends if standing == step.how), of)
                ends = [end for end in ends if end[0] != of]
            found.append(of)
        return tuple(found)

    def __str__(self) -> str:
        return _supersession_text(self)


class LinkSupersession(Value):
    """What became of a link at the coordinate: each step by which it was `unlinked` (by `unlink` or another verb), `revised` (said again with other
    attributes, as `link` of the step has them) or `ended`, in the order they were recorded; and whether it holds.
    """

    link: Link
    holds: bool
    chain: tuple[Step, ...]

    @property
    def subject(self) -> NoReturn:
        """It is no node or event. Raises NotFoundError."""
        _refuse_link(self.link)

    def __str__(self) -> str:
        if not self.chain:
            return _link_text(self.link, self.holds)
        parts = [" ".join(clauses(step)) for step in self.chain]
        tail = "It holds." if self.holds else "It does not hold."
        return f"{self.link.id} ({self.link}) was {'; then '.join(parts)}. {tail}"


class Chain(Shown):
    """What was reached from a root, nearest first, and the links walked. `truncated`: the depth cut something off."""

    root: Node | Event
    nodes: tuple[Node | Event, ...]
    links: tuple[Link, ...]
    truncated: bool


class JoinCandidate(Value):
    """Two nodes that may be one thing, and why it seems so. Only somebody who knows joins them: `call` does, or states that they are two."""

    node: Node
    into: Node
    why: str

    @property
    def call(self) -> str:
        """Return the call that joins them, and the one that states that they are two things."""
        one, other = self.node.id, self.into.id
        return f"join({one!r}, into={other!r}, reason=…), or if they are two: link({one!r}, 'contrasts_with', {other!r}, reason=…)"

    def __str__(self) -> str:
        return f"{_name(self.node)} may be {_name(self.into)} ({self.why})"


class Contradiction(Value):
    """Two things that cannot both be right, or seem so. Reported, never resolved by the store.

    `link` records it. A candidate has none, but says what both speak of (`about`: `slot deploy_day`, `port of api`, `topic auth`), and by the
    way the part of their words that both share (`overlap`). `decision` is the id that was kept, or `both`.
    """

    link: Link | None
    source: Node | Event
    target: Node | Event
    settled: bool
    about: str | None = None
    overlap: float | None = None
    decision: str | None = None

    @property
    def call(self) -> str:
        """Return the call that settles it."""
        one, other = self.source.id, self.target.id
        return f"resolve({one!r}, {other!r}, keep={one!r} or {other!r} or 'both', reason=…)"


class EarlierStatement(Value):
    """A statement that stands where the new one, `of`, was written, and that says the same or seems to state another value for the same subject.

    `about` names what both speak of, `values` are the two values as written, that of the new statement first. `unsure`: the rules found it in the words
    alone. `calls` are the calls that decide: they replace, correct or keep both.
    """

    of: str
    id: str
    kind: str
    statement: str
    who: str | None
    recorded_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    about: str | None = None
    values: tuple[str, str] | None = None
    unsure: bool = True
    calls: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f" by {self.who}" if self.who else ""
        return f"{self.id}: {line(self.statement)} (recorded {when(self.recorded_at)}{by})"


class WriteWarnings(Value):
    """What stands and repeats (`similar`) or may contradict (`maybe_contrary`) a statement that was written. The statement is kept in any case."""

    id: str
    similar: tuple[EarlierStatement, ...] = ()
    maybe_contrary: tuple[EarlierStatement, ...] = ()

    def __str__(self) -> str:
        return "\n".join(warned_lines(self.similar, self.maybe_contrary))


class WarnedNode(Node):
    """A node as written with `warn=True`, and what it repeats or may contradict."""

    similar: tuple[EarlierStatement, ...] = ()
    maybe_contrary: tuple[EarlierStatement, ...] = ()


class Counterfact(Value):
    """What would be believed if some operations had never been recorded: how many were omitted, which could not be done without them, and the difference
    from what is believed to that. `by_effects`: whether some were done again by their effects alone, as release 0.1 recorded them."""

    at: Coordinate
    omitted: int
    by_effects: bool
    left_out: tuple[LeftOutOperation, ...]
    difference: ViewDiff

    def __str__(self) -> str:
        lines = [
            f"{self.omitted} operations omitted, {len(self.left_out)} that need them left out",
            str(self.difference),
        ]
        lines += [f"left out: {each.verb} {each.subject}: {each.reason}" for each in self.left_out]
        if self.by_effects:
            lines.append("some operations are of release 0.1, and were done again by their effects")
        return "\n".join(lines)


class BranchInfo(Value):
    """A branch: what it began with (what the trunk, or the branch `parent`, knew at `forked_at`), when it was made, and what was done with it since.

    `transactions` are its own, `last_tx` is that of the last; `merged_at` is when it was merged last, `pulled_at` when it took over last what the
    trunk had.
    """

    name: str
    forked_at: datetime
    made_at: datetime
    transactions: int
    last_tx: datetime | None
    merged_at: datetime | None
    parent: str | None = None
    pulled_at: datetime | None = None


class MergeConflict(Value):
    """Different changes of the trunk and a branch over one period, since they had the same; or a change that cannot coexist with what the
    trunk has (`other`: the thing or link it collides with).

    `id` names the thing, link or kind. `base`, `ours` and `theirs` are the common base, the trunk's and the branch's state; None: nothing, or
    no more; `..._standing`: how it stands where that side took it back. `into` is the line that takes over: of a `pull` the branch, and then `ours` is its state.
    `choices`: the allowed decisions.
    """

    id: str
    what: Literal["node", "link", "event", "identity", "slot", "cycle", "kind", "trust"]
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    base: Node | Event | Link | None = None
    ours: Node | Event | Link | None = None
    theirs: Node | Event | Link | None = None
    ours_standing: str | None = None
    theirs_standing: str | None = None
    other: str | None = None
    choices: tuple[Literal["trunk", "branch"], ...] = ("trunk", "branch")
    decision: Literal["trunk", "branch"] | None = None
    into: Literal["trunk", "branch"] = "trunk"

    def __str__(self) -> str:
        since = "" if self.valid_from is None else f" from {when(self.valid_from)}"
        until = "" if self.valid_to is None else f" to {when(self.valid_to)}"
        change = {
            "slot": f"would hold the slot that {self.other} holds on the {self.into}",
            "cycle": f"would close a cycle with {self.other} of the {self.into}",
            "identity": f"is something else on the {self.into}",
            "kind": f"is defined otherwise on the {self.into}",
        }.get(self.what)
        if change is None:
            sides = (self.base, self.ours, self.theirs)
            was, ours, theirs = map(_short, sides)
            if ours == theirs:  # truncated they look the same
                was, ours, theirs = map(_in_full, sides)
            ours = ours if self.ours_standing is None else f"that it is {self.ours_standing}"
            theirs = theirs if self.theirs_standing is None else f"that it is {self.theirs_standing}"
            on_trunk, on_branch = (ours, theirs) if self.into == "trunk" else (theirs, ours)
            change = f"was {was}; the trunk says {on_trunk}, the branch {on_branch}"
        decided = "" if self.decision is None else f" Decided: the {self.decision}'s."
        return f"{self.what} {self.id}{since}{until} {change}.{decided}"


Decide = Mapping[str, str] | Callable[[MergeConflict], str | None] | str | None
"""What decides the conflicts of a merge: decisions by id, a function, one decision for all, or nothing."""


class Merge(Value):
    """The result of merging a branch. Not `merged`: there are conflicts to decide first, and nothing was written.

    `added`, `changed` and `ended` are the ids of things, `links` those of links made, changed or taken back, all on the trunk. `left_out`: links of
    the branch that were not made, since what they name was kept out. `branch`, `imported` and `forgotten_there` are of `merge_store`: the branch on which the other
    store is here, how many of its transactions came now, and what it has forgotten since and this store still has.
    """

    merged: bool
    conflicts: tuple[MergeConflict, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    tx: datetime | None = None
    branch: str | None = None
    imported: int = 0
    forgotten_there: tuple[str, ...] = ()

    def __str__(self) -> str:
        came = (
            "" if self.branch is None else f"branch {self.branch}: {self.imported:,} transactions imported. "
        )
        if not self.merged:
            lines = "\n".join(f"  {conflict}" for conflict in self.conflicts)
            return f"{came}not merged: {len(self.conflicts)} to decide.\n{lines}"
        counts = {name: len(getattr(self, name)) for name in ("added", "changed", "ended", "links")}
        forgotten = (
            f" Forgotten there, and still here: {', '.join(self.forgotten_there)}."
            if self.forgotten_there
            else ""
        )
        return (
            f"{came}merged: "
            + ", ".join(f"{count} {name}" for name, count in counts.items())
            + f".{forgotten}"
        )


class Change(Value):
    """One operation of one transaction, in the order it was done. `branch` is the one it was recorded on, None for the trunk."""

    tx: datetime
    verb: str
    subject: str
    author: str | None
    reason: str | None
    branch: str | None = None


class Reading(Value):
    """One answer that contained a thing: who received it, when it was answered, its coordinate, and the call or tool."""

    id: str
    agent: str
    at: datetime
    valid: datetime
    tx: datetime
    call: str

    def __str__(self) -> str:
        return f"{self.agent} received {self.id!r} at {when(self.at)} from {self.call}"


class Problem(Value):
    """One thing `verify` found: where, and what."""

    file: str
    line: int | None
    message: str


class Verification(Value):
    """What `verify` found. `ok` is true when nothing is wrong."""

    ok: bool
    problems: tuple[Problem, ...]
    transactions: int = 0
    checked: tuple[str, ...] = ()


def words(thing: Node | Event | Version) -> str:
    """Return a thing as text: its text or description, else its content."""
    if isinstance(thing, Event):
        return thing.description
    return described(thing.content, thing.text)


def warned_lines(
    similar: Sequence[EarlierStatement], maybe_contrary: Sequence[EarlierStatement]
) -> list[str]:
    """Return the warnings about a write in words: a line for each earlier statement, and one for each call that decides."""
    found = []
    for begins, earlier in (("already recorded", similar), ("seems to contradict", maybe_contrary)):
        for each in earlier:
            unsure = ", unsure" if each.unsure else ""
            found.append(f"{begins}{unsure}: {each}")
            found += [f"  {call}" for call in each.calls]
    return found


def manner(step: Step) -> str:
    """Return how a step was made, or will be."""
    return f"planned: {step.how}" if step.planned else step.how


def clauses(step: Step, *, named: bool = False) -> list[str]:
    """Return a step of a supersession in words, up to three parts: what took the place, since when and by whom, and why. `named`: with the text of what did."""
    what = manner(step)
    if step.how == "revised" and isinstance(step.node, Node):
        what += f" as {step.node.ref}"
    elif step.node is not None:
        into = "into" if step.how == "joined" else "by"
        what += f" {into} {_name(step.node) if named else step.node.id}"
    from_when = "from" if step.planned else "since"
    since = "" if step.since is None else f"{from_when} {when(step.since)} "
    if step.node is not None and step.link is not None and step.link.valid_to is not None:
        since += f"until {when(step.link.valid_to)} "
    who = f" by {step.who}" if step.who else ""
    why = [f"because: {step.why}"] if step.why else []
    return [what, f"{since}recorded {when(step.recorded_at)}{who}", *why]


def _name(thing: Node | Event) -> str:
    text = given_text(thing.content, thing.text) if isinstance(thing, Node) else thing.description
    return f"{thing.id} ({text})" if text else thing.id


def _is(thing: Node | Event) -> str:
    return thing.standing if thing.standing == "stands" else f"is {in_words(thing.standing)}"


def _period(link: Link) -> str:
    return during(link.valid_from, link.valid_to)


def _link_text(link: Link, holds: bool) -> str:
    return f"{link.id} ({link}) {'holds' if holds else 'does not hold'}."


def _refuse_link(link: Link) -> NoReturn:
    raise NotFoundError(
        f"no node or event {link.id!r}: it is a link, {link.source!r} {link.kind} {link.target!r}. Ask for one of its ends, or for the link by "
        "history, versions, inspect or what_superseded."
    )


_SHORT = 120  # columns of one side of a conflict


def _short(thing: Node | Event | Link | None) -> str:
    if thing is None:
        return "nothing"
    if isinstance(thing, Node):
        return line(words(thing), _SHORT)
    return thing.description if isinstance(thing, Event) else str(thing)


def _in_full(thing: Node | Event | Link | None) -> str:
    if not isinstance(thing, Node):
        return _short(thing)
    more = {
        "text": given_text(thing.content, thing.text),
        "tags": list(thing.tags),
        "trigger": thing.trigger,
        "source": thing.source,
    }
    return repr({"content": thing.content} | {name: value for name, value in more.items() if value})


def _supersession_text(found: Supersession) -> str:
    subject = _name(found.subject)
    if not found.chain and found.standing == "superseded":
        held = found.subject
        for thing in found.current:
            if (
                isinstance(held, Node) and isinstance(thing, Node) and thing.id == held.id
            ):  # another version holds
                since = during(held.valid_from, held.valid_to)
                return f"{subject} held {since} as {held.ref}. Standing now: {_name(thing)} as {thing.ref}."
        return f"{subject} is superseded by {OUTSIDE}."
    if not found.chain:
        return f"{subject} {_is(found.subject)}; nothing superseded it."
    parts = [
        _step_text(step, of, found.subject.id) for step, of in zip(found.chain, found.of_steps, strict=True)
    ]
    was = [part for part, step in zip(parts, found.chain, strict=True) if not step.planned]
    will_be = [part for part, step in zip(parts, found.chain, strict=True) if step.planned]
    now = ", ".join(_name(thing) for thing in found.current)
    tail = f"Standing now: {now}" if now else "Nothing stands in its place"
    if was:
        return f"{subject} was {'; then '.join(was)}. {'; '.join([tail, *will_be])}."
    is_replaced = found.standing == "superseded"
    state = "was replaced before it began" if is_replaced else _is(found.subject)
    return f"{subject} {'; '.join([state, *will_be])}."


def _step_text(step: Step, of: str, subject: str) -> str:
    """One step within the sentence about a thing."""
    what, *more = clauses(step, named=True)
    if not step.planned:
        text = " ".join([what, *more])
        return f"{of} was {text}" if step.node is None and of != subject else text
    if of != subject:
        what = what.replace("planned: ", f"planned: {of} ", 1)
    who = f" by {step.who}" if step.who else ""
    why = [f"because: {step.why}"] if step.why else []
    return ", ".join([f"{what} from {when(step.since)}", f"recorded {when(step.recorded_at)}{who}", *why])


def _ends(found: Supersession) -> list[tuple[str, Standing]]:
    """Return the things of a succession that nothing holds the place of by a link without end, and how they stand, in the order they were reached."""
    reached = {found.subject.id: found.standing}
    for step in found.chain:
        if step.node is not None and step.link is not None:
            reached.setdefault(step.node.id, step.node.standing)
    replaced = {
        step.link.target
        for step in found.chain
        if step.link and step.link.valid_to is None and not step.planned
    }
    return [(id, standing) for id, standing in reached.items() if id not in replaced]


class ForgetGroup(Value):
    """Things of one sort that forgetting a person erases, or leaves, and why. `ids` has all of them; `examples` shows at most five."""

    what: str
    why: str
    ids: tuple[str, ...]
    examples: tuple[str, ...]

    @property
    def count(self) -> int:
        """Return the number of things."""
        return len(self.ids)

    def __str__(self) -> str:
        more = self.count - len(self.examples)
        lines = [*self.examples, *([f"and {more:,} more"] if more else [])]
        return "\n".join([f"{self.what}, {self.count:,}: {self.why}", *(f"  {each}" for each in lines)])


class Forgetting(Value):
    """What forgetting a person erases (`erases`) and what stays of them and why (`stays`), or, once `applied` at `tx`, what it erased and what stays.

    `names` are the names that were looked for. `plan` is a digest of what is to be erased: `forget` with it erases exactly that. `is_changed`: the
    plan given was another one, so nothing was erased.
    """

    names: tuple[str, ...]
    erases: tuple[ForgetGroup, ...]
    stays: tuple[ForgetGroup, ...]
    plan: str
    applied: bool = False
    is_changed: bool = False
    tx: datetime | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all that is erased."""
        return tuple(id for group in self.erases for id in group.ids)

    def __str__(self) -> str:
        first = f"looked for {', '.join(self.names)}."
        changed = "the store has changed since that plan: nothing was erased. " if self.is_changed else ""
        done = "erased" if self.applied else "would erase"
        erased = (
            [f"{done} {len(self.ids):,}:", *map(str, self.erases)] if self.erases else [f"{done} nothing."]
        )
        stays = ["stays:", *map(str, self.stays)] if self.stays else ["nothing stays that names them."]
        after = [] if self.applied or not self.erases else [f"plan {self.plan}"]
        return "\n".join([changed + first, *erased, *stays, *after])
