"""Find what a merge compares: what a line of belief (the trunk or a branch) recorded after an instant, and which versions two lines share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple, cast

import orjson

from graphstore.ledger.branch_rows import TRUNK
from graphstore.ledger.chain import FORGETTING
from graphstore.ledger.damage import checked_head
from graphstore.ledger.database import RowReader
from graphstore.ledger.other_chains import known_upto
from graphstore.read.columns import Gap
from graphstore.read.working_set import WorkingSet
from graphstore.search.source import Source
from graphstore.values.models import Json
from graphstore.values.period import ALWAYS, OPEN, Instant, Period, instant
from graphstore.values.threeway import GoneSince, Spoken
from graphstore.values.vocabulary import Vocabulary
from graphstore.view.sight import Core

_OPERATIONS = "SELECT number, tx, verb, subject, recorded FROM all_operation WHERE number >= ? AND number < ? ORDER BY number"
_HEADS = "SELECT c.number, c.head, c.digest FROM json_each(?) j CROSS JOIN chain c ON c.tx = j.value ORDER BY c.number"
_IS_CHANGED = f"""
SELECT EXISTS (SELECT 1 FROM period WHERE entity = ?1 AND (tx_from > ?2 OR (tx_to > ?2 AND tx_to < {OPEN})))
    OR EXISTS (SELECT 1 FROM occurrence WHERE event = ?1 AND tx > ?2)
    OR EXISTS (SELECT 1 FROM taken_ever WHERE entity = ?1 AND (tx_from > ?2 OR (tx_to > ?2 AND tx_to < {OPEN})))
"""
_IS_LINK_CHANGED = f"""
SELECT EXISTS (SELECT 1 FROM link_period WHERE link = ?1 AND (tx_from > ?2 OR (tx_to > ?2 AND tx_to < {OPEN})))
"""
_TURNS = "SELECT o.tx, c.valid_from, c.valid_to, c.operation FROM changed c CROSS JOIN operation o ON o.number = c.operation WHERE c.entity = ? ORDER BY c.number"
_OF_SUBJECT = "SELECT number, verb FROM operation WHERE subject = ? AND tx > ? AND verb IN ('retract', 'end') ORDER BY number"
_ALIASES = "SELECT ordinal FROM alias WHERE branch = ? AND entity = ? AND version = ?"
_TAKEN_OVER = """
SELECT (SELECT tx FROM operation WHERE number = ?1),
  (SELECT tx FROM operation WHERE subject IN (SELECT value FROM json_each(?3)) AND verb = ?2 AND number < ?1 ORDER BY number DESC LIMIT 1)
"""
_GIVEN = """
SELECT min(number), max(number) FROM operation WHERE tx IN (
  SELECT tx FROM operation WHERE subject IN (SELECT value FROM json_each(?2)) AND verb = ?1 AND tx > ?3
  UNION SELECT tx FROM operation WHERE tx > ?3 AND tx <= ?4 AND verb IN (SELECT value FROM json_each(?5))
) GROUP BY tx
"""
_TAKING = ("supersedes", "corrects")
NONE = 1 << 62  # above all numbers of operations


STATEMENTS = (
    _OPERATIONS,
    _HEADS,
    _IS_CHANGED,
    _IS_LINK_CHANGED,
    _TURNS,
    _OF_SUBJECT,
    _ALIASES,
    _TAKEN_OVER,
    _GIVEN,
)


@dataclass
class LineCore(Source):
    """Reads the rows of one line of belief."""

    index: WorkingSet
    vocabulary: Vocabulary
    database: RowReader


def line_of(core: Core) -> Core:
    """Return a reader of a line of belief as it is committed. The caller has the turn to write."""
    database = core.rows.database
    index = WorkingSet(database, core.kinds, lambda: None)
    index.note_written()
    return cast(Core, LineCore(index, core.journal, core.vocabulary, database))


class BranchOperation(NamedTuple):
    """Holds an operation: its number, when it was recorded, its verb and its subject, and when the store it was imported from recorded it."""

    number: int
    tx: Instant
    verb: str
    subject: str
    recorded: Instant | None


class ChangesSince:
    """Finds what a line of belief recorded after an instant: by its rows, and by the heads of the chain that those refer to."""

    def __init__(self, core: Source, tx: Instant) -> None:
        assert isinstance(core, LineCore)
        self._index = core.index
        self._tx = tx
        self._database = core.database
        self._rows, self._line = core.database.rows, core.database.line

    @cached_property
    def operations(self) -> list[BranchOperation]:
        """Return the operations since then, without those by which a branch records what the trunk forgot."""
        instants = self._index.o_tx
        found: list[BranchOperation] = []
        for part in self._line.numbers("operation", len(instants)):
            first = bisect_right(instants, self._tx, part.start, part.stop)
            found += [BranchOperation(*row) for row in self._rows(_OPERATIONS, (first, part.stop))]
        if self._line is not TRUNK:  # what the trunk forgot is recorded on each branch too
            found = [each for each in found if each.verb not in FORGETTING]
        return found

    @cached_property
    def recorded(self) -> dict[int, Instant]:
        """Return when another store recorded operations, by their numbers."""
        return {each.number: each.recorded for each in self.operations if each.recorded is not None}

    @cached_property
    def decisions(self) -> dict[str, int]:
        """Return the last decision of a merge or pull on each thing, by its id."""
        return {each.subject: each.number for each in self.operations if each.verb == "decide"}

    @property
    def first_op(self) -> int:
        """Return the number of the first operation; `NONE`, above all others, if there is none."""
        return self.operations[0].number if self.operations else NONE

    @cached_property
    def _heads(self) -> list[tuple[int, Json]]:
        """Return the heads of these transactions, each with the number of its first operation."""
        firsts = {each.tx: each.number for each in reversed(self.operations)}
        found = []
        for row in self._rows(_HEADS, (orjson.dumps(sorted(firsts)).decode(),)):
            head = checked_head(self._database, *row)
            tx = instant(head["tx"])
            found.append((firsts[tx], head))
            firsts[tx] += len(head.get("ops", ()))
        return found

    @cached_property
    def entries(self) -> dict[int, Json]:
        """Return the arguments that the operations record, by their numbers."""
        return {
            first + int(name): entry
            for first, head in self._heads
            for name, entry in head.get("args", {}).items()
            if name != "*"
        }

    @cached_property
    def things(self) -> set[int]:
        """Return the entities that changed: rows written or closed, occurrences recorded, or kept statements set."""
        index = self._index
        names = {
            entry[0] for _, head in self._heads for part in ("rows", "seen") for entry in head.get(part, ())
        }
        for part in ("kept", "not_kept"):
            names.update(name for _, head in self._heads for name in head.get(part, ()))
        index.prepare_ids(names)
        closed = [
            self._line.row("period", row) for _, head in self._heads for row, _ in head.get("closed", ())
        ]
        index.prepare_rows(closed)
        return {*map(index.ids.__getitem__, names), *map(index.r_ent.__getitem__, closed)}

    @cached_property
    def spoken_of(self) -> set[int]:
        """Return the entities that were confirmed, ended, retracted, superseded or corrected, even if no row of them was written."""
        index = self._index
        names = {each.subject for each in self.operations if each.verb in ("confirm", "end", "retract")}
        index.prepare_ids(names)
        taken = {index.l_tgt[link] for link in self.links if index.l_kind[link] in _TAKING}
        return taken | {index.ids[name] for name in names if name in index.ids}

    def spoken(self, ent: int, known: Collection[Instant]) -> Spoken:
        """Return what was recorded of an entity besides what holds of it. `known`: transactions that do not count."""
        index, gone = self._index, []
        for start, stop, operation in self._taken_back(ent, known):
            for at, until in pairwise(sorted({start, stop, *self._edges(ent, (start, stop))})):
                standing = index.standing(ent, at, OPEN - 1)
                if standing in ("retracted", "superseded", "ended"):
                    gone.append(GoneSince(at, until, operation, standing))  # type: ignore[arg-type]
        return Spoken(gone, self.is_confirmed(ent, known))

    def is_confirmed(self, ent: int, known: Collection[Instant]) -> bool:
        """Return True if an entity was confirmed. `known`: transactions that do not count."""
        last = self._index.confirmed_last(ent, OPEN - 1)
        return last >= 0 and self._counts(last, known)

    def _counts(self, operation: int, known: Collection[Instant]) -> bool:
        index = self._index
        is_new = index.o_tx[operation] > self._tx and index.o_tx[operation] not in known
        return is_new and index.believed_op(operation, OPEN - 1)

    def _edges(self, ent: int, period: Period) -> Iterable[Instant]:
        """Return the instants within a period at which the standing of an entity may change."""
        index = self._index
        removed = (part for _, part in index.removals(ent, OPEN - 1))
        rows = ((index.r_from[row], index.r_to[row]) for row in index.now_of[ent])
        links = (
            (index.k_from[row], index.k_to[row])
            for link in index.successors.get(ent, ())
            for row in index.believed_link(link, OPEN - 1)
        )
        return (edge for part in chain(removed, rows, links) for edge in part if period[0] < edge < period[1])

    def _taken_back(self, ent: int, known: Collection[Instant]) -> Iterator[tuple[Instant, Instant, int]]:
        """Yield the periods over which an entity was taken back, each with its operation. The whole period given to a verb counts, even where nothing was believed."""
        index = self._index
        for operation, (start, stop) in index.removals(ent, OPEN - 1):
            if self._counts(operation, known):
                yield start, OPEN if index.o_verb[operation] == "end" else stop, operation
        last = index.last_removal(ent, OPEN - 1)
        if (
            last >= 0
            and not index.now_of[ent]
            and index.is_retraction(last, ent)
            and self._counts(last, known)
        ):
            yield *ALWAYS, last
        for operation, verb in self._rows(_OF_SUBJECT, (index.names[ent], self._tx)):
            if self._counts(operation, known):
                entry = self.entries.get(operation, {})
                if verb == "retract" and ("valid_from" in entry or "valid_to" in entry):
                    yield *_given(entry), operation
                elif verb == "end" and entry.get("at"):
                    yield instant(entry["at"]), OPEN, operation
        for link in index.of_kinds(index.into, ent, _TAKING):
            for row in index.believed_link(link, OPEN - 1) if index.l_kind[link] in _TAKING else ():
                if self._counts(index.k_op[row], known):
                    yield index.k_from[row], index.k_to[row], index.k_op[row]

    def unlinked(self, links: Iterable[int], known: Collection[Instant]) -> Spoken:
        """Return the periods over which links were taken back. For `unlink` the whole period given counts."""
        index, gone = self._index, []
        for link in links:
            for row in index.rows_of_link[link]:
                operation = index.k_close[row]
                if operation < 0 or not self._counts(operation, known):
                    continue
                period = (index.k_from[row], index.k_to[row])
                if index.o_verb[operation] == "unlink":
                    period = _given(self.entries.get(operation, {}))
                gone.append(GoneSince(*period, operation, "retracted"))
        return Spoken(gone)

    @cached_property
    def links(self) -> set[int]:
        """Return the links of which a row was written or closed, or that took statements from something."""
        index = self._index
        names = {
            name
            for _, head in self._heads
            for name in chain((entry[0] for entry in head.get("link_rows", ())), head.get("took", ()))
        }
        index.prepare_links(names, ())
        closed = (
            self._line.row("link_period", row)
            for _, head in self._heads
            for row, _ in head.get("link_closed", ())
        )
        return {*map(index.link_ids.__getitem__, names), *map(index.k_link.__getitem__, closed)}

    def is_changed(self, ent: int) -> bool:
        """Return True if an entity is one of `things`, without finding all of them."""
        return bool(self._rows(_IS_CHANGED, (ent, self._tx))[0][0])

    def is_link_changed(self, link: int) -> bool:
        """Return True if a link is one of `links`, without finding all of them."""
        return bool(self._rows(_IS_LINK_CHANGED, (link, self._tx))[0][0])

    def turns(self, ent: int) -> Iterable[Gap]:
        """Return the changes of an entity's content by operations, including earlier ones."""
        return self._rows(_TURNS, (ent,))


class Contained:
    """Finds which operations of one line of belief another line contained when it recorded an operation."""

    def __init__(self, mine: Core, theirs: Source) -> None:
        assert isinstance(theirs, LineCore)
        self._mine, self._theirs = mine.rows.database, theirs.database
        line = self._theirs.line if self._mine.line is TRUNK else self._mine.line
        self._fork, lineage = line.forked, orjson.dumps(line.lineage).decode()
        self._verbs = ("pull", lineage), ("merge", lineage)
        if self._mine.line is not TRUNK:
            self._verbs = self._verbs[1], self._verbs[0]

    def before(self, operation: int) -> list[Period]:
        """Return ranges (after, up to] of operations of this line that the other line contained. `operation`: the number of an operation of the other line."""
        [(at, taken)] = self._theirs.rows(_TAKEN_OVER, (operation, *self._verbs[0]))
        upto = self._fork if taken is None else known_upto(self._mine, taken)
        [(last,)] = self._mine.rows("SELECT max(number) FROM operation WHERE tx <= ?", (upto,))
        # operations that came from there earlier, and forgetting, which is recorded on each line
        given = self._mine.rows(
            _GIVEN, (*self._verbs[1], self._fork, at, orjson.dumps(list(FORGETTING)).decode())
        )
        return [(-1, -1 if last is None else last), *((start - 1, stop) for start, stop in given)]


def _given(entry: Json) -> Period:
    """Return the period given to a verb; all of time if none was given."""
    start, stop = entry.get("valid_from"), entry.get("valid_to")
    return ALWAYS[0] if start is None else instant(start), OPEN if stop is None else instant(stop)


class SharedVersions:
    """Maps versions of another line of belief to versions of this one: from before the fork, or carried over since."""

    def __init__(self, mine: Source, theirs: Source) -> None:
        assert isinstance(theirs, LineCore)
        self._mine, self._theirs, self._rows = mine.index, theirs.index, theirs.database.rows
        parted = [line.forked.versions for line in (self._mine, self._theirs) if line.forked is not None]
        self._parted, self._stored = min(parted), mine.index.mark().versions

    def find(self, ver: int) -> int:
        """Return the version of this line for one of the other line, -1 if there is none."""
        if ver < self._parted:
            return ver
        mine, theirs = self._mine, self._theirs
        ent, number = theirs.v_ent[ver], theirs.v_num[ver]
        name = theirs.names[ent]
        taken = (mine.aliases.get((line, number, name), -1) for line in theirs.lineage or ("",))
        given = (row for line in mine.lineage or ("",) for row in self._rows(_ALIASES, (line, ent, ver)))
        found = chain(taken, (self._numbered(name, ordinal) for (ordinal,) in given))
        return next((version for version in found if version >= 0), -1)

    def _numbered(self, name: str, number: int) -> int:
        """Return the version with that number that existed before the merge."""
        index = self._mine
        ours = index.ids.get(name, -1)
        versions = reversed(index.versions_of[ours]) if ours >= 0 else ()
        return next((ver for ver in versions if ver < self._stored and index.v_num[ver] == number), -1)
