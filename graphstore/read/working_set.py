"""Holds the things, periods and links that a transaction needs. Each value is read from the rows of the ledger when a verb first asks for it.

Things, versions and rows have the numbers of the ledger: those of the trunk count from 0. Rows that a branch adds have higher numbers than all that it
inherits (`branch_rows.py`), so numbers tell the order of recording there too. Rows that the transaction adds get the next numbers; `undo` removes these.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any
from weakref import proxy

import orjson

from graphstore.ledger import statements
from graphstore.ledger.branch_rows import TRUNK
from graphstore.ledger.chain import UNDO
from graphstore.ledger.damage import checked_head
from graphstore.ledger.database import RowReader
from graphstore.ledger.row_writing import KnownNumbers
from graphstore.read.believed_rows import BelievedRows
from graphstore.read.columns import (
    ENDED,
    Count,
    Gap,
    Lists,
    LoadedColumn,
    Mark,
    NumbersByKey,
    Occurrences,
    Pieces,
    Read,
    Taken,
)
from graphstore.read.latest_versions import Said, between, write
from graphstore.read.occurrences import fingerprint_of, print_of
from graphstore.read.standing_rules import Index
from graphstore.values.inputs import spellings
from graphstore.values.period import OPEN, Instant, Period, coalesce, instant, without_all
from graphstore.values.vocabulary import KINDS, RESTS, UPHOLDING

Change = Callable[[BelievedRows, int], None]
BESIDE = 100  # names read on either side of an unknown name, for suggestions
_SYMMETRIC = frozenset(name for name, kind in KINDS.items() if kind.symmetric)
_BODY = """
coalesce(body, 0),
CASE WHEN body IS NULL THEN 0 ELSE coalesce((SELECT coalesce(length(b.data), 0) FROM body b WHERE b.number = body), 1) END
"""  # the number of the body, and its length
_SPAN = "valid_from, valid_to, tx_from, tx_to, opened_by, coalesce(closed_by, -1)"
_GROUPS = {
    "entities": (
        "id, is_event, kind, key, scope, tx_from FROM entity",
        ("names", "is_event", "kind", "key", "scope", "born", "changed"),
    ),
    "versions": (
        f"entity, ordinal, {_BODY}, coalesce(operation, -1) FROM version",
        ("v_ent", "v_num", "v_pos", "v_len", "v_op"),
    ),
    "rows": (
        f"entity, version, {_SPAN} FROM period",
        ("r_ent", "r_ver", "r_from", "r_to", "r_tx", "r_end", "r_op", "r_close"),
    ),
    "links": (
        "id, kind, source, target FROM link",
        ("l_name", "l_kind", "l_src", "l_tgt", "rows_of_link", "claims_of"),
    ),
    "claims": (
        f"link, ordinal, coalesce(strength, 0), is_inferred, is_history, created_by, {_BODY}, coalesce(operation, -1) FROM claim",
        ("c_link", "c_num", "c_strength", "c_inferred", "c_history", "c_by", "c_pos", "c_len", "c_op"),
    ),
    "link_rows": (
        f"link, claim, {_SPAN} FROM link_period",
        ("k_link", "k_claim", "k_from", "k_to", "k_tx", "k_end", "k_op", "k_close"),
    ),
    "ops": (
        f"tx, verb, subject, author, {_BODY}, coalesce(recorded, tx) FROM operation",
        ("o_tx", "o_verb", "o_subject", "o_author", "o_pos", "o_len", "o_told"),
    ),
    "seen": (
        "event, occurred_at, tx, operation, first, last FROM occurrence",
        ("s_ent", "s_at", "s_tx", "s_op", "s_first", "s_last"),
    ),
}
"""The part of SELECT that reads each group of `Mark`, and the names of the group's columns. The columns that are read come first, in the same order."""
_OF_LINKS = {"rows_of_link": "link_rows", "claims_of": "claims"}
"""Columns of links that list rows of another group."""
_GROUP_OF = {name: group for group, (_, names) in _GROUPS.items() for name in names}
_COUNTS = """
SELECT n.entity, n.version, n.period, n.link, n.claim, n.link_period, n.operation, n.occurrence,
       (SELECT tx FROM chain ORDER BY number DESC LIMIT 1), n.defined & 1099511627775, n.setting & 1099511627775,
       EXISTS (SELECT 1 FROM undone), EXISTS (SELECT 1 FROM all_forgotten)
FROM next_number n
"""
_PRINT = 'substr(b.data, instr(b.data, CAST(\'"fingerprint":"\' AS BLOB)) + 15, 64)'
_ALIKE = f"""
SELECT v.entity, b.data FROM body b CROSS JOIN version v CROSS JOIN entity e
WHERE instr(b.data, CAST('"fingerprint":"' AS BLOB)) > 0 AND {_PRINT} >= ? AND {_PRINT} < ?
AND v.body = b.number AND e.number = v.entity AND e.is_event = 1 ORDER BY v.entity
"""
_LAST_SEEN = "SELECT number, ordinal FROM occurrence WHERE event = ? AND number < ? ORDER BY tx DESC, number DESC LIMIT 1"
_FORGOTTEN = "SELECT operation FROM forgotten WHERE entity = ?"
_TAKEN = "SELECT version, valid_from, valid_to FROM taken WHERE entity = ? ORDER BY number"
_TAKEN_IN_SLOT = f"""
SELECT t.entity, t.version, t.valid_from, t.valid_to, min(
    coalesce((SELECT min(k.valid_from) FROM taken k WHERE k.entity = e.number AND k.version >= 0), {OPEN}),
    coalesce((SELECT p.valid_from FROM period p WHERE p.entity = e.number AND p.closed_by IS NULL ORDER BY p.valid_from LIMIT 1), {OPEN})
  ), EXISTS (SELECT 1 FROM given_end g WHERE g.operation = (SELECT min(o.number) FROM operation o WHERE o.subject = e.id))
FROM entity e CROSS JOIN taken t ON t.entity = e.number WHERE e.key = ? AND e.scope = ? AND t.valid_from < ? AND t.valid_to > ?
AND NOT EXISTS (SELECT 1 FROM period p WHERE p.entity = e.number AND p.closed_by IS NULL AND p.valid_from <= ?)
"""
_TAKEN_AT = "SELECT entity, version, valid_from, valid_to, tx_from, tx_to FROM taken_ever WHERE entity = ? AND tx_from <= ? AND tx_to >= ? ORDER BY number"
_HAS_GIVEN_END = """
SELECT EXISTS (SELECT 1 FROM given_end g WHERE g.operation = (SELECT min(o.number) FROM operation o WHERE o.subject = (SELECT id FROM entity WHERE number = ?)))
"""
_GIVEN_IN_SLOT = """
SELECT e.number FROM entity e WHERE e.key = ? AND e.scope = ? AND e.number > ?
AND EXISTS (SELECT 1 FROM given_end g WHERE g.operation = (SELECT min(o.number) FROM operation o WHERE o.subject = e.id))
"""
_REMOVED = "SELECT o.tx, r.valid_from, r.valid_to, r.operation FROM removed r JOIN operation o ON o.number = r.operation WHERE r.entity = ? ORDER BY r.number"
_TOLD = """
SELECT o.tx, t.valid_from, t.valid_to, t.version FROM told t JOIN version v ON v.number = t.version JOIN operation o ON o.number = v.operation
WHERE t.entity = ? ORDER BY t.number
"""
_LINKED = "SELECT o.tx, n.valid_from, n.valid_to, n.operation FROM linked n JOIN operation o ON o.number = n.operation WHERE n.link = ? ORDER BY n.number"
_CONFIRMED = "SELECT number FROM operation WHERE subject = ? AND verb = 'confirm' ORDER BY number"
_UNDONE = "SELECT operation FROM undone WHERE tx = ? ORDER BY operation"
_SETTING = "SELECT value FROM setting WHERE name = ? ORDER BY number DESC LIMIT 1"
_SETTING_AT = "SELECT value FROM setting WHERE name = ? AND tx <= ? ORDER BY number DESC LIMIT 1"
_NUMBER = "(SELECT e.number FROM entity e WHERE e.id = ?1)"  # by id: the tables lack rows that came and went in the transaction, so its own numbers may differ
_STANDINGS = statements.read("standings_of")
_SHAKY = f"""
SELECT EXISTS (SELECT 1 FROM shaky WHERE entity = {_NUMBER} AND valid_from <= ?2 AND tx_from <= ?3 AND valid_to > ?2 AND tx_to > ?3)
"""
_SUPERSEDED = f"""
SELECT EXISTS (
  SELECT 1 FROM link l CROSS JOIN link_period p
  WHERE l.target = {_NUMBER} AND l.kind = 'supersedes' AND p.link = l.number AND p.valid_from <= ?2 AND p.valid_to > ?2 AND p.tx_from <= ?3 AND p.tx_to > ?3
)
"""
_HEAD = "SELECT number, head, digest, (SELECT o.number FROM operation o WHERE o.tx = chain.tx LIMIT 1) FROM chain WHERE "
_HEADS = f"{_HEAD} tx = ? ORDER BY part"
_KINDS = "SELECT kind FROM defined WHERE number >= ? ORDER BY number"
_ALIAS = """
SELECT a.version FROM entity e CROSS JOIN alias a ON a.branch = ?2 AND a.entity = e.number AND a.ordinal = ?3 WHERE e.id = ?1
"""
_INSTANTS = "SELECT DISTINCT tx FROM operation WHERE tx >= ? AND tx < ? ORDER BY tx"
_BEFORE = "SELECT number FROM operation WHERE tx < ? ORDER BY tx DESC, number DESC LIMIT 1"
_SINCE = "SELECT number FROM operation WHERE tx >= ? ORDER BY tx, number LIMIT 1"
_REPLACING = ("supersedes", "corrects")
_OF_THING = "entity = ?"
_OF_SLOT = "entity IN (SELECT e.number FROM entity e WHERE e.key = ? AND e.scope = ?)"
_MOST_BASES = (
    32  # entities visited to decide whether one is shaky; beyond that its rows are written temporarily
)
FEW_ROWS = 8  # rows of a thing or a slot that are read together
_SAID_LATER = """
SELECT EXISTS (
  SELECT 1 FROM period p WHERE p.entity = ?1 AND p.valid_from < ?3 AND p.valid_to > ?2 AND p.version > ?4 AND p.number < ?5 AND NOT EXISTS (
    SELECT 1 FROM version v CROSS JOIN operation o CROSS JOIN undone u CROSS JOIN operation back
    WHERE v.number = p.version AND o.number = v.operation AND u.tx = o.tx AND back.number = u.operation
    AND NOT EXISTS (SELECT 1 FROM undone again WHERE again.tx = back.tx)
  )
) OR EXISTS (SELECT 1 FROM told t WHERE t.entity = ?1 AND t.valid_from < ?3 AND t.valid_to > ?2 AND t.version > ?4)
"""


_OF_NUMBERS = "number IN (SELECT value FROM json_each(?))"
_OF_IDS = "id IN (SELECT value FROM json_each(?))"
_BELIEVED_OF = "entity IN (SELECT value FROM json_each(?)) AND closed_by IS NULL AND number < ? ORDER BY entity, valid_from"
_LINKS_BY_SOURCE, _LINKS_BY_TARGET = (
    "number IN (SELECT l.number FROM json_each(?) s CROSS JOIN link l WHERE "
    f"{source}l.source = s.value ->> 0 AND l.kind = s.value ->> 1 AND {target}l.target = s.value ->> 2) ORDER BY number"
    for source, target in (("", "+"), ("+", ""))
)
_STARTS = """
SELECT s.value, (SELECT valid_from FROM period WHERE entity = s.value AND closed_by IS NULL ORDER BY valid_from LIMIT 1) FROM json_each(?) s
"""
_DESCRIBED = """
SELECT s.value, (SELECT count(*) FROM (SELECT 1 FROM period p WHERE p.entity = s.value AND p.closed_by IS NULL AND p.number < ?2 LIMIT ?3)),
  EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = s.value), EXISTS (SELECT 1 FROM told t WHERE t.entity = s.value),
  (SELECT v.number FROM version v WHERE v.entity = s.value AND v.ordinal > 0 AND v.number < ?4 ORDER BY v.ordinal DESC LIMIT 1)
FROM json_each(?1) s
"""


def is_text(id: Any) -> bool:
    """Return False for a value that no ledger can contain: not a string, or a string with a lone surrogate."""
    try:
        return isinstance(id, str) and id.encode() is not None
    except UnicodeEncodeError:
        return False


class KnownKinds:
    """Caches the kinds of link that a store has defined, so that not every transaction parses them."""

    def __init__(self) -> None:
        self.count = 0
        self.kinds: list[dict[str, Any]] = []
        self.promoted: list[str] = []

    def read_again(self, database: RowReader) -> None:
        """Read all kinds again, after some of those that were read were not committed."""
        self.__init__()  # type: ignore[misc]
        [(count,)] = database.rows("SELECT defined & 1099511627775 FROM next_number")
        self.read_new(database, count)

    def read_new(self, database: RowReader, count: int) -> None:
        """Read the kinds that were defined since the last call. `count`: how many are defined now."""
        if count == self.count:
            return
        known, self.count = self.count, count
        for (text,) in database.rows(_KINDS, [database.line.row("defined", known)]):
            kind = orjson.loads(text)
            if "promoted" in kind:
                self.promoted.append(kind["promoted"])
            else:
                self.kinds.append(kind)


class WorkingSet(Index):
    """Holds what one transaction has read and changed. It lives as long as the SQL transaction that writes."""

    ids: NumbersByKey
    link_ids: NumbersByKey
    gone: NumbersByKey
    changed: list[Instant]  # an upper bound of the tx of the last change to a thing's rows
    closings: list[int]
    claims_of: list[list[int]]
    prints: dict[str, list[int]]
    out: Lists[int]
    into: Lists[int]
    versions_of: Lists[int]
    rows_of: Lists[int]
    taken: Pieces
    now_of: Read[int, BelievedRows]  # the rows believed now, by valid_from
    c_link: list[int]
    c_num: list[int]
    s_ent: list[int]
    link_closings: list[int]

    def __init__(self, database: RowReader, kinds: KnownKinds, show: Callable[[], object]) -> None:
        """Start empty. Outside of a transaction it reads committed rows.

        Args:
            database: reads the rows of the trunk, or of a branch.
            kinds: the kinds of link defined on that line, as far as they are known.
            show: writes the changes of the transaction so far as rows, so that statements see them.
        """
        self._database, self._show, self.line = database, show, database.line
        # columns refer to this object weakly: strong references would form cycles that stay until the garbage collector runs
        self._me: WorkingSet = proxy(self)
        self.lineage = database.line.lineage
        self.read_line(database)
        [(*counts, last, defined, self._any_setting, self._any_undone, self._any_forgotten)] = database.rows(
            _COUNTS
        )
        things, versions, rows, links, claims, link_rows, ops, seen = (count or 0 for count in counts)
        kinds.read_new(database, defined)
        self.kinds, self.promoted = kinds.kinds[:], kinds.promoted[:]
        # settings changed by the transaction; the last entry of a name counts
        self.settings: list[dict[str, Any]] = []
        # rows with at least these numbers were added by the transaction; the tables may have such numbers too at its end
        self._stored = Mark(things, versions, rows, 0, links, claims, link_rows, 0, ops, seen)
        self._things, self._versions, self._periods = things, versions, rows
        self._links, self._ops = links, ops
        self._last = self.last_tx = last or 0
        self._has_written = False  # True once the rows contain what the transaction did
        # undoes, step by step, the changes made outside the columns
        self._undo: list[Callable[[], object]] = []
        # (source, kind, target) -> the stored links that were read
        self._stored_links: dict[tuple[int, str, int], list[int]] = {}
        # the first valid_from believed of stored things, before the transaction
        self._starts: dict[int, Instant | None] = {}
        self._newest: dict[int, int] = {}  # stored things: the stored version with the highest ordinal
        self._settings_read: dict[str, Any] = {}
        self._in_slots: dict[tuple[str, str], set[int]] = {}  # rows that were opened or closed in each slot
        self._held: dict[tuple[str, str], BelievedRows] = {}  # what slots believe now, by valid_from
        self._said: dict[int, list[Said]] = {}  # the latest version over each period of a thing, see `said`
        self._turned: list[tuple[int, Gap]] = []  # changes of content by the transaction, each with its thing
        # entities whose standing or foundations the transaction has changed, other than by adding them
        self._touched: dict[int, int] = {}  # each with the last operation by then
        self._is_undoing = False
        self._given_end: dict[int, bool] = {}  # True for things that were added with a given end
        self._kinds_before = len(self.kinds)
        self._kinds_read: tuple[int, Mapping[str, frozenset[str]], frozenset[str]] | None = None
        # rows of each group: how many are committed, and how many there are with those of the transaction
        self._kept = dict(
            zip(_GROUPS, (things, versions, rows, links, claims, link_rows, ops, seen), strict=True)
        )
        self._counts = {group: Count(count) for group, count in self._kept.items()}
        self._groups: dict[str, list[LoadedColumn]] = {}  # the columns of each group that was used
        self.closings, self.link_closings = [], []

    def __getattr__(self, name: str) -> Any:
        """Create on first access all columns of the group that has this one, or a dictionary from ids or things to rows. Most verbs need few of them."""
        if name in _GROUP_OF:
            self._columns(_GROUP_OF[name])
        elif name in _LEADING:
            vars(self)[name] = _LEADING[name](self._me)
        else:
            raise AttributeError(name)
        return vars(self)[name]

    def _columns(self, group: str) -> list[LoadedColumn]:
        """Return the columns of a group of `Mark`, created on first use."""
        columns = self._groups.get(group)
        if columns is None:
            count, names = self._counts[group], _GROUPS[group][1]
            me = self._me
            load = partial(WorkingSet._take, me, group, "number = ?")
            columns = self._groups[group] = [
                LoadedColumn(
                    count, partial(WorkingSet._load_of_link, me, name) if name in _OF_LINKS else load
                )
                for name in names
            ]
            vars(self).update(zip(names, columns, strict=True))
        return columns

    @property
    def resting(self) -> Mapping[str, frozenset[str]]:
        """Return the kinds of link by which one end rests on the other, each with the words of the falls that shake it."""
        return self._of_kinds()[1] if self.kinds else RESTS

    @property
    def symmetric(self) -> frozenset[str]:
        """Return the kinds of link that hold in both directions."""
        return self._of_kinds()[2] if self.kinds else _SYMMETRIC

    def _of_kinds(self) -> tuple[int, Mapping[str, frozenset[str]], frozenset[str]]:
        """Return the number of custom kinds, `resting` and `symmetric`."""
        found, kinds = self._kinds_read, self.kinds
        if found is None or found[0] != len(kinds):
            rests = {kind["name"]: frozenset(kind["rests"]) for kind in kinds if kind.get("rests")}
            symmetric = _SYMMETRIC.union(kind["name"] for kind in kinds if kind["symmetric"])
            found = self._kinds_read = len(kinds), {**RESTS, **rests}, symmetric
        return found

    def mark(self) -> Mark:
        """Return the numbers of committed rows."""
        return self._stored

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        return self._database.rows(statement, values)

    # ------------------------------------------------------------------ reading

    def _take(self, group: str, condition: str, *values: Any) -> list[int]:
        """Read rows of a group of `Mark` into its columns. Return their numbers, without rows that the transaction has added."""
        columns, found = self._columns(group), []
        stored = self._kept[group]
        for number, *read in self._rows(f"SELECT number, {_GROUPS[group][0]} WHERE {condition}", *values):
            if number < stored:
                found.append(number)
                if number not in columns[0]:
                    for column, value in zip(columns, read, strict=False):
                        column[number] = value
        if group == "entities":
            changed: Any = self.changed
            for ent in found:
                self.ids[self.names[ent]] = ent
                changed.setdefault(ent, self._last)  # an upper bound
        elif group == "links":
            self.link_ids.update((self.l_name[link], link) for link in found)
        return found

    def _find(self, group: str, id: str) -> int | None:
        known: dict[str, int] = self.ids if group == "entities" else self.link_ids
        for name in spellings(id) if is_text(id) else ():
            if name != id and dict.__contains__(known, name):
                return known[name]
            if found := self._take(group, "id = ?", name):
                return found[0]
        return None

    def _entities_of_slot(self, slot: tuple[str, str]) -> list[int]:
        return self._take("entities", "key = ? AND scope = ? ORDER BY number", *slot)

    def prepare_ids(self, ids: Iterable[str]) -> None:
        """Read which things have these ids, with one statement. Later lookups of the ids find the result."""
        wanted = {id for id in ids if not dict.__contains__(self.ids, id) and id not in self.ids.absent}
        if asked := [id for id in wanted if is_text(id)]:
            self._take("entities", _OF_IDS, orjson.dumps(asked).decode())
        self.ids.absent |= {id for id in wanted if not dict.__contains__(self.ids, id) and id.isascii()}

    def prepare_rows(self, rows: Iterable[int]) -> None:
        """Read these rows of periods, with one statement."""
        if missing := [row for row in rows if row < self._periods and row not in self.r_ent]:
            self._take("rows", _OF_NUMBERS, orjson.dumps(missing).decode())

    def prepare_things(self, ents: Iterable[int]) -> None:
        """Read what is believed of things and what else a verb that describes them needs. Things with more than `FEW_ROWS` rows are read in parts later."""
        new = [ent for ent in ents if ent < self._things and ent not in self._newest]
        if not new:
            return
        few: dict[int, list[int]] = {}
        for ent, count, is_forgotten, is_told, newest in self._rows(
            _DESCRIBED, orjson.dumps(new).decode(), self._periods, FEW_ROWS + 1, self._versions
        ):
            self._newest[ent] = -1 if newest is None else newest
            if count <= FEW_ROWS and ent not in self.now_of:
                few[ent] = []
            if not is_forgotten:
                self.gone.absent.add(ent)
            if not is_told:
                self.ghosts.have_none(ent)
        for row in self._take("rows", _BELIEVED_OF, orjson.dumps([*few]).decode(), self._periods):
            few[self.r_ent[row]].append(row)
        begins = self.r_from.__getitem__
        self.now_of.update((ent, BelievedRows(begins, rows)) for ent, rows in few.items())
        versions = {self.r_ver[row] for rows in few.values() for row in rows}.union(self._newest.values())
        self._take("versions", _OF_NUMBERS, orjson.dumps([ver for ver in versions if ver >= 0]).decode())

    def prepare_links(self, ids: Iterable[str], ends: Iterable[tuple[int, str, int]]) -> None:
        """Read the links that have these ids, the links that connect these (source, kind, target), and the first valid_from believed of their ends."""
        wanted = {id for id in ids if not dict.__contains__(self.link_ids, id)}
        if asked := [id for id in wanted if is_text(id)]:
            self._take("links", _OF_IDS, orjson.dumps(asked).decode())
        self.link_ids.absent |= {id for id in wanted if not dict.__contains__(self.link_ids, id)}
        old = [
            one for one in set(ends) if one not in self._stored_links and max(one[0], one[2]) < self._things
        ]
        if not old:
            return
        self._stored_links.update((one, []) for one in old)
        many_sources = 2 * len({source for source, _, _ in old}) > len({target for *_, target in old})
        statement = _LINKS_BY_SOURCE if many_sources else _LINKS_BY_TARGET
        for link in self._take("links", statement, orjson.dumps(old).decode()):
            self._stored_links[self.l_src[link], self.l_kind[link], self.l_tgt[link]].append(link)
        missing = {end for source, _, target in old for end in (source, target)} - self._starts.keys()
        self._starts.update(self._rows(_STARTS, orjson.dumps([*missing]).decode()))

    def _find_forgotten(self, ent: int) -> int | None:
        rows = self._rows(_FORGOTTEN, ent) if self._any_forgotten and ent < self._things else ()
        return rows[0][0] if rows else None

    def _find_alias(self, alias: tuple[str, int, str]) -> int | None:
        """Return the version on this line that a merge took from a branch. `alias`: the branch, the version's number there, and the id of its thing."""
        branch, number, id = alias
        rows = self._rows(_ALIAS, id, branch, number)
        return rows[0][0] if rows else None

    def _of_thing(self, group: str, ent: int) -> list[int]:
        return self._take(group, "entity = ? ORDER BY number", ent) if ent < self._things else []

    def _believed_of(self, ent: int) -> BelievedRows:
        return (
            self._believed(_OF_THING, (ent,)) if ent < self._things else BelievedRows(self.r_from.__getitem__)
        )

    def _believed(self, whose: str, values: tuple[Any, ...], changed: Collection[int] = ()) -> BelievedRows:
        """Return the rows believed of a thing or in a slot. `changed`: the rows that the transaction has opened or closed there."""

        def read(condition: str, order: str, limit: int, *more: Any) -> list[int]:
            return me._take(
                "rows", f"{whose} AND closed_by IS NULL AND {condition} AND number < ? ORDER BY {order} LIMIT ?",
                *values, *more, me._periods, limit,
            )  # fmt: skip

        me, begins = self._me, self.r_from.__getitem__
        if not changed:
            rows = read("valid_from < ?", "valid_from", FEW_ROWS + 1, OPEN)
            if len(rows) <= FEW_ROWS:
                return BelievedRows(begins, rows)
        opened = [row for row in changed if row >= self._periods and self.r_close[row] < 0]
        closed = [row for row in changed if row < self._periods and self.r_close[row] >= 0]
        return BelievedRows(begins, opened, read, closed)

    def _links_of(self, ent: int, condition: str) -> list[int]:
        return self._take("links", f"{condition} ORDER BY number", ent) if ent < self._things else []

    def _load_of_link(self, name: str, link: int) -> None:
        vars(self)[name][link] = self._take(_OF_LINKS[name], "link = ? ORDER BY number", link)

    def _last_seen(self, ent: int) -> Occurrences:
        last = self._rows(_LAST_SEEN, ent, self._stored.seen) if ent < self._things else []
        number, count = last[0] if last else (-1, 0)
        return Occurrences(
            count, number, partial(WorkingSet._take, self._me, "seen", "event = ? ORDER BY number", ent)
        )

    def _events_alike(self, printed: str) -> list[int]:
        """Return the events with a fingerprint and a scope, in the order of recording."""
        found = []
        for fingerprint in {printed, printed.partition("\0")[0]}:
            begins = orjson.dumps(fingerprint)[1:65]  # with the closing quotation mark of a short one
            for ent, data in self._rows(_ALIKE, begins, begins[:-1] + bytes([begins[-1] + 1])):
                body = orjson.loads(data)
                is_one = (
                    "fingerprint" in body and "authorized" not in body
                )  # metadata may have a field of that name too
                if ent < self._things and is_one and print_of(body) == printed:
                    found.append(ent)
        return sorted(found)

    def _operations(self, statement: str, of: Any) -> list[int]:
        return [op for (op,) in self._rows(statement, of) if op < self._ops]

    def _tuples(self, statement: str, number: int, count: int) -> list[Any]:
        return self._rows(statement, number) if number < count else []

    # ------------------------------------------------------------------ answers without whole lists

    def saying(self, source: int, kind: str, target: int) -> list[int]:
        """Return every link ever made from `source` to `target` of a kind, in order of recording."""
        known, ends = list[int](), (source, kind, target)
        if source < self._things and target < self._things:
            if ends not in self._stored_links:
                condition = "source = ? AND kind = ? AND target = ? ORDER BY number"
                self._stored_links[ends] = self._take("links", condition, *ends)
            known = self._stored_links[ends]
        fresh = min(self.out.added.get(source, []), self.into.added.get(target, []), key=len)
        return known + [
            link for link in fresh if (self.l_src[link], self.l_kind[link], self.l_tgt[link]) == ends
        ]

    def of_kinds(self, side: dict[int, list[int]], ent: int, kinds: Collection[str]) -> list[int]:
        """Return the links of some kinds on one side of an entity, in order of recording."""
        column, added = ("source", self.out.added) if side is self.out else ("target", self.into.added)
        links: list[int] = []
        if ent < self._things and kinds:
            marks = ", ".join("?" * len(kinds))
            links = self._take("links", f"{column} = ? AND kind IN ({marks})", ent, *kinds)
        return sorted(links + [link for link in added.get(ent, ()) if self.l_kind[link] in kinds])

    def kept_in(
        self, slot: tuple[str, str], period: Period, *, after: Instant = -OPEN
    ) -> list[tuple[int, Taken, Instant]]:
        """Return the pieces stated of values of a slot that bounds have removed, within a period. Each has its entity and first stated valid_from.

        after: leave out the values that begin at this instant or earlier.
        """
        known = {*dict.keys(self.taken), *dict.keys(self.now_of)}
        looked_at = {
            ent for ent in known if ent < len(self.key) and self.slot_of(ent) == slot
        }  # without things of a verb that was undone
        found = []
        for ent, *piece, start, is_given in self._rows(_TAKEN_IN_SLOT, *slot, period[1], period[0], after):
            if ent < self._things and ent not in looked_at and start > after:
                self._given_end[ent] = bool(is_given)
                found.append((ent, tuple(piece), start))
        for ent in sorted(looked_at):
            start = self.stated_start(ent) or 0
            for piece in self.taken.get(ent, ()):
                if start > after and piece[1] < period[1] and period[0] < piece[2]:
                    found.append((ent, piece, start))
        return found

    def slot_of(self, ent: int) -> tuple[str, str] | None:
        """Return the key and scope of a value of a slot; None for another thing."""
        key = self.key[ent]
        return None if key is None else (key, self.scope[ent])

    def stated_start(self, ent: int) -> Instant | None:
        """Return the first valid_from stated of an entity, whether or not it holds there; None if nothing is stated."""
        first = self.now_of[ent][:1]
        starts = [self.r_from[row] for row in first]
        starts += [start for ver, start, _ in self.taken.get(ent, ()) if ver != ENDED]
        return min(starts, default=None)

    def stated_end(self, ent: int) -> Instant | None:
        """Return the last valid_to stated of an entity, whether or not it holds until then; None if nothing is stated."""
        last = self.now_of[ent].last_before(OPEN)
        ends = [] if last < 0 else [self.r_to[last]]
        ends += [stop for ver, _, stop in self.taken.get(ent, ()) if ver != ENDED]
        return max(ends, default=None)

    def stated_over(self, ent: int, period: Period) -> list[Period]:
        """Return the parts of a period over which something is stated of an entity, whether or not it holds. A retracted event states nothing."""
        spans = [(self.r_from[row], self.r_to[row]) for row in self.over(self.now_of[ent], period)]
        kept = () if self.is_event[ent] else self.taken.get(ent, ())
        spans += [(start, stop) for ver, start, stop in kept if ver != ENDED]
        return coalesce(
            (max(a, period[0]), min(b, period[1])) for a, b in spans if a < period[1] and period[0] < b
        )

    def has_given_end(self, ent: int) -> bool:
        """Return True if a node was added with a given end."""
        if ent not in self._given_end:
            stored = ent < self._things
            self._given_end[ent] = stored and bool(self._rows(_HAS_GIVEN_END, ent)[0][0])
        return self._given_end[ent]

    def given_since(self, slot: tuple[str, str], ent: int) -> list[int]:
        """Return the values of a slot that were added with a given end and recorded after an entity."""
        stored = [other for (other,) in self._rows(_GIVEN_IN_SLOT, *slot, ent) if other < self._things]
        fresh = [other for other, is_given in self._given_end.items() if is_given and other >= self._things]
        return stored + [other for other in fresh if other > ent and self.slot_of(other) == slot]

    def ended_over(self, ent: int, period: Period) -> list[Period]:
        """Return the parts of a period that an `end` removed from a value of a slot."""
        spans = [(start, stop) for ver, start, stop in self.taken.get(ent, ()) if ver == ENDED]
        return [(max(a, period[0]), min(b, period[1])) for a, b in spans if a < period[1] and period[0] < b]

    def note_given_end(self, ent: int) -> None:
        """Record that a node was added with a given end."""
        self._given_end[ent] = True
        self._undo.append(partial(dict.pop, self._given_end, ent, None))

    def held(self, slot: tuple[str, str]) -> BelievedRows:
        """Return the rows believed in a slot now, by valid_from. No two of them overlap."""
        found = self._held.get(slot)
        if found is None:
            changed = self._in_slots.get(slot, ())
            here = [row for row in changed if row < len(self.r_ent) and self.slot_of(self.r_ent[row]) == slot]
            found = self._held[slot] = self._believed(_OF_SLOT, slot, here)
        return found

    def start(self, ent: int, tx: Instant) -> Instant | None:
        """Return the first valid_from believed of an entity; None if nothing is believed."""
        if tx < self.changed[ent]:
            return super().start(ent, tx)
        if ent in self._starts and self.changed[ent] == self._last < tx:
            return self._starts[ent]
        first = self.now_of[ent][:1]
        return self.r_from[first[0]] if first else None

    def find(self, ent: int, valid: Instant, tx: Instant) -> int:
        """Return the row of an entity that holds at (valid, tx), or -1."""
        if tx < self.changed[ent] or ent in self.gone:
            return super().find(ent, valid, tx)
        row = self.now_of[ent].last_before(valid + 1)
        return row if row >= 0 and self.r_to[row] > valid else -1

    def believed(self, ent: int, tx: Instant) -> list[int]:
        """Return the rows of an entity believed at `tx`, by valid_from."""
        return super().believed(ent, tx) if tx < self.changed[ent] else list(self.now_of[ent])

    def over(self, rows: BelievedRows, period: Period) -> list[int]:
        """Return the rows that overlap a period. The given rows must not overlap each other."""
        first = rows.last_before(period[0] + 1)
        before = [first] if first >= 0 and self.r_to[first] > period[0] else []
        return before + rows.between(period[0] + 1, period[1])

    def newest_version(self, ent: int) -> int:
        """Return the version with the highest ordinal that an entity had before the transaction, or -1."""
        if ent >= self._things:
            return -1
        if ent not in self._newest:
            condition = "entity = ? AND ordinal > 0 AND number < ? ORDER BY ordinal DESC LIMIT 1"
            found = self._take("versions", condition, ent, self._versions)
            self._newest[ent] = found[0] if found else -1
        return self._newest[ent]

    def fresh_version(self, ent: int) -> int:
        """Return the version of an entity that the transaction added last, or -1."""
        versions = self.versions_of.added.get(ent)
        return versions[-1] if versions else -1

    def fresh_rows(self, ent: int) -> Iterator[int]:
        """Return the rows of an entity that the transaction has added, newest first."""
        return reversed(self.rows_of.added.get(ent, []))

    def said_over(self, ent: int, span: Period) -> Iterable[Said]:
        """Return the latest version over each part of a period, in order. The first and last piece may extend beyond the period."""
        rows = self.over(self.now_of[ent], span) if ent < self._things else []
        pieces = [(self.r_from[row], self.r_to[row], self.r_ver[row]) for row in rows[: FEW_ROWS + 1]]
        if 0 < len(pieces) <= FEW_ROWS and pieces[0][0] <= span[0] and pieces[-1][1] >= span[1]:
            is_whole = all(one[1] == two[0] for one, two in itertools.pairwise(pieces))
            if is_whole and not any(self._is_said_later(ent, *piece, span) for piece in pieces):
                return pieces
        return between(self.said(ent), *span)

    def said(self, ent: int) -> list[Said]:
        """Return the latest version over each period in which an entity was ever described, believed or not, in order."""
        found = self._said.get(ent)
        if found is None:
            rows = [(self.r_from[row], self.r_to[row], self.r_ver[row]) for row in self.rows_of[ent]]
            found = self._said[ent] = self._latest(
                rows + [tuple(ghost[1:]) for ghost in self.ghosts.get(ent, ())]
            )
        return found

    def _latest(self, every: Iterable[Any]) -> list[Said]:
        """Apply versions in the order of their operations, each over all of its periods. Return the latest one over each period."""
        spans: dict[int, list[Period]] = {}
        for start, stop, ver in sorted(every, key=lambda one: (self.v_op[one[2]], *one)):
            spans.setdefault(ver, []).append((start, stop))
        found: list[Said] = []
        for ver, periods in spans.items():
            if not self.undone_by or self.believed_op(self.v_op[ver], OPEN - 1):
                for start, stop in coalesce(periods):
                    write(found, (start, stop, ver))
        return found

    def say(self, ent: int, ver: int, period: Period) -> None:
        """Record that a version was stated over a period."""
        if ent in self._said:
            write(self._said[ent], (*period, ver))

    def said_last(self, ent: int, mark: Mark) -> dict[int, list[Period]]:
        """Return where each version added since `mark` is the latest one, without the time shown by rows that the transaction keeps."""
        fresh = self.rows_of.added.get(ent, [])
        if not fresh or (ent not in self.ghosts and all(self.r_close[row] < 0 for row in fresh)):
            return {}  # those rows show all of it
        kept: dict[int, BelievedRows] = defaultdict(lambda: BelievedRows(self.r_from.__getitem__))
        for row in fresh:
            if self.r_close[row] < 0:
                kept[self.r_ver[row]].insert(row)
        pieces = [(self.r_from[row], self.r_to[row], self.r_ver[row]) for row in fresh]
        pieces += [(start, stop, ver) for _, start, stop, ver in self.ghosts.get(ent, ())]
        # no earlier version covers any of it
        said = self._latest(piece for piece in pieces if piece[2] >= mark.versions)
        found: dict[int, list[Period]] = {}
        begun, ended = min(map(self.r_from.__getitem__, fresh)), max(map(self.r_to.__getitem__, fresh))
        for start, stop, ver in between(said, begun, ended):
            rows = self.over(kept[ver], (start, stop))
            holes = [(self.r_from[row], self.r_to[row]) for row in rows]
            found.setdefault(ver, []).extend(without_all((start, stop), holes))
        return found

    def _is_said_later(self, ent: int, start: Instant, stop: Instant, ver: int, span: Period) -> bool:
        """Return False if no later version was stated over the given part of a version that is believed."""
        if self.fresh_version(ent) > ver or (
            self.undone_by and not self.believed_op(self.v_op[ver], OPEN - 1)
        ):
            return True
        if ver >= self._versions:
            return False
        if ver == self.newest_version(ent):
            return any(told > ver for *_, told in self.ghosts.get(ent, ()))
        part = max(start, span[0]), min(stop, span[1])
        return bool(self._rows(_SAID_LATER, ent, *part, ver, self._periods)[0][0])

    def setting_at(self, name: str, tx: Instant) -> Any:
        """Return the value of a setting at `tx`; None if it was not set by then."""
        if tx >= self._last:
            return self.setting(name)
        rows = self._rows(_SETTING_AT, name, tx)
        return orjson.loads(rows[0][0]) if rows else None

    def setting(self, name: str) -> Any:
        """Return the current value of a setting; None if it was never set."""
        for setting in reversed(self.settings):
            if name in setting:
                return setting[name]
        if not self._any_setting:
            return None
        if name not in self._settings_read:
            rows = self._rows(_SETTING, name)
            self._settings_read[name] = orjson.loads(rows[0][0]) if rows else None
        return self._settings_read[name]

    def ids_beside(self, id: str, table: str = "entity") -> list[str]:
        """Return ids of things or links that a misspelt id may mean. In a large store these are its neighbours in sort order, so the cost is constant."""
        names, count = (self.names, self._things) if table == "entity" else (self.l_name, self._links)
        fresh = [names[number] for number in range(count, len(names))]
        first = self._rows(
            f"SELECT id FROM {table} WHERE number < ? ORDER BY number LIMIT ?", count, 2 * BESIDE + 1
        )
        if len(first) + len(fresh) <= 2 * BESIDE:
            return [id for (id,) in first] + fresh
        text = id.encode(errors="replace").decode()  # without lone surrogates
        of = f"SELECT id FROM {table} WHERE number < ? AND id"
        before = self._rows(f"{of} < ? ORDER BY id DESC LIMIT ?", count, text, BESIDE)
        after = self._rows(f"{of} >= ? ORDER BY id LIMIT ?", count, text, BESIDE)
        known = sorted([id for (id,) in before + after] + fresh)
        at = bisect_left(known, id)
        return known[max(0, at - BESIDE) : at + BESIDE]

    # ------------------------------------------------------------------ results of transactions

    def _visible(self, statement: str, *values: Any) -> Iterator[dict[str, Any]]:
        """Yield the heads of chain lines found by a statement that belong to this line of belief."""
        for *row, op in self._rows(statement, *values):
            if op is not None:
                head = checked_head(self._database, *row)
                # the others forget on the trunk what a branch has too
                if (head.get("branch") is None) == TRUNK.is_own(op):
                    yield head

    def ops_at(self, tx: Instant) -> range:
        """Return the operations of a transaction."""
        return self._written_at("operation", self.o_tx, tx)

    def ops_beside(self, tx: Instant) -> list[int]:
        """Return the last committed operation before an instant and the first one from then on, as far as they exist."""
        return [op for statement in (_BEFORE, _SINCE) for (op,) in self._rows(statement, tx)]

    def instants_between(self, first: Instant, stop: Instant) -> list[Instant]:
        """Return the instants of the transactions in [first, stop), in order."""
        return [tx for (tx,) in self._rows(_INSTANTS, first, stop)]

    def rows_at(self, tx: Instant) -> range:
        """Return the rows of things that a transaction opened."""
        return self._written_at("period", self.r_tx, tx)

    def link_rows_at(self, tx: Instant) -> range:
        """Return the rows of links that a transaction opened."""
        return self._written_at("link_period", self.k_tx, tx)

    def link_rows_after(self, tx: Instant) -> list[range]:
        """Return the rows of links opened after an instant, as ranges."""
        parts = self.line.numbers("link_period", len(self.k_tx))
        return [range(bisect_right(self.k_tx, tx, part.start, part.stop), part.stop) for part in parts]

    def _written_at(self, table: str, instants: Any, tx: Instant) -> range:
        """Return the rows of a table that a transaction wrote, found by bisecting the column of their instants."""
        for part in self.line.numbers(table, len(instants)):
            first = bisect_left(instants, tx, part.start, part.stop)
            if first < part.stop and instants[first] == tx:
                return range(first, bisect_right(instants, tx, first, part.stop))
        return range(0)

    def closed_at(self, tx: Instant) -> tuple[list[int], list[int]]:
        """Return the rows of things and the rows of links that a transaction closed, in order."""
        heads, number = list(self._visible(_HEADS, tx)), self.line.row
        rows = [number("period", row) for head in heads for row, _ in head.get("closed", ())]
        return rows, [number("link_period", row) for head in heads for row, _ in head.get("link_closed", ())]

    def taken_at(self, tx: Instant) -> dict[int, tuple[list[Taken], list[Taken]]]:
        """Return the entities of which a transaction changed the pieces removed by bounds, each with these pieces before and after it."""
        found: dict[int, tuple[list[Taken], list[Taken]]] = {}
        ents: set[int] = set()
        for head in self._visible(_HEADS, tx):
            ents.update(self.ids[id] for part in ("kept", "not_kept") for id in head.get(part, ()))
            ents.update(self.l_tgt[self.link_ids[id]] for id in head.get("took", ()))
        for ent in sorted(ents):
            rows = self._rows(_TAKEN_AT, ent, tx, tx)
            before = [(ver, *piece) for _, ver, *piece, since, _ in rows if since < tx]
            after = [(ver, *piece) for _, ver, *piece, _, until in rows if until > tx]
            if before != after:
                found[ent] = before, after
        return found

    def settings_at(self, tx: Instant) -> dict[str, tuple[Any, Any]]:
        """Return the settings that a transaction changed: name -> (value before, value after)."""
        changed = [setting for head in self._visible(_HEADS, tx) for setting in head.get("settings", ())]
        left = {name: value for setting in changed for name, value in setting.items()}
        return {name: (self.setting_at(name, tx - 1), value) for name, value in left.items()}

    def known_numbers(self) -> KnownNumbers:
        """Return the numbers of the rows that were read. Rows that the transaction adds are left out: the tables may give them other numbers."""
        read = {
            group: [number for number in columns[0] if number < self._kept[group]]
            for group, columns in self._groups.items()
        }
        ents = read.get("entities", ())
        return KnownNumbers(
            {self.names[ent]: ent for ent in ents},
            {
                ent: (self.is_event[ent], self.kind[ent], self.key[ent], False)
                for ent in ents
                if not self._any_forgotten or ent in self.gone.absent
            },
            {(self.v_ent[ver], self.v_num[ver]): ver for ver in read.get("versions", ()) if self.v_num[ver]},
            {self.l_name[link]: link for link in read.get("links", ())},
            {(self.c_link[claim], self.c_num[claim]): claim for claim in read.get("claims", ())},
            {},
        )

    # ------------------------------------------------------------------ standing

    def superseded(self, ent: int, valid: Instant, tx: Instant) -> bool:
        """Return True if a supersession of the entity holds at (valid, tx)."""
        if not self._has_written or ent >= self._things:
            return super().superseded(ent, valid, tx)
        return bool(self._rows(_SUPERSEDED, self.names[ent], valid, tx)[0][0])

    def written_standing(self, ent: int, valid: Instant, tx: Instant) -> str | None:
        """Return the standing of an entity at (valid, tx) by the rows that the transaction has written. None before they are written, and for a new entity."""
        if not self._has_written or ent >= self._things:
            return None
        numbers = orjson.dumps([ent]).decode()
        found: str = self._database.rows(_STANDINGS, {"numbers": numbers, "valid": valid, "tx": tx})[0][1]
        return found

    def note_written(self) -> None:
        """Record that the transaction has written its rows."""
        self._has_written = True

    def is_shaky(self, ent: int, valid: Instant, tx: Instant) -> bool:
        """Return True if an entity that stands at (valid, tx) is shaky, by the rows of `shaky`.

        A transaction writes its rows at its end. If an earlier change may matter here, it writes them temporarily first.
        """
        if ent >= self._things and not (self.out.added.get(ent) or self.into.added.get(ent)):
            return False  # it is new and rests on nothing
        if not self._has_written:
            if self._is_unshaken(ent, valid, tx):
                return False
            if not self._is_untouched(ent):
                self._show()
        return bool(self._rows(_SHAKY, self.names[ent], valid, tx)[0][0])

    def _is_unshaken(self, ent: int, valid: Instant, tx: Instant) -> bool:
        """Return True if an entity is surely not shaky: the transaction rechecked it after changing its foundations, or added it on sound ones."""
        if self._is_undoing or len(self.kinds) > self._kinds_before:
            return False
        if ent >= self._things and all(
            base not in self._touched
            and self.standing(base, valid, tx) == "stands"
            and not self.is_shaky(base, valid, tx)
            for base in self._bases(ent)
        ):
            return True
        looked = self._looked(ent, valid, tx)
        if looked < self._ops:
            return False
        found = self._foundations(ent)
        last = max(self._touched.get(base, -1) for base in found)
        return len(found) <= _MOST_BASES and last <= looked

    def _looked(self, ent: int, valid: Instant, tx: Instant) -> int:
        """Return the last operation that rechecked an entity at an instant: a confirmation, or a change of its content by this transaction."""
        changed = (op for of, (_, start, stop, op) in self._turned if of == ent and start <= valid < stop)
        return max((self.confirmed_last(ent, tx), *changed))

    def _is_untouched(self, ent: int) -> bool:
        """Return True if the transaction changed neither an entity nor its foundations, so that the stored rows tell whether it is shaky."""
        if self._is_undoing or len(self.kinds) > self._kinds_before or ent >= self._things:
            return False
        found = self._foundations(ent)
        return len(found) == 1 or (len(found) <= _MOST_BASES and self._touched.keys().isdisjoint(found))

    def _foundations(self, ent: int) -> set[int]:
        """Return an entity and all that it ever rested on, directly or indirectly. Stops once there are more than `_MOST_BASES`."""
        found, waiting = {ent}, [ent]
        while waiting and len(found) <= _MOST_BASES:
            bases = set(self._bases(waiting.pop())) - found
            waiting += bases
            found |= bases
        return found

    def _bases(self, ent: int) -> list[int]:
        """Return the entities that an entity ever rested on directly."""
        below = [kind for kind in self.resting if kind not in UPHOLDING]
        above = [kind for kind in self.resting if kind in UPHOLDING]
        return [self.l_tgt[link] for link in self.of_kinds(self.out, ent, below)] + [
            self.l_src[link] for link in self.of_kinds(self.into, ent, above)
        ]

    def _touch(self, *ents: int) -> None:
        self._touched.update(dict.fromkeys(ents, len(self.o_tx) - 1))

    def _touch_ends(self, link: int) -> None:
        """Record that the standing or foundations of a link's ends were changed."""
        kind, source, target = self.l_kind[link], self.l_src[link], self.l_tgt[link]
        if kind in _REPLACING:
            self._touch(source, target)
        elif kind in self.resting:
            self._touch(target if kind in UPHOLDING else source)

    # ------------------------------------------------------------------ adding rows

    def lengths(self) -> Mark:
        """Return the number of rows of each group, including those of the transaction."""
        things, versions, rows, links, claims, link_rows, ops, seen = (
            count.rows for count in self._counts.values()
        )
        closed, links_closed = len(self.closings), len(self.link_closings)
        return Mark(things, versions, rows, closed, links, claims, link_rows, links_closed, ops, seen)

    def steps(self) -> int:
        """Return the number of undoable steps so far, for `undo`."""
        return len(self._undo)

    def undo(self, mark: Mark, steps: int) -> None:
        """Undo all changes since the rows and steps had these numbers, from `lengths` and `steps`."""
        while len(self._undo) > steps:
            self._undo.pop()()
        for group, count in self._counts.items():
            kept = getattr(mark, group)
            for column in self._groups.get(group, ()):
                for number in range(kept, count.rows):
                    column.pop(number, None)
            count.rows = kept
        del self.closings[mark.closings :]
        del self.link_closings[mark.link_closings :]
        self._said.clear()
        self._held.clear()
        self._kinds_read = None

    def _append(self, group: str, *values: Any) -> int:
        """Add a row to the columns of a group of `Mark`. Return its number."""
        count = self._counts[group]
        number = count.rows
        for column, value in zip(self._groups.get(group) or self._columns(group), values, strict=True):
            column[number] = value
        count.rows = number + 1
        return number

    def push(self, lists: Any, key: Any, value: Any) -> None:
        """Add a value to the list of a key."""
        lists.add(key, value)
        self._undo.append(partial(lists.drop, key))

    def add_entity(self, name: str, event: bool, kind: str, key: str | None, scope: str, tx: Instant) -> int:
        """Add a thing. Return its number."""
        ent = self._append("entities", name, event, kind, key, scope, tx, tx)
        if key is not None:
            self.push(self.slots, (key, scope), ent)
        self.ids[name] = ent
        self._undo.append(partial(dict.pop, self.ids, name))
        return ent

    def add_version(self, ent: int, number: int, pos: int, length: int, op: int = -1) -> int:
        """Add a version of a thing. Return its number."""
        ver = self._append("versions", ent, number, pos, length, op)
        self.push(self.versions_of, ent, ver)
        return ver

    def open_row(self, ver: int, period: Period, tx: Instant, op: int) -> int:
        """Open a row: believe a version over a period from `tx` on. Return the row's number."""
        ent = self.v_ent[ver]
        if self.v_op[ver] < 0:
            self.v_op[ver] = op
        row = self._append("rows", ent, ver, *period, tx, OPEN, op, -1)
        self.changed[ent] = tx
        if ent < self._things:
            self._touch(ent)
        self.push(self.rows_of, ent, row)
        self._note_in_slot(row)
        self._change_believed(BelievedRows.insert, BelievedRows.remove, row)
        return row

    def close_row(self, row: int, tx: Instant, op: int) -> None:
        """Close a row: it is not believed from `tx` on."""
        ent = self.r_ent[row]
        self._touch(ent)
        self._note_in_slot(row)
        self._change_believed(BelievedRows.remove, BelievedRows.insert, row)
        self.r_end[row], self.r_close[row], self.changed[ent] = tx, op, tx
        self.closings.append(row)
        self._undo.append(partial(self._reopen, self.r_end, self.r_close, row))

    @staticmethod
    def _reopen(ends: Any, closes: Any, row: int) -> None:
        ends[row], closes[row] = OPEN, -1

    def _change_believed(self, change: Change, back: Change, row: int) -> None:
        """Update the rows believed of a thing, and those of its slot. `back` undoes `change`."""
        now = self.now_of[self.r_ent[row]]
        change(now, row)
        self._undo.append(partial(back, now, row))
        slot = self.slot_of(self.r_ent[row]) if self._held else None
        if slot in self._held:
            change(self._held[slot], row)

    def add_link(self, name: str, source: int, kind: str, target: int) -> int:
        """Add a link. Return its number."""
        link = self._append("links", name, kind, source, target, [], [])
        self.push(self.out, source, link)
        self.push(self.into, target, link)
        if kind == "supersedes":
            self.push(self.successors, target, link)
        if kind in _REPLACING or (target if kind in UPHOLDING else source) < self._things:
            self._touch_ends(link)
        self.link_ids[name] = link
        self._undo.append(partial(dict.pop, self.link_ids, name))
        return link

    def add_claim(
        self,
        link: int,
        number: int,
        said: tuple[int, int, int, str],
        place: tuple[int, int],
        op: int = -1,
    ) -> int:
        """Add a claim about a link. `said`: its strength, is_inferred, is_history and creator; `place`: the number and length of its body."""
        claim = self._append("claims", link, number, *said, *place, op)
        claims = self.claims_of[link]
        claims.append(claim)
        self._undo.append(claims.pop)
        return claim

    def open_link_row(self, claim: int, period: Period, tx: Instant, op: int) -> int:
        """Open a row of a link: believe a claim over a period from `tx` on. Return the row's number."""
        link = self.c_link[claim]
        if self.c_op[claim] < 0:
            self.c_op[claim] = op
        row = self._append("link_rows", link, claim, *period, tx, OPEN, op, -1)
        if link < self._links:
            self._touch_ends(link)
        rows = self.rows_of_link[link]
        rows.append(row)
        self._undo.append(rows.pop)
        return row

    def close_link_row(self, row: int, tx: Instant, op: int) -> None:
        """Close a row of a link: it is not believed from `tx` on."""
        self._touch_ends(self.k_link[row])
        self.k_end[row], self.k_close[row] = tx, op
        self.link_closings.append(row)
        self._undo.append(partial(self._reopen, self.k_end, self.k_close, row))

    def set_taken(self, ent: int, pieces: list[Taken]) -> None:
        """Set the pieces stated of an entity that bounds have removed, so that they do not hold."""
        before = self.taken.get(ent)
        self.taken[ent] = pieces
        back = (
            partial(dict.pop, self.taken, ent)
            if before is None
            else partial(self.taken.__setitem__, ent, before)
        )
        self._undo.append(back)

    def add_seen(self, ent: int, at: Instant, tx: Instant, op: int) -> None:
        """Add an occurrence of an existing event at the instant `at`."""
        rows = self.seen_of[ent]
        before = rows[-1] if rows else -1
        first = at if before < 0 else min(at, self.s_first[before])
        last = at if before < 0 else max(at, self.s_last[before])
        self.push(self.seen_of, ent, self._append("seen", ent, at, tx, op, first, last))

    def note_print(self, ent: int, body: dict[str, Any]) -> None:
        """Record the fingerprint of an event, so that later events of the transaction find it."""
        fingerprint = fingerprint_of(body)
        if fingerprint is not None:
            self.push(self.prints, fingerprint, ent)

    def add_op(self, tx: Instant, verb: str, subject: str, author: str | None, pos: int, length: int) -> int:
        """Add an operation. Return its number."""
        op = self._append("ops", tx, verb, subject, author, pos, length, tx)
        if verb == UNDO:
            self._is_undoing = True
            self.push(self.undone_by, instant(subject), op)
            self._said.clear()
        elif verb == "confirm":
            self.push(self.confirmed, subject, op)
            self._touch(self.ids.get(subject, -1))
        return op

    def add_settings(self, settings: Iterable[dict[str, Any]]) -> None:
        """Add changed settings."""
        for setting in settings:
            self.settings.append(setting)
            self._undo.append(self.settings.pop)

    def forget(self, ent: int, op: int) -> None:
        """Mark an entity as evicted or erased, at every coordinate. -1 (known on a branch only) is ignored."""
        if ent >= 0:
            self.gone[ent] = op
            self._undo.append(partial(dict.pop, self.gone, ent))

    def _note_in_slot(self, row: int) -> None:
        slot = self.slot_of(self.r_ent[row])
        if slot is not None:
            self._in_slots.setdefault(slot, set()).add(row)

    def add_turn(self, ent: int, turn: Gap) -> None:
        """Record that an operation changed the content of an entity over a period."""
        self._touch(ent)
        self._turned.append((ent, turn))
        self._undo.append(self._turned.pop)

    def turns_since(self, op: int) -> list[tuple[int, Gap]]:
        """Return the content changes by operations from number `op` on, each with its entity."""
        return list(itertools.takewhile(lambda turned: turned[1][3] >= op, reversed(self._turned)))[::-1]


_LEADING: dict[str, Callable[[WorkingSet], Any]] = {
    "ids": lambda me: NumbersByKey(partial(WorkingSet._find, me, "entities")),
    "link_ids": lambda me: NumbersByKey(partial(WorkingSet._find, me, "links")),
    "gone": lambda me: NumbersByKey(partial(WorkingSet._find_forgotten, me)),
    "aliases": lambda me: NumbersByKey(partial(WorkingSet._find_alias, me)),
    "versions_of": lambda me: Lists(partial(WorkingSet._of_thing, me, "versions")),
    "now_of": lambda me: Read(partial(WorkingSet._believed_of, me)),
    "rows_of": lambda me: Lists(partial(WorkingSet._of_thing, me, "rows")),
    "out": lambda me: Lists(lambda ent: me._links_of(ent, "source = ?")),
    "into": lambda me: Lists(lambda ent: me._links_of(ent, "target = ?")),
    "successors": lambda me: Lists(lambda ent: me._links_of(ent, "target = ? AND kind = 'supersedes'")),
    "slots": lambda me: Lists(partial(WorkingSet._entities_of_slot, me)),
    "taken": lambda me: Pieces(lambda ent: me._tuples(_TAKEN, ent, me._things)),
    "gaps": lambda me: Lists(lambda ent: me._tuples(_REMOVED, ent, me._things)),
    "ghosts": lambda me: Lists(lambda ent: me._tuples(_TOLD, ent, me._things)),
    "link_ghosts": lambda me: Lists(lambda link: me._tuples(_LINKED, link, me._links)),
    "confirmed": lambda me: Lists(lambda id: me._operations(_CONFIRMED, id)),
    "undone_by": lambda me: Lists(lambda tx: me._operations(_UNDONE, tx), bool(me._any_undone)),
    "seen_of": lambda me: Lists(partial(WorkingSet._last_seen, me)),
    "prints": lambda me: Lists(partial(WorkingSet._events_alike, me)),
}
"""Functions that create the dictionaries from ids and things to rows, by attribute name."""
