"""Gives a transaction the part of the index that it needs: each value is read from the rows of the ledger when a verb first asks for it.

Things, versions and rows have the numbers of the ledger. Those of the trunk count from 0, as in the whole index; those that a branch adds are beyond all that it
began with (`branch_rows.py`), so numbers tell what came first there too. A column is a dictionary here, and knows the number that its next row gets.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NoReturn

import orjson

from graphstore.core.index.believed_rows import BelievedRows
from graphstore.core.index.columns import Mark, Taken, _OfKinds
from graphstore.core.index.index import BESIDE, Index
from graphstore.core.index.occurrences import print_of
from graphstore.core.journal.line import DESCRIBING, UNDO
from graphstore.core.journal.positions import BLOCK
from graphstore.ledger.branch_rows import TRUNK
from graphstore.ledger.database import Readable
from graphstore.values.period import OPEN, Instant, Period, instant, recorded
from graphstore.values.vocabulary import UPHOLDING

_COUNTS = """
SELECT n.entity, n.version, n.period, n.link, n.claim, n.link_period, n.operation, n.occurrence,
       (SELECT tx FROM chain ORDER BY number DESC LIMIT 1), n.defined & 1099511627775, EXISTS (SELECT 1 FROM undone)
FROM next_number n
"""
_LENGTH = """
CASE WHEN body IS NULL THEN 0 ELSE coalesce((SELECT coalesce(length(b.data), 0) FROM body b WHERE b.number = body), 1) END
"""
_ENTITY = "SELECT number, id, is_event, kind, key, scope, tx_from FROM entity WHERE "
_SLOT = f"{_ENTITY} key = ? AND scope = ? ORDER BY number"
_VERSION = f"SELECT number, entity, ordinal, body, {_LENGTH}, operation FROM version WHERE "
_ROW = "SELECT number, entity, version, valid_from, valid_to, tx_from, tx_to, opened_by, closed_by FROM period WHERE "
_LINK = "SELECT number, id, kind, source, target FROM link WHERE "
_CLAIM = f"""
SELECT number, link, ordinal, strength, is_inferred, created_by, body, {_LENGTH}, operation FROM claim WHERE
"""
_LINK_ROW = "SELECT number, link, claim, valid_from, valid_to, tx_from, tx_to, opened_by, closed_by FROM link_period WHERE "
_OPERATION = f"SELECT number, tx, verb, subject, author, body, {_LENGTH} FROM operation WHERE "
_OCCURRENCE = "SELECT number, event, occurred_at, tx, operation, first, last, ordinal FROM occurrence WHERE "
_PRINT = 'substr(b.data, instr(b.data, CAST(\'"fingerprint":"\' AS BLOB)) + 15, 64)'
_ALIKE = f"""
SELECT v.entity, b.data FROM body b CROSS JOIN version v CROSS JOIN entity e
WHERE instr(b.data, CAST('"fingerprint":"' AS BLOB)) > 0 AND {_PRINT} >= ? AND {_PRINT} < ?
AND v.body = b.number AND e.number = v.entity AND e.is_event = 1 ORDER BY v.entity
"""
_FORGOTTEN = "SELECT operation FROM forgotten WHERE entity = ?"
_TAKEN = "SELECT version, valid_from, valid_to FROM taken WHERE link = ? ORDER BY number"
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
_KEEPING = (
    "SELECT DISTINCT t.link FROM link l JOIN taken t ON t.link = l.number "
    "WHERE l.target = ? AND l.kind = 'supersedes' ORDER BY t.link"
)
_NUMBER = "(SELECT e.number FROM entity e WHERE e.id = ?1)"  # rows that came and went in the transaction have none, so its own numbers may differ
_SHAKY = f"""
SELECT EXISTS (SELECT 1 FROM shaky WHERE entity = {_NUMBER} AND valid_from <= ?2 AND tx_from <= ?3 AND valid_to > ?2 AND tx_to > ?3)
"""
_SUPERSEDED = f"""
SELECT EXISTS (
  SELECT 1 FROM link l CROSS JOIN link_period p
  WHERE l.target = {_NUMBER} AND l.kind = 'supersedes' AND p.link = l.number AND p.valid_from <= ?2 AND p.valid_to > ?2 AND p.tx_from <= ?3 AND p.tx_to > ?3
)
"""
_HEAD = "SELECT head, (SELECT o.number FROM operation o WHERE o.tx = chain.tx LIMIT 1) FROM chain WHERE "
_HEADS = f"{_HEAD} tx = ? ORDER BY part"
_TOOK = f"""
{_HEAD} tx >= ? AND tx < ? AND instr(head, CAST('"took":{{' AS BLOB)) > 0 AND instr(head, ?) > 0 ORDER BY tx DESC, part DESC
"""
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
    32  # entities that are looked at to tell whether one is shaky; above that the transaction shows its rows
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
_OF_ORDINAL = (
    "SELECT number FROM version WHERE entity = ? AND ordinal = ? AND number < ? ORDER BY number DESC LIMIT 1"
)


_OF_IDS = f"{_ENTITY} id IN (SELECT value FROM json_each(?))"
_OF_NUMBERS = "number IN (SELECT value FROM json_each(?))"
_LINKS_OF_IDS = "id IN (SELECT value FROM json_each(?))"
_LINKS_BY_SOURCE, _LINKS_BY_TARGET = (
    "number IN (SELECT l.number FROM json_each(?) s CROSS JOIN link l WHERE "
    f"{source}l.source = s.value ->> 0 AND l.kind = s.value ->> 1 AND {target}l.target = s.value ->> 2) ORDER BY number"
    for source, target in (("", "+"), ("+", ""))
)
_STARTS = """
SELECT s.value, (SELECT valid_from FROM period WHERE entity = s.value AND closed_by IS NULL ORDER BY valid_from LIMIT 1) FROM json_each(?) s
"""
_SOLE = """
SELECT s.value, CASE WHEN (SELECT count(*) FROM (SELECT 1 FROM period p WHERE p.entity = s.value LIMIT 2)) = 1
  AND (SELECT count(*) FROM (SELECT 1 FROM version v WHERE v.entity = s.value LIMIT 2)) = 1
  AND NOT EXISTS (SELECT 1 FROM told t WHERE t.entity = s.value) AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = s.value)
  THEN (SELECT p.number FROM period p WHERE p.entity = s.value AND p.closed_by IS NULL) END
FROM json_each(?) s
"""


def is_text(id: Any) -> bool:
    """Return False for what is stored nowhere: no text, or one with a lone surrogate."""
    try:
        return isinstance(id, str) and id.encode() is not None
    except UnicodeEncodeError:
        return False


class Column(dict[int, Any]):
    """Holds the values of a column that were read or added. `load` reads the value of a number, together with other columns."""

    __slots__ = ("_count", "_load")

    def __init__(self, count: int, load: Callable[[int], object]) -> None:
        self._count, self._load = count, load

    def __missing__(self, number: int) -> Any:
        if not 0 <= number < self._count:
            raise IndexError(f"there is no row {number}: there are {self._count}")
        self._load(number)
        return self.get(number)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> NoReturn:
        raise TypeError("a transaction does not look through a whole column of the store")

    def __delitem__(self, rows: Any) -> None:
        for number in range(rows.start, self._count):
            self.pop(number, None)
        self._count = min(rows.start, self._count)

    def append(self, value: Any) -> None:
        """Add a row."""
        self[self._count] = value
        self._count += 1

    def extend(self, values: Iterable[Any]) -> None:
        """Add rows."""
        before = dict.__len__(self)
        self.update(enumerate(values, self._count))
        self._count += dict.__len__(self) - before


class Lists(dict[Any, list[Any]]):
    """Holds a list of rows for each key, such as a thing or an id, and reads it when it is first asked for. Adding to a list does not read it."""

    __slots__ = ("_added", "_any", "_load")

    def __init__(self, load: Callable[[Any], Any], is_any: bool = True) -> None:
        self._load, self._any = load, is_any
        self._added: dict[Any, list[Any]] = {}

    def __missing__(self, key: Any) -> list[Any]:
        found: list[Any] = self._load(key) + self._added.pop(key, [])
        self[key] = found
        return found

    def __contains__(self, key: object) -> bool:
        return bool(self[key])

    def __bool__(self) -> bool:
        return self._any or bool(self._added)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the rows of a key; the default where there are none."""
        return self[key] or default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the list to which a row of a key is added."""
        return self[key] if dict.__contains__(self, key) else self._added.setdefault(key, [])


class Pieces(Lists):
    """Holds what each supersession has taken. A link has an entry where the rows have something of it, or where the transaction has set its list, even to nothing."""

    __slots__ = ()

    def __missing__(self, key: Any) -> list[Any]:
        found: list[Any] = self._load(key)
        if found:
            self[key] = found
        return found

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or bool(self[key])

    def get(self, key: Any, default: Any = None) -> Any:
        """Return what a link has taken; the default where it has no entry."""
        return self[key] if key in self else default


class Occurrences:
    """Lists the occurrences of an event after its first report. It knows their count and the last one, and reads all when another one is asked for."""

    __slots__ = ("_all", "_count", "_last", "_load")

    def __init__(self, count: int, last: int, load: Callable[[], list[int]]) -> None:
        self._count, self._last, self._load = count, last, load
        self._all: list[int] | None = None if count else []

    def _read(self) -> list[int]:
        if self._all is None:
            self._all = self._load()
        return self._all

    def __len__(self) -> int:
        return self._count if self._all is None else len(self._all)

    def __getitem__(self, at: Any) -> Any:
        if self._all is None and at in (-1, self._count - 1):
            return self._last
        return self._read()[at]

    def append(self, number: int) -> None:
        """Add an occurrence."""
        if self._all is not None:
            self._all.append(number)
            return
        before = self._load
        self._load = lambda: [*before(), number]
        self._count, self._last = self._count + 1, number

    def pop(self) -> None:
        """Remove the last one."""
        self._read().pop()


class Events(Lists):
    """Holds the `Occurrences` of each event."""

    __slots__ = ()

    def __missing__(self, key: Any) -> Any:
        found: Any = self._load(key)
        self[key] = found
        return found

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the occurrences of an event, to which one is added."""
        return self[key]


class Numbers(dict[Any, int]):
    """Finds the number that belongs to a key, such as an id, when it is first asked for. A key without a number is missing; `absent` are those keys that were asked for."""

    __slots__ = ("_find", "absent")

    def __init__(self, find: Callable[[Any], int | None]) -> None:
        self._find = find
        self.absent: set[Any] = set()

    def __missing__(self, key: Any) -> int:
        try:
            number = None if key in self.absent else self._find(key)
        except UnicodeEncodeError:  # a lone surrogate is stored nowhere
            number = None
        if number is None:
            self.absent.add(key)
            raise KeyError(key)
        self[key] = number
        return number

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the number of a key, or the default."""
        try:
            return self[key]
        except KeyError:
            return default


class _Anything:
    """Stands for a set of the index that only spares it from looking: it contains everything, so the rows are always asked."""

    def __contains__(self, key: object) -> bool:
        return True

    def add(self, key: object) -> None:
        """Nothing is noted."""

    def get(self, key: object, default: object = None) -> int:
        """Return an instant before all others."""
        return -OPEN


class KnownKinds:
    """Keeps the kinds of link that a store has defined, so that each is parsed once and not by each transaction."""

    def __init__(self) -> None:
        self.count = 0
        self.kinds: list[dict[str, Any]] = []
        self.promoted: list[str] = []
        self.read = _OfKinds()

    def read_again(self, database: Readable) -> None:
        """Read all kinds, since some that were read are not kept."""
        self.__init__()  # type: ignore[misc]
        [(count,)] = database.rows("SELECT defined & 1099511627775 FROM next_number")
        self.follow(database, count)

    def follow(self, database: Readable, count: int) -> None:
        """Read the kinds that were defined since."""
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
    """Has what one transaction has looked at, and what it has changed. It lives as long as the SQL transaction that writes."""

    finds_prints = True
    ids: Numbers
    link_ids: Numbers

    def __init__(self, database: Readable, kinds: KnownKinds, show: Callable[[], object]) -> None:
        """Begin with nothing read. Outside of a transaction it reads what is committed.

        Args:
            database: of the trunk, or of a branch.
            kinds: the kinds of link of that line that are known.
            show: writes as rows what the transaction has done so far.
        """
        super().__init__()
        self._database, self._show, self.line = database, show, database.line
        self.branch, self.lineage = database.branch, database.line.lineage
        if self.branch is not None:
            of_trunk = database.line.of_trunk
            self.forked = Mark(versions=of_trunk["version"], ops=of_trunk["operation"])
        self.closings, self.link_closings, self.turned = (array("q") for _ in range(3))
        [(*counts, last, defined, any_undone)] = database.rows(_COUNTS)
        things, versions, rows, links, claims, link_rows, ops, seen = (count or 0 for count in counts)
        kinds.follow(database, defined)
        self.kinds, self.promoted, self._kinds_read = kinds.kinds[:], kinds.promoted[:], kinds.read
        self._known_kinds = kinds
        # numbers from these on are of rows that the transaction adds, which the tables may have too at its end
        self._things, self._versions, self._periods, self._links = things, versions, rows, links
        self._ops, self._seen, self._last = ops, seen, last or 0
        self.last_tx = self._last
        self._has_written = False  # whether the rows have what the transaction did
        # what was added, by the thing it is of
        self._fresh_rows: dict[int, list[int]] = {}
        self._fresh_versions: dict[int, list[int]] = {}
        self._fresh_out: dict[int, list[int]] = {}
        self._fresh_into: dict[int, list[int]] = {}
        self._stored_links: dict[
            tuple[int, str, int], list[int]
        ] = {}  # source, kind, target -> links that were read before a transaction asks
        self._starts: dict[
            int, Instant | None
        ] = {}  # from when on stored things were believed before the transaction
        self._unlisted: dict[
            int, list[int]
        ] = {}  # rows opened or closed of things whose believed rows were not read
        self._in_slots: dict[tuple[str, str], set[int]] = {}  # rows that were opened or closed in a slot
        # of what the transaction has changed more than that it is new: how it stands, or what it rests on
        self._touched: dict[int, int] = {}  # each with the last operation by then
        self._is_undoing = False
        self._kinds_before = len(self.kinds)
        self._init_leading(any_undone)
        self._init_columns(claims, link_rows)

    def _init_columns(self, claims: int, link_rows: int) -> None:
        """Make the columns, whose values are read when they are first asked for."""
        own, things, versions, rows = vars(self), self._things, self._versions, self._periods
        links, ops, seen = self._links, self._ops, self._seen
        for count, load, names in (
            (things, self._load_entity, ("names", "is_event", "kind", "key", "scope", "born", "changed")),
            (things, self._load_versions, ("versions_of",)),
            (things, self._load_rows, ("rows_of",)),
            (things, self._load_believed, ("now_of",)),
            (versions, self._load_version, ("v_ent", "v_num", "v_pos", "v_len", "v_op")),
            (rows, self._load_row,
             ("r_ent", "r_ver", "r_from", "r_to", "r_tx", "r_end", "r_op", "r_close")),
            (links, self._load_link, ("l_name", "l_kind", "l_src", "l_tgt")),
            (links, self._load_link_rows, ("rows_of_link",)),
            (links, self._load_claims, ("claims_of",)),
            (claims, self._load_claim,
             ("c_link", "c_num", "c_strength", "c_inferred", "c_by", "c_pos", "c_len", "c_op")),
            (link_rows, self._load_link_row,
             ("k_link", "k_claim", "k_from", "k_to", "k_tx", "k_end", "k_op", "k_close")),
            (ops, self._load_op, ("o_tx", "o_verb", "o_subject", "o_author", "o_pos", "o_len")),
            (seen, self._load_seen_row, ("s_ent", "s_at", "s_tx", "s_op", "s_first", "s_last")),
        ):  # fmt: skip
            for name in names:
                own[name] = Column(count, load)

    def _init_leading(self, any_undone: int) -> None:
        """Make the dictionaries that lead from ids and things to rows."""
        everything: Any = _Anything()
        self.rests = self.based = self.tainted = everything
        self._shaken = self
        self.ids = Numbers(self._find_entity)
        self.link_ids = Numbers(self._find_link)
        self.gone = Numbers(self._find_forgotten)
        self.aliases = Numbers(self._find_alias)
        self.out = Lists(lambda ent: self._links_of(ent, "source = ?"))
        self.into = Lists(lambda ent: self._links_of(ent, "target = ?"))
        self.successors = Lists(lambda ent: self._links_of(ent, "target = ? AND kind = 'supersedes'"))
        self.corrected = Lists(lambda ent: self._links_of(ent, "target = ? AND kind = 'corrects'"))
        self.even = Lists(self._symmetric_links)
        self.slots = Lists(self._entities_of_slot)
        self.taken = Pieces(lambda link: self._tuples(_TAKEN, link, self._links))
        self.gaps = Lists(lambda ent: self._tuples(_REMOVED, ent, self._things))
        self.ghosts = Lists(lambda ent: self._tuples(_TOLD, ent, self._things))
        self.link_ghosts = Lists(lambda link: self._tuples(_LINKED, link, self._links))
        self.confirmed = Lists(lambda id: [op for (op,) in self._rows(_CONFIRMED, id) if op < self._ops])
        self.undone_by = Lists(
            lambda tx: [op for (op,) in self._rows(_UNDONE, tx) if op < self._ops], bool(any_undone)
        )
        self.seen_of = Events(self._last_seen)
        self.prints = Lists(self._events_alike)

    def _symmetric_links(self, ent: int) -> list[int]:
        kinds = [kind for kind in self.symmetric if kind not in self.resting and kind not in _REPLACING]
        old = (
            self._take_links(f"{end} = ? AND kind = ?", ent, kind)
            for end in ("source", "target")
            for kind in kinds
        )
        return sorted(link for links in old for link in links) if ent < self._things else []

    def _of_kinds(self) -> _OfKinds:
        """See `Columns._of_kinds`. What was read of the kinds is kept for the next transaction."""
        found = self._known_kinds.read = super()._of_kinds()
        return found

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        return self._database.rows(statement, values)

    # ------------------------------------------------------------------ what is read

    def _find_entity(self, id: str) -> int | None:
        return next(iter(self._take_entities(f"{_ENTITY} id = ?", id)), None)

    def _load_entity(self, number: int) -> None:
        self._take_entities(f"{_ENTITY} number = ?", number)

    def _entities_of_slot(self, slot: tuple[str, str]) -> list[int]:
        return self._take_entities(_SLOT, *slot)

    def _take_entities(self, statement: str, *values: Any) -> list[int]:
        found = []
        for number, id, is_event, kind, key, scope, tx in self._rows(statement, *values):
            if number >= self._things:
                continue
            found.append(number)
            if number not in self.names:
                self.names[number], self.is_event[number], self.kind[number] = id, is_event, kind
                self.key[number], self.scope[number], self.born[number] = key, scope, tx
                self.changed[number] = self._last  # nothing was changed later
                dict.__setitem__(self.ids, id, number)
        return found

    def prepare_ids(self, ids: Iterable[str]) -> None:
        """Read which things have ids. Each is looked for once."""
        wanted = {id for id in ids if not dict.__contains__(self.ids, id) and id not in self.ids.absent}
        if asked := [id for id in wanted if is_text(id)]:
            self._take_entities(_OF_IDS, orjson.dumps(asked).decode())
        self.ids.absent |= {id for id in wanted if not dict.__contains__(self.ids, id)}

    def prepare_rows(self, rows: Iterable[int]) -> None:
        """Read rows of periods."""
        if missing := [row for row in rows if row < self._periods and row not in self.r_ent]:
            self._take_rows(_OF_NUMBERS, orjson.dumps(missing).decode())

    def sole_rows(self, ents: Iterable[int]) -> dict[int, int]:
        """Return the row of each of some nodes without a slot of which one is all that was ever said, if it is believed. The nodes' columns were read."""
        asked = [
            ent for ent in ents if ent < self._things and self.key[ent] is None and not self.is_event[ent]
        ]
        found = self._rows(_SOLE, orjson.dumps(asked).decode()) if asked else []
        rows = {ent: row for ent, row in found if row is not None and not self._fresh_rows.get(ent)}
        self.prepare_rows(rows.values())
        for ver in [self.r_ver[row] for row in rows.values()]:
            self.v_num[ver]
        return rows

    def prepare_links(self, ids: Iterable[str], ends: Iterable[tuple[int, str, int]]) -> None:
        """Read which links have ids, which links say that one thing is linked to another, and what is believed of those."""
        wanted = {id for id in ids if not dict.__contains__(self.link_ids, id)}
        if asked := [id for id in wanted if is_text(id)]:
            self._take_links(_LINKS_OF_IDS, orjson.dumps(asked).decode())
        self.link_ids.absent |= {id for id in wanted if not dict.__contains__(self.link_ids, id)}
        old = [
            one for one in set(ends) if one not in self._stored_links and max(one[0], one[2]) < self._things
        ]
        if not old:
            return
        self._stored_links.update((one, []) for one in old)
        many_sources = 2 * len({source for source, _, _ in old}) > len({target for *_, target in old})
        statement = _LINKS_BY_SOURCE if many_sources else _LINKS_BY_TARGET
        for link in self._take_links(statement, orjson.dumps(old).decode()):
            self._stored_links[self.l_src[link], self.l_kind[link], self.l_tgt[link]].append(link)
        self._prepare_starts({end for source, _, target in old for end in (source, target)})

    def _prepare_starts(self, ents: Iterable[int]) -> None:
        """Read from when on things are believed."""
        missing = [ent for ent in ents if ent not in self._starts]
        self._starts.update(self._rows(_STARTS, orjson.dumps(missing).decode()))

    def _find_forgotten(self, ent: int) -> int | None:
        rows = self._rows(_FORGOTTEN, ent) if ent < self._things else ()
        return rows[0][0] if rows else None

    def _find_alias(self, alias: tuple[str, int, str]) -> int | None:
        """Return the version that a merge took from a branch, where it had that number."""
        branch, number, id = alias
        rows = self._rows(_ALIAS, id, branch, number)
        return rows[0][0] if rows else None

    def _load_version(self, number: int) -> None:
        self._take_versions("number = ?", number)

    def _load_versions(self, ent: int) -> None:
        found = self._take_versions("entity = ? ORDER BY number", ent)
        self.versions_of[ent] = found + self._fresh_versions.get(ent, [])

    def _take_versions(self, condition: str, *values: Any) -> list[int]:
        found = []
        for number, entity, ordinal, body, length, operation in self._rows(_VERSION + condition, *values):
            if number >= self._versions:
                continue
            found.append(number)
            if number not in self.v_ent:
                self.v_ent[number], self.v_num[number] = entity, ordinal
                self.v_pos[number], self.v_len[number] = body << BLOCK, length
                self.v_op[number] = -1 if operation is None else operation
        return found

    def _load_row(self, number: int) -> None:
        self._take_rows("number = ?", number)

    def _load_rows(self, ent: int) -> None:
        found = self._take_rows("entity = ? ORDER BY number", ent)
        self.rows_of[ent] = found + self._fresh_rows.get(ent, [])

    def _load_believed(self, ent: int) -> None:
        self.now_of[ent] = self._believed(_OF_THING, (ent,), self._unlisted.pop(ent, ()))

    def _believed(self, whose: str, values: tuple[Any, ...], changed: Collection[int] = ()) -> Any:
        """Return the rows believed of a thing or in a slot; `changed`: those that the transaction has opened or closed there."""

        def read(condition: str, order: str, limit: int, *more: Any) -> list[int]:
            return self._take_rows(
                f"{whose} AND closed_by IS NULL AND {condition} AND number < ? ORDER BY {order} LIMIT ?",
                *values, *more, self._periods, limit,
            )  # fmt: skip

        opened = [row for row in changed if row >= self._periods and self.r_close[row] < 0]
        closed = [row for row in changed if row < self._periods and self.r_close[row] >= 0]
        if not changed:
            rows = read("valid_from < ?", "valid_from", FEW_ROWS + 1, OPEN)
            if len(rows) <= FEW_ROWS:
                return rows
        return BelievedRows(read, self.r_from.__getitem__, opened, closed)

    def _take_rows(self, condition: str, *values: Any) -> list[int]:
        found = []
        for number, entity, version, start, stop, tx, end, by, closed in self._rows(
            _ROW + condition, *values
        ):
            if number >= self._periods:
                continue
            found.append(number)
            if number not in self.r_ent:
                self.r_ent[number], self.r_ver[number] = entity, version
                self.r_from[number], self.r_to[number] = start, stop
                self.r_tx[number], self.r_end[number], self.r_op[number] = tx, end, by
                self.r_close[number] = -1 if closed is None else closed
        return found

    def _find_link(self, id: str) -> int | None:
        return next(iter(self._take_links("id = ?", id)), None)

    def _load_link(self, number: int) -> None:
        self._take_links("number = ?", number)

    def _links_of(self, ent: int, condition: str) -> list[int]:
        return self._take_links(f"{condition} ORDER BY number", ent) if ent < self._things else []

    def _take_links(self, condition: str, *values: Any) -> list[int]:
        found = []
        for number, id, kind, source, target in self._rows(_LINK + condition, *values):
            if number >= self._links:
                continue
            found.append(number)
            if number not in self.l_name:
                self.l_name[number], self.l_kind[number] = id, kind
                self.l_src[number], self.l_tgt[number] = source, target
                dict.__setitem__(self.link_ids, id, number)
        return found

    def _load_link_row(self, number: int) -> None:
        self._take_link_rows("number = ?", number)

    def _load_link_rows(self, link: int) -> None:
        self.rows_of_link[link] = self._take_link_rows("link = ? ORDER BY number", link)

    def _take_link_rows(self, condition: str, *values: Any) -> list[int]:
        found = []
        for number, link, claim, start, stop, tx, end, by, closed in self._rows(
            _LINK_ROW + condition, *values
        ):
            found.append(number)
            if number not in self.k_link:
                self.k_link[number], self.k_claim[number] = link, claim
                self.k_from[number], self.k_to[number] = start, stop
                self.k_tx[number], self.k_end[number], self.k_op[number] = tx, end, by
                self.k_close[number] = -1 if closed is None else closed
        return found

    def _load_claim(self, number: int) -> None:
        self._take_claims("number = ?", number)

    def _load_claims(self, link: int) -> None:
        self.claims_of[link] = self._take_claims("link = ? ORDER BY number", link)

    def _take_claims(self, condition: str, *values: Any) -> list[int]:
        found = []
        for number, link, ordinal, strength, inferred, by, body, length, operation in self._rows(
            _CLAIM + condition, *values
        ):
            found.append(number)
            if number not in self.c_link:
                self.c_link[number], self.c_num[number], self.c_strength[number] = (
                    link,
                    ordinal,
                    strength or 0,
                )
                self.c_inferred[number], self.c_by[number] = inferred, by
                self.c_pos[number], self.c_len[number] = (body or 0) << BLOCK, length
                self.c_op[number] = -1 if operation is None else operation
        return found

    def _load_op(self, number: int) -> None:
        [(_, tx, verb, subject, author, body, length)] = self._rows(f"{_OPERATION} number = ?", number)
        self.o_tx[number], self.o_verb[number], self.o_subject[number] = tx, verb, subject
        self.o_author[number] = author
        self.o_pos[number], self.o_len[number] = (body or 0) << BLOCK, length

    def _load_seen_row(self, number: int) -> None:
        self._take_seen("number = ?", number)

    def _last_seen(self, ent: int) -> Occurrences:
        last = (
            self._take_seen("event = ? ORDER BY tx DESC, number DESC LIMIT 1", ent)
            if ent < self._things
            else []
        )
        count, number = last[0] if last else (0, -1)
        return Occurrences(
            count, number, lambda: [row for _, row in self._take_seen("event = ? ORDER BY number", ent)]
        )

    def _take_seen(self, condition: str, *values: Any) -> list[tuple[int, int]]:
        found = []
        for number, event, at, tx, operation, first, last, ordinal in self._rows(
            _OCCURRENCE + condition, *values
        ):
            if number >= self._seen:
                continue
            found.append((ordinal, number))
            self.s_ent[number], self.s_at[number], self.s_tx[number] = event, at, tx
            self.s_op[number], self.s_first[number], self.s_last[number] = operation, first, last
        return found

    def _events_alike(self, printed: str) -> list[int]:
        """Return the events with a fingerprint and a scope, in the order in which they were recorded."""
        found = []
        for fingerprint in {printed, printed.partition("\0")[0]}:
            begins = orjson.dumps(fingerprint)[1:65]  # with the quotation mark at its end where it is short
            for ent, data in self._rows(_ALIKE, begins, begins[:-1] + bytes([begins[-1] + 1])):
                body = orjson.loads(data)
                is_one = (
                    "fingerprint" in body and "authorized" not in body
                )  # metadata may have that field too
                if ent < self._things and is_one and print_of(body) == printed:
                    found.append(ent)
        return sorted(found)

    def _tuples(self, statement: str, number: int, count: int) -> list[Any]:
        return self._rows(statement, number) if number < count else []

    # ------------------------------------------------------------------ what needs no whole list

    def saying(
        self, source: int, kind: str, target: int, near: Period | None = None, tx: Instant = OPEN
    ) -> list[int]:
        """See `Index.saying`."""
        known = []
        if source < self._things and target < self._things:
            stored = self._stored_links.get((source, kind, target))
            known = (
                stored
                if stored is not None
                else self._take_links(
                    "source = ? AND kind = ? AND target = ? ORDER BY number", source, kind, target
                )
            )
        fresh = min(self._fresh_out.get(source, []), self._fresh_into.get(target, []), key=len)
        ends = source, kind, target
        return known + [
            link for link in fresh if (self.l_src[link], self.l_kind[link], self.l_tgt[link]) == ends
        ]

    def of_kinds(self, side: dict[int, list[int]], ent: int, kinds: Collection[str]) -> list[int]:
        """See `Index.of_kinds`."""
        column, added = ("source", self._fresh_out) if side is self.out else ("target", self._fresh_into)
        links: list[int] = []
        if ent < self._things and kinds:
            marks = ", ".join("?" * len(kinds))
            links = self._take_links(f"{column} = ? AND kind IN ({marks})", ent, *kinds)
        return sorted(links + [link for link in added.get(ent, ()) if self.l_kind[link] in kinds])

    def keeping(self, ent: int) -> list[int]:
        """See `Index.keeping`."""
        found = {link for (link,) in self._rows(_KEEPING, ent)} if ent < self._things else set()
        changed = [link for link in dict.keys(self.taken) if self.l_tgt[link] == ent and self.taken[link]]
        return sorted(found.union(changed))

    def held(self, slot: tuple[str, str]) -> list[int]:
        """See `Index.held`."""
        found: Any = self._held.get(slot)
        if found is None:
            changed = self._in_slots.get(slot, ())
            here = [row for row in changed if row < len(self.r_ent) and self._slot(self.r_ent[row]) == slot]
            found = self._held[slot] = self._believed(_OF_SLOT, slot, here)
        return found  # type: ignore[no-any-return]

    def _slot(self, ent: int) -> tuple[str, str] | None:
        key = self.key[ent]
        return None if key is None else (key, self.scope[ent])

    def start(self, ent: int, tx: Instant) -> Instant | None:
        """See `Index.start`."""
        if ent in self._starts and self.changed[ent] == self._last < tx:
            return self._starts[ent]
        return super().start(ent, tx)

    def find(self, ent: int, valid: Instant, tx: Instant) -> int:
        """See `Index.find`."""
        if tx < self.changed[ent] or ent in self.gone:
            return super().find(ent, valid, tx)
        row = self.last_before(self.now_of[ent], valid + 1)
        return row if row >= 0 and self.r_to[row] > valid else -1

    def over(self, rows: Any, period: Period) -> list[int]:
        """See `Columns.over`."""
        if not isinstance(rows, BelievedRows):
            return super().over(rows, period)
        first = rows.last_before(period[0] + 1)
        before = [first] if first >= 0 and self.r_to[first] > period[0] else []
        return before + rows.between(period[0] + 1, period[1])

    def last_before(self, rows: Any, at: Instant) -> int:
        """See `Columns.last_before`."""
        return rows.last_before(at) if isinstance(rows, BelievedRows) else super().last_before(rows, at)

    def first_since(self, rows: Any, at: Instant) -> int:
        """See `Columns.first_since`."""
        return rows.first_since(at) if isinstance(rows, BelievedRows) else super().first_since(rows, at)

    def between(self, rows: Any, start: Instant, stop: Instant) -> list[int]:
        """See `Columns.between`."""
        if isinstance(rows, BelievedRows):
            return rows.between(start, stop)
        return super().between(rows, start, stop)

    def _believe(self, rows: Any, row: int) -> None:
        if isinstance(rows, BelievedRows):
            rows.insert(row)
        else:
            super()._believe(rows, row)

    def _drop(self, rows: Any, row: int) -> None:
        if isinstance(rows, BelievedRows):
            rows.remove(row)
        else:
            super()._drop(rows, row)

    def newest_version(self, ent: int) -> int:
        """See `Index.newest_version`."""
        if ent >= self._things:
            return -1
        found = self._take_versions(
            "entity = ? AND ordinal > 0 AND number < ? ORDER BY ordinal DESC LIMIT 1", ent, self._versions
        )
        return found[0] if found else -1

    def fresh_version(self, ent: int) -> int:
        """See `Index.fresh_version`."""
        versions = self._fresh_versions.get(ent)
        return versions[-1] if versions else -1

    def fresh_rows(self, ent: int) -> Iterator[int]:
        """See `Index.fresh_rows`."""
        return reversed(self._fresh_rows.get(ent, []))

    def said_over(self, ent: int, span: Period) -> Iterable[tuple[Instant, Instant, int]]:
        """See `Index.said_over`."""
        rows = self.over(self.now_of[ent], span) if ent < self._things else []
        pieces = [(self.r_from[row], self.r_to[row], self.r_ver[row]) for row in rows[: FEW_ROWS + 1]]
        if 0 < len(pieces) <= FEW_ROWS and pieces[0][0] <= span[0] and pieces[-1][1] >= span[1]:
            is_whole = all(one[1] == two[0] for one, two in itertools.pairwise(pieces))
            if is_whole and not any(self._is_said_later(ent, *piece, span) for piece in pieces):
                return pieces
        return super().said_over(ent, span)

    def _is_said_later(self, ent: int, start: Instant, stop: Instant, ver: int, span: Period) -> bool:
        """Return False if nothing was said of an entity after a version that is believed over a part of a period."""
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
        """See `Index.setting_at`."""
        if tx >= self._last:
            return self.setting(name)
        rows = self._rows(_SETTING_AT, name, tx)
        return orjson.loads(rows[0][0]) if rows else None

    def setting(self, name: str) -> Any:
        """See `Index.setting`."""
        if name in self.set_at:
            return super().setting(name)
        rows = self._rows(_SETTING, name)
        return orjson.loads(rows[0][0]) if rows else None

    def ids_beside(self, id: str) -> list[str]:
        """See `Index.ids_beside`."""
        fresh = [self.names[ent] for ent in range(self._things, len(self.names))]
        return self._beside("entity", self._things, fresh, id)

    def link_ids_beside(self, id: str) -> list[str]:
        """See `Index.link_ids_beside`."""
        fresh = [self.l_name[link] for link in range(self._links, len(self.l_name))]
        return self._beside("link", self._links, fresh, id)

    def _beside(self, table: str, count: int, fresh: list[str], id: str) -> list[str]:
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

    # ------------------------------------------------------------------ what a transaction did

    def _visible(self, statement: str, *values: Any) -> Iterator[dict[str, Any]]:
        """Give the heads of lines of the chain that this line of belief has, of those that a statement finds."""
        for raw, op in self._rows(statement, *values):
            if op is not None:
                head: dict[str, Any] = orjson.loads(raw)
                if (head.get("branch") is None) == TRUNK.is_own(
                    op
                ):  # else it forgets on the trunk what a branch has too
                    yield head

    def known_by(self, tx: Instant) -> int:
        """See `Index.known_by`."""
        parts = self.line.numbers("entity", len(self.born))
        found = (bisect_right(self.born, tx, part.start, part.stop) for part in reversed(parts))
        return next((stop for stop, part in zip(found, reversed(parts), strict=True) if stop > part.start), 0)

    def ops_at(self, tx: Instant) -> range:
        """See `Index.ops_at`."""
        return self._written_at("operation", self.o_tx, tx)

    def ops_beside(self, tx: Instant) -> list[int]:
        """See `Index.ops_beside`."""
        return [op for statement in (_BEFORE, _SINCE) for (op,) in self._rows(statement, tx)]

    def instants_between(self, first: Instant, stop: Instant) -> list[Instant]:
        """See `Index.instants_between`."""
        return [tx for (tx,) in self._rows(_INSTANTS, first, stop)]

    def rows_at(self, tx: Instant) -> range:
        """See `Index.rows_at`."""
        return self._written_at("period", self.r_tx, tx)

    def link_rows_at(self, tx: Instant) -> range:
        """See `Index.link_rows_at`."""
        return self._written_at("link_period", self.k_tx, tx)

    def link_rows_after(self, tx: Instant) -> list[range]:
        """See `Index.link_rows_after`."""
        parts = self.line.numbers("link_period", len(self.k_tx))
        return [range(bisect_right(self.k_tx, tx, part.start, part.stop), part.stop) for part in parts]

    def _written_at(self, table: str, instants: Any, tx: Instant) -> range:
        """Return the rows of a table that a transaction wrote, by the column of their instants."""
        for part in self.line.numbers(table, len(instants)):
            first = bisect_left(instants, tx, part.start, part.stop)
            if first < part.stop and instants[first] == tx:
                return range(first, bisect_right(instants, tx, first, part.stop))
        return range(0)

    def closed_at(self, tx: Instant) -> tuple[list[int], list[int]]:
        """See `Index.closed_at`."""
        heads, number = list(self._visible(_HEADS, tx)), self.line.row
        rows = [number("period", row) for head in heads for row, _ in head.get("closed", ())]
        return rows, [number("link_period", row) for head in heads for row, _ in head.get("link_closed", ())]

    def taken_at(self, tx: Instant, new: Iterable[int]) -> dict[int, tuple[list[Taken], list[Taken]]]:
        """See `Index.taken_at`. What a supersession had taken before is in an earlier line of the chain, not before the one that made its link."""
        found: dict[int, tuple[list[Taken], list[Taken]]] = {}
        made = set(new)
        for head in self._visible(_HEADS, tx):
            for id, pieces in head.get("took", {}).items():
                link = self.link_ids[id]
                after = self._pieces(link, pieces)
                found[link] = [] if link in made else self._taken_before(link, id, tx), after
        for link in made - found.keys():
            if link in self.taken:
                found[link] = [], []
        return found

    def _taken_before(self, link: int, id: str, tx: Instant) -> list[Taken]:
        born = self.k_tx[self.rows_of_link[link][0]]
        for head in self._visible(_TOOK, born, tx, orjson.dumps(id)):
            if id in head["took"]:
                return self._pieces(link, head["took"][id])
        return []

    def _pieces(self, link: int, pieces: Iterable[tuple[int, str, str | None]]) -> list[Taken]:
        old = self.l_tgt[link]
        found: list[Taken] = []
        for ordinal, start, stop in pieces:
            ver = self._rows(_OF_ORDINAL, old, ordinal, self._versions)[0][0]
            found.append((ver, recorded(start), OPEN if stop is None else recorded(stop)))
        return found

    def settings_at(self, tx: Instant) -> dict[str, tuple[Any, Any]]:
        """See `Index.settings_at`."""
        changed = [setting for head in self._visible(_HEADS, tx) for setting in head.get("settings", ())]
        left = {name: value for setting in changed for name, value in setting.items()}
        return {name: (self.setting_at(name, tx - 1), value) for name, value in left.items()}

    # ------------------------------------------------------------------ how things stand

    def superseded(self, ent: int, valid: Instant, tx: Instant) -> bool:
        """See `Index.superseded`."""
        if not self._has_written:
            return super().superseded(ent, valid, tx)
        return bool(self._rows(_SUPERSEDED, self.names[ent], valid, tx)[0][0])

    def note_written(self) -> None:
        """Note that the transaction has written its rows."""
        self._has_written = True

    def says(self, ent: int, valid: Instant, tx: Instant) -> int:
        """Return 1 if an entity that stands at (valid, tx) is shaky, else 0, by the rows of `shaky`.

        A transaction writes its rows at its end. Before that, it shows them where what it did may matter.
        """
        if not self._has_written:
            if self._is_unshaken(ent, valid, tx):
                return 0
            if not self._is_untouched(ent):
                self._show()
        return int(self._rows(_SHAKY, self.names[ent], valid, tx)[0][0])

    def _is_unshaken(self, ent: int, valid: Instant, tx: Instant) -> bool:
        """Return True if an entity is surely not shaky: the transaction has looked at it after it changed what the entity rests on, or has made it."""
        if self._is_undoing or len(self.kinds) > self._kinds_before:
            return False
        if ent >= self._things and all(
            base not in self._touched
            and self.standing(base, valid, tx) == "stands"
            and not self.says(base, valid, tx)
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
        """Return the operation that looked at an entity last, see `Resting.looked`."""
        row = self.find(ent, valid, tx) if not self.is_event[ent] else -1
        said = self.v_op[self.r_ver[row]] if row >= 0 else -1
        described = said if said >= 0 and self.o_verb[said] in DESCRIBING else -1
        return max(described, self.confirmed_last(ent, tx))

    def _is_untouched(self, ent: int) -> bool:
        """Return True if the transaction has changed nothing of an entity, nor of what it rests on: the stored rows say whether it is shaky."""
        if self._is_undoing or len(self.kinds) > self._kinds_before or ent >= self._things:
            return False
        found = self._foundations(ent)
        return len(found) == 1 or (len(found) <= _MOST_BASES and self._touched.keys().isdisjoint(found))

    def _foundations(self, ent: int) -> set[int]:
        """Return an entity with all that it ever rested on, directly or not, or more than `_MOST_BASES` of those."""
        found, waiting = {ent}, [ent]
        while waiting and len(found) <= _MOST_BASES:
            bases = set(self._bases(waiting.pop())) - found
            waiting += bases
            found |= bases
        return found

    def _bases(self, ent: int) -> list[int]:
        """Return the entities that an entity ever rested on."""
        below = [kind for kind in self.resting if kind not in UPHOLDING]
        above = [kind for kind in self.resting if kind in UPHOLDING]
        return [self.l_tgt[link] for link in self.of_kinds(self.out, ent, below)] + [
            self.l_src[link] for link in self.of_kinds(self.into, ent, above)
        ]

    def _touch(self, *ents: int) -> None:
        self._touched.update(dict.fromkeys(ents, len(self.o_tx) - 1))

    def _touch_ends(self, link: int) -> None:
        """Note that a link was changed."""
        kind, source, target = self.l_kind[link], self.l_src[link], self.l_tgt[link]
        if kind in _REPLACING:
            self._touch(source, target)
        elif kind in self.resting:
            self._touch(target if kind in UPHOLDING else source)

    # ------------------------------------------------------------------ growing

    def add_link(self, name: str, source: int, kind: str, target: int) -> int:
        """See `Columns.add_link`."""
        link = super().add_link(name, source, kind, target)
        self.note_ends(link, source, kind, target)
        return link

    def note_ends(self, link: int, source: int, kind: str, target: int) -> None:
        """Note the ends of a new link."""
        self._fresh_out.setdefault(source, []).append(link)
        self._fresh_into.setdefault(target, []).append(link)
        if kind in _REPLACING or (target if kind in UPHOLDING else source) < self._things:
            self._touch_ends(link)

    def close_row(self, row: int, tx: Instant, op: int) -> None:
        """See `Columns.close_row`."""
        self._touch(self.r_ent[row])
        self._note_in_slot(row)
        super().close_row(row, tx, op)

    def close_link_row(self, row: int, tx: Instant, op: int) -> None:
        """See `Columns.close_link_row`."""
        self._touch_ends(self.k_link[row])
        super().close_link_row(row, tx, op)

    def _believe_in(self, ent: int, row: int, change: Callable[[Any, int], None]) -> None:
        """Change the list of the rows believed of a thing, or note what changed until that is read."""
        known: Any = self.now_of
        if ent >= self._things or dict.__contains__(known, ent):
            change(known[ent], row)
        else:
            self._unlisted.setdefault(ent, []).append(row)

    def note_added(
        self,
        tx: Instant,
        added: list[tuple[int, Instant, Instant, int, int]],
        first: int,
        closed: Mapping[int, int],
    ) -> None:
        """See `Columns.note_added`."""
        for at, (ent, start, stop, ver, op) in enumerate(added):
            if at in closed:
                self._close_unlisted(closed[at], tx, op)
            self.changed[ent] = tx
            self._note_version(ent, ver)
            self._note_row(ent, first + at)
            self._believe_in(ent, first + at, self._believe)
            if ent in self._said:
                self.say(ent, ver, (start, stop))

    def _close_unlisted(self, row: int, tx: Instant, op: int) -> None:
        """Close a row of a thing without a slot, and do not read what else is believed of it."""
        ent = self.r_ent[row]
        self._touch(ent)
        self.r_end[row], self.r_close[row], self.changed[ent] = tx, op, tx
        self.closings.append(row)
        self._believe_in(ent, row, self._drop)

    def changed_things(self) -> set[int]:
        """Return the things of which the transaction opened or closed rows."""
        return {*self._fresh_rows, *(self.r_ent[row] for row in self.closings)}

    def wrote_last(self, ent: int, row: int) -> bool:
        """Return True if a row that was the last one written of a thing before the transaction, or in it, is still that, and believed."""
        fresh = self._fresh_rows.get(ent)
        closed: Any = self.r_close
        return (not fresh or fresh[-1] == row) and closed.get(row, -1) < 0

    def _note_version(self, ent: int, ver: int) -> None:
        self._fresh_versions.setdefault(ent, []).append(ver)
        known: Any = self.versions_of
        if ent in known:
            known[ent].append(ver)

    def _note_row(self, ent: int, row: int) -> None:
        if ent < self._things:
            self._touch(ent)
        self._fresh_rows.setdefault(ent, []).append(row)
        known: Any = self.rows_of
        if ent in known:
            known[ent].append(row)
        self._note_in_slot(row)

    def _note_in_slot(self, row: int) -> None:
        slot = self._slot(self.r_ent[row])
        if slot is not None:
            self._in_slots.setdefault(slot, set()).add(row)

    def note_op(self, op: int, verb: str, subject: str) -> None:
        """See `Columns.note_op`."""
        if verb == UNDO:
            self._is_undoing = True
            self.undone_by.setdefault(instant(subject), []).append(op)
            self._said.clear()
            return
        self.confirmed.setdefault(subject, []).append(op)
        self._touch(self.ids.get(subject, -1))

    def falls(self, ent: int, tx: Instant, *, refuted: bool = False) -> None:
        """Note nothing: the rows of standings are written at the end."""

    def rest(self, link: int, tx: Instant) -> None:
        """See `Columns.rest`. A link may be believed again."""
        if link < self._links:
            self._touch_ends(link)

    def add_turn(self, ent: int, turn: tuple[Instant, Instant, Instant, int]) -> None:
        """See `Columns.add_turn`. Only those of this transaction are known here."""
        self._touch(ent)
        self.turns.setdefault(ent, []).append(turn)
        self.turned.append(ent)

    def undo(self, mark: Mark, *, open_still: bool = False) -> None:
        """See `Index.undo`."""
        versions = {self.v_ent[ver] for ver in range(mark.versions, len(self.v_ent))}
        rows = {self.r_ent[row] for row in range(mark.rows, len(self.r_ent))}
        links = range(mark.links, len(self.l_name))
        sources, targets = {self.l_src[link] for link in links}, {self.l_tgt[link] for link in links}
        super().undo(mark, open_still=open_still)
        for there, things, first in (
            (self._fresh_versions, versions, mark.versions),
            (self._fresh_rows, rows, mark.rows),
            (self._fresh_out, sources, mark.links),
            (self._fresh_into, targets, mark.links),
        ):
            for ent in things:
                there[ent] = [number for number in there[ent] if number < first]
