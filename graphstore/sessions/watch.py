"""Ingests session files while they grow: a closed segment at once, the last one after the session was idle for ten minutes.

Nothing here sleeps: each look reads the given clock. A file is read again when its size or modification time has changed, or when it has been idle
for long enough.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphstore.errors import InvalidError
from graphstore.sessions.ingesting import Ingested, Ingesting, SessionIngested, ingest, session_files
from graphstore.sessions.segments.analysing import Analyser, builtin
from graphstore.sessions.transcripts.transcript import PAUSE, Transcript
from graphstore.store import registry

if TYPE_CHECKING:
    from graphstore.store.store import Store

Clock = Callable[[], datetime]
_Stamp = tuple[int, int, int]
_QUIET = timedelta(seconds=30)


@dataclass(slots=True)
class _Watched:
    """A file as it was when it was last ingested."""

    stamp: _Stamp
    since: datetime
    """The time of its last observed change."""
    open: bool = True
    """The last segment was left for later."""
    error: str | None = None
    warnings: tuple[str, ...] = ()


class Following:
    """Ingests a session file, or a folder of them, that may grow. Each call of `ingest_new` ingests what is new.

    `idle`: a session without a change for this long has ended. `clock` returns the current time (default: the store's). A store in another process
    receives a file whole, after half a minute without a change; a refusal is reported as that file's error.
    """

    def __init__(
        self,
        store: Store,
        path: str | Path,
        *,
        analyze: Analyser = builtin,
        computer: str | None = None,
        format: str | None = None,
        idle: timedelta = PAUSE,
        clock: Clock | None = None,
    ) -> None:
        if idle <= timedelta(0):
            raise InvalidError(f"idle {idle} is no pause. Give a timedelta above zero.")
        session_files(path, but=store.path)
        self._store, self._path, self._idle = store, path, idle
        self._elsewhere = isinstance(store, registry.Elsewhere)
        self._clock: Clock = clock or (None if self._elsewhere else store._clock) or _now
        self._analyze, self._computer, self._format = analyze, computer, format
        self._ingesting = None if self._elsewhere else self._fresh()
        self._watched: dict[Path, _Watched] = {}

    def ingest_new(self, seconds: float | None = None) -> Ingested:
        """Ingest what is new since the last call. A failure is reported when it is new, and retried when the file changes or is idle.

        `seconds`: no further file is started after this time; the next call continues.
        """
        now, until = self._clock(), None if seconds is None else time.monotonic() + seconds
        reports: list[SessionIngested] = []
        due = [(file, stamp) for file, stamp in self._files() if self._is_due(file, stamp, now)]
        if due and not self._elsewhere:
            self._ingesting = self._fresh()  # other processes may have written meanwhile
        for file, stamp in due:
            reports += self._sent(file, stamp, now) if self._elsewhere else self._take(file, stamp, now)
            if until is not None and time.monotonic() >= until:
                break
        return Ingested(sessions=tuple(reports))

    look = ingest_new
    """The name that `ingest_new` had in release 0.1."""

    def _fresh(self) -> Ingesting:
        return Ingesting(self._store, analyze=self._analyze, computer=self._computer, format=self._format)

    def _files(self) -> Iterator[tuple[Path, _Stamp]]:
        for file in (
            session_files(self._path, but=self._store.path) if Path(self._path).expanduser().exists() else ()
        ):
            try:
                found = file.stat()
            except OSError:
                continue  # the file is already gone
            yield file, (found.st_size, found.st_mtime_ns, found.st_ino)

    def _is_due(self, file: Path, stamp: _Stamp, now: datetime) -> bool:
        known = self._watched.get(file)
        if self._elsewhere:
            quiet = now - datetime.fromtimestamp(stamp[1] / 1e9, UTC) >= _QUIET
            return (known is None or stamp != known.stamp) and quiet
        return known is None or stamp != known.stamp or (known.open and now - known.since >= self._idle)

    def _sent(self, file: Path, stamp: _Stamp, now: datetime) -> list[SessionIngested]:
        """Send a file to a store in another process."""
        how: dict[str, Any] = {} if self._analyze is builtin else {"analyze": self._analyze}
        try:
            done = ingest(self._store, file, computer=self._computer, format=self._format, **how).sessions
        except InvalidError as error:
            done = (SessionIngested(file=str(file), error=str(error)),)
        self._watched[file] = _Watched(stamp, now)
        return [each for each in done if each.error or each.new or each.revised or each.retracted]

    def _take(self, file: Path, stamp: _Stamp, now: datetime) -> list[SessionIngested]:
        before = self._watched.get(file)
        seen = _Watched(stamp, now)
        if before is not None and stamp == before.stamp:
            seen.since = before.since

        def ended(transcript: Transcript) -> bool:
            if before is None:
                seen.since = _written(transcript, now)
            return now - seen.since >= self._idle

        assert self._ingesting is not None
        reports = self._ingesting.ingest_file(file, ended=ended)
        report, *others = reports
        seen.error, seen.warnings = report.error, report.warnings
        seen.open = report.open or (report.error is not None and now - seen.since < self._idle)
        self._watched[file] = seen
        if report.error is not None and before is not None and report.error == before.error:
            return others
        known = before.warnings if before is not None else ()
        # A line still being written is not an entry yet, and an empty file is not a session.
        warned = report.session is not None and any(
            each not in known and not each.startswith("torn last line") for each in report.warnings
        )
        happened = report.error or report.new or report.revised or report.retracted or warned
        return reports if happened else others


def follow(following: Following, told: Callable[[Ingested], None], *, every: float = 2.0) -> None:
    """Ingest every `every` seconds, forever, and pass each result to `told`. An interruption loses no committed work; the next run continues from it."""
    while True:
        done = following.ingest_new()
        if done.sessions:
            told(done)
        time.sleep(every)


def _now() -> datetime:
    return datetime.now(UTC)


def _written(transcript: Transcript, now: datetime) -> datetime:
    """Return when a file seen for the first time was last written, by its entries; `now` if its last line is incomplete."""
    if _torn(transcript.path):
        return now
    times = [
        entry.timestamp for entry in transcript.entries if entry.is_content and entry.timestamp is not None
    ]
    return min(max(times, default=now), now)


def _torn(file: Path) -> bool:
    with open(file, "rb") as lines:
        if lines.seek(0, os.SEEK_END) == 0:
            return True
        lines.seek(-1, os.SEEK_END)
        return lines.read(1) != b"\n"
