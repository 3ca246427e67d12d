"""The columns of the index: every period in memory as arrays of numbers, and the dictionaries and lists that lead to their rows.

All columns only grow, except that a row's end in tx (`r_end`, `k_end`) and the operation that closed it are set once. So a transaction that fails is
undone by cutting the columns back to a `Mark`.

Other threads read meanwhile and hold no lock. So what leads to a row (`ids`, `rows_of`, `out` …) names it when all its columns are there, `changed` of
an entity is set before its `now_of` changes, and whoever keeps what he computed from rows has to learn of the writes since.

Prefixes: `v_` versions (contents), `r_` rows of versions, `l_` links, `c_` claims (a link's attributes), `k_` rows of links, `s_` occurrences of events
after the first recorded one, `o_` operations.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from graphstore.core.index.hulls import Blocks, Parts, Runs
from graphstore.core.index.latest_versions import LatestVersions, Said
from graphstore.core.index.members import Members
from graphstore.core.index.operations_by_id import Mentions
from graphstore.core.journal.branch_records import BranchRecords
from graphstore.core.journal.line import DESCRIBING, RETRACTING, UNDO
from graphstore.values.period import OPEN, Instant, Period, coalesce, instant
from graphstore.values.vocabulary import KINDS, NEVER_SO, RESTS, UPHOLDING

Gap = tuple[Instant, Instant, Instant, int]  # tx, valid from, valid to, operation
SYMMETRIC = frozenset(name for name, kind in KINDS.items() if kind.symmetric)

_FEW = 48


def _numbers() -> array[int]:
    return array("q")


def _small() -> array[int]:
    """Numbers of rows and what else fits 32 bits."""
    return array("i")


class Mark(NamedTuple):
    """How long each group of columns is: the state of an index, or how far a projection has followed."""

    entities: int = 0
    versions: int = 0
    rows: int = 0
    closings: int = 0
    links: int = 0
    claims: int = 0
    link_rows: int = 0
    link_closings: int = 0
    ops: int = 0
    seen: int = 0


Taken = tuple[int, Instant, Instant]  # a version that a supersession took, from, to


class _OfKinds(NamedTuple):
    """What was read of the first so many custom kinds of link, and the last of them."""

    many: int = 0
    last: list[dict[str, Any]] = []
    resting: Mapping[str, frozenset[str]] = RESTS
    symmetric: frozenset[str] = SYMMETRIC


class Columns:
    """The arrays, and how they grow. Rows are addressed by number; -1 means none."""

    finds_prints = False  # whether fingerprints are found by themselves, and not collected from the bodies

    def __init__(self) -> None:
        self.last_tx: Instant = 0
        self.ids: dict[str, int] = {}
        self.names: list[str] = []
        self.is_event = bytearray()
        self.born = _numbers()
        self.changed = _numbers()  # not before the last change of its rows
        self.kind: list[str] = []
        self.key: list[str | None] = []
        self.scope: list[str] = []
        self.versions_of: list[list[int]] = []
        self.rows_of: list[list[int]] = []  # in the order they were written
        self.now_of: list[list[int]] = []  # believed now, by valid_from
        self.out: dict[int, list[int]] = {}
        self.into: dict[int, list[int]] = {}
        self.successors: dict[int, list[int]] = {}  # entity -> supersedes links to it
        self.corrected: dict[int, list[int]] = {}  # entity -> corrects links to it
        self.even: dict[int, list[int]] = {}  # entity -> symmetric links at either end
        self.rests: set[int] = set()  # entities that ever rested on something, and
        self.based: set[int] = (
            set()
        )  # entities that something ever rested on; an undone link may leave its ends here
        self.slots: dict[tuple[str, str], list[int]] = {}  # (key, scope)
        # versions; `v_op`: the operation that said it first, -1 while that is not known. Number 0: it was said, and nothing of it was ever believed
        # after its transaction
        self.v_ent, self.v_num, self.v_pos, self.v_len = _small(), _small(), _numbers(), _small()
        self.v_op = _small()
        # rows: valid [r_from, r_to), tx [r_tx, r_end)
        self.r_ent, self.r_ver, self.r_from, self.r_to = _small(), _small(), _numbers(), _numbers()
        self.r_tx, self.r_end, self.r_op, self.r_close = _numbers(), _numbers(), _small(), _small()
        self.closings = _small()
        # links
        self.link_ids: dict[str, int] = {}
        self.l_name: list[str] = []
        self.l_kind: list[str] = []
        self.l_src, self.l_tgt = _small(), _small()
        self.rows_of_link: list[list[int]] = []
        self.claims_of: list[list[int]] = []
        # supersedes link -> (version, from, to)
        self.taken: dict[int, list[tuple[int, Instant, Instant]]] = {}
        # claims
        self.c_link, self.c_num, self.c_strength, self.c_inferred = _small(), _small(), _small(), _small()
        self.c_pos, self.c_len, self.c_op = _numbers(), _small(), _small()
        self.c_by: list[str] = []
        # link rows
        self.k_link, self.k_claim, self.k_from, self.k_to = _small(), _small(), _numbers(), _numbers()
        self.k_tx, self.k_end, self.k_op, self.k_close = _numbers(), _numbers(), _small(), _small()
        self.link_closings = _small()
        self._init_changes()
        self._init_seen()
        self._init_operations()
        self._said: dict[int, LatestVersions] = {}
        self._held: dict[tuple[str, str], list[int]] = {}  # what long slots hold now, by valid_from
        self._blocks: dict[int, Blocks] = {}
        self._runs: dict[int, list[Runs]] = {}  # entity -> runs of its long lists of links
        self._by: dict[tuple[str, int], list[Parts]] = {}  # long lists by what each has
        self._grounds: dict[int, tuple[tuple[int, int, int], list[tuple[int, int, frozenset[str]]]]] = {}
        self._init_lookups()

    def _init_lookups(self) -> None:
        """What is made when something is first looked up by it."""
        self._sorted: list[list[str]] = []
        self._sorted_links: list[list[str]] = []
        self._mentions = Mentions()
        self._members = Members()

    def _init_changes(self) -> None:
        """What the rows do not show by themselves."""
        # entity -> when it may have fallen first, and when something it may rest on had: never too late, and kept by a rollback
        self.fell: dict[int, Instant] = {}
        self.refuted: dict[
            int, Instant
        ] = {}  # fallen so that it never was so, which shakes by more kinds of link
        self.tainted: dict[int, Instant] = {}
        # entity -> (tx, from, to, operation that removed it)
        self.gaps: dict[int, list[Gap]] = {}
        # entity -> (tx, from, to, operation that changed its content there)
        self.turns: dict[int, list[Gap]] = {}
        self.turned = _small()  # the entities of all of them, in the order they were recorded
        self._shaken: Any = None  # what `shaky_spans.py` keeps
        self.unread: set[int] = (
            set()
        )  # such operations of old journals, which may have changed other things only
        # what was said of an entity and is in no row: (tx, from, to, version); and of a link: (tx, from, to, operation)
        self.ghosts: dict[int, list[Gap]] = {}
        self.link_ghosts: dict[int, list[Gap]] = {}
        self.undone_by: dict[Instant, list[int]] = {}  # transaction -> the operations `undo` of it

    def _init_operations(self) -> None:
        # operations
        self.o_tx, self.o_pos, self.o_len = _numbers(), _numbers(), _small()
        self.o_verb: list[str] = []
        self.o_subject: list[str] = []
        self.o_author: list[str | None] = []
        self.transactions = 0
        self.kinds: list[dict[str, Any]] = []  # custom link kinds, in the order they were defined
        self._kinds_read = _OfKinds()
        self.promoted: list[str] = []
        # settings of the store; the last of a name counts
        self.settings: list[dict[str, Any]] = []
        self.set_at: dict[str, list[int]] = {}  # where in `settings` each name is, in order
        self.gone: dict[int, int] = {}  # forgotten entity -> the operation that evicted or erased it
        self.confirmed: dict[str, list[int]] = {}  # id -> the operations that confirmed it
        self.branch: str | None = None  # the branch whose lines this index follows; None: the trunk
        self.lineage: tuple[str, ...] = ()  # the branch and those it came from, itself first
        self.forked: Mark | None = None  # how much of it a branch has from the trunk
        self.branch_records = BranchRecords()
        self.aliases: dict[tuple[str, int, str], int] = {}  # (branch, number there, id) -> version
        # to roll back to any instant: when each transaction was written, and how many versions there were then,
        self.t_tx, self.t_ver = _numbers(), _small()
        # how many kinds, promoted kinds and settings there were from which instant on, and what each change of an older `taken` replaced
        self.noted: list[tuple[Instant, int, int, int]] = []
        self.retaken: list[tuple[Instant, int, list[tuple[int, Instant, Instant]]]] = []
        # places of forgotten contents still in the journal that nothing leads to; None: none
        self.left: list[Any] | None = None

    def _init_seen(self) -> None:
        # occurrences; each with the earliest and the latest of its event so far
        self.s_ent, self.s_at, self.s_tx, self.s_op = _small(), _numbers(), _numbers(), _small()
        self.s_first, self.s_last = _numbers(), _numbers()
        self.seen_of: dict[int, list[int]] = {}  # event -> its occurrences, in writing order
        # fingerprints of events: only in the bodies, read from there when first needed
        self.prints: dict[str, list[int]] = {}  # in the order the events were recorded
        self.printed: list[tuple[int, str]] = []
        self.looked = 0  # how many entities were searched for one

    def lengths(self) -> Mark:
        """How long each group of columns is, including an open transaction."""
        return Mark(
            len(self.names), len(self.v_ent), len(self.r_ent), len(self.closings), len(self.l_name),
            len(self.c_link), len(self.k_link), len(self.link_closings), len(self.o_tx), len(self.s_ent),
        )  # fmt: skip

    # ------------------------------------------------------------------ growing

    def add_entity(self, name: str, event: bool, kind: str, key: str | None, scope: str, tx: Instant) -> int:
        ent = len(self.names)
        self.names.append(name)
        self.is_event.append(event)
        self.born.append(tx)
        self.changed.append(tx)
        self.kind.append(kind)
        self.key.append(key)
        self.scope.append(scope)
        self.versions_of.append([])
        self.rows_of.append([])
        self.now_of.append([])
        if key is not None:
            self.slots.setdefault((key, scope), []).append(ent)
        self.ids[name] = ent
        return ent

    def add_version(self, ent: int, number: int, pos: int, length: int, op: int = -1) -> int:
        ver = len(self.v_ent)
        self.v_op.append(op)
        self.v_ent.append(ent)
        self.v_num.append(number)
        self.v_pos.append(pos)
        self.v_len.append(length)
        self._note_version(ent, ver)
        return ver

    def open_row(self, ver: int, period: Period, tx: Instant, op: int) -> int:
        row, ent = len(self.r_ent), self.v_ent[ver]
        if self.v_op[ver] < 0:
            self.v_op[ver] = op
        self.r_ent.append(ent)
        self.r_ver.append(ver)
        self.r_from.append(period[0])
        self.r_to.append(period[1])
        self.r_tx.append(tx)
        self.r_end.append(OPEN)
        self.r_op.append(op)
        self.r_close.append(-1)
        self.changed[ent] = tx
        if period[1] < OPEN:
            self.falls(ent, tx)
        self._note_row(ent, row)
        self._believe(self.now_of[ent], row)
        held = self._held.get((self.key[ent] or "", self.scope[ent])) if self._held else None
        if held is not None:
            self._believe(held, row)
        return row

    def note_added(
        self,
        tx: Instant,
        added: list[tuple[int, Instant, Instant, int, int]],
        first: int,
        closed: Mapping[int, int],
    ) -> None:
        """Lead from entities to new rows whose columns were added, and close those whose place these take.

        Args:
            added: the entity, the period, the version and the operation of each row; the versions are new too.
            first: the first of the rows.
            closed: places in `added` -> the row that it takes the place of.
        """
        versions_of, rows_of, now_of = self.versions_of, self.rows_of, self.now_of
        changed, fell, kept, said = self.changed, self.fell, self._shaken is not None, self._said
        for at, (ent, start, stop, ver, op) in enumerate(added):
            if at in closed:
                self.close_row(closed[at], tx, op)
            versions_of[ent].append(ver)
            changed[ent] = tx
            if stop < OPEN and (kept or fell.get(ent, OPEN) > tx):
                self.falls(ent, tx)
            rows_of[ent].append(first + at)
            now_of[ent].append(first + at)
            if said and ent in said:
                self.say(ent, ver, (start, stop))

    def _note_version(self, ent: int, ver: int) -> None:
        self.versions_of[ent].append(ver)

    def _note_row(self, ent: int, row: int) -> None:
        self.rows_of[ent].append(row)

    def close_row(self, row: int, tx: Instant, op: int) -> None:
        ent = self.r_ent[row]
        self.r_end[row] = tx
        self.r_close[row] = op
        verb = self.o_verb[op]
        if verb not in DESCRIBING:
            self.falls(ent, tx, refuted=verb in RETRACTING)
        self.changed[ent] = tx
        self.closings.append(row)
        self._drop(self.now_of[ent], row)
        held = self._held.get((self.key[ent] or "", self.scope[ent])) if self._held else None
        if held is not None:
            self._drop(held, row)

    def _believe(self, rows: list[int], row: int) -> None:
        """Add a row to a list that is in the order of valid_from."""
        if rows and self.r_from[rows[-1]] > self.r_from[row]:
            insort(rows, row, key=self.r_from.__getitem__)
        else:
            rows.append(row)

    def _drop(self, rows: list[int], row: int) -> None:
        """Remove a row from a list that is in the order of valid_from."""
        if rows[-1] == row:
            rows.pop()
            return
        at = bisect_left(rows, self.r_from[row], key=self.r_from.__getitem__)
        del rows[rows.index(row, at)]

    def held(self, slot: tuple[str, str]) -> list[int]:
        """The rows that a slot holds now, by valid_from: no two overlap."""
        found = self._held.get(slot)
        if found is None:
            ents = self.slots.get(slot, ())
            found = [row for ent in ents for row in self.now_of[ent]]
            found.sort(key=self.r_from.__getitem__)
            if max(len(ents), len(found)) > _FEW:
                self._held[slot] = found
        return found

    def over(self, rows: list[int], period: Period) -> list[int]:
        """Those of some rows, by valid_from and apart from each other, that hold over a part of a period."""
        start, stop = period
        first = bisect_right(rows, start, key=self.r_from.__getitem__)
        if first and self.r_to[rows[first - 1]] > start:
            first -= 1
        return rows[first : bisect_left(rows, stop, key=self.r_from.__getitem__)]

    def last_before(self, rows: list[int], at: Instant) -> int:
        """Return the last of some rows, by valid_from, that begins before an instant, or -1."""
        place = bisect_left(rows, at, key=self.r_from.__getitem__)
        return rows[place - 1] if place else -1

    def first_since(self, rows: list[int], at: Instant) -> int:
        """Return the first of some rows, by valid_from, that begins at an instant or later, or -1."""
        place = bisect_left(rows, at, key=self.r_from.__getitem__)
        return rows[place] if place < len(rows) else -1

    def between(self, rows: list[int], start: Instant, stop: Instant) -> list[int]:
        """Return those of some rows, by valid_from, that begin in [start, stop)."""
        begins = self.r_from.__getitem__
        return rows[bisect_left(rows, start, key=begins) : bisect_left(rows, stop, key=begins)]

    def add_link(self, name: str, source: int, kind: str, target: int) -> int:
        link = len(self.l_name)
        self.l_name.append(name)
        self.l_kind.append(kind)
        self.l_src.append(source)
        self.l_tgt.append(target)
        self.rows_of_link.append([])
        self.claims_of.append([])
        self.out.setdefault(source, []).append(link)
        self.into.setdefault(target, []).append(link)
        self.note_link(link, source, kind, target)
        self.link_ids[name] = link
        return link

    def note_link(self, link: int, source: int, kind: str, target: int) -> None:
        """Note a link whose kind is asked for by itself."""
        if kind == "supersedes":
            self.successors.setdefault(target, []).append(link)
        elif kind == "corrects":
            self.corrected.setdefault(target, []).append(link)
        elif kind in UPHOLDING:
            self.rests.add(target)
            self.based.add(source)
        elif kind in RESTS or (self.kinds and kind in self.resting):
            self.rests.add(source)
            self.based.add(target)
        elif kind in self.symmetric:
            self.even.setdefault(source, []).append(link)
            self.even.setdefault(target, []).append(link)

    def is_noted(self, kind: str) -> bool:
        """Whether `note_link` or `rest` do anything for links of a kind."""
        return kind in ("supersedes", "corrects") or kind in self.resting or kind in self.symmetric

    @property
    def resting(self) -> Mapping[str, frozenset[str]]:
        """The kinds of link by which one end rests on the other, each with the falls that shake it."""
        return self._of_kinds().resting if self.kinds else RESTS

    @property
    def symmetric(self) -> frozenset[str]:
        """The kinds of link that hold in both directions."""
        return self._of_kinds().symmetric if self.kinds else SYMMETRIC

    def _of_kinds(self) -> _OfKinds:
        """What links of the kinds there are do, custom ones too; read on from what was read before."""
        found, kinds = self._kinds_read, self.kinds
        if found.many == len(kinds) and kinds[-1:] == found.last:
            return found
        if kinds[found.many - 1 : found.many] != found.last:  # they were cut back, and grew otherwise
            found = _OfKinds()
        fresh = kinds[found.many :]
        rests = {kind["name"]: frozenset(kind["rests"]) for kind in fresh if kind.get("rests")}
        symmetric = [kind["name"] for kind in fresh if kind["symmetric"]]
        self._kinds_read = found = _OfKinds(
            found.many + len(fresh),
            fresh[-1:] or found.last,
            {**found.resting, **rests} if rests else found.resting,
            found.symmetric.union(symmetric) if symmetric else found.symmetric,
        )
        return found

    def add_claim(
        self,
        link: int,
        number: int,
        strength: int,
        inferred: int,
        by: str,
        pos: int,
        length: int,
        op: int = -1,
    ) -> int:
        claim = len(self.c_link)
        self.c_op.append(op)
        self.c_link.append(link)
        self.c_num.append(number)
        self.c_strength.append(strength)
        self.c_inferred.append(inferred)
        self.c_by.append(by)
        self.c_pos.append(pos)
        self.c_len.append(length)
        self.claims_of[link].append(claim)
        return claim

    def open_link_row(self, claim: int, period: Period, tx: Instant, op: int) -> int:
        row, link = len(self.k_link), self.c_link[claim]
        if self.c_op[claim] < 0:
            self.c_op[claim] = op
        self.k_link.append(link)
        self.k_claim.append(claim)
        self.k_from.append(period[0])
        self.k_to.append(period[1])
        self.k_tx.append(tx)
        self.k_end.append(OPEN)
        self.k_op.append(op)
        self.k_close.append(-1)
        self.rest(link, tx)
        self.rows_of_link[link].append(row)
        self.link_changed(link)
        return row

    def close_link_row(self, row: int, tx: Instant, op: int) -> None:
        self.k_end[row] = tx
        self.k_close[row] = op
        self.link_closings.append(row)
        self.link_changed(self.k_link[row])

    def add_seen(self, ent: int, at: Instant, tx: Instant, op: int) -> None:
        """Add an occurrence at `at` to an existing event."""
        rows = self.seen_of.setdefault(ent, [])
        before = rows[-1] if rows else -1
        rows.append(len(self.s_ent))
        self.s_ent.append(ent)
        self.s_at.append(at)
        self.s_tx.append(tx)
        self.s_op.append(op)
        self.s_first.append(at if before < 0 else min(at, self.s_first[before]))
        self.s_last.append(at if before < 0 else max(at, self.s_last[before]))

    def add_print(self, ent: int, fingerprint: str) -> None:
        """Add the fingerprint of an event. Events come in the order they were recorded."""
        self.prints.setdefault(fingerprint, []).append(ent)
        self.printed.append((ent, fingerprint))

    def add_op(self, tx: Instant, verb: str, subject: str, author: str | None, pos: int, length: int) -> int:
        self.o_tx.append(tx)
        self.o_verb.append(verb)
        self.o_subject.append(subject)
        self.o_author.append(author)
        self.o_pos.append(pos)
        self.o_len.append(length)
        op = len(self.o_tx) - 1
        if verb == "confirm" or verb == UNDO:
            self.note_op(op, verb, subject)
        return op

    def note_op(self, op: int, verb: str, subject: str) -> None:
        """Note an operation that is looked up by its subject."""
        if verb == "confirm":  # by name: a line lists its operations before its new entities
            self.confirmed.setdefault(subject, []).append(op)
        elif verb == UNDO:
            undone = instant(subject)
            self.undone_by.setdefault(undone, []).append(op)
            for ent in range(bisect_left(self.born, undone), bisect_right(self.born, undone)):
                self.falls(ent, self.o_tx[op], refuted=True)
            self.undo_changed(undone)

    def believed_op(self, op: int, tx: Instant) -> bool:
        """Whether an operation counts at `tx`: it was recorded, and its transaction is not taken back there."""
        if self.o_tx[op] > tx:
            return False
        undos = self.undone_by.get(self.o_tx[op]) if self.undone_by else None
        return not undos or not any(self.believed_op(undo, tx) for undo in undos)

    def add_turn(self, ent: int, turn: Gap) -> None:
        """Record that an operation changed the content of an entity over a period."""
        self.turns.setdefault(ent, []).append(turn)
        self.turned.append(ent)
        self.falls(ent, turn[0])

    def turns_since(self, op: int) -> list[tuple[int, Gap]]:
        """The turns by operations from number `op` on, each with its entity."""
        found: list[tuple[int, Gap]] = []
        count: dict[int, int] = {}
        for ent in reversed(self.turned):
            count[ent] = count.get(ent, 0) + 1
            turn = self.turns[ent][-count[ent]]
            if turn[3] < op:
                break
            found.append((ent, turn))
        return found[::-1]

    # ------------------------------------------------------------------ what may have fallen

    def falls(self, ent: int, tx: Instant, *, refuted: bool = False) -> None:
        """Note that an entity may have fallen at `tx`, over some valid time, and so what rests on it may be shaken. `refuted`: as what never was so."""
        if self._shaken is not None:
            self._shaken.touched.add(ent)
        first = self.fell.get(ent, OPEN) > tx
        if first:
            self.fell[ent] = tx
        if (refuted or self.is_event[ent]) and self.refuted.get(ent, OPEN) > tx:
            self.refuted[ent] = tx
            first = refuted = True
        if first and ent in self.based:
            self._taint([one for one, counts in self.resting_on(ent) if refuted or counts - NEVER_SO], tx)

    def rest(self, link: int, tx: Instant) -> None:
        """Note a row of a link: it supersedes its target, or makes one end rest on the other."""
        kind = self.l_kind[link]
        if kind == "supersedes":
            self.falls(self.l_tgt[link], tx)
        elif kind in RESTS or (self.kinds and kind in self.resting):
            ent, base = self.l_src[link], self.l_tgt[link]
            if kind in UPHOLDING:
                ent, base = base, ent
            counts = self.resting[kind]
            if (
                base in self.refuted
                or (base in self.fell and counts - NEVER_SO)
                or (base in self.tainted and "shaky" in counts)
            ):
                self._taint([ent], tx)

    def _taint(self, ents: list[int], tx: Instant) -> None:
        todo = ents
        while todo:
            ent = todo.pop()
            if self.tainted.get(ent, OPEN) > tx:
                self.tainted[ent] = tx
                if self._shaken is not None:
                    self._shaken.touched.add(ent)
                if ent in self.based:
                    todo += [one for one, counts in self.resting_on(ent) if "shaky" in counts]

    def resting_on(self, base: int) -> list[tuple[int, frozenset[str]]]:
        """What ever rested on an entity, each with the falls of that which count."""
        resting, kinds = self.resting, self.l_kind
        found = [
            (self.l_src[link], resting[kinds[link]])
            for link in self.into.get(base, ())
            if kinds[link] in resting and kinds[link] not in UPHOLDING
        ]
        return found + [
            (self.l_tgt[link], resting[kinds[link]])
            for link in self.out.get(base, ())
            if kinds[link] in UPHOLDING
        ]

    # ------------------------------------------------------------------ what was said last

    def said(self, ent: int) -> list[Said]:
        """What was said of an entity last, over each period of which anything was ever said, whether it is believed or not; in order."""
        found = self._said.get(ent)
        if found is None:
            found = self._said[ent] = self._latest_of(ent)
        return found.pieces

    def _latest_of(self, ent: int) -> LatestVersions:
        rows = self.rows_of[ent]
        found = LatestVersions(reversible=len(rows) > _FEW)
        if len(rows) == 1 and ent not in self.ghosts and not self.undone_by:
            found.write(self.r_from[rows[0]], self.r_to[rows[0]], self.r_ver[rows[0]])
            return found
        every = [(self.v_op[ver], start, stop, ver) for _, start, stop, ver in self.ghosts.get(ent, ())]
        for row in rows:
            ver = self.r_ver[row]
            every.append((self.v_op[ver], self.r_from[row], self.r_to[row], ver))
        self._write_all(found, every)
        return found

    def _write_all(self, found: LatestVersions, every: list[tuple[int, Instant, Instant, int]]) -> None:
        """Write versions in the order of the operations, each over all of its periods."""
        spans: dict[int, list[Period]] = {}
        for _, start, stop, ver in sorted(every):
            spans.setdefault(ver, []).append((start, stop))
        for ver, periods in spans.items():
            if not self.undone_by or self.believed_op(self.v_op[ver], OPEN - 1):
                for start, stop in coalesce(periods) if len(periods) > 1 else periods:
                    found.write(start, stop, ver)

    def say(self, ent: int, ver: int, period: Period) -> None:
        """Note that a version was said over a period."""
        found = self._said.get(ent)
        if found is not None:
            found.write(*period, ver)

    def write_latest(self, rows: Iterable[int], first: int) -> None:
        """Write the rows that a transaction left: those of its versions, which are from number `first` on."""
        every: dict[int, list[tuple[int, Instant, Instant, int]]] = {}
        for row in rows:
            ver, ent = self.r_ver[row], self.r_ent[row]
            if ver >= first and ent in self._said:
                said = (self.v_op[ver], self.r_from[row], self.r_to[row], ver)
                every.setdefault(ent, []).append(said)
        for ent, of in every.items():
            self._write_all(self._said[ent], of)

    def remove_versions(self, ent: int, first: int) -> None:
        """Remove the versions of an entity from number `first` on, which are all that were written since."""
        found = self._said.get(ent)
        if found is None:
            return
        if found.replaced is None:
            del self._said[ent]
            return
        versions = self.versions_of[ent]
        for ver in reversed(versions[bisect_left(versions, first) :]):
            found.remove(ver)

    def undo_changed(self, tx: Instant) -> None:
        """Note that what a transaction wrote counts no more, or again."""
        todo = [tx] if self._said else []
        while todo:
            of = todo.pop()
            at = bisect_left(self.t_tx, of)
            if at < len(self.t_tx) and self.t_tx[at] == of:
                for ver in range(self.t_ver[at - 1] if at else 0, self.t_ver[at]):
                    self._recount(ver, of)
            for op in range(bisect_left(self.o_tx, of), bisect_right(self.o_tx, of)):
                if self.o_verb[op] == UNDO:
                    todo.append(instant(self.o_subject[op]))

    def _recount(self, ver: int, tx: Instant) -> None:
        """Hide a version that counts no more; write one that counts again. What is kept of its entity is dropped where that is not plain."""
        ent, op = self.v_ent[ver], self.v_op[ver]
        found = self._said.get(ent)
        if found is None:
            return
        if found.replaced is None or ent in self.ghosts:
            del self._said[ent]
            return
        if not self.believed_op(op, OPEN - 1):
            found.hide(ver)
            return
        rows = self.rows_of[ent]
        written = rows[bisect_left(rows, tx, key=self.r_tx.__getitem__) : bisect_right(rows, tx, key=self.r_tx.__getitem__)]  # fmt: skip
        for start, stop in coalesce(
            (self.r_from[row], self.r_to[row]) for row in written if self.r_ver[row] == ver
        ):
            if any(self.v_op[over] > op for _, _, over in found.between(start, stop)):
                del self._said[ent]
                return
            found.write(start, stop, ver)

    def add_settings(self, settings: Iterable[dict[str, Any]]) -> None:
        """Add settings."""
        for setting in settings:
            for name in setting:
                self.set_at.setdefault(name, []).append(len(self.settings))
            self.settings.append(setting)

    def cut_settings(self, count: int) -> None:
        """Keep only the first so many settings."""
        while len(self.settings) > count:
            for name in self.settings.pop():
                places = self.set_at[name]
                places.pop()
                if not places:
                    del self.set_at[name]

    def forget(self, ent: int, op: int) -> None:
        """Mark an entity as evicted or erased, at every coordinate. -1: one that only a branch knows."""
        if ent >= 0:
            self.gone[ent] = op
            self.falls(ent, self.o_tx[op], refuted=True)
        self.left = self.left or []

    def link_changed(self, link: int) -> None:
        """Forget what was computed from the rows of a link."""
        if self._runs:
            for ent in (self.l_src[link], self.l_tgt[link]):
                for runs in self._runs.get(ent, ()):
                    runs.forget(link)
