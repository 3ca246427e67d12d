"""Read the whole history from the rows of the ledger: each table by one SQL statement, for given places of rows."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from graphstore.graph.texts import LINK
from graphstore.ledger.branch_ledger import BranchLedger
from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.chain import GENESIS
from graphstore.ledger.closings import closings
from graphstore.ledger.database import RowReader
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.statements import Statement
from graphstore.read.columns import Mark
from graphstore.read.index_of_rows import Number
from graphstore.read.points import as_json
from graphstore.values.period import Instant

if TYPE_CHECKING:
    import pyarrow as pa


class HistoryMark(NamedTuple):
    """Records how far a history goes, or how far tables have followed it.

    `end` and `digest` are those of the journal's last line. `forgetting` changes whenever something is evicted or erased.
    """

    mark: Mark
    end: Sequence[int]
    digest: str
    last_tx: Instant
    forgetting: str = ""


class LedgerEnd(NamedTuple):
    """Holds how far a ledger goes."""

    entities: int
    periods: int
    link_periods: int
    operations: int
    occurrences: int
    line: int | None
    digest: str | None
    last: Instant | None
    forgetting: str


class Promoted(NamedTuple):
    """A kind of link that has its own table."""

    promoted: str


class NumberedThing(NamedTuple):
    """Holds a node or event with its number."""

    number: int
    id: str
    is_event: int


_NODE = namedtuple("_NODE", "id kind key scope tx_from")
_EVENT = namedtuple(
    "_EVENT",
    "id type occurred_at tx_from tx_to opened_by closed_by word data place body checksum place_body place_checksum",
)
_VERSION = namedtuple(
    "_VERSION",
    "row node_id ref number author told told_by valid_from valid_to tx_from tx_to opened_by closed_by word data body checksum",
)
_OCCURRENCE = namedtuple("_OCCURRENCE", "row event_id occurred_at tx_from opened_by")
_OPERATION = namedtuple("_OPERATION", "id tx verb subject author data body checksum")
_LINK = namedtuple(
    "_LINK",
    "source_label target_label source target row id kind strength confidence history created_by author told told_by "
    "valid_from valid_to tx_from tx_to opened_by closed_by data body checksum",
)

STATE = Statement("table_state", LedgerEnd)
PROMOTED = Statement("table_promoted", Promoted)
THINGS = Statement("table_things", NumberedThing)
CHANGED_EVENTS = Statement("table_changed_events", Number)
NODES = Statement("table_nodes", _NODE)
EVENTS = Statement("table_events", _EVENT)
VERSIONS = Statement("table_versions", _VERSION)
OCCURRENCES = Statement("table_occurrences", _OCCURRENCE)
OPERATIONS = Statement("table_operations", _OPERATION)
LINKS = Statement("table_links", _LINK)


class HistoryTable(NamedTuple):
    """A table of the history, or all link tables: its count in a mark, its table in the ledger, and the statement that reads it."""

    counted: str
    of: str
    statement: Statement[Any]
    key: str = "row"
    owner: str = ""
    """The label of the owner of the rows, and the column with its id, such as `Node.node_id`."""


TABLES = {
    "Node": HistoryTable("entities", "entity", NODES, "id"),
    "Event": HistoryTable("entities", "entity", EVENTS, "id"),
    "Occurrence": HistoryTable("seen", "occurrence", OCCURRENCES, owner="Event.event_id"),
    LINK: HistoryTable("link_rows", "link_period", LINKS),
    "Version": HistoryTable("rows", "period", VERSIONS, owner="Node.node_id"),
    "Op": HistoryTable("ops", "operation", OPERATIONS, "id"),
}
"""The tables by label, in the order in which they are written. Links take long to write, so the columns of versions are prepared meanwhile."""


class RowHistory:
    """Reads the committed rows of one branch of a ledger. All numbers are places of rows in the order of the branch."""

    def __init__(self, rows: Ledger | BranchLedger) -> None:
        self._of_line = rows
        self._ledger = rows.ledger if isinstance(rows, BranchLedger) else rows

    def reading(self) -> AbstractContextManager[object]:
        """Return a block in which all reads see one state of the ledger."""
        return self._of_line.snapshot()

    def reached(self) -> HistoryMark:
        """Return how far the ledger goes."""
        [state] = STATE.rows(self._database, {})
        mark = Mark(
            entities=state.entities,
            rows=state.periods,
            closings=state.line or 0,  # closings are found by the lines that made them
            link_rows=state.link_periods,
            link_closings=state.line or 0,
            ops=state.operations,
            seen=state.occurrences,
        )
        return HistoryMark(
            mark, [0, mark.closings], state.digest or GENESIS, state.last or 0, state.forgetting
        )

    def goes_on(self, done: HistoryMark, now: HistoryMark) -> bool:
        """Return True if the ledger only grew between the two marks."""
        return done.forgetting == now.forgetting and self._ledger.ends_at(list(done.end), done.digest)

    def promoted(self) -> list[str]:
        """Return the kinds of link that got their own tables."""
        return [row.promoted for row in PROMOTED.rows(self._database, {})]

    def transactions(self, upto: HistoryMark) -> int:
        """Return the number of transactions up to a mark."""
        return self._ledger.transactions(upto.end[1])

    def last_tx(self, operations: int) -> Instant:
        """Return the instant of the last of the first `operations` operations; 0 if there are none."""
        return self._rows(TABLES["Op"], [operations - 1])[0].tx if operations else 0

    def things(self, first: int, stop: int) -> list[NumberedThing]:
        """Return the nodes and events with numbers from `first` to before `stop`."""
        row = self._database.line.row
        bounds = {"first": row("entity", first), "stop": row("entity", stop)}
        return [thing._replace(number=thing.number % SPAN) for thing in THINGS.rows(self._database, bounds)]

    def table(self, label: str, places: Iterable[int]) -> pa.Table:
        """Return the rows of a table at these places. Raises DamageError for a body that differs from what was written."""
        # imported here, because they load Arrow, which a query over existing tables does not need
        from graphstore.graph.arrow_tables import as_table, columns_of

        table = TABLES[label]
        columns = columns_of(self._rows(table, places), table.statement.model)
        for data, body, checksum in (
            ("data", "body", "checksum"),
            ("place", "place_body", "place_checksum"),
        ):
            if data in columns:
                columns[data] = list(map(self._whole, columns[body], columns[data], columns[checksum]))
        return as_table(label, columns)

    def changed(self, since: Mark, upto: Mark) -> dict[str, list[int]]:
        """Return the places of the rows whose ends may have changed since an earlier mark, by label, in order."""
        closed = closings(self._database, since.closings, upto.closings)
        first = self._database.line.row("period", since.rows)
        events = CHANGED_EVENTS.rows(self._database, {"first": first, "numbers": as_json(closed.periods)})
        found = {
            "Version": closed.periods,
            "Event": [event.number for event in events],
            LINK: closed.link_periods,
        }
        return {label: sorted({number % SPAN for number in numbers}) for label, numbers in found.items()}

    @property
    def _database(self) -> RowReader:
        return self._of_line.database

    def _rows(self, table: HistoryTable, places: Iterable[int]) -> list[Any]:
        row = self._database.line.row
        numbers = as_json([row(table.of, place) for place in places])
        return table.statement.rows(self._database, {"numbers": numbers})

    def _whole(self, body: int | None, data: bytes | None, checksum: int) -> bytes | None:
        """Return the data of a body. For damaged data ask the ledger, which raises an error that names the line."""
        if body is None or (checksum >= 0 if data is None else crc32(data) == checksum):
            return data
        return self._ledger.raw(body, 1)
