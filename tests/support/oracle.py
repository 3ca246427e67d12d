"""The semantics of the store once more, as naive as possible: lists of dicts and linear scans.

Written from the documents alone, so that the store has something to disagree with. Times are aware datetimes; an open
end is `END`. Every verb first looks whether it must refuse and raises `Refused` with the error classes that would be
right; a case the documents leave open raises `Undecided`, and nothing is compared there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from graphstore.errors import ConflictError, GraphStoreError, InvalidError, NotFoundError

START = datetime.min.replace(tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)
TICK = timedelta(microseconds=1)

Row = dict[str, Any]
Span = tuple[datetime, datetime]

SYMMETRIC = {"contradicts", "related_to", "co_constrains"}
EARLIER_SOURCE = {"continuation", "fork", "branch", "tree_jump", "resume", "compaction"}
ACYCLIC = {"supersedes", "continuation"}
REPEATING = {"error", "regression", "resolution"}
MENDING = {"fix", "resolution"}
NEVER_OPEN = {"deploy", "fix", "resolution", "confirmation", "message", "TEXT", "AUDIO", "IMAGE", "SYSTEM"}
PLAIN = {
    "supersedes", "corrects", "caused_by", "contradicts", "related_to", "resolved_by", "continuation",
    "derived_from", "supports", "fork", "blocks", "co_constrains", "part_of", "transition",
}  # fmt: skip
TURNED = {
    "superseded_by": "supersedes", "corrected_by": "corrects", "causes": "caused_by", "resolves": "resolved_by",
    "continues": "continuation", "source_of": "derived_from", "supported_by": "supports", "forked_from": "fork",
    "blocked_by": "blocks", "has_part": "part_of",
}  # fmt: skip
SAME = {"relates": "related_to", "relates_to": "related_to", "fixed_by": "resolved_by"}

LEADS_AWAY = ("supersedes", "transition", "corrects")  # the first says most
FROM_LATER_START = {"derived_from", "supports", "caused_by"}
RESTING = {"derived_from", "caused_by", "part_of"}  # the source rests on the target
RESTED = {"supports"}  # the target rests on the source
FALLEN = {"superseded", "retracted", "evicted", "erased"}
UPRIGHT = {"stands", "shaky"}


class Refused(Exception):
    """The store must refuse, with one of these errors, and write nothing."""

    def __init__(self, *classes: type[GraphStoreError]) -> None:
        super().__init__(", ".join(kind.__name__ for kind in classes))
        self.classes = classes


class Undecided(Exception):
    """The documents do not say what happens here."""


def common(a: Span, b: Span) -> Span | None:
    start, stop = max(a[0], b[0]), min(a[1], b[1])
    return (start, stop) if start < stop else None


def outside(whole: Span, holes: Iterable[Span]) -> list[Span]:
    """What is left of `whole` when each hole is cut out."""
    pieces = [whole]
    for hole in holes:
        left = []
        for piece in pieces:
            if common(piece, hole) is None:
                left.append(piece)
                continue
            if piece[0] < hole[0]:
                left.append((piece[0], hole[0]))
            if hole[1] < piece[1]:
                left.append((hole[1], piece[1]))
        pieces = left
    return pieces


def joined(spans: Iterable[Span]) -> list[Span]:
    out: list[Span] = []
    for span in sorted(spans):
        if out and span[0] <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], span[1]))
        else:
            out.append(span)
    return out


def valid(row: Row) -> Span:
    return row["valid_from"], row["valid_to"]


def holds(row: Row, v: datetime, t: datetime) -> bool:
    return row["valid_from"] <= v < row["valid_to"] and believed(row, t)


def believed(row: Row, t: datetime) -> bool:
    return row["tx_from"] <= t < row["tx_to"]


def verb(method: Callable[..., Any]) -> Callable[..., Any]:
    """One transaction of its own outside a block; in any case all or nothing."""

    @functools.wraps(method)
    def run(self: Oracle, *args: Any, **kwargs: Any) -> Any:
        if self.block is None:
            with self.transaction():
                return run(self, *args, **kwargs)
        before = self._save()
        try:
            out = method(self, *args, **kwargs)
            self._no_node_without_rows()
        except Exception:
            self._load(before)
            raise
        finally:
            self.stood.clear()
        self.did = self.did or self._save() != before
        return out

    return run


class Oracle:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        self.nodes: dict[str, Row] = {}
        self.rows: list[Row] = []
        self.events: dict[str, Row] = {}
        self.links: list[Row] = []
        self.taken: list[Row] = []  # what each supersession took: link, the row as it was, the period
        self.confirmed: list[tuple[str, datetime]] = []  # what was confirmed, and when that was told
        self.stood: dict[tuple[Any, ...], Any] = {}  # standings that were asked for since the last verb
        self.gone: list[Row] = []  # each time validity went away: node, period, by which verb, tx
        self.numbers: dict[str, int] = {}  # the highest number of each node that was ever committed
        self.last = START
        self.handed = START
        self.block: datetime | None = None
        self.did = False
        self.made = 0

    # ------------------------------------------------------------------ transactions

    @property
    def now(self) -> datetime:
        return self.block or max(self.clock(), self.last)

    def next_tx(self) -> datetime:
        return max(self.clock(), self.last + TICK, self.handed + TICK)

    @contextmanager
    def transaction(self) -> Iterator[datetime]:
        assert self.block is None
        before = self._save()
        self.block = self.next_tx()
        self.did = False
        try:
            yield self.block
        except BaseException:
            self._load(before)
            self.block = None
            raise
        if self.did:  # also when one verb took back what another had done
            self.last = self.block
            self.numbers = {id: self._next_number(id) - 1 for id in self.nodes}
        self.block = None

    def _save(self) -> Any:
        return (
            dict(self.nodes),
            [dict(row) for row in self.rows],
            {id: dict(event) for id, event in self.events.items()},
            [dict(link) for link in self.links],
            [dict(part) for part in self.taken],
            [dict(part) for part in self.gone],
            list(self.confirmed),
        )

    def _load(self, state: Any) -> None:
        self.nodes, self.rows, self.events, self.links, self.taken, self.gone, self.confirmed = state
        self.stood.clear()

    def _no_node_without_rows(self) -> None:
        for id in self.nodes:
            if not any(row["id"] == id for row in self.rows):
                raise Undecided(f"{id} was born and lost every row in one transaction")
        for id, event in self.events.items():
            if event["tx_from"] >= event["tx_to"]:
                raise Undecided(f"event {id} was born and retracted in one transaction")

    # ------------------------------------------------------------------ small things

    def _known(self, *ids: str) -> None:
        if any(id not in self.nodes and id not in self.events for id in ids):
            raise Refused(NotFoundError)

    def _node_only(self, id: str) -> None:
        self._known(id)
        if id in self.events:
            raise Refused(InvalidError, NotFoundError, ConflictError)

    def _now_rows(self, id: str) -> list[Row]:
        return [row for row in self.rows if row["id"] == id and row["tx_to"] == END]

    def _now_links(self) -> list[Row]:
        return [link for link in self.links if link["tx_to"] == END]

    def _close(self, table: list[Row], row: Row) -> None:
        if row["tx_from"] == self.block:
            table[:] = [other for other in table if other is not row]
        else:
            row["tx_to"] = self.block

    def _write(self, table: list[Row], row: Row, span: Span) -> None:
        table.append({**row, "valid_from": span[0], "valid_to": span[1], "tx_from": self.block, "tx_to": END})

    def _clear(self, table: list[Row], rows: list[Row], span: Span) -> list[tuple[Row, Span]]:
        """Close what overlaps, write back what sticks out, answer what went."""
        went = []
        for row in rows:
            part = common(valid(row), span)
            if part is None:
                continue
            self._close(table, row)
            for piece in outside(valid(row), [span]):
                self._write(table, row, piece)
            went.append((row, part))
        return went

    def _take_away(self, id: str, span: Span, why: str) -> list[tuple[Row, Span]]:
        went = self._clear(self.rows, self._now_rows(id), span)
        for _, part in went:
            self.gone.append(
                {"id": id, "valid_from": part[0], "valid_to": part[1], "why": why, "tx": self.block}
            )
        return went

    def start(self, id: str, t: datetime | None = None) -> datetime | None:
        """When it starts: occurred_at, or the first believed valid_from."""
        if id in self.events:
            event = self.events[id]
            alive = event["tx_to"] == END if t is None else believed(event, t)
            return self.begun(id, t) if alive else None
        rows = [
            r for r in self.rows if r["id"] == id and (r["tx_to"] == END if t is None else believed(r, t))
        ]
        return min((row["valid_from"] for row in rows), default=None)

    def _next_number(self, id: str) -> int:
        stored = [*self.rows, *(part["row"] for part in self.taken)]
        here = max((row["number"] for row in stored if row["id"] == id), default=0)
        return 1 + max(here, self.numbers.get(id, 0))

    def _slot_taken(self, mine: Row, spans: list[Span], besides: tuple[str, ...] = ()) -> bool:
        """Whether another node of the same kind, key and scope is believed over an overlapping valid period."""
        return mine["key"] is not None and any(
            common(valid(row), span)
            for other in self.nodes.values()
            if all(other[name] == mine[name] for name in ("kind", "key", "scope"))
            if other["id"] not in (mine["id"], *besides)
            for row in self._now_rows(other["id"])
            for span in spans
        )

    # ------------------------------------------------------------------ verbs

    @verb
    def add_node(
        self, id: str, kind: str, content: Any, *, key: str | None = None, scope: str = "",
        tags: tuple[str, ...] = (), valid_from: datetime | None = None, valid_to: datetime | None = None,
        supersedes: tuple[str, ...] = (), corrects: tuple[str, ...] = (), reason: str | None = None,
    ) -> list[str]:  # fmt: skip
        span = (valid_from or self.block, valid_to or END)
        wrong: list[type[GraphStoreError]] = []
        if span[0] >= span[1]:
            wrong.append(InvalidError)
        if id in self.nodes or id in self.events:
            wrong.append(ConflictError)
        if any(old not in self.nodes and old not in self.events for old in (*supersedes, *corrects)):
            wrong.append(NotFoundError)
        slot = {"id": id, "kind": kind, "key": key, "scope": scope}
        if wrong:
            raise Refused(*wrong)
        held = self._held(slot)
        span = (span[0], valid_to or self._next_value(held, span[0], supersedes))
        self.nodes[id] = slot
        row = {"id": id, "number": 1, "content": content, "tags": tags, "trigger": "initial"}
        self._write(self.rows, row, span)
        made = []
        for other in held:
            if common(valid(other), span) is None:
                continue
            if other["valid_from"] <= span[0]:
                until = span[1] if any(self._reaches(row, other["id"], span[1]) for row in held) else END
                by = "user" if other["id"] in supersedes else "store"
                made += self._succeed(id, other["id"], (span[0], until), reason, by)
            elif other["id"] not in supersedes:
                self._take_away(other["id"], span, "cut")
        made += [self._supersede(id, old, reason=reason) for old in supersedes]
        made += [self._link(id, "corrects", old, reason=reason) for old in corrects]
        for other in held:
            if other["valid_from"] == span[1] and not self._cycle(other["id"], "supersedes", id):
                made += self._succeed(other["id"], id, (span[1], END), None, "store")
        return made

    def _held(self, slot: Row) -> list[Row]:
        """What the other nodes of a slot hold now, by valid time."""
        if slot["key"] is None:
            return []
        mine = [
            other["id"] for other in self.nodes.values()
            if all(other[name] == slot[name] for name in ("kind", "key", "scope")) and other["id"] != slot["id"]
        ]  # fmt: skip
        rows = [row for id in mine for row in self._now_rows(id)]
        return sorted(rows, key=lambda row: row["valid_from"])

    def _next_value(self, held: list[Row], start: datetime, besides: tuple[str, ...] = ()) -> datetime:
        later = [row["valid_from"] for row in held if row["valid_from"] > start and row["id"] not in besides]
        return min(later, default=END)

    def _reaches(self, row: Row, id: str, beyond: datetime) -> bool:
        return bool(row["id"] == id and row["valid_to"] > beyond)

    def _succeed(self, new: str, old: str, during: Span, reason: str | None, by: str) -> list[str]:
        """The three links that say one value of a slot comes after another."""
        start, stop = during
        made = [
            self._supersede(
                new,
                old,
                reason=reason,
                created_by=by,
                valid_from=start,
                valid_to=None if stop == END else stop,
            )
        ]
        same = {"reason": reason, "strength": None, "confidence": "explicit", "created_by": "store"}
        return made + [self._new_link(new, kind, old, during, same) for kind in ("transition", "contradicts")]

    @verb
    def say_again(
        self, content: Any, *, key: str, kind: str = "fact", scope: str = "",
        valid_from: datetime | None = None, valid_to: datetime | None = None,
    ) -> str:  # fmt: skip
        """A value of a slot without an id: the node that says so already."""
        start = valid_from or self.block
        if valid_to is not None and valid_to <= start:
            raise Refused(InvalidError)
        held = self._held({"id": None, "kind": kind, "key": key, "scope": scope})
        stop = valid_to or self._next_value(held, start)
        for row in held:
            if row["valid_from"] <= start and stop <= row["valid_to"] and row["content"] == content:
                self.confirmed.append((row["id"], self.block))
                return str(row["id"])
        raise Undecided("it would be a new node, under an id of the store's own")

    @verb
    def confirm(self, id: str) -> None:
        self._known(id)
        if not (self._now_rows(id) if id in self.nodes else self.events[id]["tx_to"] == END):
            raise Refused(NotFoundError)
        self.confirmed.append((id, self.block))

    @verb
    def revise(
        self, id: str, content: Any, *, valid_from: datetime | None = None, valid_to: datetime | None = None
    ) -> int:
        self._node_only(id)
        now = self._now_rows(id)
        if valid_from is None and valid_to is None:
            if not now:
                raise Refused(ConflictError)
            spans = joined(valid(row) for row in now)
        else:
            if valid_from is None:
                if not now:
                    raise Refused(ConflictError)
                valid_from = min(row["valid_from"] for row in now)
            if valid_to is None:
                later = [row["valid_to"] for row in now if row["valid_to"] > valid_from]
                valid_to = max(later, default=END)
            if valid_from >= valid_to:
                raise Refused(InvalidError)
            spans = [(valid_from, valid_to)]
        if self._slot_taken(self.nodes[id], spans):
            raise Refused(ConflictError)
        old = max((row for row in self.rows if row["id"] == id), key=lambda row: row["number"])
        for span in spans:
            self._clear(self.rows, self._now_rows(id), span)
        number = self._next_number(id)
        row = {
            "id": id,
            "number": number,
            "content": content,
            "tags": old["tags"],
            "trigger": "user_feedback",
        }
        for span in spans:
            self._write(self.rows, row, span)
        return number

    @verb
    def end(self, id: str, *, at: datetime | None = None) -> None:
        self._node_only(id)
        at = at or self.block
        now = self._now_rows(id)
        if not any(row["valid_to"] > at for row in now):
            raise Refused(NotFoundError)
        if all(row["valid_from"] >= at for row in now):
            raise Refused(InvalidError)
        self._take_away(id, (at, END), "end")

    @verb
    def retract(
        self, id: str, *, valid_from: datetime | None = None, valid_to: datetime | None = None
    ) -> None:
        self._known(id)
        span = (valid_from or START, valid_to or END)
        if id in self.events:
            if valid_from is not None or valid_to is not None:
                raise Refused(InvalidError, ConflictError, NotFoundError)
            if self.events[id]["tx_to"] != END:
                raise Refused(NotFoundError)
            self.events[id] = {**self.events[id], "tx_to": self.block}
            return
        if span[0] >= span[1]:
            raise Refused(InvalidError)
        if not self._take_away(id, span, "retract"):
            raise Refused(NotFoundError)

    @verb
    def supersede(
        self, *old: str, by: str, reason: str | None = None, valid_from: datetime | None = None
    ) -> list[str]:
        try:
            self._known(*old, by)
            return [self._supersede(by, one, reason=reason, valid_from=valid_from) for one in old]
        except Refused as refused:
            if len(old) == 1 and by not in old:
                raise
            # which of several faults is named first is nobody's promise
            raise Refused(*refused.classes, NotFoundError, InvalidError, ConflictError) from None

    def _supersede(self, new: str, old: str, *, reason: str | None = None, strength: int | None = None,
                   valid_from: datetime | None = None, valid_to: datetime | None = None,
                   created_by: str = "user") -> str:  # fmt: skip
        if new == old:
            raise Refused(InvalidError, ConflictError)
        starts = [at for at in (valid_from or self.start(new), self._started(new, old)) if at is not None]
        span = (max(starts, default=END), valid_to or END)
        wrong: list[type[GraphStoreError]] = []
        if self.start(new) is None:
            wrong.append(ConflictError)
        elif span[0] >= span[1]:
            wrong.append(InvalidError)
        if self._cycle(new, "supersedes", old):
            wrong.append(ConflictError)
        if wrong:
            raise Refused(*wrong)
        same = {"reason": reason, "strength": strength, "confidence": "explicit", "created_by": created_by}
        rows = [link for link in self._alike(new, "supersedes", old) if common(valid(link), span)]
        if not rows:
            id = self._new_link(new, "supersedes", old, span, same)
        elif len(rows) > 1:
            raise Undecided("it overlaps two periods of the link")
        else:  # said before: what was described anew since is taken too
            id, span = self._supersede_again(rows[0], same, span, valid_from, valid_to)
        if old in self.nodes:
            for row, part in self._take_away(old, span, "supersede"):
                self.taken.append({"link": id, "row": row, "valid_from": part[0], "valid_to": part[1]})
        return id

    def _started(self, new: str, old: str) -> datetime | None:
        """When the old one starts, what this supersession took of it included."""
        mine = {link["id"] for link in self._alike(new, "supersedes", old)}
        starts = [part["valid_from"] for part in self.taken if part["link"] in mine]
        return min([*starts, *filter(None, [self.start(old)])], default=None)

    def _supersede_again(
        self, row: Row, same: Row, span: Span, valid_from: datetime | None, valid_to: datetime | None
    ) -> tuple[str, Span]:
        equal = all(row[name] == value for name, value in same.items())
        upgrade = row["created_by"] == "store" != same["created_by"]
        other_start = valid_from is not None and span[0] != row["valid_from"]
        other_end = valid_to is not None and span[1] != row["valid_to"]
        if not (equal or upgrade) or other_start or other_end:
            if upgrade and not equal:
                raise Undecided("a minted supersession said by hand with another date")
            raise Refused(ConflictError)
        if self._beyond(span, [row]):
            raise Undecided("without a date, and a part of the link's period was unlinked")
        if not equal:
            self._clear(self.links, [row], valid(row))
            self._write(self.links, {**row, **same}, valid(row))
        return row["id"], valid(row)

    @verb
    def link(self, source: str, kind: str, target: str, **more: Any) -> str:
        return self._link(source, kind, target, **more)

    def _link(
        self, source: str, kind: str, target: str, *, reason: str | None = None, strength: int | None = None,
        confidence: str = "explicit", created_by: str = "user", valid_from: datetime | None = None,
        valid_to: datetime | None = None,
    ) -> str:  # fmt: skip
        wrong: list[type[GraphStoreError]] = []
        plain = kind.removeprefix("possibly_")
        if plain != kind:
            confidence = "inferred"
        plain = SAME.get(plain, plain)
        if plain in TURNED:
            source, plain, target = target, TURNED[plain], source
        if plain not in PLAIN:
            wrong.append(InvalidError)
        if confidence not in ("explicit", "inferred") or strength not in (None, 1, 2, 3, 4, 5):
            wrong.append(InvalidError)
        if plain == "supersedes" and confidence == "inferred":
            wrong.append(InvalidError)
        if any(end not in self.nodes and end not in self.events for end in (source, target)):
            wrong.append(NotFoundError)
        if source == target:
            wrong += [InvalidError, ConflictError]
        if wrong:
            raise Refused(*wrong)
        if plain == "supersedes":
            return self._supersede(
                source, target, reason=reason, strength=strength, valid_from=valid_from, valid_to=valid_to
            )
        span = (valid_from or self._begins(source, plain, target), valid_to or END)
        if span[0] >= span[1]:
            wrong.append(InvalidError)
        out_of_order = self._backwards(source, plain, target, valid_from)
        if out_of_order or self._cycle(source, plain, target) or self._mutual(source, plain, target, span):
            wrong += [ConflictError, InvalidError]
        same = {"reason": reason, "strength": strength, "confidence": confidence, "created_by": created_by}
        if wrong:
            if out_of_order and self._alike(source, plain, target):
                raise Undecided("a known link that would be refused today")
            raise Refused(*wrong)
        before = self._again(source, plain, target, span, same)
        return before if before is not None else self._new_link(source, plain, target, span, same)

    def _begins(self, source: str, kind: str, target: str) -> datetime:
        """From when on a link holds when nothing is said."""
        starts = [at for at in (self.start(source), self.start(target)) if at is not None]
        if kind in FROM_LATER_START and starts:
            return max(starts)
        if kind == "corrects":
            return self.start(source) or self.now
        return self.now

    def _new_link(self, source: str, kind: str, target: str, span: Span, same: Row) -> str:
        """A new link, or a further period of one that touches this."""
        beside = {
            link["id"] for link in self._alike(source, kind, target)
            if link["valid_to"] == span[0] or link["valid_from"] == span[1]
        }  # fmt: skip
        if len(beside) > 1:
            raise Undecided("it joins two links of one sentence")
        self.made += 1
        id = beside.pop() if beside else f"?{self.made}"
        self._write(self.links, {"id": id, "source": source, "kind": kind, "target": target, **same}, span)
        return id

    def _beyond(self, span: Span, rows: list[Row]) -> list[Span]:
        """What of a period no row covers."""
        left = [span]
        for row in rows:
            left = [
                piece
                for start, stop in left
                for piece in ((start, min(stop, row["valid_from"])), (max(start, row["valid_to"]), stop))
                if piece[0] < piece[1]
            ]
        return left

    def _alike(self, source: str, kind: str, target: str) -> list[Row]:
        ends = [(source, target), (target, source)] if kind in SYMMETRIC else [(source, target)]
        return [
            link
            for link in self._now_links()
            if link["kind"] == kind and (link["source"], link["target"]) in ends
        ]

    def _again(self, source: str, kind: str, target: str, span: Span, same: Row) -> str | None:
        """The id of the believed link that says so already, upgraded if need be; None when there is none."""
        rows = [link for link in self._alike(source, kind, target) if common(valid(link), span)]
        if not rows:
            return None
        equal = [all(row[name] == value for name, value in same.items()) for row in rows]
        upgrade = [
            same["confidence"] == "explicit"
            and (row["confidence"] == "inferred" or row["created_by"] == "store" != same["created_by"])
            for row in rows
        ]
        if not all(is_equal or can for is_equal, can in zip(equal, upgrade, strict=True)):
            if any(equal) or any(upgrade):
                raise Undecided("it overlaps both a row that says the same and one that does not")
            raise Refused(ConflictError)
        near = [
            link for link in self._alike(source, kind, target)
            if link["valid_to"] == span[0] or link["valid_from"] == span[1]
        ]  # fmt: skip
        if len({row["id"] for row in [*rows, *near]}) > 1:
            raise Undecided("it joins two links of one sentence")
        if any(equal) and not all(equal):
            raise Undecided("it overlaps an explicit and an inferred row of one link")
        pieces = self._beyond(span, rows) if all(equal) else [span]
        self._clear(self.links, [] if all(equal) else rows, span)
        for piece in pieces:
            self._write(self.links, {**rows[0], **same}, piece)
        return rows[0]["id"]

    def _backwards(
        self, source: str, kind: str, target: str, since: datetime | None, t: datetime | None = None
    ) -> bool:
        first, second = self.start(source, t), self.start(target, t)
        if first is None or second is None:
            return False
        if kind == "caused_by":
            return second > (max(first, since) if source in self.nodes and since is not None else first)
        return kind in EARLIER_SOURCE and first > second

    def _mutual(self, source: str, kind: str, target: str, span: Span) -> bool:
        """Two things that cause each other over one time."""
        back = self._alike(target, kind, source) if kind == "caused_by" else []
        return any(common(valid(link), span) for link in back)

    def _cycle(self, source: str, kind: str, target: str) -> bool:
        if kind not in ACYCLIC:
            return False
        reached, grew = {target}, True
        while grew:
            more = {
                link["target"]
                for link in self._now_links()
                if link["kind"] == kind and link["source"] in reached
            }
            grew = not more <= reached
            reached |= more
        return source in reached

    @verb
    def unlink(
        self, id: str, *, valid_from: datetime | None = None, valid_to: datetime | None = None
    ) -> None:
        rows = [link for link in self._now_links() if link["id"] == id]
        span = (valid_from or START, valid_to or END)
        wrong: list[type[GraphStoreError]] = []
        if not any(link["id"] == id for link in self.links):
            wrong.append(NotFoundError)
        if span[0] >= span[1]:
            wrong.append(InvalidError)
        if wrong:
            raise Refused(*wrong)
        went = self._clear(self.links, rows, span)
        if not went:
            raise Refused(NotFoundError)
        if went[0][0]["kind"] == "supersedes":
            ends = [went[0][0][end] for end in ("source", "target")]
            for other in self._now_links():
                minted = (other["kind"], other["created_by"]) == ("contradicts", "store")
                if (other["kind"] == "transition" or minted) and ends == [other["source"], other["target"]]:
                    self._clear(self.links, [other], span)
            for _, part in went:
                self._give_back(id, went[0][0]["target"], part)
            old = self.nodes.get(went[0][0]["target"])
            if old and self._slot_taken(old, [valid(row) for row in self._now_rows(old["id"])]):
                raise Refused(ConflictError)

    def _give_back(self, id: str, old: str, span: Span) -> None:
        others = [
            link for link in self._now_links()
            if link["kind"] == "supersedes" and link["target"] == old and link["id"] != id
        ]  # fmt: skip
        mine = [part for part in self.taken if part["link"] == id and common(valid(part), span)]
        for part in mine:
            self.taken = [other for other in self.taken if other is not part]
            for kept in outside(valid(part), [span]):
                self.taken.append({**part, "valid_from": kept[0], "valid_to": kept[1]})
            freed = [common(valid(part), span)]
            for other in others:
                for piece in freed:
                    passed = common(piece, valid(other))
                    if passed:
                        self.taken.append(
                            {**part, "link": other["id"], "valid_from": passed[0], "valid_to": passed[1]}
                        )
                freed = [left for piece in freed for left in outside(piece, [valid(other)])]
            for piece in freed:
                for hole in outside(piece, [valid(row) for row in self._now_rows(old)]):
                    self._restore(part["row"], hole)

    def _restore(self, row: Row, span: Span) -> None:
        """Write the row again; with what it touches of its own version it is one."""
        whole = [span]
        for other in self._now_rows(row["id"]):
            if other["number"] == row["number"] and len(joined([*whole, valid(other)])) == 1:
                whole = joined([*whole, valid(other)])
                self._close(self.rows, other)
        self._write(self.rows, row, whole[0])

    @verb
    def record_event(
        self, id: str, type: str, description: str, *, occurred_at: datetime | None = None,
        related_to: str | None = None,
    ) -> list[str]:  # fmt: skip
        if id in self.nodes or id in self.events:
            raise Undecided("an event id that is known")
        at = occurred_at or self.block
        self.events[id] = {
            "id": id, "type": type, "description": description, "tx_from": self.block, "tx_to": END,
            "told": ((at, self.block),),
        }  # fmt: skip
        return self._relate(id, related_to, at)

    @verb
    def happens_again(
        self,
        type: str,
        description: str,
        *,
        occurred_at: datetime | None = None,
        related_to: str | None = None,
    ) -> tuple[str, list[str]]:
        """An event without an id: the one it is, and the links that came of it."""
        alike = [
            id for id, event in self.events.items()
            if type in REPEATING
            and (event["type"], event["description"]) == (type, description)
            and self.bare_standing(id, self.block, self.block) in ("stands", "not_yet")
        ]  # fmt: skip
        if not alike:
            raise Undecided("it would be a new event, under an id of the store's own")
        id, at = alike[-1], occurred_at or self.block
        event = self.events[id]
        self.events[id] = {**event, "told": (*event["told"], (at, self.block))}
        return id, self._relate(id, related_to, at)

    def _relate(self, id: str, other: str | None, at: datetime) -> list[str]:
        source, kind, target = id, "related_to", other
        if self._mends(id) and self._can_be_open(other):
            source, kind, target = other, "resolved_by", id
        if self._can_be_open(id) and self._mends(other):
            kind = "resolved_by"
        if kind == "resolved_by":  # from the later of the two on
            at = max(at, self.start(other) or at)
        try:
            return [self._link(source, kind, target, valid_from=at, created_by="store")]
        except Refused:
            return []  # recorded all the same, with a warning

    def _mends(self, id: str | None) -> bool:
        return id in self.events and self.events[id]["type"] in MENDING

    def _can_be_open(self, id: str | None) -> bool:
        return id in self.events and self.events[id]["type"] not in NEVER_OPEN

    def name_link(self, made: str, id: str) -> None:
        """Take over the id the store gave."""
        for link in self.links:
            if link["id"] == made:
                link["id"] = id
        for part in self.taken:
            if part["link"] == made:
                part["link"] = id

    # ------------------------------------------------------------------ reads, at (v, t)

    def known(self, id: str, t: datetime) -> bool:
        if id in self.events:
            return bool(self.events[id]["tx_from"] <= t)
        return any(row["id"] == id and row["tx_from"] <= t for row in self.rows)

    def standing(self, id: str, v: datetime, t: datetime) -> str:
        asked = (id, v, t)
        if asked not in self.stood:
            bare = self.bare_standing(id, v, t)
            self.stood[asked] = "shaky" if bare == "stands" and self.shaken(id, v, t) else bare
        return str(self.stood[asked])

    def shaken(self, id: str, v: datetime, t: datetime) -> list[tuple[datetime, str, int]]:
        """For each way from a thing to a fallen one on which nobody looked since: when that was told, what fell, how many links."""
        return [
            (self.fell(way[-1], v, t), way[-1], len(way) - 1)
            for way in self._ways((id,), v, t)
            if all(self.affirmed(one, v, t) < self.fell(way[-1], v, t) for one in way[:-1])
        ]

    def _ways(self, way: tuple[str, ...], v: datetime, t: datetime) -> Iterator[tuple[str, ...]]:
        """Every way from its start on to something fallen, over what stands, nothing twice."""
        for base in self.bases(way[-1], v, t):
            if self.bare_standing(base, v, t) in FALLEN:
                yield (*way, base)
            elif base not in way and self.bare_standing(base, v, t) == "stands":
                yield from self._ways((*way, base), v, t)

    def bases(self, id: str, v: datetime, t: datetime) -> set[str]:
        """What a thing rests on."""
        here = [link for link in self.links if holds(link, v, t)]
        return {link["target"] for link in here if link["kind"] in RESTING and link["source"] == id} | {
            link["source"]
            for link in here
            if link["kind"] in RESTED and link["target"] == id and not self._confirms(link["source"])
        }

    def _confirms(self, id: str) -> bool:
        return id in self.events and self.events[id]["type"] == "confirmation"

    def affirmed(self, id: str, v: datetime, t: datetime) -> datetime:
        """When the last word was said of a thing that stands: its description there, or a confirmation."""
        said = [tx for one, tx in self.confirmed if one == id and tx <= t]
        if id in self.events:
            return max([*said, self.events[id]["tx_from"]])
        number = next(row["number"] for row in self.rows if row["id"] == id and holds(row, v, t))
        mine = [row["tx_from"] for row in self.rows if (row["id"], row["number"]) == (id, number)]
        return max([*said, min(mine)])

    def fell(self, id: str, v: datetime, t: datetime) -> datetime:
        """When it was told that a thing has fallen there."""
        by = {
            link["id"] for link in self.links
            if link["kind"] == "supersedes" and link["target"] == id and holds(link, v, t)
        }  # fmt: skip
        first = [min(link["tx_from"] for link in self.links if link["id"] == one) for one in by]
        if id in self.events:
            return min(first) if self.events[id]["tx_to"] > t else self.events[id]["tx_to"]
        went = [part for part in self.gone if part["id"] == id and part["tx"] <= t]
        here = [part for part in went if self._lost(part, v)]
        if self.bare_standing(id, v, t) == "superseded":
            return max([part["tx"] for part in here[-1:]] + [min(first)])
        nothing_left = not any(row["id"] == id and believed(row, t) for row in self.rows)
        return (went if nothing_left and went[-1]["why"] == "retract" else here)[-1]["tx"]

    def bare_standing(self, id: str, v: datetime, t: datetime) -> str:
        """How it stands, whatever it rests on."""
        takers = [
            link for link in self.links
            if link["kind"] == "supersedes" and link["target"] == id and believed(link, t)
        ]  # fmt: skip
        superseded = any(holds(link, v, t) for link in takers)
        if id in self.events:
            event = self.events[id]
            if event["tx_to"] <= t:
                return "retracted"
            if v < self.begun(id, t):
                return "not_yet"
            return "superseded" if superseded else "stands"
        rows = [row for row in self.rows if row["id"] == id and believed(row, t)]
        if any(holds(row, v, t) for row in rows):
            return "stands"
        went = [part for part in self.gone if part["id"] == id and part["tx"] <= t]
        if rows and all(row["valid_from"] > v for row in rows):
            return "not_yet"
        if not rows and went[-1]["why"] == "retract":
            return "retracted"
        here = [part for part in went if self._lost(part, v)]
        if here and here[-1]["why"] == "retract":
            return "retracted"
        if superseded:
            return "superseded"
        if not rows and takers and all(link["valid_from"] > v for link in takers):
            return "not_yet"
        return "ended"

    def _lost(self, part: Row, v: datetime) -> bool:
        """Whether v went with a part, and a stored row was closed there: what came and went in one transaction never was."""
        return part["valid_from"] <= v < part["valid_to"] and any(
            row["id"] == part["id"]
            and row["tx_to"] == part["tx"]
            and row["valid_from"] <= v < row["valid_to"]
            for row in self.rows
        )

    def node(self, id: str, v: datetime, t: datetime) -> Row | None:
        for row in self.rows:
            if row["id"] == id and holds(row, v, t):
                return {**self.version(row, t), "standing": self.standing(id, v, t)}
        return None

    def described(self, id: str, number: int, v: datetime, t: datetime) -> Row | None:
        """The node as one version describes it: the row of that number written last."""
        rows = [
            row for row in self.rows if row["id"] == id and row["number"] == number and row["tx_from"] <= t
        ]
        now = self.node(id, v, t)
        if not rows:
            return None
        if now and now["number"] == number:
            return now
        return {**self.version(rows[-1], t), "standing": "superseded" if now else self.standing(id, v, t)}

    def version(self, row: Row, t: datetime) -> Row:
        return {**self.nodes[row["id"]], **seen(row, t)}

    def nodes_at(self, v: datetime, t: datetime, **filters: Any) -> list[Row]:
        found = [self.node(id, v, t) for id in sorted(self.nodes)]
        tag = filters.pop("tag", None)
        return [
            node for node in found
            if node
            and all(node[name] == value for name, value in filters.items())
            and (tag is None or tag in node["tags"])
        ]  # fmt: skip

    def event(self, id: str, v: datetime, t: datetime) -> Row | None:
        event = self.events.get(id)
        if event is None or not believed(event, t) or self.begun(id, t) > v:
            return None
        instants = self.happened(id, v, t)
        return {
            **seen(event, t),
            "standing": self.standing(id, v, t),
            "occurred_at": instants[0],
            "first_seen": instants[0],
            "last_seen": instants[-1],
            "count": len(instants),
            "status": self.status(id, v, t),
        }

    def begun(self, id: str, t: datetime | None) -> datetime:
        """When an event happened first, as known at t."""
        return min(at for at, told in self.events[id]["told"] if t is None or told <= t)

    def happened(self, id: str, v: datetime, t: datetime) -> list[datetime]:
        return sorted(at for at, told in self.events[id]["told"] if told <= t and at <= v)

    def status(self, id: str, v: datetime, t: datetime) -> str | None:
        if not self._can_be_open(id):
            return None
        if any(link["target"] == id for link in self._links(v, t, "supersedes")):
            return "superseded"
        resolved = []
        for link in self.links_from(id, v, t, "resolved_by"):
            resolved.append(link["valid_from"])
            if link["target"] in self.events:
                again = self.happened(link["target"], v, t)
                resolved += [at for at in again if at >= link["valid_from"]]
        return "resolved" if any(at >= self.happened(id, v, t)[-1] for at in resolved) else "active"

    def events_between(self, since: datetime, until: datetime, v: datetime, t: datetime) -> set[str]:
        return {
            event["id"]
            for event in self.events_at(v, t)
            if any(since <= at < until for at in self.happened(event["id"], v, t))
        }

    def events_at(self, v: datetime, t: datetime) -> list[Row]:
        return [event for id in sorted(self.events) if (event := self.event(id, v, t))]

    def history(self, id: str, t: datetime) -> list[Row]:
        rows = [row for row in self.rows if row["id"] == id and believed(row, t)]
        return [self.version(row, t) for row in sorted(rows, key=lambda row: row["valid_from"])]

    def versions(self, id: str, t: datetime) -> list[Row]:
        rows = [row for row in self.rows if row["id"] == id and row["tx_from"] <= t]
        return [
            self.version(row, t) for row in sorted(rows, key=lambda row: (row["tx_from"], row["valid_from"]))
        ]

    def _links(self, v: datetime, t: datetime, *kinds: str) -> list[Row]:
        """Every link that holds, ordered by (valid_from, tx_from, id)."""
        rows = [
            {
                **seen(link, t),
                "source_standing": self.standing(link["source"], v, t),
                "target_standing": self.standing(link["target"], v, t),
            }
            for link in self.links
            if holds(link, v, t) and (not kinds or link["kind"] in kinds)
        ]
        return sorted(rows, key=lambda link: (link["valid_from"], link["tx_from"], link["id"]))

    def links_from(self, id: str, v: datetime, t: datetime, *kinds: str) -> list[Row]:
        return [link for link in self._read_both_ways(v, t, *kinds) if link["source"] == id]

    def backlinks_to(self, id: str, v: datetime, t: datetime, *kinds: str) -> list[Row]:
        return [link for link in self._read_both_ways(v, t, *kinds) if link["target"] == id]

    def _read_both_ways(self, v: datetime, t: datetime, *kinds: str) -> list[Row]:
        """What is symmetric is there twice, once from each end."""
        return [
            read
            for link in self._links(v, t, *kinds)
            for read in ([link, turned(link)] if link["kind"] in SYMMETRIC else [link])
        ]

    def supersedes(self, id: str, v: datetime, t: datetime) -> list[Row]:
        return [
            link for link in self._saying_most(v, t) if link["source"] == id and link["kind"] != "corrects"
        ]

    def _saying_most(self, v: datetime, t: datetime) -> list[Row]:
        """The links that lead away from what they name, each pair once."""
        links = self._links(v, t, *LEADS_AWAY)
        best: dict[tuple[str, str], int] = {}
        for link in links:
            pair, rank = (link["source"], link["target"]), LEADS_AWAY.index(link["kind"])
            best[pair] = min(rank, best.get(pair, rank))
        return [
            link for link in links if LEADS_AWAY.index(link["kind"]) == best[link["source"], link["target"]]
        ]

    def what_superseded(self, id: str, v: datetime, t: datetime) -> Row:
        links = self._saying_most(v, t)
        steps, closed, current, seen_ids, level = [], [], [], {id}, [id]
        while level:
            following = []
            for link in links:
                if link["target"] in level and link["source"] not in seen_ids:
                    seen_ids.add(link["source"])
                    following.append(link["source"])
                    how = "corrected" if link["kind"] == "corrects" else "superseded"
                    steps.append((how, link["id"], link["source"]))
            for one in level:
                if any(link["target"] == one and link["kind"] != "corrects" for link in links):
                    continue
                standing = self.standing(one, v, t)
                if standing in UPRIGHT:
                    current.append(one)
                elif standing in ("ended", "retracted"):
                    closed.append(standing)
            level = following
        return {
            "steps": steps, "closed": sorted(closed), "current": sorted(current), "standing": self.standing(id, v, t),
        }  # fmt: skip

    def revised(self, id: str, number: int, t: datetime) -> set[int]:
        """The numbers of the newer versions written over valid time that version `number` had lost."""
        rows = [row for row in self.rows if row["id"] == id and row["tx_from"] <= t]
        mine = [row for row in rows if row["number"] == number]
        return {
            row["number"]
            for row in rows
            for old in mine
            if row["number"] > number and row["tx_from"] >= old["tx_to"] and common(valid(row), valid(old))
        }

    def chain(self, id: str, v: datetime, t: datetime, depth: int, effects: bool = False) -> Row:
        near, far = ("target", "source") if effects else ("source", "target")
        links = [
            link for link in self._links(v, t, "caused_by")
            if not self._backwards(link["source"], "caused_by", link["target"], link["valid_from"], t)
        ]  # fmt: skip
        seen_ids, level, levels, every = {id}, [id], [], set()
        for _ in range(depth):
            following = []
            for link in links:
                if link[near] in level:
                    every.add(link["id"])
                    if link[far] not in seen_ids:
                        seen_ids.add(link[far])
                        following.append(link[far])
            level = following
            levels.append(sorted(level))
        cut = any(link[near] in level and link[far] not in seen_ids for link in links)
        return {"levels": levels, "every": every, "truncated": cut}

    def contradictions(self, v: datetime, t: datetime, settled: bool = False) -> set[str]:
        return {
            link["id"]
            for link in self._links(v, t, "contradicts")
            if settled or {link["source_standing"], link["target_standing"]} <= UPRIGHT
        }

    def compare_events(self, a: Span, b: Span) -> tuple[set[str], set[str]]:
        before, after = ({event["id"] for event in self.events_at(*one)} for one in (a, b))
        return after - before, before - after

    def compare(self, a: Span, b: Span) -> tuple[set[str], set[str], set[str]]:
        before = {node["id"]: node["number"] for node in self.nodes_at(*a)}
        after = {node["id"]: node["number"] for node in self.nodes_at(*b)}
        both = set(before) & set(after)
        return (
            set(after) - both,
            set(before) - both,
            {id for id in both if before[id] != after[id]},
        )

    # ------------------------------------------------------------------ where it gets interesting

    def instants(self) -> tuple[list[datetime], list[datetime]]:
        """Every boundary of valid time and every instant of transaction time."""
        rows = [*self.rows, *self.links]
        valids = {row[end] for row in rows for end in ("valid_from", "valid_to")} - {END}
        told = [one for event in self.events.values() for one in event["told"]]
        valids |= {at for at, _ in told}
        txs = {row[end] for row in [*rows, *self.events.values()] for end in ("tx_from", "tx_to")} - {END}
        txs |= {tx for _, tx in [*told, *self.confirmed]}
        return sorted(valids), sorted(txs)


def seen(row: Row, t: datetime) -> Row:
    """The row as it is shown at t: an open end is None, and so is one that was learned later."""
    out = dict(row)
    out["tx_to"] = None if row["tx_to"] > t else row["tx_to"]
    if "valid_to" in row:
        out["valid_to"] = None if row["valid_to"] == END else row["valid_to"]
    return out


def turned(link: Row) -> Row:
    """The link as a sentence that begins with its other end."""
    out = dict(link)
    for suffix in ("", "_standing"):
        out["source" + suffix], out["target" + suffix] = link["target" + suffix], link["source" + suffix]
    return out
