"""An open transaction: changes of periods in its working set, and the line of the chain that records them.

Each change is applied to the working set at once, at the transaction's instant. Only the transaction's own reads see it. A failed verb or block is rolled back to a mark.
At the end the remaining changes become the line. A row opened and closed inside is never written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from weakref import ref

from orjson import loads

from graphstore.errors import ConflictError
from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.chain import COVERS, DESCRIBING, HISTORY, JOINING, OWN, RECORDED, REQUIRES, dumps
from graphstore.read.believed_rows import BelievedRows
from graphstore.read.columns import ENDED, Mark, Taken
from graphstore.read.happened import FIRST
from graphstore.read.working_set import WorkingSet
from graphstore.values.inputs import text_of
from graphstore.values.models import Json, Value
from graphstore.values.period import (
    OPEN,
    Instant,
    Period,
    coalesce,
    end_moment,
    moment,
    overlap,
    without,
    without_all,
)
from graphstore.values.random_bits import random_64
from graphstore.values.vocabulary import JOINED

V = TypeVar("V", bound=Value)
C = TypeVar("C")
_DESCRIBES = frozenset({"add_node", "revise"})
_LINKS = frozenset({"link", "supersede"})
AT_ONCE = 1000  # operations, rows or links in one line of a large transaction
Numbers = Sequence[int]


@dataclass(slots=True)
class HeadAndBodies:
    """Holds a line to be written: its head and its bodies."""

    head: dict[str, Any]
    first_op: int = 0
    bodies: list[bytes] = field(default_factory=list)
    order: dict[int, int] = field(default_factory=dict)  # pending place -> body number


class Born(NamedTuple):
    """Names a thing or link that a transaction added: its id, whether it is a link, and its scope. An event has the scope of its metadata."""

    id: str
    is_link: bool
    scope: str | None


@dataclass(slots=True)
class VerbCall:
    """Holds a call of a verb. `entry`: returns what the first operation, of the verb given to it, records of the arguments."""

    entry: Callable[[str], Json]
    first: int = -1  # the number of the first operation; -1 before it is opened
    times: dict[str, Instant] = field(default_factory=dict)  # the instants given, by argument, as read


class Progress(NamedTuple):
    """Records how much a transaction has done. A failed verb is rolled back to the progress at its start."""

    mark: Mark
    steps: int
    bodies: int
    rekept: int
    kinds: int
    promoted: int
    settings: int
    removals: int
    aliases: int


class Transaction:
    """Holds the changes of one transaction. All share one instant `tx`, one author, one reason."""

    def __init__(
        self, index: WorkingSet, pending: list[bytes], tx: Instant, author: str | None, reason: str | None
    ) -> None:
        self.index = index
        self.tx = tx
        self.branches: list[list[Any]] = []  # operations on branches: verb, name, start of a new branch
        # versions merged from a branch: the number there, and the version here
        self.aliases: list[tuple[int, int]] = []
        self.author = author
        self.spoiled = False  # a verb was interrupted between two steps
        # returns a context in which a block reads from `index`
        self.on_working_set: Callable[[], AbstractContextManager[None]] = nullcontext
        self.is_deciding = False  # True while a verb runs that changes more than the verbs it calls
        self._answers: list[ref[Value]] = []
        self.bodies = pending
        self.bodies.clear()
        self.mark = index.lengths()
        self.covers: dict[
            int, list[Period]
        ] = {}  # coverage of rechecks that a merge carried over: ranges of operations, (after, up to]
        self.recorded: dict[int, Instant] = {}  # operation -> when another store recorded it first
        self.carried = False  # operations of a branch were carried over, and rows do not show all of them
        # links of these operations that no row shows: link, period, operation
        self.link_ghosts: list[tuple[int, Period, int]] = []
        # things whose kept statements were set, in order, each with what was kept before
        self._rekept: list[tuple[int, Sequence[Taken]]] = []
        # the periods actually removed: entity, period, operation
        self.removals: list[tuple[int, Period, int]] = []
        self.call: VerbCall | None = None  # the verb call that opens operations now
        # operation -> the arguments that its effects do not show, see `given_arguments`; in the order of operations
        self.args: dict[int, Json] = {}
        # of a bulk load: operation -> start of what it describes
        self.starts: dict[int, Instant] | None = None
        self._reason: Json = {} if reason is None else {"reason": reason}
        self.why = self.body(dict(self._reason)) if self._reason else (0, 0)
        self.begun = self.point(self.mark)

    # ------------------------------------------------------------------ bodies and operations

    def body(self, body: Json) -> tuple[int, int]:
        """Add a salt to a body and keep it for the line. Returns its place (negative: only this transaction can read it) and its length."""
        body["salt"] = random_64()
        raw = dumps(body)
        self.bodies.append(raw)
        return -len(self.bodies), len(raw)

    def op(self, verb: str, subject: str, reason: str | None = None) -> int:
        """Record one operation, with the arguments of the running verb. Returns its number, which the rows it opens and closes carry."""
        pos, length = self.why if reason is None else self.reason(reason)
        op = self.index.add_op(self.tx, verb, subject, self.author, pos, length)
        if self.call is not None and self.call.first < 0:
            self.call.first = op
            self.record(op, self.call.entry(verb))
        return op

    def op_of(self, verb: str, subject: str, author: str | None, body: Json) -> int:
        """Record an operation that another author did elsewhere. Its reason defaults to that of the transaction."""
        place = self.body({**self._reason, **body}) if body else self.why
        return self.index.add_op(self.tx, verb, subject, author, *place)

    def reason(self, reason: str | None) -> tuple[int, int]:
        """Return the place of an operation's reason, which defaults to that of the transaction."""
        return self.why if reason is None else self.body({"reason": text_of("reason", reason, empty=True)})

    def record(self, op: int, entry: Json) -> None:
        """Record with an operation the arguments that its effects do not show."""
        if entry:
            self.args[op] = entry

    def record_call(self, first: int) -> None:
        """Record that one call opened all operations from number `first` on, if there are several."""
        count = len(self.index.o_tx) - first
        if count > 1:
            self.args.setdefault(first, {})["ops"] = count

    def leave(self, op: int, said: Json) -> None:
        """Add fields to the body of an operation of this transaction, next to its reason, such as the place of an evicted event in its trace."""
        index = self.index
        why = loads(self.bodies[-index.o_pos[op] - 1]) if index.o_len[op] else {}
        index.o_pos[op], index.o_len[op] = self.body({**why, **said})

    def hold(self, op: int, said: Json) -> None:
        """Keep with an operation the texts and contents given by the caller that no other body contains."""
        if said:
            self.leave(op, {"args": said})

    def answer(self, kind: type[V], make: Callable[[], V], **known: Any) -> V:
        """Return the answer of a verb. It is completed when a caller reads more than its `known` fields, or when the rows are written."""
        answer = kind.later(self._reading(make), **known)
        self._answers.append(ref(answer))
        return answer

    def _reading(self, make: Callable[[], V]) -> Callable[[], V]:
        """Return a function that makes an answer from what the transaction has read, at any later time."""

        def make_answer() -> V:
            with self.on_working_set():
                return make()

        return make_answer

    def complete(self) -> None:
        """Complete the answers that callers still hold. Call this before anything changes."""
        for held in self._answers:
            answer = held()
            if answer is not None:
                answer.__class__  # noqa: B018
        self._answers.clear()

    def point(self, mark: Mark | None = None) -> Progress:
        """Return how much the transaction has done. `mark`: the lengths of the columns, if the caller has them."""
        index = self.index
        return Progress(
            mark or index.lengths(),
            index.steps(),
            len(self.bodies),
            len(self._rekept),
            len(index.kinds),
            len(index.promoted),
            len(index.settings),
            len(self.removals),
            len(self.aliases),
        )

    def back(self, point: Progress) -> None:
        """Roll back to `point`. The transaction continues."""
        del self._rekept[point.rekept :]
        del self.bodies[point.bodies :]
        del self.removals[point.removals :]
        del self.aliases[point.aliases :]
        while self.args and next(reversed(self.args)) >= point.mark.ops:
            self.args.popitem()
        del self.index.kinds[point.kinds :]
        del self.index.promoted[point.promoted :]
        self.index.undo(point.mark, point.steps)

    def kept_before(self, point: Progress) -> dict[int, Sequence[Taken]]:
        """Return what was kept at a `point` of each thing whose kept statements were set since."""
        return dict(reversed(self._rekept[point.rekept :]))

    def born(self, raw: Callable[[int, int], bytes]) -> list[Born]:
        """Return the things and links added so far. `raw` reads a body, given its place and length."""
        index = self.index
        found = []
        for ent in range(self.mark.entities, len(index.names)):
            scope: Any = index.scope[ent]
            if index.is_event[ent]:
                ver = index.versions_of[ent][0]
                metadata = loads(raw(index.v_pos[ver], index.v_len[ver])).get("metadata")
                scope = metadata.get("scope") if isinstance(metadata, dict) else None
            found.append(Born(index.names[ent], False, scope if isinstance(scope, str) else None))
        links = range(self.mark.links, len(index.l_name))
        return found + [Born(index.l_name[link], True, None) for link in links]

    @property
    def empty(self) -> bool:
        """Return True if the transaction has no operation."""
        return len(self.index.o_tx) == self.mark.ops

    # ------------------------------------------------------------------ periods of versions

    def stop_believing(self, ent: int, period: Period, op: int) -> list[Taken]:
        """Stop believing an entity over a period and keep the rest of its rows. Returns the versions and periods removed."""
        index = self.index
        gone: list[Taken] = []
        now = index.now_of[ent]
        start, stop = period
        for row in index.over(now, period) if now else ():
            first, last, ver = index.r_from[row], index.r_to[row], index.r_ver[row]
            index.close_row(row, self.tx, op)
            part = (max(first, start), min(last, stop))
            gone.append((ver, *part))
            self.removals.append((ent, part, op))
            if first < start:
                index.open_row(ver, (first, start), self.tx, op)
            if stop < last:
                index.open_row(ver, (stop, last), self.tx, op)
        return gone

    def describe(self, ent: int, periods: Iterable[Period], body: Json, op: int, number: int = 0) -> int:
        """Write a new version of an entity over periods, which its earlier versions lose. Returns the last row written.

        `number`: the least version number to use. Raises ConflictError for an evicted or erased entity.
        """
        index = self.index
        if ent in index.gone:
            refuse_forgotten(index, ent)
        wanted, now = list(periods), index.now_of[ent]
        for period in wanted:
            if now and index.r_to[now[-1]] > period[0]:
                self.stop_believing(ent, period, op)
        pos, length = self.body(body)
        ver = index.add_version(ent, max(number, self.next_number(ent)), pos, length, op)
        row = -1
        for period in wanted:
            row = index.open_row(ver, period, self.tx, op)
            index.say(ent, ver, period)
        return row

    def happen_again(self, ent: int, at: Instant, op: int, own: Json) -> None:
        """Record an occurrence of a believed event. If it is the earliest, the event is valid from then on. `own`: the fields that differ from the first report."""
        index = self.index
        row = index.now_of[ent][0]
        start = index.r_from[row]
        said: Json = {OWN: own} if own else {}
        if at < start:
            index.close_row(row, self.tx, op)
            index.open_row(index.r_ver[row], (at, OPEN), self.tx, op)
            if index.r_end[row] == index.r_tx[row] and index.first_reported(ent) == at:
                # the first row is never stored: the new one records the earlier instant
                at = start
                said[FIRST] = True
        if said:
            self.leave(op, said)
        index.add_seen(ent, at, self.tx, op)

    def validity(self, ent: int) -> list[Period]:
        """Return the valid time of an entity now, in as few periods as possible."""
        index = self.index
        return coalesce((index.r_from[row], index.r_to[row]) for row in index.now_of[ent])

    def last_version(self, ent: int) -> int:
        """Return the version with the highest number that would be stored if the transaction ended here; -1 if there is none."""
        index = self.index
        newest = index.fresh_version(ent)
        if newest >= 0:
            for row in index.fresh_rows(ent):
                if index.r_op[row] < index.v_op[newest]:
                    break  # rows of earlier versions follow
                if index.r_close[row] < 0 and index.r_ver[row] == newest:
                    return newest
            alive = max((ver for ver in self._alive(ent) if index.v_num[ver]), default=-1)
            if alive >= self.mark.versions:
                return alive
        return index.newest_version(ent)

    def next_number(self, ent: int) -> int:
        """Return the next free version number."""
        last = self.last_version(ent)
        return 1 if last < 0 else self.index.v_num[last] + 1

    def _alive(self, ent: int) -> Iterator[int]:
        """Yield the versions that are believed now, and those that only a bound prevents, which may be believed again."""
        index = self.index
        yield from (index.r_ver[row] for row in index.now_of[ent])
        yield from (ver for ver, _, _ in index.taken.get(ent, ()) if ver != ENDED)

    def ghost(self, ent: int, period: Period, ver: int) -> None:
        """Record that a version was stated over a period where no row of it is believed."""
        self.index.push(self.index.ghosts, ent, (self.tx, *period, ver))

    def link_ghost(self, link: int, period: Period, op: int) -> None:
        """Record that an operation stated a link over a period where no row of the link shows this."""
        self.link_ghosts.append((link, period, op))

    def turn(self, ent: int, period: Period, op: int) -> None:
        """Record that an operation changed the content of an entity over a period."""
        self.index.add_turn(ent, (self.tx, *period, op))

    # ------------------------------------------------------------------ periods of links

    def take_link(self, link: int, period: Period, op: int) -> list[Period]:
        """Stop believing a link over a period and keep the rest of its rows. Returns the periods removed."""
        index = self.index
        gone = []
        for row in index.believed_link(link, self.tx):
            whole = (index.k_from[row], index.k_to[row])
            part = overlap(whole, period)
            if part is None:
                continue
            index.close_link_row(row, self.tx, op)
            gone.append(part)
            for piece in without(whole, period):
                index.open_link_row(index.k_claim[row], piece, self.tx, op)
        return gone

    # ------------------------------------------------------------------ kept statements

    def set_taken(self, ent: int, pieces: list[Taken]) -> None:
        """Set what is stated of a thing but does not hold."""
        self._rekept.append((ent, self.index.taken.get(ent, ())))
        self.index.set_taken(ent, list(dict.fromkeys(pieces)))

    def keep(self, ent: int, pieces: Iterable[Taken]) -> None:
        """Keep what a bound took of a thing, to restore it when the bound is withdrawn."""
        if fresh := list(pieces):
            self.set_taken(ent, [*self.index.taken.get(ent, ()), *fresh])

    def drop_kept(self, ent: int, period: Period) -> list[Period]:
        """Drop what is kept of a thing over a period. Returns the periods dropped."""
        pieces = self.index.taken.get(ent, ())
        found = [part for _, start, stop in pieces if (part := overlap((start, stop), period))]
        if found:
            left = [(ver, *part) for ver, *piece in pieces for part in without((piece[0], piece[1]), period)]
            self.set_taken(ent, left)
        return found

    def restore(self, ent: int, ver: int, wanted: Period, op: int) -> None:
        """Believe a version again over a period where nothing else is believed. Adjacent rows of the version become one."""
        index = self.index
        if ent in index.gone:
            return
        now = index.now_of[ent]
        believed = [(index.r_from[row], index.r_to[row]) for row in index.over(now, wanted)]
        for start, stop in without_all(wanted, believed):
            row = now.last_before(start)
            if row >= 0 and index.r_ver[row] == ver and index.r_to[row] == start:
                start = index.r_from[row]
                index.close_row(row, self.tx, op)
            while (row := now.first_since(stop)) >= 0:
                if index.r_ver[row] != ver or index.r_from[row] != stop:
                    break
                stop = index.r_to[row]
                index.close_row(row, self.tx, op)
            index.open_row(ver, (start, stop), self.tx, op)

    # ------------------------------------------------------------------ the line

    def lines(self) -> list[HeadAndBodies]:
        """Return the transaction's lines."""
        return Composer(self, self.begun).compose()


def refuse_forgotten(index: WorkingSet, ent: int) -> None:
    """Raise ConflictError for an evicted or erased entity."""
    if ent in index.gone:
        raise ConflictError(
            f"{index.names[ent]!r} is {index.word(ent)}: nothing new can be recorded of it. Use another id."
        )


def refuse_taken_slot(index: WorkingSet, ent: int, op: int) -> None:
    """Raise ConflictError if another node holds the slot of an entity during a period that operations from number `op` on describe."""
    key = index.key[ent]
    if key is None:
        return
    held = index.held((key, index.scope[ent]))
    for row in index.fresh_rows(ent):
        if index.r_op[row] < op:
            break
        other = _other_at(index, held, row) if index.r_close[row] < 0 else ent
        if other != ent:
            raise ConflictError(
                f"the slot {key!r} is held by {index.names[other]!r} over part of that time. "
                f"Supersede it (supersedes=[{index.names[other]!r}]), revise it, or choose another key or scope."
            )


def _other_at(index: WorkingSet, held: BelievedRows, mine: int) -> int:
    """Return the thing that holds a slot during a part of the row `mine`, which is among `held`; the row's own thing if no other does."""
    start = index.r_from[mine]
    for row in reversed(held.between(start, index.r_to[mine])):
        if index.r_ent[row] != index.r_ent[mine]:
            return index.r_ent[row]
    row = held.last_before(start)  # the others do not overlap: an earlier one ends before this one begins
    return index.r_ent[row if row >= 0 and index.r_to[row] > start else mine]


# ---------------------------------------------------------------- the lines of the journal


class Composer:
    """Turns the changes of a transaction in its working set into the heads and bodies of its lines.

    A large transaction is split into lines of `AT_ONCE` things; a reader applies them together, at the last line. An operation is referred to by its offset from the first
    operation of the line, so it may be in another line.
    """

    def __init__(self, work: Transaction, since: Progress) -> None:
        """Start at `since`: everything done before it is left out."""
        self.work, self.since = work, since
        self.index, self.mark = work.index, since.mark
        self.line, self.first_op = HeadAndBodies({}), self.mark.ops

    def compose(self) -> list[HeadAndBodies]:
        """Return the lines. They omit rows that were opened and closed in this transaction."""
        mark = self.mark
        lists = self._born()
        died = self.work.carried
        for name, first in (("closed", mark.rows), ("link_closed", mark.link_rows)):
            if rows := lists.get(name):
                lists[name] = [row for row in rows if row < first]
                died = died or len(lists[name]) < len(rows)
        if died:
            left = self._left()
            self._hold_unstored(lists, left)
            lists.update(left)
            self._record_starts(left["rows"])
        wanted = [(name, lists[name]) for name in _LISTS if lists.get(name)]
        if len(lists.get("ops", ())) + len(lists.get("rows", ())) + len(lists.get("links", ())) <= AT_ONCE:
            lines = [self._fill(wanted)]
        else:
            lines = [
                self._fill([(name, numbers[start : start + AT_ONCE])])
                for name, numbers in wanted
                for start in range(0, len(numbers), AT_ONCE)
            ]
        self.line, self.first_op = lines[-1], lines[-1].first_op
        last = self.line.head
        if died:
            self._write_gaps(last, set(lists["entities"]))
            self._write_unstored(last, lists)
        self._write_turns(last, lists, died)
        self._write_kept(last, lists)
        lines[0].head.update(self._of_the_store())
        if self.work.branches or self.work.aliases:
            self._branches(last, set(lists.get("versions", ())))
        return lines

    def lines_to_show(self) -> list[HeadAndBodies]:
        """Return lines with everything done, including rows that were opened and closed again. The last line closes those."""
        lists = self._born()
        closed = [(name, lists.pop(name)) for name in ("closed", "link_closed") if name in lists]
        lines = [self._fill([(name, lists[name]) for name in _LISTS if name in lists]), self._fill(closed)]
        for line in lines:
            line.head["more"] = True
        last = lines[-1].head
        self._write_turns(last, lists, died=False)
        self._write_kept(last, lists)
        last.update(self._of_the_store())
        return lines

    # ------------------------------------------------------------------ contents of the lines

    def _born(self) -> dict[str, Numbers]:
        """Return what the transaction added to each group of columns, and the rows that it closed. Empty groups are absent."""
        index = self.index
        ends = zip(Mark._fields, self.mark, index.lengths(), strict=True)
        born: dict[str, Numbers] = {name: range(start, stop) for name, start, stop in ends if start < stop}
        for name, column, kept in (
            ("closings", index.closings, "closed"),
            ("link_closings", index.link_closings, "link_closed"),
        ):
            if name in born:
                born[kept] = [column[at] for at in born.pop(name)]
        return born

    def _of_the_store(self) -> dict[str, Any]:
        """Return the changes of the store itself: kinds of link, settings."""
        index, since = self.index, self.since
        promoted = ({"promoted": name} for name in index.promoted[since.promoted :])
        changed = {
            "kinds": [*index.kinds[since.kinds :], *promoted],
            "settings": index.settings[since.settings :],
        }
        return {name: entries for name, entries in changed.items() if entries}

    def _left(self) -> dict[str, Numbers]:
        """Return what `_born` does without the rows closed in this transaction and what only they refer to."""
        index, mark, born = self.index, self.mark, self._born()
        rows = [row for row in born.get("rows", ()) if index.r_close[row] < 0]
        link_rows = [row for row in born.get("link_rows", ()) if index.k_close[row] < 0]
        claims = _among(born.get("claims", ()), {index.k_claim[row] for row in link_rows})
        links = _among(born.get("links", ()), {index.k_link[row] for row in link_rows})
        named = {end for link in links for end in (index.l_src[link], index.l_tgt[link])}
        taken = {
            (ent, ver)
            for ent in self.work.kept_before(self.since)
            for ver, _, _ in index.taken.get(ent, ())
            if ver >= mark.versions
        }
        stays = {index.r_ent[row] for row in rows} | named | {ent for ent, _ in taken}
        entities = _among(born.get("entities", ()), stays)
        # a thing that a link refers to keeps its last description, even without a row
        last = {index.versions_of[ent][-1] for ent in entities if not index.now_of[ent]}
        # what a bound took is kept too: it can be restored
        used = {index.r_ver[row] for row in rows} | last | {ver for _, ver in taken}
        versions = [ver for ver in born.get("versions", ()) if ver in used and index.v_num[ver]]
        kept = set(entities)
        seen = [
            row
            for row in born.get("seen", ())
            if index.s_ent[row] < mark.entities or index.s_ent[row] in kept
        ]
        return {
            "entities": entities,
            "versions": versions,
            "rows": rows,
            "seen": seen,
            "links": links,
            "claims": claims,
            "link_rows": link_rows,
        }

    def _fill(self, lists: Iterable[tuple[str, Numbers]]) -> HeadAndBodies:
        head: dict[str, Any] = {"requires": REQUIRES, "tx": moment(self.work.tx)}
        self.line = HeadAndBodies(head, self.first_op)
        if self.index.branch is not None:
            head["branch"] = self.index.branch
        if self.work.author is not None:
            head["author"] = self.work.author
        for name, numbers in lists:
            head[name] = _LISTS[name](self, numbers)
            if name == "ops":
                self._write_args(head, numbers)
                self._write_covers(head, numbers)
                self._write_recorded(head, numbers)
        self.first_op += len(head.get("ops", ()))
        return self.line

    def _write_args(self, head: dict[str, Any], ops: Numbers) -> None:
        """Write the arguments of operations that their effects do not show."""
        work, first = self.work, self.first_op
        args = {str(op - first): work.args[op] for op in ops if op in work.args} if work.args else {}
        if work.starts is not None:
            args["*"] = {"verb": "bulk_load"}
        if args:
            head["args"] = args

    def _write_covers(self, head: dict[str, Any], ops: Numbers) -> None:
        """Write which invalidations the rechecks carried over by a merge cover, if not all earlier ones."""
        covers = self.work.covers
        if found := [op for op in ops if op in covers] if covers else ():
            head["requires"] = (*head["requires"], COVERS)
            head["covers"] = {
                str(op - self.first_op): [
                    [-1 if after < 0 else after % SPAN, upto % SPAN] for after, upto in covers[op]
                ]
                for op in found
            }

    def _write_recorded(self, head: dict[str, Any], ops: Numbers) -> None:
        """Write when another store recorded operations first."""
        recorded = self.work.recorded
        if (
            found := {str(op - self.first_op): moment(recorded[op]) for op in ops if op in recorded}
            if recorded
            else {}
        ):
            head["requires"] = (*head["requires"], RECORDED)
            head["recorded"] = found

    def _record_starts(self, rows: Numbers) -> None:
        """Record the start of what an operation of a bulk load describes, unless its remaining rows begin there."""
        index, work = self.index, self.work
        shown: dict[int, Instant] = {}
        for row in rows:
            op, start = index.v_op[index.r_ver[row]], index.r_from[row]
            shown[op] = min(start, shown.get(op, start))
        for op, start in (work.starts or {}).items():
            if shown.get(op) != start:
                work.args.setdefault(op, {})["valid_from"] = moment(start)

    def _write_gaps(self, head: dict[str, Any], entities: set[int]) -> None:
        """Record which operation removed which period of a thing. The rows that show it are not written."""
        index, mark = self.index, self.mark
        gaps = [
            [index.names[ent], moment(start), end_moment(stop), op - self.first_op]
            for ent, (start, stop), op in self.work.removals
            if (ent < mark.entities or ent in entities) and index.o_verb[op] not in DESCRIBING
        ]
        if gaps:
            head["gaps"] = gaps

    def _hold_unstored(self, born: Mapping[str, Numbers], left: Mapping[str, Numbers]) -> None:
        """Keep with their operations the descriptions of things that no written version contains."""
        index, work, mark = self.index, self.work, self.mark
        if work.carried:
            return
        stored, entities = set(left["versions"]), set(left["entities"])
        for ver in born.get("versions", ()):
            ent, op = index.v_ent[ver], index.v_op[ver]
            is_kept = ent < mark.entities or ent in entities
            if ver not in stored and is_kept and op >= mark.ops and index.o_verb[op] in _DESCRIBES:
                body = loads(work.bodies[-index.v_pos[ver] - 1])
                del body["salt"]
                work.hold(op, {"described": body})
        self._record_links(born.get("link_rows", ()), left["link_rows"], entities)

    def _record_links(self, rows: Numbers, written: Numbers, entities: set[int]) -> None:
        """Record with their operations the links that no written row shows: the id, the sentence and the attributes without texts."""
        index, mark = self.index, self.mark
        shown = {(index.k_op[row], index.k_link[row]) for row in written}
        for row in rows:
            op, link, claim = index.k_op[row], index.k_link[row], index.k_claim[row]
            ends = index.l_src[link], index.l_tgt[link]
            is_said = op == index.c_op[claim] or index.o_verb[op] in _LINKS
            if op < mark.ops or not is_said or (op, link) in shown:
                continue
            if all(end < mark.entities or end in entities for end in ends):
                shown.add((op, link))
                self.work.args.setdefault(op, {}).setdefault("links", []).append(
                    [
                        index.l_name[link],
                        index.names[ends[0]],
                        index.l_kind[link],
                        index.names[ends[1]],
                        *self._claimed(claim),
                    ]
                )

    def _claimed(self, claim: int) -> tuple[int | None, int, str]:
        """Return the attributes of a claim without its texts: the strength, the flags (1 inferred, 2 history), the maker."""
        index = self.index
        how = index.c_inferred[claim] + 2 * index.c_history[claim]
        return index.c_strength[claim] or None, how, index.c_by[claim]

    def _write_unstored(self, head: dict[str, Any], lists: dict[str, Numbers]) -> None:
        """Record first statements by operations whose rows are not written, and last statements that no written version contains."""
        index, mark, first = self.index, self.mark, self.first_op
        versions = set(lists["versions"])
        told = {index.r_ver[row]: index.r_op[row] for row in reversed(lists["rows"])}
        link_told = {index.k_claim[row]: index.k_op[row] for row in reversed(lists["link_rows"])}
        entities, links = set(lists["entities"]), set(lists["links"])
        head["told"] = [
            [index.names[index.v_ent[ver]], index.v_num[ver], index.v_op[ver] - first]
            for ver in lists["versions"]
            if told.get(ver) != index.v_op[ver] >= 0
        ]
        head["link_told"] = [
            [index.l_name[index.c_link[claim]], index.c_num[claim], index.c_op[claim] - first]
            for claim in lists["claims"]
            if link_told.get(claim) != index.c_op[claim] >= 0
        ]
        fresh = range(mark.versions, len(index.v_ent))
        said_last = {
            ent: index.said_last(ent, mark)
            for ent in {index.v_ent[ver] for ver in fresh}
            if (ent < mark.entities or ent in entities) and not index.is_event[ent]
        }
        head["said"] = [
            [
                index.names[ent],
                index.v_num[ver] if ver in versions else 0,
                None if ver in versions else self._place(index.v_pos[ver]),
                moment(start),
                end_moment(stop),
                index.v_op[ver] - first,
            ]
            for ver in fresh
            if (ent := index.v_ent[ver]) in said_last and (said_last[ent] or ver not in versions)
            for start, stop in self._periods_said(ent, ver, versions, said_last[ent])
        ]
        head["linked"] = [
            [index.l_name[link], moment(start), end_moment(stop), op - first]
            for link, (start, stop), op in self.work.link_ghosts
            if link < mark.links or link in links
        ] + [
            [
                index.l_name[link],
                moment(index.k_from[row]),
                end_moment(index.k_to[row]),
                index.c_op[index.k_claim[row]] - first,
            ]
            for row in range(mark.link_rows, len(index.k_link))
            if index.k_close[row] >= 0
            and index.k_claim[row] >= mark.claims
            and ((link := index.k_link[row]) < mark.links or link in links)
        ]
        for name in ("told", "link_told", "said", "linked"):
            if not head[name]:
                del head[name]

    def _periods_said(
        self, ent: int, ver: int, versions: set[int], said_last: dict[int, list[Period]]
    ) -> list[Period]:
        """Return the periods to record of a version: those over which it is the last statement. Of a first version that is not written, return all its periods."""
        index = self.index
        if not index.v_num[ver]:
            return [(start, stop) for _, start, stop, of in index.ghosts.get(ent, ()) if of == ver]
        if ver in versions or ver != index.versions_of[ent][0]:
            return said_last.get(ver, [])
        return [
            (index.r_from[row], index.r_to[row])
            for row in index.rows_of[ent]
            if index.r_ver[row] == ver and index.r_op[row] == index.v_op[ver]
        ]

    def _place(self, pos: int) -> int:
        """Return the number of a body in the line. Adds the body to the line if it is new."""
        line = self.line
        number = line.order.get(pos)
        if number is None:
            number = line.order[pos] = len(line.bodies)
            line.bodies.append(self.work.bodies[-pos - 1])
        return number

    def _write_turns(self, head: dict[str, Any], lists: dict[str, Numbers], died: bool) -> None:
        index, mark = self.index, self.mark
        entities = set(lists.get("entities", ())) if died else None
        turns = [
            [index.names[ent], moment(start), end_moment(stop), op - self.first_op]
            for ent, (_, start, stop, op) in index.turns_since(mark.ops)
            if ent < mark.entities or entities is None or ent in entities
        ]
        if turns:
            head["turns"] = turns

    def _write_kept(self, head: dict[str, Any], lists: Mapping[str, Numbers]) -> None:
        """Record which statements of things are kept, and which are kept no longer."""
        index, mark = self.index, self.mark
        found: dict[str, dict[str, list[Any]]] = {"kept": {}, "not_kept": {}}
        entities, versions = {*lists.get("entities", ())}, {*lists.get("versions", ())}
        for ent, before in self.work.kept_before(self.since).items():
            if ent >= mark.entities and ent not in entities:
                continue
            after = index.taken.get(ent, ())
            fresh = {
                piece
                for piece in {*after}.difference(before)
                if piece[0] < mark.versions or piece[0] in versions
            }
            for name, pieces in (("kept", fresh), ("not_kept", {*before}.difference(after))):
                if pieces:
                    found[name][index.names[ent]] = [
                        [0 if ver == ENDED else index.v_num[ver], moment(start), end_moment(stop)]
                        for ver, start, stop in sorted(pieces, key=lambda piece: (piece[1:], piece[0]))
                    ]
        head.update((name, kept) for name, kept in found.items() if kept)

    def _branches(self, head: dict[str, Any], versions: set[int]) -> None:
        if self.work.branches:
            head["branches"] = self.work.branches
        if self.work.aliases:
            index, (verb, name) = self.index, self.work.branches[0][:2]
            branch = "" if verb == "pull" else name
            head["aliases"] = [
                [branch, there, index.names[index.v_ent[ver]], index.v_num[ver]]
                for there, ver in self.work.aliases
                if ver < self.mark.versions or ver in versions
            ]

    # ------------------------------------------------------------------ the lists of a line

    def _bodies(self, column: Sequence[int], rows: Numbers) -> Numbers:
        """Return the numbers, in the line, of the bodies whose places are in these rows of a column."""
        return [self._place(pos) for pos in _of(column, rows)]

    def _ops(self, ops: Numbers) -> list[Any]:
        index, why, author = self.index, self.work.why[0], self.work.author
        verbs, subjects, authors = index.o_verb, index.o_subject, _of(index.o_author, ops)
        length = _of(index.o_len, ops)
        written: list[Any] = list(map(list, zip(_of(verbs, ops), _of(subjects, ops), strict=True)))
        same = not self.work.why[1]
        if same and not any(length) and authors.count(author) == len(ops):
            return written
        bodies = iter(self._bodies(index.o_pos, [op for op, size in zip(ops, length, strict=True) if size]))
        for op, entry, size, told_by in zip(ops, written, length, authors, strict=True):
            if same and not size and told_by == author:
                continue
            number = next(bodies) if size else None
            if told_by != author:
                entry += [number, told_by]
            elif number is not None and index.o_pos[op] == why:
                self.line.head["why"] = number
            elif number is not None or self.work.why[1]:
                entry.append(number)
        return written

    def _entities(self, entities: Numbers) -> list[Any]:
        index = self.index
        names, kind, key, scope, is_event = index.names, index.kind, index.key, index.scope, index.is_event
        return [
            [names[ent], kind[ent]] if is_event[ent] else [names[ent], kind[ent], key[ent], scope[ent]]
            for ent in entities
        ]

    def _versions(self, versions: Numbers) -> list[Any]:
        index = self.index
        names, ents, numbers = index.names, index.v_ent, index.v_num
        bodies = self._bodies(index.v_pos, versions)
        return [[names[ents[ver]], numbers[ver], body] for ver, body in zip(versions, bodies, strict=True)]

    def _closed(self, rows: Numbers) -> list[Any]:
        return [[row % SPAN, self.index.r_close[row] - self.first_op] for row in rows]

    def _rows(self, rows: Numbers) -> list[Any]:
        index = self.index
        self.line.head["turns"] = []  # the last line has the turns of the transaction
        named = ((index.names[index.r_ent[row]], index.v_num[index.r_ver[row]]) for row in rows)
        return self._periods(rows, named, index.r_from, index.r_to, index.r_op)

    def _seen(self, rows: Numbers) -> list[Any]:
        index, first = self.index, self.first_op
        return [
            [index.names[index.s_ent[row]], moment(index.s_at[row]), index.s_op[row] - first] for row in rows
        ]

    def _links(self, links: Numbers) -> list[Any]:
        index = self.index
        names, links_named, kinds = index.names, index.l_name, index.l_kind
        sources, targets = index.l_src, index.l_tgt
        if any(kinds[link] == JOINED for link in links):
            self.line.head["requires"] = (*self.line.head["requires"], JOINING)
        return [
            [links_named[link], names[sources[link]], kinds[link], names[targets[link]]] for link in links
        ]

    def _claims(self, claims: Numbers) -> list[Any]:
        index = self.index
        bodies = iter(self._bodies(index.c_pos, [claim for claim in claims if index.c_len[claim]]))
        if any(index.c_history[claim] for claim in claims):
            self.line.head["requires"] = (*self.line.head["requires"], HISTORY)
        return [
            [
                index.l_name[index.c_link[claim]],
                index.c_num[claim],
                *self._claimed(claim),
                next(bodies) if index.c_len[claim] else None,
            ]
            for claim in claims
        ]

    def _link_closed(self, rows: Numbers) -> list[Any]:
        return [[row % SPAN, self.index.k_close[row] - self.first_op] for row in rows]

    def _link_rows(self, rows: Numbers) -> list[Any]:
        index = self.index
        named = ((index.l_name[index.k_link[row]], index.c_num[index.k_claim[row]]) for row in rows)
        return self._periods(rows, named, index.k_from, index.k_to, index.k_op)

    def _periods(
        self, rows: Numbers, named: Iterable[tuple[str, int]], starts: Numbers, stops: Numbers, ops: Numbers
    ) -> list[Any]:
        """Return rows of things or links as lists: name, number, start, end (None: open), offset of the operation."""
        return [
            [*name, moment(starts[row]), end_moment(stops[row]), ops[row] - self.first_op]
            for row, name in zip(rows, named, strict=True)
        ]


# each list follows the lists it refers to; a large transaction writes each list fully before the next
_LISTS: dict[str, Callable[[Composer, Numbers], list[Any]]] = {
    "ops": Composer._ops,
    "entities": Composer._entities,
    "versions": Composer._versions,
    "closed": Composer._closed,
    "rows": Composer._rows,
    "seen": Composer._seen,
    "links": Composer._links,
    "claims": Composer._claims,
    "link_closed": Composer._link_closed,
    "link_rows": Composer._link_rows,
}


def _of(column: Sequence[C], rows: Numbers) -> Sequence[C]:
    """Return the values of a column in some rows."""
    if isinstance(rows, range) and isinstance(column, list):
        return column[rows.start : rows.stop]
    return [column[row] for row in rows]


def _among(numbers: Numbers, used: set[int]) -> Numbers:
    return [number for number in numbers if number in used]
