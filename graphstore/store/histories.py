"""Histories as tables, callable remotely: the rows of nodes and links over spans of both times, and the changes between two transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphstore.errors import InvalidError
from graphstore.store import registry
from graphstore.values.period import OPEN, Instant, TimeLike, iso
from graphstore.view.view import Reader

if TYPE_CHECKING:
    from graphstore.graph.result import Result
    from graphstore.view.history_rows import HistorySpans

Span = tuple[TimeLike | None, TimeLike | None]


def ends(span: Any, axis: str) -> Span:
    """Return the two ends of a span of time. Raises InvalidError for anything else."""
    if span is None:
        return None, None
    if isinstance(span, str) or not isinstance(span, Sequence) or len(span) != 2:
        raise InvalidError(f"{axis} is {span!r}. Give a pair (from, to), None for an end that is open.")
    return span[0], span[1]


@registry.read("tables")
def history(
    store: Reader,
    kind: str | None = None,
    fields: list[str] | None = None,
    valid_from: TimeLike | None = None,
    valid_to: TimeLike | None = None,
    *,
    tx_from: TimeLike | None = None,
    tx_to: TimeLike | None = None,
    tx: TimeLike | None = None,
    clip: bool = False,
    coalesce_on: list[str] | None = None,
) -> Result:
    """`history_table`, its spans by their ends: `tx_from` and `tx_to`, or the one `tx`."""
    from graphstore.graph.result import Result
    from graphstore.view import history_rows

    asked = _asked(store, (valid_from, valid_to), (tx_from, tx_to), tx, clip)
    with store.reading() as sight:
        table = history_rows.nodes(sight, asked, kind, fields)
    if coalesce_on is not None:
        table = history_rows.coalesced(table, coalesce_on, at_one_tx=asked.is_one_tx)
    return Result.of_arrow(table)


@registry.read("tables")
def links(
    store: Reader,
    kind: str | None = None,
    valid_from: TimeLike | None = None,
    valid_to: TimeLike | None = None,
    *,
    tx_from: TimeLike | None = None,
    tx_to: TimeLike | None = None,
    tx: TimeLike | None = None,
    clip: bool = False,
) -> Result:
    """`links_table`, its spans by their ends: `tx_from` and `tx_to`, or the one `tx`."""
    from graphstore.graph.result import Result
    from graphstore.view import history_rows

    asked = _asked(store, (valid_from, valid_to), (tx_from, tx_to), tx, clip)
    name = None if kind is None else store.vocabulary.canonical(kind)
    with store.reading() as sight:
        return Result.of_arrow(history_rows.links(sight, asked, name))


@registry.read("tables")
def changes(store: Reader, since: TimeLike | None = None, until: TimeLike | None = None) -> Result:
    """`changes_table`."""
    from graphstore.graph.result import Result
    from graphstore.view import history_rows

    first, last = store.bounds_of(since, until, "tx")
    with store.reading() as sight:
        return Result.of_arrow(history_rows.changes(sight.point, first, min(last, sight.tx)))


def _asked(store: Reader, valid: Span, tx: Span, at: TimeLike | None, clip: bool) -> HistorySpans:
    from graphstore.view.history_rows import HistorySpans

    if at is not None and tx != (None, None):
        raise InvalidError("tx and tx_from, tx_to are two ways to say it. Give one.")
    if tx == (None, None):
        known = store.coordinate()[1] if at is None else store._known_by(at)
        recorded = (known, known + 1)
    else:
        recorded = _span(store, tx, "tx")
    return HistorySpans(_span(store, valid, "valid"), recorded, clip)


def _span(store: Reader, span: Span, axis: Any) -> tuple[Instant, Instant]:
    begin, end = span
    since = -OPEN if begin is None else store.instant_of(begin, axis, axis, "from")
    until = OPEN if end is None else store.instant_of(end, axis, axis, "from")
    if since >= until:
        raise InvalidError(
            f"the span of {axis} begins at {iso(since)} and ends at {iso(until)}. Give the earlier one first."
        )
    return since, until
