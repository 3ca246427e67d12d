"""Records which things the answers of an interface contained, in the ledger's tables `reading` and `read_thing`, outside the chain.

A separate thread writes the answers later, so recording never delays an answer or makes it fail.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from graphstore.errors import GraphStoreError
from graphstore.ledger.database import Database
from graphstore.values.period import Instant

_log = logging.getLogger("graphstore")
DAYS = 90
"""Default number of days for which a reading is kept."""
READER = "graphstore.reader"
"""The key in a request's scope for the name of the agent that a server answers. If that name is not a token's, the name that the client gives is used."""
_DAY = 86_400_000_000  # microseconds
_PAUSE = 1.0  # seconds between two batches
_PATIENCE = 2.0  # seconds that a batch waits for other writers before it is postponed
_WAITING = 10_000  # answers in the queue; further ones are dropped
_BYTES = 64 << 20  # bytes of the answers in the queue; further ones are dropped
_THINGS = 10_000  # ids of one answer; further ones are ignored
_CLEAN_EVERY = 3_600.0  # seconds between two removals of old readings
_ADD = "INSERT INTO reading (at, agent, is_token, scopes, branch, call, valid, tx, known) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number"
_ADD_THINGS = """
INSERT INTO read_thing (id, reading, is_noticed)
SELECT w.value, ?1, 0 FROM json_each(?2) w
WHERE EXISTS (SELECT 1 FROM all_entity e WHERE e.id = w.value)
  AND NOT EXISTS (SELECT 1 FROM all_entity e JOIN all_forgotten f ON f.entity = e.number WHERE e.id = w.value)
ON CONFLICT DO NOTHING
"""
_MARK = """
UPDATE read_thing SET is_noticed = 1
WHERE id IN (SELECT value FROM json_each(?1)) AND reading IN (SELECT number FROM reading WHERE agent = ?2 AND is_token = ?3 AND branch = ?4 AND known < ?5)
"""
_TOO_OLD = (
    "DELETE FROM read_thing WHERE reading IN (SELECT number FROM reading WHERE at < ?)",
    "DELETE FROM reading WHERE at < ?",
)
_REMOVE_FORGOTTEN = (
    "DELETE FROM read_thing WHERE id IN (SELECT subject FROM all_operation WHERE tx >= ? AND verb IN ('evict', 'erase'))",
    "DELETE FROM reading WHERE number NOT IN (SELECT reading FROM read_thing)",
)
_READINGS = """
SELECT t.id, r.agent, r.at, r.valid, r.tx, r.known, r.call, r.scopes
FROM json_each(?1) w CROSS JOIN read_thing t ON t.id = w.value CROSS JOIN reading r ON r.number = t.reading
WHERE r.branch = ?2 AND r.known < ?3
ORDER BY r.at DESC, r.number DESC, t.id
"""
_LAST_SEEN = "SELECT max(tx) FROM reading WHERE agent = ? AND is_token = ? AND branch = ? AND scopes = ?"
PRESENT = 60_000_000
"""Microseconds. An answer counts as one about the present if its valid time is at most this long before it."""
_OF_AGENT = f"""
WITH last (id, tx) AS (
  SELECT t.id, max(r.tx) FROM reading r CROSS JOIN read_thing t ON t.reading = r.number
  WHERE r.agent = ?1 AND r.is_token = ?2 AND r.branch = ?3 GROUP BY t.id
)
SELECT id, agent, at, valid, tx, known, call, scopes
FROM (
  SELECT t.id, r.agent, r.at, r.valid, r.tx, r.known, r.call, r.scopes,
    row_number() OVER (PARTITION BY t.id, r.known, CASE WHEN r.valid < r.at - {PRESENT} THEN r.valid END ORDER BY r.at DESC) AS place
  FROM last l CROSS JOIN read_thing t ON t.id = l.id CROSS JOIN reading r ON r.number = t.reading
  WHERE r.agent = ?1 AND r.is_token = ?2 AND r.branch = ?3 AND NOT t.is_noticed AND r.known >= l.tx
    AND (?3 <> '' OR EXISTS (SELECT 1 FROM entity e WHERE e.id = t.id AND (
      EXISTS (SELECT 1 FROM period p WHERE p.entity = e.number AND p.closed_by IS NOT NULL AND p.tx_to > r.known)
      OR EXISTS (SELECT 1 FROM absence a WHERE a.entity = e.number AND a.tx_from > r.known)
      OR EXISTS (SELECT 1 FROM shaky s WHERE s.entity = e.number AND s.tx_from > r.known))))
) found
WHERE place = 1
ORDER BY at DESC
"""


class Agent(NamedTuple):
    """Identifies the receiver of an answer.

    `is_token`: the name belongs to a token, so it is unique; otherwise the client gave it. `scopes`: what the token may see; empty for everything.
    """

    name: str
    is_token: bool = False
    scopes: tuple[str, ...] = ()


class AnswerToRecord(NamedTuple):
    """An answer to be recorded. `body`: JSON, Arrow, or an object; `ids`: further ids; `keys`: names of fields in the body that hold ids. `is_past`: it was
    asked as known at an earlier tx, so only an invalidation after the reading counts. `is_table`: any text in the body may be an id.
    """

    agent: Agent
    call: str
    at: Instant
    valid: Instant
    tx: Instant
    body: Any
    ids: tuple[str, ...] = ()
    branch: str = ""
    keys: tuple[str, ...] = ("id",)
    is_past: bool = False
    is_table: bool = False


class ReadingRow(NamedTuple):
    """One thing in one answer. `known`: the answer does not include invalidations after that tx."""

    id: str
    agent: str
    at: Instant
    valid: Instant
    tx: Instant
    known: Instant
    call: str
    scopes: str


class ReadingsRecorder:
    """Records in batches what answers contained. Any thread may add an answer; `close` writes the rest.

    `lost` counts the answers that could not be recorded: the queue was full, or the file could not be written.
    """

    def __init__(
        self, again: Callable[..., Database], now: Callable[[], Instant], days: float = DAYS
    ) -> None:
        """Prepare to record. `again` opens the ledger once more, see `Database.again`."""
        self.now, self.lost = now, 0
        self._again, self._days = again, days
        self._waiting: deque[AnswerToRecord] = deque()
        self._marks: deque[tuple[Any, ...]] = deque()
        self._database: Database | None = None
        self._wanted, self._writing = threading.Event(), threading.Lock()
        self._starting, self._counting = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._clean_after = 0.0
        self._reported, self._bytes = "", 0

    # ------------------------------------------------------------------ adding answers

    def add(self, answered: AnswerToRecord) -> None:
        """Queue an answer. Returns at once."""
        size = _size(answered)
        with self._counting:
            if len(self._waiting) >= _WAITING or self._bytes + size > _BYTES or self._is_closed:
                self.lost += 1
                return
            self._waiting.append(answered)
            self._bytes += size
        self._start()

    def mark(self, ids: Iterable[str], agent: Agent, branch: str, tx: Instant) -> None:
        """Record that an agent was notified of what became of these things up to a tx. Returns at once."""
        wanted = orjson.dumps(list(ids)).decode()
        self._marks.append((wanted, agent.name, agent.is_token, branch, tx))
        self._start()
        self._wanted.set()

    def flush(self, timeout: float = _PATIENCE) -> None:
        """Write the queue. If other writers or a full disk prevent that, it stays for the next attempt.

        Args:
            timeout: seconds to wait for other writers.
        """
        if not self._writing.acquire(timeout=timeout):
            return
        try:
            while self._waiting or self._marks:
                count, marks = len(self._waiting), len(self._marks)
                try:
                    self._write(timeout)
                except (GraphStoreError, OSError) as error:
                    self._report(f"what answers contained is not recorded yet: {error}")
                    return
                except Exception as error:  # an answer that cannot be parsed must not block others
                    self._report(f"{count} answers were not recorded: {error!r}")
                    self.lost += count
                    self._drop(count, marks)
        finally:
            self._writing.release()

    def close(self) -> None:
        """Write the queue and stop. Answers that cannot be written now are lost and counted."""
        self._is_closed = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * _PATIENCE)
        self.flush()
        self.lost += len(self._waiting)
        self._waiting.clear()
        with self._writing:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _report(self, why: str) -> None:
        if why != self._reported:
            _log.warning("%s", why)
        self._reported = why

    # ------------------------------------------------------------------ the writing thread

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="graphstore-readings", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._is_closed:
            self._wanted.wait(_PAUSE)
            self._wanted.clear()
            self.flush()

    def _write(self, timeout: float) -> None:
        """Write a batch in one SQL transaction. Raises GraphStoreError if that fails; the batch then stays in the queue."""
        batch, marks = list(self._waiting), list(self._marks)
        rows = self._rows(batch)
        if self._database is None:
            self._database = self._again(durability="interval", timeout=timeout)
        with self._database.transaction(timeout) as connection:
            for row, ids in rows:
                [(number,)] = connection.execute(_ADD, row).fetchall()
                if not connection.execute(_ADD_THINGS, (number, ids)).rowcount:
                    connection.execute("DELETE FROM reading WHERE number = ?", (number,))
            connection.executemany(_MARK, marks)
            if time.monotonic() >= self._clean_after:
                self._clean_after = time.monotonic() + _CLEAN_EVERY
                for statement in _TOO_OLD:
                    connection.execute(statement, (self.now() - int(self._days * _DAY),))
        self._drop(len(batch), len(marks))

    def _rows(self, batch: list[AnswerToRecord]) -> list[tuple[tuple[Any, ...], str]]:
        """Return the row of each answer, with the ids in it as JSON. An answer that cannot be read is lost alone, and counted."""
        rows = []
        for answered in batch:
            try:
                rows.append((_row(answered), orjson.dumps(_found(answered)).decode()))
            except Exception as error:
                self._report(f"an answer to {answered.call} was not recorded: {error!r}")
                with self._counting:
                    self.lost += 1
        return rows

    def _drop(self, answers: int, marks: int) -> None:
        with self._counting:
            for _ in range(answers):
                self._bytes -= _size(self._waiting.popleft())
        for _ in range(marks):
            self._marks.popleft()


def _size(answered: AnswerToRecord) -> int:
    return len(answered.body) if isinstance(answered.body, bytes) else 0


def _scopes(agent: Agent) -> str:
    return orjson.dumps(sorted(agent.scopes)).decode() if agent.scopes else ""


def _row(answered: AnswerToRecord) -> tuple[Any, ...]:
    agent = answered.agent
    known = answered.at if answered.is_past else min(answered.tx, answered.at)
    return (
        answered.at,
        agent.name,
        agent.is_token,
        _scopes(agent),
        answered.branch,
        answered.call,
        answered.valid,
        answered.tx,
        known,
    )


def _found(answered: AnswerToRecord) -> list[str]:
    """Return the distinct texts in an answer that may be ids of things."""
    body = answered.body
    if isinstance(body, bytes):
        try:
            body = orjson.loads(body)
        except orjson.JSONDecodeError:
            body = _of_arrow(body)
    found = dict.fromkeys(answered.ids)
    for text in _texts(body) if answered.is_table else _named(body, answered.keys):
        found[text] = None
        if len(found) >= _THINGS:
            break
    return list(found)


def _of_arrow(body: bytes) -> Any:
    try:
        import pyarrow

        with pyarrow.ipc.open_stream(body) as stream:
            return stream.read_all().to_pylist()
    except Exception:  # neither JSON nor a table: a file
        return None


def _named(value: Any, keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the texts under some keys, at any depth."""
    if isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str):
                if key in keys:
                    yield each
            else:
                yield from _named(each, keys)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _named(each, keys)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


# ---------------------------------------------------------------- recorded readings


def is_recorded(database: Any) -> bool:
    """Return True if any reading is recorded."""
    return bool(database.rows("SELECT 1 FROM read_thing LIMIT 1"))


def readings_of(database: Any, ids: Iterable[str], branch: str, before: Instant) -> list[ReadingRow]:
    """Return the readings of some things by answers that do not include what was done at `before` or later, newest first."""
    wanted = orjson.dumps(list(dict.fromkeys(ids))).decode()
    return [ReadingRow(*row) for row in database.rows(_READINGS, (wanted, branch, before))]


def unnoticed_of(database: Any, agent: Agent, branch: str) -> list[ReadingRow]:
    """Return an agent's readings of things that have changed since, newest first. Left out are readings of whose change the agent was notified, and
    those of things that a later answer contained."""
    return [ReadingRow(*row) for row in database.rows(_OF_AGENT, (agent.name, agent.is_token, branch))]


def last_seen(database: Any, agent: Agent, branch: str) -> Instant | None:
    """Return the last tx that an answer to an agent with these scopes had; None if none is recorded."""
    [(tx,)] = database.rows(_LAST_SEEN, (agent.name, agent.is_token, branch, _scopes(agent)))
    return None if tx is None else int(tx)


def is_within(reading: ReadingRow, scopes: tuple[str, ...]) -> bool:
    """Return True if a token with these scopes may see a reading: the reader's token was limited to scopes within them."""
    if not scopes:
        return True
    bound = orjson.loads(reading.scopes) if reading.scopes else []
    return bool(bound) and all(
        any(each == scope or each.startswith(f"{scope}/") for scope in scopes) for each in bound
    )


def remove_forgotten_readings(connection: Any, since: Instant) -> None:
    """Remove the readings of things that were forgotten at an instant or later."""
    if connection.execute(_REMOVE_FORGOTTEN[0], (since,)).rowcount > 0:
        connection.execute(_REMOVE_FORGOTTEN[1])
