"""Answers about repeated events at one coordinate: their occurrences, what resolved them, and whether they are active.

All answers are computed from the index and nothing is stored, since a status depends on links and time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

import orjson

from graphstore.ledger.chain import OWN
from graphstore.read.happened import POINTS, Seen, Told, latest_of, seen_by, status_of, told_by
from graphstore.read.standing_rules import Index
from graphstore.values.fingerprints import NEVER_OPEN
from graphstore.values.inputs import authorized_of
from graphstore.values.models import Json, Status
from graphstore.values.period import Instant

Raw = Callable[[int, int], bytes]
Episode = tuple[Instant, Instant | None]


class EventsAt:
    """The events at (valid, tx)."""

    __slots__ = ("_points", "index", "raw", "tx", "valid")

    def __init__(self, index: Index, raw: Raw, valid: Instant, tx: Instant) -> None:
        self.index, self.raw = index, raw
        self.valid, self.tx = valid, tx
        self._points: frozenset[str] | None = None

    @property
    def _whole(self) -> EventsAt:
        """Return the events with what is outside of scopes, which may decide whether an event is open."""
        whole = self.index.whole
        return self if whole is self.index else EventsAt(whole, self.raw, self.valid, self.tx)

    def instants(self, ent: int) -> list[Instant]:
        """Return the instants of an event up to this coordinate, in order. An instant recorded twice is listed twice."""
        return sorted(at for at in self._reported(ent) if at <= self.valid)

    def seen(self, ent: int) -> Seen:
        """Return the first and last occurrence and their number. A future event counts as of its start."""
        index = self.index
        first = index.first_reported(ent)
        repeats = self._repeats(ent)
        if not repeats:
            return first, first, 1
        if index.undone_by:
            return seen_by(self._reported(ent), self.valid)
        newest = index.seen_of[ent][repeats - 1]
        began, last = min(first, index.s_first[newest]), max(first, index.s_last[newest])
        if last <= self.valid:
            return began, last, repeats + 1
        return seen_by(self._reported(ent), self.valid)

    def told(self, ent: int) -> list[Told]:
        """Return the occurrences up to this coordinate, in order, each with its differences from the first report."""
        return told_by(self._reported(ent), [self._said(row) for row in self._rows(ent)], self.valid)

    def latest(self, ent: int, body: Json) -> Json:
        """Return the body of an event with the changes of its latest occurrence here. If that gave no metadata, the earlier metadata stay."""
        own = self._newest(ent)
        if own is None or own.get("metadata", ...) is None:
            return latest_of(body, self.told(ent))
        return {**body, **own}

    def _newest(self, ent: int) -> Json | None:
        """Return the differences of the latest occurrence from the first report; None if all occurrences must be read to know them."""
        index, repeats = self.index, self._repeats(ent)
        if not repeats or ent in index.gone:
            return {}
        row = index.seen_of[ent][repeats - 1]
        at = index.s_at[row]
        if (
            not index.undone_by
            and at <= self.valid
            and at == index.s_last[row] >= index.first_reported(ent)
            and index.s_tx[row] > index.born[ent]
        ):
            found: Json = self._said(row).get(OWN, {})
            return found
        return None

    def _said(self, row: int) -> Json:
        """Return the body of the operation that recorded an occurrence; {} if it has none."""
        op = self.index.s_op[row]
        length = self.index.o_len[op]
        raw = self.raw(self.index.o_pos[op], length) if length else b""
        found: Json = orjson.loads(raw) if b'"own":' in raw or b'"first":' in raw else {}
        return found

    def resolutions(self, ent: int) -> list[Instant]:
        """Return the instants at which an event was resolved: each occurrence of the target of a `resolved_by` link, in order."""
        whole, found = self._whole, set()
        for since, target in whole._resolving(ent):
            found.add(since)
            if whole.index.is_event[target]:
                found.update(at for at in whole.instants(target) if at >= since)
        return sorted(found)

    def can_be_open(self, ent: int, body: Json | None = None) -> bool:
        """Return True for an event that lasts until something resolves it: it is neither a message nor of a type that is a point. `body`: its body, if
        the caller has it."""
        index = self.index
        type = index.kind[ent]
        if not index.is_event[ent] or type in NEVER_OPEN or type in self._defined_points():
            return False
        if body is None:
            ver = index.versions_of[ent][0]
            raw = self.raw(index.v_pos[ver], index.v_len[ver]) if index.v_len[ver] else b""
            if b'"authorized":' not in raw:
                return True
            body = orjson.loads(raw)
        return authorized_of(type, body) is None

    def status(self, ent: int, body: Json | None = None) -> Status | None:
        """Return the status of an event: `active`, `resolved`, or `superseded` by another event; None if it cannot be open or was retracted."""
        index = self.index
        if not self.can_be_open(ent, body):
            return None
        if ent not in index.gone and not index.believed(ent, self.tx):
            return None
        whole = self._whole
        if whole.index.superseded(ent, self.valid, self.tx):
            return "superseded"
        resolving = whole._resolving(ent)
        if not resolving:
            return "active"
        events = whole.index.is_event
        again = [(since, whole.seen(end)[1] if events[end] else None) for since, end in resolving]
        return status_of(self.seen(ent)[1], again, self.valid)

    def episodes(self, ent: int) -> list[Episode]:
        """Return the active intervals: from the first occurrence after a resolution to the next resolution (None if there is none)."""
        instants, resolutions = self.instants(ent), self.resolutions(ent)
        found: list[Episode] = []
        at = 0
        while at < len(instants):
            began = instants[at]
            ending = bisect_left(resolutions, began)
            if ending == len(resolutions):
                found.append((began, None))
                break
            found.append((began, resolutions[ending]))
            at = bisect_right(instants, resolutions[ending])
        return found

    def _defined_points(self) -> frozenset[str]:
        """Return the types that were defined as points by this tx."""
        if self._points is None:
            self._points = frozenset(self.index.setting_at(POINTS, self.tx) or ())
        return self._points

    def _repeats(self, ent: int) -> int:
        """Return the number of occurrences known here after the first recorded one."""
        index = self.index
        rows = index.seen_of.get(ent)
        if not rows:
            return 0
        if index.s_tx[rows[-1]] <= self.tx:
            return len(rows)
        return bisect_right(rows, self.tx, key=index.s_tx.__getitem__)

    def _reported(self, ent: int) -> list[Instant]:
        """Return all instants known here, including future ones, in the order of recording."""
        return [self.index.first_reported(ent), *map(self.index.s_at.__getitem__, self._rows(ent))]

    def _rows(self, ent: int) -> Sequence[int]:
        """Return the occurrences known here after the first recorded one, in the order of recording."""
        index = self.index
        rows: Sequence[int] = index.seen_of.get(ent, ())[: self._repeats(ent)]
        if index.undone_by:
            rows = [row for row in rows if index.believed_op(index.s_op[row], self.tx)]
        return rows

    def _resolving(self, ent: int) -> list[tuple[Instant, int]]:
        """Return the `resolved_by` links that hold here, as (valid_from, target). A retracted event resolves nothing."""
        index = self.index
        if ent not in index.out:
            return []
        return [
            (index.k_from[row], index.l_tgt[link])
            for link in index.out[ent]
            if index.l_kind[link] == "resolved_by"
            and (row := index.find_link(link, self.valid, self.tx)) >= 0
            and self._happened(index.l_tgt[link])
        ]

    def _happened(self, ent: int) -> bool:
        """Return True for a thing that is not an event, or an event that was not retracted."""
        index = self.index
        return not index.is_event[ent] or ent in index.gone or bool(index.believed(ent, self.tx))


def print_of(body: Json) -> str:
    """Return the key that reports of one event share, besides their type: the fingerprint, with the scope of the metadata if it has one."""
    metadata = body.get("metadata")
    scope = metadata.get("scope") if isinstance(metadata, dict) else None
    return f"{body['fingerprint']}\0{scope}" if isinstance(scope, str) else str(body["fingerprint"])


def fingerprint_of(body: Json) -> str | None:
    """Return `print_of` the body of an event; None if it has no fingerprint or is a message, which is not a report."""
    if body.get("fingerprint") is None or "authorized" in body:
        return None
    return print_of(body)
