"""The journal of a store in PostgreSQL: a copy of its lines in segments, which follows the server's and is read as any other.

Only what decides goes through the server: an append is there when the server has it, in place of a sync of the disk. The copy is this
process's alone and disposable: where it differs from the server it is read again.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NoReturn

import orjson

from graphstore.core.journal import journal as segments
from graphstore.core.journal.asked import transactions_of
from graphstore.core.journal.cluster import NOT_KEPT, Cluster, Diverged, Listening, Row, Unreachable, row_of
from graphstore.core.journal.files import Moves, pwrite_all, read_at, sync, sync_folder, write_all
from graphstore.core.journal.journal import Journal
from graphstore.core.journal.line import GENESIS, check, head_of, spans_of
from graphstore.core.journal.positions import OFFSET, Line, Place, Position
from graphstore.core.journal.seam import State, Ticket
from graphstore.errors import DamageError, EngineError, WriteConflictError
from graphstore.values.random_bits import random_64

_SLICE, _ALONE = (
    0.005,
    0.05,
)  # seconds for which a process keeps its turn, beside others and alone: it asks once for many transactions
_POLL = 1.0  # seconds between looks at the server, should a notification be lost
_LOOKS = 20  # of so many looks at the server one follows in any case
# seconds in which notifications are taken together: of others, and of this process
_GATHER, _OWN = 0.003, 0.02
_CHUNK = 1 << 22
_REQUESTS = 100_000  # of other processes that are known without a look into the copy
_SMALL, _MANY = 1 << 16, 1_000  # bytes, and transactions, that are written to the copy later


class ClusterJournal(Journal):
    """The copy in `path` and the rows of `cluster`. `writer`: whether it appends; the copy is written in any case."""

    _remedy = "See what is there now"

    def __init__(self, path: Path, cluster: Cluster, *, writer: bool) -> None:
        # appended, and not written to the copy: a write of each alone would let another thread go first in the middle of a transaction
        self._unwritten: list[tuple[int, int, bytes]] = []
        self._writing = threading.Lock()
        super().__init__(path, writer=True)
        self.cluster = cluster
        self.named = cluster.where.shown
        self.notify: Callable[[str], None] = lambda notice: None
        self._appends = writer
        # appended here and not known to be at the server: the state after each transaction, and its lines
        self._pending: list[tuple[State, list[Row]]] = []
        self._ready: Ticket = 0  # what is sent with others: up to this number nothing is taken back by itself
        self._sent_off: tuple[State, list[Row]] | None = None  # the first of them, whose answer is waited for
        self._turns = 0  # transactions under way; changed by who holds the writer's lock
        self._until = self._used = 0.0  # when the turn is to be given to others, and when it was used last
        self._slice = _SLICE
        self._taken = threading.Event()  # there may be a turn to be ended
        self._server = threading.RLock()  # whether it has its turn, and how far the copy is
        self._stale = False  # the copy is not what the server has
        self._unknown: Ticket | None = None  # the last of what was sent, and may have been kept
        self._doubtful: list[tuple[Ticket, Ticket, str]] = []  # the numbers of such, and why
        self._unasked = False  # what is read next is the copy alone: its server was just not there
        self._overtaken = False  # another process wrote there before what was sent last
        self._lost: list[tuple[Ticket, Ticket]] = []  # the numbers that were cut off for that
        self._watching: list[threading.Thread] = []
        self._requests: dict[str, int] = {}  # that others have done, by id, with their number; the latest
        self._followed = 0  # how many of them there were
        self._looks = 0  # at the server
        self._count()

    def _count(self) -> None:
        """How many lines the copy has, and the digest of the last."""
        lines, last = 0, b""
        for segment in range(self.segments()):
            fd = self._file(segment).fileno()
            at, size = 0, os.fstat(fd).st_size
            while at < size:
                data = read_at(fd, at, _CHUNK)
                lines += data.count(b"\n")
                at += len(data)
            lines -= 1  # its header
            last = _last_line(fd, size) or last
        try:
            digest = check(last)[1] if lines > 0 else GENESIS
        except ValueError:
            lines, digest, self._stale = 0, GENESIS, True
        self._sent: tuple[int, str] = (lines, digest)

    # ------------------------------------------------------------------ following

    @property
    def number(self) -> int:
        """The number of the last line that the copy has of the server's, or that this process appended."""
        last = self._pending[-1:]  # at once: another thread removes what was kept
        return last[0][1][-1].seq if last else self._sent[0]

    def catch_up(self) -> None:
        """Copy what the server has more. Raises DamageError (Diverged) when it no longer has what was copied, Unreachable."""
        with self._server:
            if self._pending:  # nobody can have written after that, or it is refused
                return
            if self._stale:
                raise Diverged(f"the copy of {self.named} in {self.path} is not whole. It is read again.")
            before = self._sent
            try:
                self._copy()
                self._slice = min(2 * self._slice, _ALONE) if self._sent == before else _SLICE
            except Diverged:
                self._stale = True
                raise

    def _copy(self) -> None:
        group: list[bytes] = []
        for page in self.cluster.lines(*self._sent):
            for line in page:
                group.append(line)
                if not goes_on(line):
                    self._keep(group)
                    group = []

    def _keep(self, group: list[bytes]) -> None:
        """Write the lines of a transaction at the end of the copy."""
        segment = self.segments() - 1
        if os.fstat(self._file(segment).fileno()).st_size >= segments.SEGMENT_BYTES:
            segment += 1
            self._new_segment(segment)
        fd = self._file(segment).fileno()
        os.lseek(fd, 0, os.SEEK_END)
        write_all(fd, b"".join(group))
        self._sent = (self._sent[0] + len(group), _digest(group[-1]))
        if b'"request":"' in group[0] and (request := orjson.loads(group[0])["head"].get("request")):
            self._requests.pop(request, None)
            self._requests[request] = self._followed
            self._followed += 1
            if len(self._requests) > _REQUESTS:
                del self._requests[next(iter(self._requests))]

    def keep(self) -> None:
        """Have the copy survive a crash of this machine: it is to be a store of its own."""
        for segment in range(self.segments()):
            sync(self._file(segment).fileno())
        for folder in (self.path, self.path.parent):
            sync_folder(folder)

    def read(self, progress: Callable[[int, int], None] | None = None) -> Iterator[list[Line]]:
        """As of a folder, after what the server has more was copied."""
        unasked, self._unasked = self._unasked, False
        if not unasked:
            self.catch_up()
        yield from super().read(progress)

    def begin_anew(self) -> None:
        """Remove the copy, so that all is read from the server again."""
        with self._server:
            self._let_go(0)
            for segment in reversed(range(self.segments())):
                self._name(segment).unlink()
            self._create(self.path)
            self._pending.clear()
            self._unwritten.clear()
            self._sent_off = None
            self._stale, self._sent = False, (0, GENESIS)
            super().reopen()

    def reopen(self) -> None:
        """Close the files, so that the next read opens those that are there now; a copy that is not the server's is begun anew."""
        with self._server:
            if self._stale:
                self.begin_anew()
                return
            super().reopen()
            if not self._pending:
                self._count()

    def watch(self, follow: Callable[[], object]) -> None:
        """Call `follow` soon after another process has written, and end this process's turn when it rests. Until the journal is closed."""
        for name, work in (("graphstore-follow", self._follow), ("graphstore-turn", self._rest)):
            thread = threading.Thread(target=work, args=(follow,), name=name, daemon=True)
            self._watching.append(thread)
            thread.start()

    def _rest(self, _: object) -> None:
        while self._taken.wait() and not self._stop.wait(
            max(self._used + _SLICE - time.monotonic(), _SLICE / 4)
        ):
            if not self._turns and time.monotonic() - self._used >= _SLICE:
                with contextlib.suppress(EngineError), self._server:
                    if not self._turns and not self._pending:
                        self._taken.clear()
                        self.cluster.unlock()

    def _follow(self, follow: Callable[[], object]) -> None:
        listening: Listening | None = None
        while not self._stop.is_set():
            try:
                if listening is None:
                    listening = self.cluster.listening()
                    foreign = self._has_more(listening)
                else:
                    foreign = self._told(listening)
                self.away = None
            except Exception as error:
                if listening is not None:
                    listening.connection.close()
                listening, self.away = None, self.cluster.says_away(error)
                self._stop.wait(_POLL)
                continue
            if foreign and not self._stop.is_set():
                with contextlib.suppress(Exception):  # the next call that needs it tells
                    follow()
        if listening is not None:
            listening.connection.close()

    def _told(self, listening: Listening) -> bool:
        """Wait for a notification or some time. Whether there may be something of another process."""
        if not listening.listens:
            self._stop.wait(_POLL / 20)
            return self._has_more(listening)
        told = listening.told(_POLL)
        if not told:
            return self._has_more(listening)
        # nobody else writes while this process has its turn
        self._stop.wait(_OWN if self.cluster.locked else _GATHER)
        told += listening.told(0)
        mine = f"{self.cluster.token} {self.cluster.where.store}"
        return any(one.endswith(f" {self.cluster.where.store}") and one != mine for one in told)

    def _has_more(self, listening: Listening) -> bool:
        """Whether the server's last line is not the copy's; now and then in any case. Asked on the connection that listens: no call waits for that where the
        server is silent."""
        self._looks += 1
        return self.cluster.last_at(listening.connection) != self._sent or self._looks % _LOOKS == 0

    # ------------------------------------------------------------------ writing

    def followed(self) -> int:
        """How many requests were seen so far that other processes have done."""
        return self._followed

    def done_elsewhere(self, request: str, since: int) -> bool:
        """Whether another process has done a request, by its id, where it had not when `followed` gave `since`. What was written long ago is looked up in the copy."""
        with self._server:
            oldest = next(iter(self._requests.values()), self._followed)
            if since >= oldest or self._followed == since:
                return self._requests.get(request, -1) >= since
        return bool(transactions_of(self.path, request))

    def take_turn(self) -> bool:
        """Become the process that writes, and copy what others wrote. Returns whether there may be some to be read."""
        self._turns += 1  # first: who ends the turn looks at it last
        if self._turns > 1 or not self._appends:
            return False
        try:
            if self._pending:
                if time.monotonic() < self._until or self._held is not None:
                    return False
                if not self.sync(self.ticket()):
                    return False
            with self._server:
                if self.cluster.locked and time.monotonic() < self._until:
                    return False
                self.cluster.unlock()
                self.cluster.lock()
                self._taken.set()
                self._until = time.monotonic() + self._slice
                return True
        except EngineError as error:
            self._turns -= 1
            error.outcome = "not kept"
            raise

    def leave_turn(self) -> None:
        """Let others write, as soon as nothing of this process waits, and it rests or its slice of time is over."""
        self._used = time.monotonic()
        self._turns -= 1

    def _commit(self, segment: int, offset: int, data: bytes) -> None:
        if len(data) > _SMALL or len(self._unwritten) >= _MANY:
            try:
                super()._commit(segment, offset, data)
            except EngineError as error:
                error.outcome = error.outcome or "not kept"
                raise
            return
        self._unwritten.append((segment, offset, data))
        self._checksums.add(segment, offset, data)

    def _file(self, segment: int) -> IO[bytes]:
        if self._unwritten:
            self._write_out()
        return super()._file(segment)

    def _new_segment(self, segment: int) -> None:
        self._write_out()
        super()._new_segment(segment)

    def _write_out(self) -> None:
        """Write to the copy what is not there yet. Raises EngineError when the disk refuses; it stays for the next time then."""
        with self._writing:
            data = self._unwritten[:]
            if not data:
                return
            segment, offset, _ = data[0]
            try:
                pwrite_all(super()._file(segment).fileno(), b"".join([each for *_, each in data]), offset)
            except OSError as error:
                raise EngineError(f"cannot write {self._name(segment)}: {error.strerror}.") from error
            del self._unwritten[: len(data)]

    def _cut_to(self, end: Position) -> bool:
        with self._writing:
            self._unwritten = [each for each in self._unwritten if each[:2] < end]
        try:
            self._write_out()
        except EngineError as error:
            self._broken = f"A failed commit could not be cut off {self.path} ({error})."
            return False
        return super()._cut_to(end)

    def _queue(
        self, state: State, lines: list[tuple[dict[str, Any], list[bytes]]], written: list[bytes]
    ) -> None:
        first, id = self.number + 1, bytes.fromhex(random_64() + random_64())
        digests = [*(head["prev"] for head, _ in lines[1:]), state[1]]
        rows = [
            Row(seq, id, head["prev"], digest, head_of(line, bodies), bodies)
            for seq, ((head, bodies), digest, line) in enumerate(
                zip(lines, digests, written, strict=True), first
            )
        ]
        self._pending.append((state, rows))

    def start_sync(self) -> None:
        """Send what was committed, where nothing is on its way to the server."""
        if self._held is not None:
            return
        self._ready = self._number
        if self._server.acquire(blocking=False):
            try:
                self._send()
            finally:
                self._server.release()

    def sync(self, ticket: Ticket) -> bool:
        """As of a folder; one answer of the server serves all that it is for, and what was committed meanwhile is sent before they go on."""
        self._ready = max(self._ready, ticket)
        while self._synced < ticket:
            if self._broken or self.failed:
                return False
            waiting = self._round
            with waiting:
                # where it is another by now, this waits once more: behind it may be some that were served
                if self._synced < ticket and waiting is self._round:
                    with self._syncing:
                        self._go_on(ticket)
        return not self._was_cut(ticket)

    def _go_on(self, ticket: Ticket) -> None:
        """Wait for one answer, of what is on its way or is sent now. The caller holds `_syncing`."""
        if self._synced >= ticket or self._broken or self.failed:
            return
        with self._server:
            self._ready = max(self._ready, ticket)
            self._send()
            if self.failed:
                return
            if self._sent_off is None:  # all of it is there, or was taken back
                self._durable, self._synced = (*self._durable[:3], ticket), ticket
                return
            try:
                self._durable = self._answered()
            except OSError as error:
                self.failed = f"cannot make {self.named} durable: {error.strerror}."
                return
            self._synced = self._durable[3]
            self._send()

    def _send(self) -> None:
        """Send what is ready, unless something is on its way. It is in the copy by then: there it is looked for when it is asked for again. Where the disk
        refuses that, it has `failed`. The caller holds `_server`."""
        if self._sent_off is not None or self._broken or self.failed or not self._pending:
            return
        self._round = threading.Lock()  # first: whoever waits with the old one is ready by now
        if ready := self._pending[: bisect_right(self._pending, self._ready, key=_number)]:
            try:
                self._write_out()
            except EngineError as error:
                self.failed = str(error)
                return
            self._sent_off = ready[-1][0], [row for _, rows in ready for row in rows]
            self.cluster.send(self._sent_off[1])

    def _answered(self) -> State:
        """Wait until the server has what was sent. Returns the state after it. Raises OSError. The caller holds `_server`."""
        assert self._sent_off is not None
        state, rows = self._sent_off
        try:
            kept = self.cluster.insert(rows)
        except EngineError as error:
            self._sent_off = None
            if isinstance(error, Unreachable):
                self._unknown = state[3]
            why = str(error).removesuffix(f" {NOT_KEPT}").removesuffix(".")
            raise OSError(0, why) from error
        if not kept:
            self._sent_off, self._overtaken, self._until = None, True, 0.0
            raise OSError(0, "another process wrote there first")
        self._sent = (rows[-1].seq, rows[-1].digest)
        del self._pending[: bisect_right(self._pending, state[3], key=_number)]  # in place: more is appended
        self._sent_off = None
        return state

    def _flush(self, segment: int, upto: State) -> None:
        with self._server:
            self._ready = max(self._ready, upto[3])
            while self._pending and _number(self._pending[0]) <= upto[3]:
                self._send()
                if self._sent_off is None:
                    raise OSError(0, self._broken or self.failed)
                self._answered()

    def cut_back(self) -> bool:
        """After a failed `sync`: the copy has no more than what the server is known to have. Where it may have kept what was sent, that is read from it
        before anything else is written, as what another process wrote; the digests fence an insert that is still on its way there."""
        with self._server:
            self._pending.clear()
            self._sent_off = None
        after = self._synced
        if self._unknown is not None:
            self._doubtful.append((after, self._unknown, self.failed or ""))
            self._unasked, self._until = True, 0.0
        overtaken, cut = self._overtaken, super().cut_back()
        if cut and overtaken:
            self._lost.append((after, self._synced))
        self._overtaken, self._unknown = False, None
        return cut

    def check(self, ticket: Ticket, tx: datetime | None = None) -> None:
        """Raises WriteConflictError where another process wrote first, EngineError of outcome `unknown` where an answer was lost."""
        if any(after < ticket <= last for after, last in self._lost):
            raise self._conflict()
        for after, last, why in self._doubtful:
            if after < ticket <= last:
                asked = "" if tx is None else f" It was when changes() has its tx, {tx.isoformat()}."
                raise EngineError(
                    f"{why} Whether this transaction was kept is unknown. The server is asked for it before anything else is written here.{asked}",
                    outcome="unknown",
                    tx=tx,
                )
        super().check(ticket, tx)

    def _refused(self) -> EngineError:
        return self._conflict() if self._overtaken else super()._refused()

    def _conflict(self) -> WriteConflictError:
        return WriteConflictError(
            f"another process wrote to {self.named} first. Nothing of this transaction was kept: do it again; "
            "a block as a whole, or by in_transaction().",
            outcome="not kept",
        )

    def rewind(self, state: State) -> None:
        """Take back what was appended last, where no other thread has sent it meanwhile."""
        with self._server:
            if not self._pending or self._pending[-1][0][3] <= state[3]:
                return
            if self._sent_off is not None and self._sent_off[0][3] > state[3]:
                return  # what becomes of it is for `sync` to tell
            del self._pending[bisect_right(self._pending, state[3], key=_number) :]
        super().rewind(state)

    def close(self) -> None:
        """End the turn, and let go of the server and of the copy."""
        self._stop.set()
        self._taken.set()
        with contextlib.suppress(EngineError), self._server:
            self.cluster.patience = 0.0
            self.cluster.unlock()
        self.cluster.close()
        with contextlib.suppress(EngineError):
            self._write_out()
        super().close()

    # ------------------------------------------------------------------ forgetting

    def blank(self, segment: int, places: list[Place]) -> Moves:
        """Remove bodies from the server, and from the copy. A reader removes them from its copy alone."""
        if self._appends and (notice := self.cluster.remove(self._numbered(segment, places))):
            self.notify(notice)
        return super().blank(segment, places)

    def _numbered(self, segment: int, places: list[Place]) -> list[tuple[int, int]]:
        """The number of the line of each body, and its own in the line."""
        first = self._first(segment)
        data = self._bytes(segment, 0, os.fstat(self._file(segment).fileno()).st_size)
        starts = [0]
        while (stop := data.find(b"\n", starts[-1])) >= 0:
            starts.append(stop + 1)
        found = []
        for place in places:
            offset = place.pos & OFFSET
            at = bisect_right(starts, offset) - 1
            spans = spans_of(data[starts[at] : starts[at + 1] - 1])
            found.append((first + at - 1, [start for start, _ in spans].index(offset - starts[at])))
        return found

    def _first(self, segment: int) -> int:
        """The number of the first line of a segment."""
        lines = 1
        for before in range(segment):
            size = os.fstat(self._file(before).fileno()).st_size
            lines += self._bytes(before, 0, size).count(b"\n") - 1
        return lines

    def replace(self, folder: Path) -> None:
        """Have the server hold the lines of these segments in place of all there are. Raises EngineError when another process wrote meanwhile."""

        def rows() -> Iterator[Row]:
            other, id, seq = Journal(folder, writer=False), os.urandom(16), 0
            try:
                for group in other.read():
                    for line in other.written(group):
                        seq += 1
                        yield row_of(seq, id, line)
            finally:
                other.close()

        notice = self.cluster.replace(self._sent, rows)
        if notice is None:
            raise WriteConflictError(
                f"another process wrote to {self.named} meanwhile. Nothing was evicted: do it again.",
                outcome="not kept",
            )
        self.notify(notice)

    def problems(self) -> list[str]:
        """What is wrong with the lines that the server has, each read again and checked by itself and against the line before."""
        digest, seq = GENESIS, 0
        try:
            for page in self.cluster.lines(0, GENESIS):
                for line in page:
                    seq += 1
                    digest = check(line[:-1], digest)[1]
                    if (seq, digest) == self._sent:
                        return []
                    if seq >= self._sent[0]:
                        return [
                            f"{self.named} line {seq}: it is not the line that was read here. Call refresh()."
                        ]
        except ValueError as error:
            return [f"{self.named} line {seq}: {error}"]
        except EngineError as error:
            return [str(error)]
        return (
            [f"{self.named}: it ends at line {seq}, and {self._sent[0]} were read here."]
            if self._sent[0]
            else []
        )

    def _refuse(self, segment: int, number: int, why: str) -> NoReturn:
        raise DamageError(
            f"{self.named} line {self._first(segment) + number - 2}: {why}. The journal is damaged there; nothing was changed. "
            "Restore a dump or a backup."
        )


def _last_line(fd: int, size: int) -> bytes:
    """The last line of a segment, empty where it has none but its header; what has no end fails the check."""
    at, data = size, b""
    while at > 0 and data.count(b"\n") < 2:
        step = min(at, max(4096, len(data)))
        at -= step
        data = read_at(fd, at, step) + data
    whole, end, rest = data.rpartition(b"\n")
    if not end or rest:
        return rest or data
    _before, found, last = whole.rpartition(b"\n")
    return last if found else b""


def _number(transaction: tuple[State, list[Row]]) -> Ticket:
    return transaction[0][3]


def _digest(line: bytes) -> str:
    return str(orjson.loads(line)["digest"])


def goes_on(line: bytes) -> bool:
    """Whether the next line is of the same transaction."""
    return segments.MORE in line and bool(orjson.loads(line)["head"].get("more"))
