"""Find the recorded answers that contained a thing, and the things in answers that no longer hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from graphstore.errors import NotFoundError
from graphstore.ledger import readings
from graphstore.ledger.readings import PRESENT, Agent, ReadingRow
from graphstore.values.findings import Change, Inspection, Reading
from graphstore.values.models import UPRIGHT, Event, Node
from graphstore.values.period import OPEN, Instant, instant, moment

if TYPE_CHECKING:
    from graphstore.view.view import View
    from graphstore.write.writer import Writer

_DEPTH = 10  # links followed from an invalidated thing to what rests on it
_LOOKED = 3  # readings that are looked at for each thing that may be returned
SECONDS = 0.1  # the longest wait for a batch of this process before readings are listed
_CHANGED = """
SELECT 1 FROM entity e CROSS JOIN changed c ON c.entity = e.number CROSS JOIN operation o ON o.number = c.operation
WHERE e.id = ?1 AND c.valid_from <= ?2 AND c.valid_to > ?2 AND o.tx > ?3 AND o.tx <= ?4 LIMIT 1
"""

_SUBJECTS = "SELECT DISTINCT subject FROM operation WHERE tx = ?"
_TURNS = """
WITH thing (number) AS (SELECT number FROM entity WHERE id = ?1)
SELECT p.valid_from FROM thing t CROSS JOIN period p ON p.entity = t.number WHERE p.tx_to > ?2 AND p.tx_to <= ?3 OR p.tx_from > ?2 AND p.tx_from <= ?3
UNION SELECT s.valid_from FROM thing t CROSS JOIN shaky s ON s.entity = t.number WHERE s.tx_from > ?2 AND s.tx_from <= ?3
UNION SELECT a.valid_from FROM thing t CROSS JOIN absence a ON a.entity = t.number WHERE a.tx_from > ?2 AND a.tx_from <= ?3
ORDER BY 1
"""


class Outdated(NamedTuple):
    """A thing in an answer that no longer holds: the thing as it was then, its standing now, and the last operation on it since, if any."""

    reading: ReadingRow
    node: Node | Event
    became: str  # a standing, or "revised"
    change: Change | None


def readers_of(store: Writer, ids: Iterable[str], before: Instant = OPEN) -> list[Reading]:
    """Return the recorded readings of things by answers that did not know of transactions at `before` or later, newest first."""
    _write_batch(store)
    rows = readings.readings_of(store._ledger.database, ids, branch_of(store), before)
    return [_reading(row) for row in rows if readings.is_within(row, store._seen_scopes)]


def readers_of_write(store: Writer, tx: Instant) -> list[Reading]:
    """Return the earlier readings of what a transaction invalidated or made shaky, newest first."""
    _write_batch(store)
    if not readings.is_recorded(store._ledger.database):
        return []
    after = store.as_of(tx=moment(tx))
    found: dict[str, None] = {}
    for (subject,) in store._core.rows.database.rows(_SUBJECTS, (tx,)):
        found |= dict.fromkeys(_concerned(after, subject))
    kinds = after.vocabulary.from_dependants
    for id in list(found):
        found |= dict.fromkeys(each.id for each in after.walk(id, kinds, _DEPTH, "in").nodes)
    fallen = [
        id
        for id in found
        if any(_became(store, id, tx - 1, tx, valid) for valid in _turning_points(store, id, tx - 1, tx))
    ]
    return readers_of(store, fallen, tx) if fallen else []


def _write_batch(store: Writer) -> None:
    """Write the readings of recent answers, except within a transaction of this thread."""
    recorder = store._lines[0]._recorder
    if recorder is not None and not store._ledger.database.writes_here:
        recorder.flush(SECONDS)


def _reading(row: ReadingRow) -> Reading:
    return Reading(
        id=row.id, agent=row.agent, at=moment(row.at), valid=moment(row.valid), tx=moment(row.tx), call=row.call
    )  # fmt: skip


def no_longer_hold(store: Writer, agent: Agent, tx: Instant, most: int | None = None) -> list[Outdated]:
    """Return the things in answers to an agent that no longer hold as known at a tx, latest reading first. Things of which the agent was notified are left out.

    For a thing that stood in the answer, the requested valid time counts, and the present if that was requested. For others (a plan, something that was over) the time when
    they stood counts. `most`: how many things at most, of the latest readings.
    """
    found: dict[str, Outdated] = {}
    rows = readings.unnoticed_of(store._ledger.database, agent, branch_of(store))
    for row in rows[: None if most is None else _LOOKED * most]:
        if row.id in found or not readings.is_within(row, store._seen_scopes):
            continue
        if len(found) == most:
            break
        now = max(row.valid, store._now())
        valids = [row.valid, now] if row.valid >= row.at - PRESENT else [row.valid]
        read = _standing(store, row.id, row.valid, row.known)
        if read is not None and read.standing not in UPRIGHT:
            valids = _turning_points(store, row.id, row.known, tx)
        became = next(filter(None, (_became(store, row.id, row.known, tx, valid) for valid in valids)), None)
        if became is not None and read is not None:
            found[row.id] = Outdated(row, read, became, _last_change(store, row))
    return list(found.values())


def branch_of(store: Writer) -> str:
    """Return the branch name of a store; '' for the trunk."""
    return getattr(store, "name", "")


def _concerned(view: View, id: str) -> list[str]:
    """Return the thing that an operation was about; for a link both ends."""
    try:
        about = view.inspect(id)
    except NotFoundError:  # the subject is a branch or a setting
        return []
    return [about.node.id] if isinstance(about, Inspection) else [about.source.id, about.target.id]


def _became(store: Writer, id: str, before: Instant, after: Instant, valid: Instant) -> str | None:
    """Return what became of a thing at a valid time between two tx: its standing, or "revised". None if it did not stand before, or stands as before."""
    old, new = _standing(store, id, valid, before), _standing(store, id, valid, after)
    if old is None or new is None or old.standing not in UPRIGHT:
        return None
    if new.standing not in UPRIGHT or (new.standing == "shaky" and old.standing == "stands"):
        return new.standing
    is_other = isinstance(old, Node) and isinstance(new, Node) and old.content != new.content
    values = (id, valid, before, after)
    return "revised" if is_other and store._core.rows.database.rows(_CHANGED, values) else None


def _turning_points(store: Writer, id: str, before: Instant, after: Instant) -> list[Instant]:
    """Return the valid times at which something recorded of a thing between two tx begins."""
    return [valid for (valid,) in store._core.rows.database.rows(_TURNS, (id, before, after))]


def _standing(store: Writer, id: str, valid: Instant, tx: Instant) -> Node | Event | None:
    try:
        return store.as_of(valid=moment(valid), tx=moment(tx)).inspect(id).node
    except NotFoundError:
        return None


def _last_change(store: Writer, row: ReadingRow) -> Change | None:
    """Return the last operation on a thing since it was read."""
    since = [each for each in store.operations(row.id) if instant(each.tx) > row.known]
    return since[-1] if since else None
