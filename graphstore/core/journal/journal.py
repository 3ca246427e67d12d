"""The truth of a store: an append-only journal, one line of canonical JSON for each transaction.

A line is `{"body":[…],"digest":"…","head":{…}}`. The head says what happened and holds the hash of each body and the digest of the line
before; the digest covers the head. So a body (content, reason: what a person wrote, with a salt) can be blanked later and the chain still
verifies. A transaction of many lines has `"more":true` in every head but the last, which seals it.

No final newline, or zero padding, is a write that was never acknowledged: it is set aside in a file beside the segment. Any other
difference from what was written is damage: it is refused with file and line, and nothing is changed.

After a failed fdatasync the kernel counts the pages it could not write as clean: a second one succeeds without writing them. So it is never
tried again. What was not durable before is cut off, which drops those pages, and the cut is made durable: then it was *not kept*. Where the cut
fails too, its outcome is *unknown*: nothing more is written here, and what is there when the store is opened again was kept.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from array import array
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NoReturn
from zlib import crc32

import orjson

from graphstore.core.journal.block_checksums import BLOCK, UNKNOWN, WITHIN, BlockChecksums, checksums_of
from graphstore.core.journal.files import (
    Moves,
    Torn,
    free_name,
    open_new,
    open_plain,
    pwrite_all,
    read_at,
    replaced,
    sync,
    sync_data,
    sync_folder,
    write_all,
)
from graphstore.core.journal.line import (
    FORGOTTEN,
    GENESIS,
    SCHEMA,
    check,
    compose,
    following,
    generation_of,
    header,
    spans_of,
)
from graphstore.core.journal.positions import (
    NOWHERE,
    OFFSET,
    SHIFT,
    Line,
    Place,
    Position,
    placed,
    segment_of,
)
from graphstore.core.journal.seam import State, Ticket
from graphstore.errors import DamageError, EngineError
from graphstore.values.period import Instant, instant

SEGMENT_BYTES = 64 << 20
_BLOCKS = 8_192  # so many blocks of the journal are kept in memory, 64 MiB
_LONG = 32 << 10  # the blocks of a body of more bytes are not
_CHUNK = 1 << 22
_AROUND = 1 << 12  # bytes read around a body, in which most lines end
MORE = b'"more":true'  # in the head of every line of a transaction but the last


class Journal:
    """The segments of one store. The writer appends; a reader follows; both read bodies by place.

    `path` is the folder that holds the segments.
    """

    _remedy = "Free some space or mend the disk"

    def __init__(self, path: Path, *, writer: bool) -> None:
        self.path = path
        self.named = str(path)  # in errors
        self._state: State = (
            Position(0, 0),
            GENESIS,
            None,
            0,
        )  # replaced as a whole: other threads read it while the writer goes on
        self._durable: State = self._state
        self.torn: Torn | None = None
        self._writer = writer
        self.appended = NOWHERE  # where the lines appended last are
        self._files: list[IO[bytes]] = []
        self._generations: list[int] = []  # of the files that are open
        self._checksums = BlockChecksums()
        # by place, as they were written; not mapped: a file may be cut off under a map
        self._blocks: dict[int, bytes] = {}
        self._broken: str | None = (
            None  # why nothing may be written any more before the store is opened again
        )
        self.failed: str | None = None  # why the lines appended last did not become durable
        self.away: str | None = None  # why lines of others could not be looked for last
        self._number: Ticket = 0  # of the last transaction that began to be appended
        self._synced: Ticket = (
            -1  # of the last one that is durable, or cut off; -1: what was read is not yet
        )
        self._cut: list[tuple[Ticket, Ticket, str]] = []  # the numbers that were cut off, and why
        self._held: State | None = None  # where the open group begins
        self._syncing = threading.Lock()
        self._round = threading.Lock()  # held by those who wait for the next sync; the first of them does it
        self._opening = threading.Lock()
        self._stop = threading.Event()
        if writer:
            self._create(path)

    @property
    def end(self) -> Position:
        """Where the next line goes, or is read from."""
        return self._state[0]

    @property
    def durable(self) -> Ticket:
        """The transactions up to this number are on the disk."""
        return self._synced

    @property
    def digest(self) -> str:
        """The digest of the last line, which identifies the journal's state."""
        return self._state[1]

    # ------------------------------------------------------------------ files

    def _create(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EngineError(f"cannot make {path}: {error.strerror}. Nothing was made.") from error
        try:  # exclusively: not even a folder that cannot be read may cost a journal that is there
            fd = open_plain(self._name(0), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return
        except OSError as error:
            raise EngineError(f"cannot make {self._name(0)}: {error.strerror}. Nothing was made.") from error
        try:
            self._begin(fd, 0)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._name(0).unlink()
            raise EngineError(f"cannot make {self._name(0)}: {error.strerror}. Nothing was made.") from error

    def _name(self, segment: int) -> Path:
        return self.path / f"{segment + 1:08}.jsonl"

    def _new_segment(self, segment: int) -> None:
        self._begin(open_plain(self._name(segment), os.O_WRONLY | os.O_CREAT, alone=True), segment)

    def _begin(self, fd: int, segment: int) -> None:
        try:
            os.ftruncate(fd, 0)  # what an append that failed left
            write_all(fd, header(segment + 1))
            sync(fd)
        finally:
            os.close(fd)
        sync_folder(self.path)

    def _file(self, segment: int) -> IO[bytes]:
        if len(self._generations) <= segment:
            with self._opening:
                while len(self._generations) <= segment:
                    number = len(self._files)
                    file = self._opened(self._name(number))
                    generation = _generation(file, number)
                    self._files.append(file)
                    self._generations.append(generation)
        return self._files[segment]

    def _opened(self, name: Path) -> IO[bytes]:
        try:
            fd = open_plain(name, os.O_RDWR if self._writer else os.O_RDONLY)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise EngineError(
                f"cannot open {name}: {error.strerror}. Nothing is lost. Mend that, and open the store again."
            ) from error
        return open(fd, "r+b" if self._writer else "rb", buffering=0)

    def segments(self) -> int:
        """How many segment files there are. Raises DamageError when one between them is missing."""
        # not glob(), which takes a folder that cannot be read for an empty one
        files = [name for name in self.path.iterdir() if name.suffix == ".jsonl"]
        numbers = sorted(int(name.stem) for name in files if name.stem.isdigit())
        for number, found in enumerate(numbers, 1):
            if number != found:
                raise DamageError(
                    f"{self._name(number - 1)} is missing, though {self._name(found - 1)} follows. Nothing was changed. Restore a backup."
                )
        return len(numbers)

    def size(self) -> int:
        """The size of what has been read or written so far, in bytes."""
        total = self.end.offset
        for segment in range(self.end.segment):
            with contextlib.suppress(FileNotFoundError):  # a reader's writer is just replacing it
                total += self._name(segment).stat().st_size
        return total

    def changed(self) -> int:
        """When the last segment was written to, in microseconds, by the clock of that time: a dump is restored long after its transactions."""
        return os.fstat(self._file(self.end.segment).fileno()).st_mtime_ns // 1000

    # ------------------------------------------------------------------ reading

    def read(self, progress: Callable[[int, int], None] | None = None) -> Iterator[list[Line]]:
        """The sealed transactions after `end`, each as its lines, verified. Moves `end` past each.

        Raises DamageError with file and line. A torn tail ends the reading; `torn` says so.
        """
        self.torn = None
        while True:
            # asked first: nothing is appended to a segment once another follows
            last = self.end.segment + 1 >= self.segments()
            yield from self._read_segment(progress, last)
            if last or self.torn is not None:
                return
            self._state = (Position(self.end.segment + 1, 0), *self._state[1:])

    def _read_segment(
        self, progress: Callable[[int, int], None] | None, last_segment: bool
    ) -> Iterator[list[Line]]:
        segment, offset = self.end
        data = self._load(segment, offset)
        at = count = 0  # bytes and lines after `offset`
        if offset == 0:
            at = self._check_header(segment, data, last_segment)
            if at == 0:
                return
            count = 1
            self._checksums.add(segment, 0, data[:at])
            self._moved(Position(segment, at), self.digest, self._state[2])
        digest = self.digest
        pending: list[Line] = []  # a transaction without its last line so far; it never crosses a segment
        begin, begin_count = at, count
        while (stop := data.find(b"\n", at)) >= 0:
            try:
                head, digest, spans = following(data[at:stop], digest)
            except ValueError as error:
                self._refuse(segment, self._line_number(segment, offset) + count, str(error))
            pending.append(placed(head, spans, (segment << SHIFT) | (offset + at), stop + 1 - at))
            last, at, count = at, stop + 1, count + 1
            if head.get("more"):
                continue
            self._checksums.add(segment, offset + begin, data[begin:at])
            self._moved(Position(segment, offset + at), digest, (segment, offset + last, at - last))
            begin, begin_count = at, count
            if progress and count % 1024 == 0:
                progress(at, len(data))
            yield pending
            pending = []
        if begin < len(data):
            number = self._line_number(segment, offset) + begin_count
            if not last_segment:
                self._refuse(segment, number, "it has no end, though another segment follows")
            self.torn = Torn(str(self._name(segment)), number, len(data) - begin, None)

    def again(self, place: Place) -> Iterator[Line]:
        """Read the lines at a place again, each checked by itself. Raises DamageError."""
        segment, at = segment_of(place), place.pos
        data = self._bytes(segment, place.pos & OFFSET, place.length)
        if len(data) < place.length:
            self._refuse_cut(segment, (place.pos & OFFSET) + place.length)
        for raw in data.split(b"\n")[:-1]:
            try:
                head, _, spans = check(raw)
            except ValueError as error:
                self._refuse(segment, self._line_number(segment, at & OFFSET), str(error))
            yield placed(head, spans, at, len(raw) + 1)
            at += len(raw) + 1

    def heads_since(self, tx: Instant) -> list[dict[str, Any]]:
        """The heads of the transactions after an instant."""
        found: list[dict[str, Any]] = []
        for head in self._heads_backwards():
            if instant(head["tx"]) <= tx:
                break
            found.append(head)
        return found[::-1]

    def _heads_backwards(self) -> Iterator[dict[str, Any]]:
        """The heads of all lines read or written so far, the last first."""
        for place in reversed(list(self.whole())):
            data = self._bytes(segment_of(place), place.pos & OFFSET, place.length)
            yield from (orjson.loads(line)["head"] for line in reversed(data.splitlines()))

    def written(self, lines: list[Line]) -> list[bytes]:
        """Lines of segments as bytes, without their ends."""
        return [self._bytes(segment_of(line.at), line.at.pos & OFFSET, line.at.length - 1) for line in lines]

    def whole(self) -> Iterator[Place]:
        """The places of all lines read or written so far."""
        for segment in range(self.end.segment + 1):
            fd = self._file(segment).fileno()
            stop = self.end.offset if segment == self.end.segment else os.fstat(fd).st_size
            start = len(header(segment + 1, self._generations[segment]))
            yield Place((segment << SHIFT) | start, stop - start)

    def _load(self, segment: int, offset: int) -> bytes:
        fd = self._file(segment).fileno()
        size = os.fstat(fd).st_size
        if size < offset:  # its writer has just taken back what was read
            self._refuse_cut(segment, offset)
        return self._bytes(segment, offset, size - offset)

    def _bytes(self, segment: int, offset: int, length: int) -> bytes:
        fd = self._file(segment).fileno()
        try:
            return read_at(fd, offset, length)
        except OSError as error:
            raise EngineError(
                f"cannot read {self._name(segment)}: {error.strerror}. Nothing was changed; where it stays so, restore a dump or a backup."
            ) from error

    def _line_number(self, segment: int, offset: int) -> int:
        if offset == 0:
            return 1
        return self._bytes(segment, 0, offset).count(b"\n") + 1

    def _check_header(self, segment: int, data: bytes, last_segment: bool) -> int:
        stop = data.find(b"\n")
        if stop < 0:
            if not last_segment:
                self._refuse(segment, 1, "it has no end, though another segment follows")
            if not header(segment + 1).startswith(data.rstrip(b"\0")):
                self._refuse_header(segment, data)
            self.torn = Torn(str(self._name(segment)), 1, len(data), None)
            return 0
        if generation_of(data[: stop + 1], segment + 1) < 0:
            self._refuse_header(segment, data[:stop])
        return stop + 1

    def _refuse_header(self, segment: int, line: bytes) -> NoReturn:
        try:
            header = orjson.loads(line)
        except orjson.JSONDecodeError:
            header = None
        if isinstance(header, dict) and header.get("format") == "graphstore journal":
            schema = header.get("schema")
            if isinstance(schema, int) and schema > SCHEMA:
                raise EngineError(
                    f"{self._name(segment)} was written with schema {schema}; this graphstore reads up to {SCHEMA}. "
                    "Install a newer graphstore. Nothing was changed."
                )
        raise DamageError(
            f"{self._name(segment)} line 1: it is not the header of a graphstore journal. Nothing was changed."
        )

    def _refuse(self, segment: int, number: int, why: str) -> NoReturn:
        raise DamageError(
            f"{self._name(segment)} line {number}: {why}. The journal is damaged there; nothing was changed. "
            "Restore a dump or a backup."
        )

    def make_ready(self) -> None:
        """Set a torn tail aside in a file beside its segment, so that the next commit follows the last whole one. Writer only."""
        if self.torn is None:
            return
        name = Path(self.torn.file)
        begin = name.stat().st_size - self.torn.size
        fd = open_plain(name, os.O_RDWR, alone=begin == 0)
        try:
            if self.torn.size:
                aside = free_name(name.with_name(f"{name.stem}-torn-{begin}.bin"))
                with open_new(aside) as file:
                    write_all(file.fileno(), read_at(fd, begin, self.torn.size))
                self.torn.aside = str(aside)
            os.ftruncate(fd, begin)
            if begin == 0:
                first = header(int(name.stem))
                write_all(fd, first)
                self._checksums.add(self.end.segment, 0, first)
                self._moved(Position(self.end.segment, len(first)), self.digest, self._state[2])
            sync(fd)
        finally:
            os.close(fd)
        sync_folder(self.path)

    def start_at(self, position: Position, digest: str) -> None:
        """Continue from a position; the bytes before it are known to be right."""
        self._checksums = BlockChecksums()
        self._moved(position, digest, None)

    def _moved(self, end: Position, digest: str, last: tuple[int, int, int] | None) -> None:
        # what was read would survive a crash
        self._state = self._durable = (end, digest, last, self._number)

    def holds(self, position: Position) -> bool:
        """Whether the files reach as far as `position`."""
        if position.segment >= self.segments():
            return False
        return self._name(position.segment).stat().st_size >= position.offset

    def ends_at(self, end: Any, digest: str) -> bool:
        """Whether the line that ends at a position has that digest."""
        if not isinstance(end, list) or not self.holds(Position(*end)):
            return False
        segment, stop = end
        seen = b""
        with open(open_plain(self._name(segment), os.O_RDONLY), "rb") as source:
            while stop > 0 and b"\n" not in seen[:-1]:
                start = max(0, stop - (1 << 16))
                source.seek(start)
                seen, stop = source.read(stop - start) + seen, start
        return b'"digest":"%b"' % digest.encode() in seen[:-1].rpartition(b"\n")[2]

    def unchanged(self) -> bool:
        """Whether the last line this reader has seen is still there (a failed commit is cut off again)."""
        last = self._state[2]
        if last is None:
            return True
        segment, offset, length = last
        raw = self._bytes(segment, offset, length)
        return raw.find(b'"digest":"%b"' % self.digest.encode()) >= 0

    def body(self, pos: int, length: int) -> dict[str, Any]:
        """The body at a place, parsed afresh."""
        return orjson.loads(self.raw(pos, length))  # type: ignore[no-any-return]

    def raw(self, pos: int, length: int) -> bytes:
        """The bytes of the body at a place.

        Raises DamageError when the file ends before, or they do not match their hash; a reader raises EngineError when its writer took them back.
        """
        block = self._blocks.get(pos >> BLOCK)
        if block is not None and (at := pos & WITHIN) + length <= len(block):
            return block[at : at + length]
        try:
            return self._unread(pos >> SHIFT, pos & OFFSET, length)
        except DamageError as error:
            self._check_followed(error)
            raise

    def _check_followed(self, cause: DamageError | None = None) -> None:
        """Hold on to what was followed: other lines may be where it was. Raises EngineError when the writer took it back."""
        if not self._writer and not self.unchanged():
            raise EngineError(
                f"the writer of {self.path} took back what this reader followed to last, which was not durable yet. Call refresh() and ask again."
            ) from cause

    def _check_line(self, segment: int, offset: int, length: int) -> None:
        """Hold the line of a body against its digest. Raises DamageError."""
        start, size, head = offset, _AROUND, b""
        while start > 0 and b"\n" not in head:
            start = max(0, offset - size)
            head, size = self._bytes(segment, start, offset - start), 4 * size
        start += head.rfind(b"\n") + 1
        line, size = b"", offset - start + _AROUND
        while b"\n" not in line and len(line) < (size := 4 * size):
            line = self._bytes(segment, start, size)
            if len(line) < size:
                break
        raw, end, _ = line.partition(b"\n")
        try:
            if not end:
                raise ValueError("it has no end")
            spans = spans_of(raw)
            if (offset - start, length) not in spans:
                raise ValueError("it is not the line that was read there")
        except ValueError as error:
            self._refuse(segment, self._line_number(segment, start), str(error))

    def _unread(self, segment: int, offset: int, length: int) -> bytes:
        """The bytes of a body from the file: of blocks that are as they were written. Where one is not, or that is not known, its line is checked."""
        parts, at, stop = [], offset, offset + length
        while at < stop:
            block = self._block(segment, at >> BLOCK, keep=length <= _LONG)
            part = block[at & WITHIN : (at & WITHIN) + stop - at]
            if not part or (at + len(part) < stop and len(block) <= WITHIN):
                break
            parts.append(part)
            at += len(part)
        else:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        found = self._bytes(segment, offset, length)
        self._check_followed()
        if len(found) < length:
            self._refuse_cut(segment, stop)
        self._check_line(segment, offset, length)
        return found

    def _block(self, segment: int, number: int, *, keep: bool) -> bytes:
        """A block as far as it was followed, or nothing where it is not as it was then."""
        blocks = self._blocks  # others are put in their place when the file is replaced or cut
        place = (segment << SHIFT - BLOCK) | number
        size, expected = self._checksums.of(segment, number)
        block = blocks.get(place, b"")
        if len(block) < size and expected != UNKNOWN:
            block = self._bytes(segment, number << BLOCK, size)
            self._check_followed()
            if len(block) < size or crc32(block) != expected:
                return b""
            if keep:
                if len(blocks) >= _BLOCKS:
                    blocks.clear()
                blocks[place] = block
        return block

    def _refuse_cut(self, segment: int, wanted: int) -> NoReturn:
        size = os.fstat(self._file(segment).fileno()).st_size
        raise DamageError(
            f"{self._name(segment)} ends after {size} of at least {wanted} bytes: another process cut it off. Nothing was changed. "
            "Restore a dump or a backup."
        )

    # ------------------------------------------------------------------ writing

    def take_turn(self) -> bool:
        """Become the one that may append, until `leave_turn`. Returns whether lines of others are to be read first.

        The folder's lock keeps every other process out, so there is nothing to do here.
        """
        return False

    def leave_turn(self) -> None:
        """Let others append. What was appended here goes on waiting for its `sync`."""

    @property
    def in_turn(self) -> bool:
        """The folder's lock keeps every other process out: there are no turns."""
        return False

    def has_more(self) -> bool:
        """Nobody else writes while this folder is held; a reader asks by `refresh`."""
        return False

    def followed(self) -> int:
        """How many requests were seen so far that other processes have done."""
        return 0

    def done_elsewhere(self, request: str, since: int) -> bool:
        """Whether another process has done a request, by its id, where it had not when `followed` gave `since`."""
        return False

    def watch(self, follow: Callable[[], object]) -> None:
        """Call `follow` whenever others may have written. Nobody else does while this folder is held; a reader asks by itself."""

    def append(self, lines: list[tuple[dict[str, Any], list[bytes]]]) -> list[list[tuple[int, int]]]:
        """Write one transaction: head and bodies of each line. Returns the places of the bodies. It is durable after `sync(ticket())`.

        Raises EngineError when the disk refuses; the journal is then as it was before.
        """
        if self._broken or self.failed:
            raise self._refused()
        digest, parts, encoded, at = self.digest, [], [], 0
        for number, (head, bodies) in enumerate(lines, 1):
            if number < len(lines):
                head["more"] = True
            line, digest, offsets = compose(head, bodies, digest)
            encoded.append((at, offsets, bodies))
            parts.append(line)
            at += len(line)
        segment, offset = self._room()
        self._number += 1  # first: who is interrupted after it has to sync
        self._commit(segment, offset, b"".join(parts))
        base = (segment << SHIFT) | offset
        self.appended = Place(base, at)
        last = (segment, offset + at - len(parts[-1]), len(parts[-1]))
        state = (Position(segment, offset + at), digest, last, self._number)
        self._queue(state, lines, parts)  # first: who reads the state finds there all that is before it
        self._state = state
        return [
            [(base + start + offset, len(body)) for offset, body in zip(offsets, bodies, strict=True)]
            for start, offsets, bodies in encoded
        ]

    def _queue(
        self, state: State, lines: list[tuple[dict[str, Any], list[bytes]]], written: list[bytes]
    ) -> None:
        """Take note of a transaction that was written here and is to be sent elsewhere: the state after it, its lines, and these as bytes."""

    def _room(self) -> Position:
        if self.end.offset < SEGMENT_BYTES:
            return self.end
        segment = self.end.segment + 1
        try:
            self._new_segment(segment)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._name(segment).unlink()
            raise EngineError(
                f"cannot begin {self._name(segment)}: {error.strerror}. Nothing of this transaction was kept.",
                outcome="not kept",
            ) from error
        first = header(segment + 1)
        self._checksums.add(segment, 0, first)
        return Position(segment, len(first))

    def _commit(self, segment: int, offset: int, data: bytes) -> None:
        fd = self._file(segment).fileno()
        if os.lseek(fd, 0, os.SEEK_END) < offset:
            self._refuse_cut(segment, offset)
        try:
            pwrite_all(fd, data, offset)
        except BaseException as error:
            self._undo(fd, offset)  # where that fails too: without its last byte it is no transaction
            if not isinstance(error, OSError):
                raise
            full = (
                " Free some space and do it again."
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
                else ""
            )
            raise EngineError(
                f"cannot write {self._name(segment)}: {error.strerror}. Nothing of this transaction was kept.{full}",
                outcome="not kept",
            ) from error
        self._checksums.add(segment, offset, data)

    @property
    def state(self) -> State:
        """The end of the journal and its digest, for `rewind`."""
        return self._state

    def rewind(self, state: State) -> None:
        """Cut off what was appended last and never acknowledged. The caller holds the writer's lock."""
        with self._syncing:
            self._cut_to(state[0])
            self._state = (*state[:3], self._number)
            if self._synced > state[3]:  # another thread's sync had it too
                self._durable = self._state

    def ticket(self) -> Ticket:
        """A ticket for `sync`: everything appended so far."""
        return self._number

    def begin_group(self) -> None:
        """What is appended from here on becomes durable at once, by a ticket of it, or is cut off as a whole."""
        self._held = (*self._state[:3], self._number)

    def end_group(self) -> None:
        """The group is whole; any sync may make it durable."""
        self._held = None

    def start_sync(self) -> None:
        """Begin to make durable what was committed, where that can go on by itself. A disk is waited for at once."""

    def sync(self, ticket: Ticket) -> bool:
        """Wait until what the ticket stands for is durable. Many may wait: one system call serves all who wait by then, and none of them waits for a
        later one.

        False: it is not. Then `cut_back` decides what became of it, and `check` tells. Nothing can be appended before.
        """
        with self._round:
            if self._synced >= ticket:
                return not self._was_cut(ticket)
            with self._syncing:
                return self._sync(ticket)

    def _sync(self, ticket: Ticket) -> bool:
        if self._synced >= ticket:
            return not self._was_cut(ticket)
        if self._broken or self.failed:
            return False
        # before the state is read: whoever waits with the old lock has been appended by then
        self._round = threading.Lock()
        upto = self._state
        if self._held is not None and ticket <= self._held[3]:
            upto = self._held
        try:
            self._flush(self._durable[0].segment, upto)
        except OSError as error:
            self.failed = f"cannot make {self.named} durable: {error.strerror}."
            return False
        self._durable, self._synced = upto, upto[3]
        return True

    def _flush(self, segment: int, upto: State) -> None:
        """Make durable what was appended to the segments from this one on, up to a state. Raises OSError."""
        for number in range(segment, upto[0].segment + 1):
            sync_data(self._file(number).fileno())

    def check(self, ticket: Ticket, tx: datetime | None = None) -> None:
        """Raise EngineError when what a ticket stands for was not kept, or when that is unknown: then it has the `tx` to ask by."""
        if why := self._was_cut(ticket):
            raise EngineError(
                f"{why} Nothing of this transaction was kept. {self._remedy}, and do it again.",
                outcome="not kept",
            )
        if self._synced < ticket and self._broken:
            asked = "" if tx is None else f": it was when changes() has its tx, {tx.isoformat()}"
            raise EngineError(
                f"{self._broken} Whether this transaction was kept is unknown. Close the store, open it again and look{asked}.",
                outcome="unknown",
                tx=tx,
            )

    def _was_cut(self, ticket: Ticket) -> str:
        return next((why for after, last, why in self._cut if after < ticket <= last), "")

    def _refused(self) -> EngineError:
        why = self.failed or f"{self._broken} Close the store and open it again."
        return EngineError(f"{why} Nothing of this transaction was kept.", outcome="not kept")

    @property
    def broken(self) -> str | None:
        """Why nothing may be written any more before the store is opened again."""
        return self._broken

    def break_off(self, why: str) -> None:
        """Refuse everything that would be written before the store is opened again."""
        self._broken = why

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Hold off every sync while the journal is read again; what was read is durable at the end, or the journal is broken."""
        with self._syncing:
            first = self._durable[0].segment
            yield
            if self._writer and self._synced != self._number and not self._broken:
                try:
                    self._sync_from(min(first, self.end.segment))
                except OSError as error:
                    self._broken = f"{self.path} could not be made durable ({error.strerror})."

    def _sync_from(self, segment: int) -> None:
        upto = self._state
        self._flush(segment, upto)
        self._durable, self._synced = upto, max(self._synced, upto[3])

    def cut_back(self) -> bool:
        """After a failed `sync`: cut off what did not become durable, and continue from there. The caller holds the writer's lock.

        False: it could not be cut off. It may be there when the store is opened again; here nothing can be written any more.
        """
        with self._syncing:
            why, self.failed = self.failed or "", None
            if not self._cut_to(self._durable[0]):
                return False
            self._state = self._durable = (*self._durable[:3], self._number)
            self._cut.append((self._synced, self._number, why))
            self._synced = self._number
            if self._held is not None:
                self.begin_group()
            return True

    def _cut_to(self, end: Position) -> bool:
        """Durably remove what is after `end`. False, and the journal is broken, when the disk refuses."""
        self._checksums.cut(*end)  # before the blocks: who reads takes them first
        self._blocks = {}
        try:
            later = range(self.segments() - 1, end.segment, -1)
            for segment in later:
                self._let_go(segment)
                self._name(segment).unlink(missing_ok=True)
            fd = self._file(end.segment).fileno()
            os.ftruncate(fd, end.offset)
            sync(fd)
            if later:
                sync_folder(self.path)
        except OSError as error:
            self._broken = f"A failed commit could not be cut off {self.path} ({error.strerror})."
            return False
        return True

    def _undo(self, fd: int, offset: int) -> None:
        try:
            os.ftruncate(fd, offset)
        except OSError as error:
            self._broken = f"A failed commit could not be cut off {self.path} ({error.strerror})."

    def lines(self, upto: State) -> Iterator[bytes]:
        """The lines up to a state, without the headers of segments, in pieces that need not end with a line."""
        end = upto[0]
        for segment in range(end.segment + 1):
            fd = self._file(segment).fileno()
            stop = end.offset if segment == end.segment else os.fstat(fd).st_size
            at = len(header(segment + 1, self._generations[segment]))
            while at < stop:
                data = self._bytes(segment, at, min(_CHUNK, stop - at))
                if not data:
                    self._refuse_cut(segment, stop)
                yield data
                at += len(data)

    def count(self, upto: State) -> tuple[int, int]:
        """How many lines and how many transactions there are up to a state."""
        lines = unsealed = 0
        rest = b""
        for data in self.lines(upto):
            lines += data.count(b"\n")
            if MORE in rest + data:
                *whole, rest = (rest + data).split(b"\n")
                unsealed += sum(
                    1 for line in whole if MORE in line and orjson.loads(line)["head"].get("more")
                )
            else:
                rest = (rest + data).rpartition(b"\n")[2]
        return lines, lines - unsealed

    def close(self) -> None:
        """Close the files."""
        self._blocks = {}
        self._let_go(0)

    # ------------------------------------------------------------------ forgetting

    def blank(self, segment: int, places: list[Place]) -> Moves:
        """Rewrite a segment with `null` in place of these bodies and replace the old one. Returns how the other bodies moved.

        The caller holds the writer's lock. Raises EngineError when the disk refuses; the segment is then as it was. Where its new name cannot be made
        durable the journal is broken (`broken`): what is read is the new file, and nothing more is written.
        """
        with self._syncing:
            file = self._file(segment)
            stop = self.end.offset if segment == self.end.segment else os.fstat(file.fileno()).st_size
            old = header(segment + 1, self._generations[segment])
            fresh = header(segment + 1, self._generations[segment] + 1)
            data = memoryview(self._bytes(segment, 0, stop))
            sound = array("q", checksums_of(data)) == self._checksums.every(segment, stop)
            parts: list[Any] = [fresh]
            at, shift = len(old), len(fresh) - len(old)
            moves = Moves([], [shift])
            for pos, length in sorted(places):
                offset = pos & OFFSET
                parts += (data[at:offset], FORGOTTEN)
                at = offset + length
                shift += len(FORGOTTEN) - length
                moves.starts.append(pos)
                moves.shifts.append(shift)
            written = b"".join([*parts, data[at:]])
            self._replace(segment, written)
            self._checksums.rewritten(segment, written, sound=sound)
            self._shifted(segment, moves)
            return moves

    def _replace(self, segment: int, data: bytes) -> None:
        name = self._name(segment)
        try:
            fresh = replaced(name, data)
        except OSError as error:
            raise EngineError(
                f"cannot write {name} anew: {error.strerror}{f' ({error.filename})' if error.filename else ''}. What was forgotten is not shown any more, but its content is still in "
                "that file. Free some space and open the store again: that finishes it.",
                outcome="kept",
            ) from error
        self._files[segment].close()
        self._files[segment] = fresh
        self._generations[segment] += 1
        self._blocks = {}
        try:
            sync_folder(name.parent)
        except (
            OSError
        ) as error:  # a crash may bring the old file back, without what would be appended to this one
            self._broken = f"{name} was written anew without what was forgotten, but its folder cannot be made durable ({error.strerror})."

    def _shifted(self, segment: int, moves: Moves) -> None:
        def moved(state: State) -> State:
            end, digest, last, number = state
            base = segment << SHIFT
            if end.segment == segment:
                end = Position(segment, moves.to(base + end.offset) - base)
            if last is not None and last[0] == segment:
                start, stop = (moves.to(base + at) - base for at in (last[1], last[1] + last[2]))
                last = (segment, start, stop - start)
            return end, digest, last, number

        self._state, self._durable = moved(self._state), moved(self._durable)

    def settle(self) -> None:
        """Make everything durable now; first of all what was read when the store was opened: its last writer
        may have been killed before it did. Raises EngineError when the disk refuses; the journal is broken then.
        """
        with self._syncing:
            if why := self._broken or self.failed:
                raise EngineError(f"{why} Close the store and open it again.")
            if self._synced >= self._state[3]:
                return
            try:
                if self._synced < 0:
                    self._sync_from(0)
                    sync_folder(self.path)
                    sync_folder(self.path.parent)
                else:
                    self._sync_from(self._durable[0].segment)
            except OSError as error:
                self._broken = f"cannot make {self.path} durable: {error.strerror}."
                raise EngineError(f"{self._broken} Close the store and open it again.") from error

    def renewed(self) -> bool:
        """Whether another file has taken the place of a segment that was read here: it was rewritten, or taken back and begun anew."""
        for segment, file in enumerate(self._files):
            try:
                found, known = self._name(segment).stat(), os.fstat(file.fileno())
            except FileNotFoundError:  # just being replaced
                return True
            if (found.st_dev, found.st_ino) != (known.st_dev, known.st_ino):
                return True
        return False

    def removals(self) -> int:
        """How often bodies were removed without another file in place of theirs (`renewed`): never."""
        return 0

    @property
    def generation(self) -> int:
        """The highest generation of the segments."""
        return max(self._generations, default=0)

    def reopen(self) -> None:
        """Close the files, so that the next read opens those that are there now."""
        self._blocks = {}
        self._let_go(0)
        self.start_at(Position(0, 0), GENESIS)

    def _let_go(self, segment: int) -> None:
        for file in self._files[segment:]:
            file.close()
        del self._files[segment:], self._generations[segment:]


def _generation(file: IO[bytes], segment: int) -> int:
    return generation_of(read_at(file.fileno(), 0, 300).partition(b"\n")[0], segment + 1)
