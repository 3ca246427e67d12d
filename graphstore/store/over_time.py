"""Read many coordinates of one store: the instants of one axis in equal steps, with the other axis fixed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from graphstore.errors import InvalidError, QueryError
from graphstore.graph.statement import pieces
from graphstore.values.inputs import names
from graphstore.values.period import OPEN, Instant, TimeLike, instant, iso, moment
from graphstore.values.worded_times import AGES, UNITS, months_later

if TYPE_CHECKING:
    from graphstore.graph.result import Result
    from graphstore.view.view import View

TimeAxis = Literal["valid", "tx"]
What = Literal["count", "sum", "avg", "min", "max", "first", "last", "changes"]
Every = tuple[TimeLike, TimeLike, str | timedelta]
"""Start, end (excluded) and step: `1 month`, `7 days`, `12 hours`, or a timedelta."""

_NO_PROPERTY = re.compile(r"no property '(.+?)' for ")
_TYPES = {"int64": "INT64", "double": "DOUBLE", "bool": "BOOL"}
_LEAST = timedelta(microseconds=1)
MOST = 10_000
"""The largest number of coordinates of one `over`."""
_STEP = re.compile(
    r"\s*(\d+)?\s*(second|minute|hour|day|week|month|quarter|year|[smhdw])s?\s*\Z", re.IGNORECASE
)


class AskedOverTime(Protocol):
    """A store, or a branch of one."""

    def as_of(self, *, valid: TimeLike | None = None, tx: TimeLike | None = None) -> View:
        """Return the view at a coordinate."""

    def history_table(
        self,
        kind: str | None = None,
        fields: Sequence[str] | None = None,
        *,
        tx: Any = None,
        valid: Any = None,
    ) -> Result:
        """Return the rows of nodes over spans of both times."""

    def over(self, *, valid: Any = None, tx: Any = None) -> Over:
        """Return the graph at many instants."""


class Over:
    """Reads the graph at many instants of one axis, in order. Each answer is one table, with the instant in its column `at`."""

    def __init__(
        self, store: AskedOverTime, axis: TimeAxis, instants: Sequence[Instant], fixed: Instant
    ) -> None:
        self._store, self._axis, self._instants, self._fixed = store, axis, list(instants), fixed

    @property
    def at(self) -> list[datetime]:
        """Return the instants."""
        return [moment(each) for each in self._instants]

    def views(self) -> Iterator[View]:
        """Yield the view at each instant."""
        for valid, tx in self._coordinates():
            yield self._store.as_of(valid=moment(valid), tx=moment(tx))

    def _coordinates(self) -> list[tuple[Instant, Instant]]:
        fixed = self._fixed
        return [(each, fixed) if self._axis == "valid" else (fixed, each) for each in self._instants]

    def query(self, cypher: str, **params: Any) -> Result:
        """Return the rows of a query at each instant, one instant after the other. Raises QueryError as `View.query` does."""
        import pyarrow as pa

        from graphstore.graph.result import Result, distinct

        warnings: dict[str, None] = {}
        tables, without = [], []
        views = list(self.views())
        whole = views[0]._at_each(self._coordinates(), self._axis, cypher, params)
        for number, (at, view) in enumerate(zip(self._instants, views, strict=True)):
            found, missing = self._answer(view, cypher, params) if whole is None else (whole[number], {})
            without.append(missing)
            warnings |= dict.fromkeys(found.warnings)
            table = found.to_arrow()
            tables.append(table.add_column(0, "at", [_moments([at] * len(table))]))
        nowhere = set(without[0]).intersection(*without)
        if nowhere:
            raise without[0][min(nowhere)]
        fewest = min(range(len(tables)), key=lambda each: len(without[each]))
        columns = distinct(tables[fewest].column_names)
        tables = [each.rename_columns(columns) for each in tables]
        return Result.of_arrow(pa.concat_tables(_alike(tables)), list(warnings))

    def _answer(self, view: View, cypher: str, params: Any) -> tuple[Result, dict[str, QueryError]]:
        """Return the answer of a query at one instant, and the properties that no node has there. These are NULL, since nodes at other instants may have them."""
        missing: dict[str, QueryError] = {}
        while True:
            try:
                return view.query(cypher, **params), missing
            except QueryError as error:
                told = _NO_PROPERTY.match(str(error))
                if told is None or told[1] in missing:
                    raise
                missing[told[1]] = error
                cypher = _without(cypher, told[1], self._type_of(view, told[1]))

    def _type_of(self, view: View, name: str) -> str:
        """Return the Cypher type of a field among all nodes; STRING if no node has it."""
        at = view.at
        within = _within("valid", (at.valid, at.valid + _LEAST), at.tx)
        try:
            known = self._store.history_table(None, [name], **within).to_arrow().schema
        except InvalidError:  # no content has ever had it
            return "STRING"
        return _TYPES.get(str(known.field(name).type) if name in known.names else "", "STRING")

    def nodes(self, kind: str | None = None, fields: Sequence[str] | None = None) -> Result:
        """Return the nodes (of a kind) that stand at each instant, with fields as in `history_table`. Raises InvalidError for a field that no content has ever had."""
        import pyarrow as pa

        from graphstore.graph.result import Result

        table, begin, end = self._rows(kind, fields)
        parts = []
        for at in self._instants:
            held = table.filter(pa.array((begin <= at) & (at < end)))
            parts.append(held.add_column(0, "at", [_moments([at] * len(held))]))
        return Result.of_arrow(pa.concat_tables(parts))

    def count(self, kind: str | None = None, *, by: str | Sequence[str] = ()) -> Result:
        """Return the number of nodes (of a kind) that stand at each instant. With `by`, count them for each combination of these columns' values."""
        return self.total("count(*)", kind, by=by)

    def total(self, aggregate: str, kind: str | None = None, *, by: str | Sequence[str] = ()) -> Result:
        """Return an aggregate, as for `Result.steps` (`sum(total)`), of the nodes (of a kind) at each instant. Instants without nodes have no row, but a count of 0. Raises
        InvalidError for an unknown aggregate or column."""
        import pyarrow as pa

        from graphstore.graph.result import Result

        table, _, _ = self._rows(kind, None)
        columns = names("by", by)
        steps = Result.of_arrow(table).steps(aggregate, by=columns, axis=self._axis)
        found = steps.to_arrow()
        taken: list[tuple[Instant, int]] = []
        for row, (begin, end) in enumerate(
            zip(found[f"{self._axis}_from"].to_pylist(), found[f"{self._axis}_to"].to_pylist(), strict=True)
        ):
            first = bisect_right(self._instants, instant(begin) - 1)
            last = bisect_right(self._instants, OPEN if end is None else instant(end) - 1)
            taken += [(at, row) for at in self._instants[first:last]]
        taken.sort()
        shown = found.select([*columns, steps.columns[-1]]).take(
            pa.array([row for _, row in taken], pa.int64())
        )
        answer = shown.add_column(0, "at", [_moments([at for at, _ in taken])])
        if not columns and aggregate.strip().lower().startswith("count"):
            answer = _with_zeros(answer, self._instants)
        return Result.of_arrow(answer)

    def compare(self) -> Result:
        """Return the differences of each instant from the one before, in the columns of `View.changes_to`."""
        import pyarrow as pa

        from graphstore.graph.result import Result

        views = list(self.views())
        tables = []
        for at, before, after in zip(self._instants[1:], views, views[1:], strict=False):
            table = before.changes_to(after).to_arrow()
            tables.append(table.add_column(0, "at", [_moments([at] * len(table))]))
        if not tables:
            raise InvalidError(
                "one instant alone has nothing to be compared with. Give a shorter step, or a longer span."
            )
        return Result.of_arrow(pa.concat_tables(_alike(tables)))

    def _rows(self, kind: str | None, fields: Sequence[str] | None) -> tuple[Any, Any, Any]:
        """Return the rows of nodes that stand at some instant, and both ends of their periods on the axis."""
        from graphstore.graph.step_functions import whole

        span = moment(self._instants[0]), moment(self._instants[-1] + 1)
        within = _within(self._axis, span, moment(self._fixed))
        table = self._store.history_table(kind, fields, **within).to_arrow()
        return table, whole(table[f"{self._axis}_from"]), whole(table[f"{self._axis}_to"])

    def __repr__(self) -> str:
        first, last = (iso(self._instants[at]) for at in (0, -1))
        return f"<Over {len(self._instants):,} instants of {self._axis}, {first} to {last}>"


def answered(
    store: AskedOverTime,
    view: View,
    what: What,
    kind: str | None = None,
    field: str | None = None,
    *,
    since: TimeLike = "30d",
    until: TimeLike = "now",
    step: str = "1 day",
    axis: TimeAxis = "valid",
    by: str | None = None,
) -> Result:
    """Return numbers, values or changes at each step from `since` to `until` on an axis. The other axis is that of the view.

    `count`, `sum`, `avg`, `min`, `max`: an aggregate of the nodes (of a kind) that stand at each step, for each value of `by` if given. `first`, `last`: the first and the
    last value of each node within the span, without steps. `changes`: the differences from the step before, of a kind and a field. Raises InvalidError for another `what`,
    an invalid axis, step or column, a sum without a field, and `by` without an aggregate.
    """
    for name, given, choices in (("question", what, get_args(What)), ("axis", axis, get_args(TimeAxis))):
        if given not in choices:
            raise InvalidError.choice(name, given, choices)
    summed = what in ("sum", "avg", "min", "max")
    if summed and field is None:
        raise InvalidError(f"{what} of which field? Give field, such as one that schema() lists.")
    if by is not None and not summed and what != "count":
        raise InvalidError(f"{what} is of each node; it takes no by. Leave it out, or ask count or sum.")
    now = view.at
    begin = moment(view.instant_of(since, "since", axis))
    end = moment(view.instant_of(until, "until", axis))
    if axis == "tx" and end > max(now.valid, now.tx):  # a day that is not over ends now
        end = moment(view.instant_of(until, "until", "valid", "as of"))
    if what in ("first", "last"):
        within = _within(axis, (begin, end), now.tx if axis == "valid" else now.valid)
        table = store.history_table(kind, None if field is None else [field], **within)
        return _outermost(table, field, axis, what == "last")
    every = (begin, end, step)
    over = store.over(valid=every, tx=now.tx) if axis == "valid" else store.over(valid=now.valid, tx=every)
    if what == "changes":
        if field not in (None, "text", "tags"):  # raises if no content has ever had it
            store.history_table(kind, [field], valid=(now.valid, now.valid + _LEAST))
        return _changes_of(over.compare(), kind, field)
    return over.total(f"{what}({field or '*'})", kind, by=() if by is None else by)


def _within(axis: TimeAxis, span: tuple[datetime, datetime], fixed: datetime) -> dict[str, Any]:
    """Return the arguments of a history over a span of one axis, at one instant of the other."""
    if axis == "valid":
        return {"valid": span, "tx": fixed}
    return {"tx": span, "valid": (fixed, fixed + _LEAST)}


def _outermost(table: Result, field: str | None, axis: TimeAxis, last: bool) -> Result:
    """Return the first or the last row of each node."""
    from graphstore.graph.result import Result

    found: dict[str, dict[str, Any]] = {}
    for row in sorted(table.rows(), key=itemgetter(f"{axis}_from")):
        if last or row["id"] not in found:
            found[row["id"]] = row
    columns = ("id", "text" if field is None else field, f"{axis}_from", f"{axis}_to")
    return Result(
        ("id", "value", *columns[2:]), [tuple(row[each] for each in columns) for row in found.values()]
    )


def _changes_of(changes: Result, kind: str | None, field: str | None) -> Result:
    """Return the changes of a kind and a field."""
    from graphstore.graph.result import Result

    kept = [
        row
        for row in changes.rows()
        if kind in (None, row["kind"]) and (field is None or re.split(r"[.\[]", row["field"])[0] == field)
    ]
    return Result(changes.columns, [tuple(row.values()) for row in kept])


def _without(cypher: str, name: str, type: str) -> str:
    """Return the query with a typed NULL in place of a property."""
    found: list[str] = []
    said: list[int] = []  # places of the pieces that are not white space
    for kind, piece in pieces(cypher):
        is_field = kind in ("word", "quoted") and piece.strip("`") == name
        if is_field and len(said) > 1 and found[said[-1]] == ".":
            del found[said[-2] :]
            del said[-2:]
            piece = f"CAST(NULL AS {type})"
        if kind not in ("space", "comment"):
            said.append(len(found))
        found.append(piece)
    return "".join(found)


def instants_of(begin: Instant, end: Instant, step: str | timedelta) -> list[Instant]:
    """Return the instants from `begin`, before `end`. A month later is the same day, or the last day of a shorter month.

    Raises InvalidError for an invalid step, and for more than `MOST` instants.
    """
    if begin >= end:
        raise InvalidError(
            f"the span begins at {iso(begin)} and ends at {iso(end)}. Give the earlier one first."
        )
    months, micros = _step(step)
    least = months * 28 * 86_400_000_000 + micros
    if (end - begin) / least > MOST + 1:
        raise InvalidError(f"a step of {step} makes more than {MOST:,} instants. Give a longer step.")
    found: list[Instant] = []
    at = begin
    while at < end:
        found.append(at)
        number = len(found)
        at = months_later(begin, months * number) if months else begin + micros * number
    return found


def _step(step: str | timedelta) -> tuple[int, int]:
    """Return the months and the microseconds of a step. Raises InvalidError for an invalid one."""
    if isinstance(step, timedelta):
        micros = step // _LEAST
        if micros > 0:
            return 0, micros
    match = _STEP.match(step) if isinstance(step, str) else None
    if match is None or int(match[1] or 1) == 0:
        raise InvalidError(f"the step {step!r} is none. Give 1 month, 7 days, 12 hours, or a timedelta.")
    unit = match[2].lower()
    months, seconds = UNITS[{**AGES, "s": "second"}.get(unit, unit)]
    return int(match[1] or 1) * months, int(match[1] or 1) * seconds * 1_000_000


def _moments(instants: Sequence[Instant]) -> Any:
    import pyarrow as pa

    return pa.array(list(instants), pa.int64()).cast(pa.timestamp("us", tz=str(UTC)))


def _alike(tables: list[Any]) -> list[Any]:
    """Return the tables with one type for each column: numbers as double, otherwise text where types differ."""
    import pyarrow as pa

    def same(types: set[Any]) -> Any:
        known = {each for each in types if each is not None}
        if len(known) < 2:
            return next(iter(known), None)
        numeric = all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in known)
        return pa.float64() if numeric else pa.string()

    first = tables[0].schema
    types = {name: same({_type_of(each[name]) for each in tables}) for name in first.names}
    schema = pa.schema([(name, kind or first.field(name).type) for name, kind in types.items()])
    return [_cast(each, schema) for each in tables]


def _type_of(column: Any) -> Any:
    """Return the type of a column; None if it contains only nulls."""
    return None if column.null_count == len(column) else column.type


def _cast(table: Any, schema: Any) -> Any:
    import pyarrow as pa

    columns = []
    for field in schema:
        column = table[field.name]
        if column.type != field.type and pa.types.is_string(field.type) and pa.types.is_nested(column.type):
            column = pa.chunked_array(
                [pa.array([None if each is None else str(each) for each in column.to_pylist()], pa.string())]
            )
        if column.null_count == len(column):
            column = pa.chunked_array([pa.nulls(len(column), field.type)])
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=schema)


def _with_zeros(answer: Any, instants: Sequence[Instant]) -> Any:
    import pyarrow as pa

    name = answer.column_names[-1]
    known = dict(zip((instant(at) for at in answer["at"].to_pylist()), answer[name].to_pylist(), strict=True))
    counts = pa.array([known.get(at, 0) for at in instants], pa.int64())
    return pa.table({"at": _moments(instants), name: counts})
