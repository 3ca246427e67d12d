"""The semantics of the store once more, as naive as possible: lists of dicts and linear scans.

Written from the documents alone, so that the store has something to disagree with. Times are aware datetimes; an open
end is `END`. Every verb first looks whether it must refuse and raises `Refused` with the error classes that would be
right; a case the documents leave open raises `Undecided`, and nothing is compared there.

Everything is a record of a table: it is believed from `tx_from` to `tx_to`. A record also knows `seq`, the number of the
operation that first said it. Whatever asks what came before what asks `seq`, never the transaction, so no standing depends
on how operations were grouped into transactions. `uid` names a record and is the same on a branch and on the trunk.

The tables:

    rows         periods of versions: number, content, tags, source, author, told
    links        periods of links
    gone         each time validity went away: id, period, why (supersede, cut, end, retract, correct, undo)
    taken        what was stated and does not hold, as a bound was set there: the row as it was, period
    looks        confirmations
    turns        where a revision changed the content: id, period
    said         every content that was said of a node: id, period, content
    first        when a link was first said over a period
    lives        when an event was believed
    occurrences  when an event happened
    trusts       ranks of sources
    given        the periods that `end` and `retract` were given, whatever was believed then
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from graphstore.errors import ConflictError, GraphStoreError, InvalidError, NotFoundError

START = datetime.min.replace(tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)
TICK = timedelta(microseconds=1)

Row = dict[str, Any]
Span = tuple[datetime, datetime]
ALWAYS: Span = (START, END)
UNRANKED = float("-inf")

SYMMETRIC = {"contradicts", "related_to", "co_constrains"}
EARLIER_SOURCE = {"continuation", "fork", "branch", "tree_jump", "resume", "compaction"}
ACYCLIC = {"supersedes", "corrects", "continuation"}
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

FOR_THE_STORE = {"transition"}  # nobody else makes these

LEADS_AWAY = ("supersedes", "transition", "corrects")  # the first says most
EVERY_FALL = {"superseded", "revised", "retracted", "ended", "shaky"}
RESTS = {  # the falls of a foundation that shake what rests on it; a correction is a retraction here
    "derived_from": EVERY_FALL,
    "supports": EVERY_FALL,
    "caused_by": {"retracted"},
}
RESTING = {"derived_from", "caused_by"}  # the source rests on the target
RESTED = {"supports"}  # the target rests on the source
DEPENDANT = {
    "derived_from": 0,
    "caused_by": 0,
    "supports": 1,
}  # which end rests on the other: the source or the target
RETRACTIONS = {"retract", "correct", "undo"}
UPRIGHT = {"stands", "shaky"}

TABLES = (
    "rows", "links", "gone", "taken", "looks", "turns", "said", "first", "lives", "occurrences", "trusts", "given",
)  # fmt: skip
UIDS = itertools.count(1)


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


def touching(a: Span, b: Span) -> bool:
    return a[1] == b[0] or b[1] == a[0]


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


def cut_at(span: Span, others: Iterable[Span]) -> list[Span]:
    """`span` in pieces, cut at every boundary of the others."""
    inside = sorted({at for other in others for at in other if span[0] < at < span[1]})
    return list(itertools.pairwise([span[0], *inside, span[1]]))


def valid(row: Row) -> Span:
    return row["valid_from"], row["valid_to"]


def covers(row: Row, v: datetime) -> bool:
    return bool(row["valid_from"] <= v < row["valid_to"])


def holds(row: Row, v: datetime, t: datetime) -> bool:
    return covers(row, v) and believed(row, t)


def believed(row: Row, t: datetime) -> bool:
    return bool(row["tx_from"] <= t < row["tx_to"])


def verb(method: Callable[..., Any]) -> Callable[..., Any]:
    """One transaction of its own outside a block; in any case all or nothing."""

    @functools.wraps(method)
    def run(self: Oracle, *args: Any, **kwargs: Any) -> Any:
        if self.block is None:
            with self.transaction():
                return run(self, *args, **kwargs)
        before = self._save()
        self.seq += 1
        try:
            out = method(self, *args, **kwargs)
        except Exception:
            self._load(before)
            raise
        finally:
            self.stood.clear()
        self.did = self.did or self._save() != before
        return out

    return run


class Oracle:
    rows: list[Row]
    links: list[Row]
    gone: list[Row]
    taken: list[Row]
    looks: list[Row]
    turns: list[Row]
    said: list[Row]
    first: list[Row]
    lives: list[Row]
    occurrences: list[Row]
    trusts: list[Row]
    given: list[Row]

    def __init__(self, clock: Callable[[], datetime], author: str | None = None) -> None:
        self.clock = clock
        self.store_author = author
        self.author = author  # of the present transaction
        self.nodes: dict[str, Row] = {}
        self.events: dict[str, Row] = {}
        self.born: dict[str, datetime | None] = {}  # when each was told first
        for table in TABLES:
            setattr(self, table, [])
        self.stood: dict[tuple[Any, ...], Any] = {}  # standings that were asked for since the last verb
        self.numbers: dict[str, int] = {}  # the highest number of each node that was ever committed
        self.undos: list[tuple[datetime, datetime]] = []  # when, and which transaction
        self.authors: dict[datetime, str | None] = {}  # of each transaction
        self.seq = 0
        self.last = START
        self.handed = START
        self.block: datetime | None = None
        self.did = False
        self.made = 0
        self.forked = 0  # the operation after which a branch began
        self.given_end: set[str] = set()  # nodes that were added with a given end

    # ------------------------------------------------------------------ transactions

    @property
    def now(self) -> datetime:
        return self.block or max(self.clock(), self.last)

    def next_tx(self) -> datetime:
        return max(self.clock(), self.last + TICK, self.handed + TICK)

    @contextmanager
    def transaction(self, author: str | None = None) -> Iterator[datetime]:
        assert self.block is None
        before = self._save()
        self.block = self.next_tx()
        self.author = author or self.store_author
        self.did = False
        try:
            yield self.block
        except BaseException:
            self._load(before)
            self.block = None
            raise
        finally:
            self.author = self.store_author
        if self.did:  # also when one verb took back what another had done
            self._forget_what_never_was()
            self.last = self.block
            self.authors[self.block] = author or self.store_author
            self.numbers = {id: self._next_number(id) - 1 for id in self.nodes}
        self.block = None
        self.stood.clear()

    def _save(self) -> Any:
        return (
            dict(self.nodes),
            dict(self.events),
            {table: [dict(row) for row in getattr(self, table)] for table in TABLES},
        )

    def _load(self, state: Any) -> None:
        self.nodes, self.events, tables = state
        for table in TABLES:
            setattr(self, table, tables[table])
        self.stood.clear()

    def _forget_what_never_was(self) -> None:
        """A thing that came and went in this transaction was never known, unless a stored link names it, or it holds again when a bound goes."""
        named = {link[end] for link in self.links for end in ("source", "target")}
        stored = {row["id"] for row in [*self.rows, *self.lives]}
        stored |= {part["row"]["id"] for part in self.taken if not part["row"].get("ended")}
        for id in [id for id in [*self.nodes, *self.events] if id not in named | stored]:
            self.nodes.pop(id, None)
            self.events.pop(id, None)
            for table in ("gone", "looks", "turns", "said", "occurrences", "given"):
                setattr(self, table, [row for row in getattr(self, table) if row["id"] != id])
            self.taken = [part for part in self.taken if part["row"]["id"] != id]

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

    def _alive(self, id: str) -> list[Row]:
        """The life of an event that is believed now, if any."""
        return [life for life in self.lives if life["id"] == id and life["tx_to"] == END]

    def _close(self, table: list[Row], row: Row) -> None:
        if row["tx_from"] == self.block:
            table[:] = [other for other in table if other is not row]
        else:
            row["tx_to"] = self.block

    def _write(self, table: list[Row], row: Row, span: Span | None = None) -> None:
        period = {"valid_from": span[0], "valid_to": span[1]} if span else {}
        fresh = {"tx_from": self.block, "tx_to": END, "made": self.block, "uid": next(UIDS)}
        table.append({"seq": self.seq, **row, **period, **fresh})

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

    def _take_away(
        self, id: str, span: Span, why: str, source: str | None = None, by: str | None = None
    ) -> list[tuple[Row, Span]]:
        rows = [row for row in self._now_rows(id) if common(valid(row), span)]
        self._guard(rows, source)
        went = self._clear(self.rows, rows, span)
        for _, part in went:
            self._write(self.gone, {"id": id, "why": why, "by": by}, part)
        return went

    def _bound(self, id: str, span: Span, why: str, source: str | None = None) -> None:
        """Another thing sets a bound: what it takes is kept, and the other values of the slot may have the rest."""
        went = self._take_away(id, span, why, source)
        self._keep(went)
        self._settle(id, [part for _, part in went] + self._kept_from(id, span))

    def _kept_from(self, id: str, span: Span) -> list[Span]:
        """Where a value may keep others of its slot from holding, though it does not hold there."""
        rows = [part for part in self._kept_or_ended(id) if part["row"].get("ended") or id in self.given_end]
        return [part for row in rows if (part := common(valid(row), span))]

    def _keep(self, went: list[tuple[Row, Span]]) -> None:
        for row, part in went:
            self._write(self.taken, {"row": row}, part)

    def _kept(self, id: str) -> list[Row]:
        return [part for part in self._kept_or_ended(id) if not part["row"].get("ended")]

    def _kept_or_ended(self, id: str) -> list[Row]:
        return [part for part in self.taken if part["tx_to"] == END and part["row"]["id"] == id]

    def _drop_kept(self, id: str, span: Span) -> list[Span]:
        """What is kept of a thing for giving back is dropped."""
        return [part for _, part in self._clear(self.taken, self._kept_or_ended(id), span)]

    def _stated(self, id: str, span: Span) -> list[Span]:
        """Where it is stated to hold, whether it holds there or not."""
        if id in self.events:
            part = common((self.begun(id, None), END), span) if self._alive(id) else None
            return [part] if part else []
        return joined(
            part for row in [*self._now_rows(id), *self._kept(id)] if (part := common(valid(row), span))
        )

    def _stated_start(self, id: str) -> datetime | None:
        return min((span[0] for span in self._stated(id, ALWAYS)), default=None)

    def start(self, id: str, t: datetime | None = None) -> datetime | None:
        """When it starts: occurred_at, or the first believed valid_from."""
        if id in self.events:
            alive = self._alive(id) if t is None else [one for one in self._lives(id) if believed(one, t)]
            return self.begun(id, t) if alive else None
        rows = [
            r for r in self.rows if r["id"] == id and (r["tx_to"] == END if t is None else believed(r, t))
        ]
        return min((row["valid_from"] for row in rows), default=None)

    def _next_number(self, id: str) -> int:
        stored = [*self.rows, *(part["row"] for part in self.taken)]
        here = max((row["number"] for row in stored if row["id"] == id), default=0)
        return 1 + max(here, self.numbers.get(id, 0))

    def _number_now(self, id: str) -> int | None:
        """The number of what stands now, else of the last description."""
        rows = self._now_rows(id)
        here = [row["number"] for row in rows if covers(row, self.now)]
        every = [row["number"] for row in self.rows if row["id"] == id]
        return here[0] if here else max(every, default=None)

    def _expect(self, id: str, number: int | None) -> None:
        """`if_number=`: refused when another version stands now."""
        if number is not None and id in self.events:
            raise Refused(InvalidError, ConflictError)
        if number is not None and number != self._number_now(id):
            raise Refused(ConflictError)

    # ------------------------------------------------------------------ trust

    @property
    def ranks(self) -> dict[str, int]:
        now = [row["ranks"] for row in self.trusts if row["tx_to"] == END]
        return now[-1] if now else {}

    def rank(self, source: str | None, author: str | None) -> float:
        """That of the author, lowered by the source; below every rank of the map for who has none. Of what nobody signed the source ranks alone."""
        names = [name for name in (source, author) if name is not None]
        return min((self.ranks.get(name.split(":")[0], UNRANKED) for name in names), default=UNRANKED)

    def _outranked(self, theirs: tuple[str | None, str | None], source: str | None = None) -> bool:
        """Whether the writer ranks lower than what was recorded with a source by an author. Who signs nothing is below who signs and has a rank."""
        mine = UNRANKED if self.author is None and theirs[1] is not None else self.rank(source, self.author)
        return self.rank(*theirs) > mine

    def _guard(self, rows: list[Row], source: str | None = None) -> None:
        """No row of a node or life of an event may be closed by one who ranks lower than who said it."""
        if any(self._outranked((row["source"], row["author"]), source) for row in rows):
            raise Refused(ConflictError)

    def _guard_links(self, links: list[Row], source: str | None = None) -> None:
        if any(self._outranked((None, link["author"]), source) for link in links):
            raise Refused(ConflictError)

    @verb
    def set_trust(self, ranks: dict[str, int]) -> None:
        if ranks == self.ranks:
            return
        if self.ranks:
            last = next(row["author"] for row in self.trusts if row["tx_to"] == END)
            mine = self.rank(None, self.author)
            wanted = ranks.get((self.author or "").split(":")[0], UNRANKED)
            raises_itself = (
                self.author not in (None, last) and mine < wanted and mine < max(self.ranks.values())
            )
            if self._outranked((None, last)) or raises_itself:
                raise Refused(ConflictError)
        for row in [row for row in self.trusts if row["tx_to"] == END]:
            self._close(self.trusts, row)
        self._write(self.trusts, {"ranks": dict(ranks), "author": self.author})

    # ------------------------------------------------------------------ describing

    def _describe(self, row: Row, span: Span, minor: bool = False) -> None:
        """Write a description. Where another content was said last, that is a turn, unless it is minor."""
        before = [said for said in self.said if said["tx_to"] == END and said["id"] == row["id"]]
        for piece in cut_at(span, [valid(said) for said in before]):
            last = [said for said in before if common(valid(said), piece)]
            if last and not minor and max(last, key=order)["content"] != row["content"]:
                self._write(self.turns, {"id": row["id"]}, piece)
        self._write(self.said, {"id": row["id"], "content": row["content"]}, span)
        self._write(self.rows, row, span)

    def _description(self, id: str, number: int, content: Any, **more: Any) -> Row:
        return {
            "id": id, "number": number, "content": content, "trigger": "user_feedback", "source": None,
            "text": None, "author": self.author, "told": self.block, **more,
        }  # fmt: skip

    def _slot_taken(self, mine: Row, spans: list[Span], besides: tuple[str, ...] = ()) -> bool:
        """Whether another node of the same key and scope is believed over an overlapping valid period."""
        return any(
            common(valid(row), span) for row in self._held(mine) if row["id"] not in besides for span in spans
        )

    def _held(self, slot: Row) -> list[Row]:
        """What the other nodes of a slot hold now, by valid time. A slot is key and scope, whatever the kind."""
        if slot["key"] is None:
            return []
        mine = [
            other["id"] for other in self.nodes.values()
            if all(other[name] == slot[name] for name in ("key", "scope")) and other["id"] != slot["id"]
        ]  # fmt: skip
        rows = [row for id in mine for row in self._now_rows(id)]
        return sorted(rows, key=lambda row: row["valid_from"])

    # ------------------------------------------------------------------ verbs

    @verb
    def add_node(
        self, id: str, kind: str, content: Any, *, key: str | None = None, scope: str = "",
        tags: tuple[str, ...] = (), valid_from: datetime | None = None, valid_to: datetime | None = None,
        supersedes: tuple[str, ...] = (), corrects: tuple[str, ...] = (), derived_from: tuple[str, ...] = (),
        reason: str | None = None, source: str | None = None, text: str | None = None,
    ) -> list[str]:  # fmt: skip
        if id in self.nodes and not any(row["id"] == id for row in self.rows):
            raise Undecided("an id that came and went in this transaction")
        span = (valid_from or self.block, valid_to or END)
        wrong: list[type[GraphStoreError]] = []
        if span[0] >= span[1]:
            wrong.append(InvalidError)
        if id in self.nodes or id in self.events:
            wrong.append(ConflictError)
        named = (*supersedes, *corrects, *derived_from)
        if any(old not in self.nodes and old not in self.events for old in named):
            wrong.append(NotFoundError)
        if wrong:
            raise Refused(*wrong)
        if set(supersedes) & set(corrects):
            raise Undecided("one old thing both superseded and corrected")
        slot = {"id": id, "kind": kind, "key": key, "scope": scope}
        held = self._held(slot)
        gives_way = (*supersedes, *corrects)
        spans = [span] if valid_to else self._free_for(slot, held, span[0], gives_way)
        self.nodes[id] = slot
        if valid_to:
            self.given_end.add(id)
        self.born[id] = self.block
        same = {"tags": tags, "trigger": "initial", "source": source, "text": text}
        row = self._description(id, 1, content, **same)
        for part in spans:
            self._describe(row, part)
        self._keep([(self._now_rows(id)[0], part) for part in outside(span, spans)])
        met = [other for other in held if any(common(valid(other), part) for part in spans)]
        made: list[str] = []
        for old in dict.fromkeys(other["id"] for other in met if other["id"] not in gives_way):
            for part in spans:
                self._keep(self._take_away(old, part, "cut", source))
            for other in met:
                if other["id"] == old:
                    made += self._mint(id, old, max(other["valid_from"], span[0]), reason)
        self._settle(id, outside(span, spans))
        for old in sorted({other["id"] for other in met} & set(supersedes), key=[*self.nodes].index):
            if (self._stated_start(old) or span[0]) <= span[0]:
                made.append(self._supersede(id, old, reason=reason, writer=source))
                link = self._alike(id, "supersedes", old)[0]
                minted = {"reason": reason, "strength": None, "confidence": "explicit", "created_by": "store"}
                for kind in ("transition", "contradicts"):
                    made.append(self._new_link(id, kind, old, valid(link), minted))
        made += [self._supersede(id, old, reason=reason, writer=source) for old in supersedes]
        made += [self._link(id, "corrects", old, reason=reason, writer=source) for old in corrects]
        made += [self._link(id, "derived_from", old, reason=reason) for old in derived_from]
        for part in spans:
            for other in held:
                if other["valid_from"] == part[1]:
                    made += self._mint(other["id"], id, part[1], None)
        return made

    def _free_for(
        self, slot: Row, held: list[Row], start: datetime, gives_way: tuple[str, ...]
    ) -> list[Span]:
        """Where a value without a given end holds: from its start on, but for where a value holds that begins later."""
        ended = [
            {"id": part["row"]["id"], "valid_from": span[0], "valid_to": span[1]} for part in self.taken
            for span in outside(valid(part), self._limits(part["row"]["id"], valid(part)))
            if part["tx_to"] == END and part["row"].get("ended")
            and all(self.nodes[part["row"]["id"]][name] == slot[name] for name in ("key", "scope"))
        ]  # fmt: skip
        later = [
            valid(row) for row in [*held, *ended]
            if row["valid_to"] > start and row["id"] not in gives_way and (self._stated_start(row["id"]) or START) > start
        ]  # fmt: skip
        return outside((start, END), later)

    # ------------------------------------------------------------------ borrowed bounds

    def _in_one_slot(self, one: str, other: str) -> bool:
        a, b = self.nodes.get(one), self.nodes.get(other)
        return (
            a is not None
            and b is not None
            and a["key"] is not None
            and (a["key"], a["scope"]) == (b["key"], b["scope"])
        )

    def _limits(self, id: str, span: Span, kinds: tuple[str, ...] = ("corrects", "supersedes")) -> list[Span]:
        """Where a supersession or a correction keeps a thing from holding."""
        found: list[Span] = []
        for link in self._now_links():
            part = common(valid(link), span)
            if link["target"] != id or part is None or link["kind"] not in kinds:
                continue
            if link["kind"] == "corrects":
                found += self._stated(link["source"], part)
                ended = [one for one in self._kept_or_ended(link["source"]) if one["row"].get("ended")]
                found += [shared for one in ended if (shared := common(valid(one), part))]
            elif link["kind"] == "supersedes" and id in self.nodes:
                minted = link["created_by"] == "store" and self._in_one_slot(link["source"], id)
                found += [] if minted else [part]  # the slot decides
        return found

    def _rank_in_slot(self, id: str) -> tuple[datetime, int]:
        return self._stated_start(id) or START, [*self.nodes].index(id)

    def _winners(self, slot: Row, region: Span) -> list[tuple[Row, Span, bool]]:
        """What the statements say that holds in a slot over the parts of a period: the row, the part, and whether it holds there now."""
        rows = [(row, common(valid(row), region), True) for row in self._held({**slot, "id": None})]
        for part in self.taken:
            if part["tx_to"] == END and self._in_one_slot(part["row"]["id"], slot["id"]):
                whole = common(valid(part), region)
                left = outside(whole, self._limits(part["row"]["id"], whole)) if whole else []
                rows += [(part["row"], one, False) for one in left]
        stated = [(row, part, now) for row, part, now in rows if part]
        found: list[tuple[Row, Span, bool]] = []
        for cell in cut_at(region, [part for _, part, _ in stated]):
            here = [one for one in stated if common(one[1], cell)]
            known = [*self.nodes]
            first = max(
                (known.index(row["id"]) for row, _, _ in here if row["id"] in self.given_end), default=-1
            )
            here = [one for one in here if known.index(one[0]["id"]) >= first]
            if here:
                best = max(here, key=lambda one: self._rank_in_slot(one[0]["id"]))
                last = found[-1] if found else None
                same = last and [(one[0]["id"], one[0]["number"], one[2]) for one in (last, best)]
                if last and same and last[1][1] == cell[0] and same[0] == same[1]:
                    found[-1] = (last[0], (last[1][0], cell[1]), last[2])
                else:
                    found.append((best[0], cell, best[2]))
        return found

    def _settle(self, id: str, regions: Iterable[Span]) -> None:
        """What holds in the slot of a node over some periods becomes what the statements that are left determine."""
        slot = self.nodes.get(id)
        if slot is None or slot["key"] is None:
            return
        won = [one for region in joined(regions) for one in self._winners(slot, region)]
        fresh = [(row, part) for row, part, now in won if not now]
        for _, part in fresh:
            for other in self._held({**slot, "id": None}):
                if shared := common(valid(other), part):
                    self._keep(self._take_away(other["id"], shared, "cut"))
        fresh = [(row, part) for row, part in fresh if not row.get("ended")]
        for row, part in fresh:
            self._come_back(row, part)
        for row, (start, stop) in fresh:
            minted = [
                link for link in self._now_links()
                if link["target"] == row["id"] and link["created_by"] == "store"
                and link["kind"] in ("supersedes", "transition", "contradicts")
                and self._in_one_slot(link["source"], row["id"])
            ]  # fmt: skip
            self._clear(self.links, minted, (start, stop))
            held = self._held({**slot, "id": None})
            for other in [other for other in held if other["valid_from"] == stop]:
                self._mint(other["id"], row["id"], stop, None)
            for other in [other for other in held if other["valid_to"] == start]:
                self._mint(row["id"], other["id"], start, None)
        for one in sorted({row["id"] for row, _ in fresh}):
            self._enforce(one)

    def _mint(self, new: str, old: str, since: datetime, reason: str | None) -> list[str]:
        """The three links that say that one value of a slot takes the time of another that began no later."""
        if new == old or not any(covers(part, since) for part in self._kept(old)):
            return []
        if self._rank_in_slot(new) < self._rank_in_slot(old):
            return []
        following = [row["valid_from"] for row in self._now_rows(old) if row["valid_from"] >= since]
        during = (since, min(following, default=END))
        there = [link for link in self._alike(new, "supersedes", old) if common(valid(link), during)]
        if there or self._cycle(new, "supersedes", old):
            return []
        same = {"reason": reason, "strength": None, "confidence": "explicit", "created_by": "store"}
        return [
            self._new_link(new, kind, old, during, same)
            for kind in ("supersedes", "transition", "contradicts")
            if not any(common(valid(link), during) for link in self._alike(new, kind, old))
        ]

    def _come_back(self, row: Row, part: Span) -> None:
        """What was kept of a row holds again."""
        self._clear(
            self.taken,
            [kept for kept in self._kept(row["id"]) if kept["row"]["number"] == row["number"]],
            part,
        )
        for hole in outside(part, [valid(other) for other in self._now_rows(row["id"])]):
            self._write(self.said, {"id": row["id"], "content": row["content"]}, hole)
            self._restore(row, hole)

    def _give_back(self, old: str, span: Span) -> None:
        """What is kept of a thing holds again where no other bound is set."""
        if old in self.events:  # it comes back whole
            if not self._limits(old, ALWAYS):
                for life, _ in self._clear(self.taken, self._kept(old), ALWAYS):
                    self._write(self.lives, life["row"])
            return
        if old in self.nodes and self.nodes[old]["key"] is not None:
            rows = self._kept_or_ended(
                old
            )  # where it was ended, it keeps others of its slot from holding again
            self._settle(old, [shared for row in rows if (shared := common(valid(row), span))])
            return
        kept = [(part["row"], shared) for part in self._kept(old) if (shared := common(valid(part), span))]
        for row, shared in kept:
            for part in outside(shared, self._limits(old, shared)):
                self._come_back(row, part)
        self._enforce(old)

    def _enforce(self, id: str) -> None:
        """A correction stays in force, whatever was described since."""
        for ends in ("source", "target"):
            for link in self._now_links():
                if link["kind"] == "corrects" and link[ends] == id:
                    self._correct(link["source"], link["target"], valid(link), None)

    @verb
    def say_again(
        self, content: Any, *, key: str, kind: str = "fact", scope: str = "",
        valid_from: datetime | None = None, valid_to: datetime | None = None,
    ) -> str:  # fmt: skip
        """A value of a slot without an id: the node that says so already."""
        start = valid_from or self.block
        if valid_to is not None and valid_to <= start:
            raise Refused(InvalidError)
        slot = {"id": None, "kind": kind, "key": key, "scope": scope}
        held = self._held(slot)
        spans = [(start, valid_to)] if valid_to else self._free_for(slot, held, start, ())
        for row in held:
            same = row["content"] == content and self.nodes[row["id"]]["kind"] == kind
            if not covers(row, start) or not same or row["valid_to"] < spans[-1][1]:
                continue
            wanted = (start, spans[0][1] if self._stated_start(row["id"]) == start else valid_to or END)
            if wanted in self._stated(row["id"], wanted):
                self._write(self.looks, {"id": row["id"]})
                return str(row["id"])
        raise Undecided("it would be a new node, under an id of the store's own")

    @verb
    def confirm(self, id: str, *, if_number: int | None = None) -> None:
        self._known(id)
        if not (self._now_rows(id) if id in self.nodes else self._alive(id)):
            raise Refused(NotFoundError)
        self._expect(id, if_number)
        self._write(self.looks, {"id": id})

    @verb
    def revise(
        self, id: str, content: Any, *, valid_from: datetime | None = None, valid_to: datetime | None = None,
        source: str | None = None, tags: tuple[str, ...] | None = None, text: str | None = None,
        minor: bool = False, if_number: int | None = None,
    ) -> int | None:  # fmt: skip
        """The new number; None where nothing changed and nothing was written."""
        self._node_only(id)
        now = self._now_rows(id)
        if valid_from is None and valid_to is None:
            if not now:
                raise Refused(ConflictError)
            spans = self._stated(id, ALWAYS)
        else:
            if valid_from is None:
                if not now:
                    raise Refused(ConflictError)
                valid_from = self._stated_start(id)
                assert valid_from
            goes_on = any(row["valid_to"] > valid_from for row in now)
            stop = valid_to or (self._stated(id, ALWAYS)[-1][1] if goes_on else END)
            if valid_from >= stop:
                raise Refused(InvalidError)
            spans = [(valid_from, stop)]
        self._expect(id, if_number)
        if not any(row["id"] == id for row in self.rows):
            raise Undecided("a thing of which no version is stored is described")
        last = max((row for row in self.rows if row["id"] == id), key=lambda row: row["number"])
        tags = last["tags"] if tags is None else tags
        over = any(common(valid(row), span) for row in now for span in spans)
        kept = (
            self._kept(id) if over and valid_to is None else []
        )  # what is said of a time given to the end holds there
        alike = [
            valid(one) for one, row in [*((row, row) for row in now), *((part, part["row"]) for part in kept)]
            if (row["content"], row["tags"]) == (content, tags)
            and (text is None or row["text"] == text)
            and (source is None or row["source"] == source)
        ]  # fmt: skip
        spans = joined(piece for span in spans for piece in outside(span, alike))
        bounded = [part for one in kept for span in spans if (part := common(valid(one), span))]
        spans = [piece for span in spans for piece in outside(span, bounded)]
        if not spans:
            return None
        if self._slot_taken(self.nodes[id], spans):
            raise Refused(ConflictError)
        closed = [row for row in now if any(common(valid(row), span) for span in spans)]
        self._guard(closed, source)
        if source is None:
            source = self._kept_source(closed or [last])
        for span in spans:
            self._clear(self.rows, self._now_rows(id), span)
        number = self._next_number(id)
        for span in spans:
            same = {"tags": tags, "source": source, "text": text}
            self._describe(self._description(id, number, content, **same), span, minor)
        row = next(row for row in self._now_rows(id) if row["number"] == number)
        for span in [*spans, *bounded]:
            self._drop_kept(id, span)
        self._keep([(row, part) for part in bounded])
        self._enforce(id)
        return number

    def _kept_source(self, rows: list[Row]) -> str | None:
        """The source of what ranks highest, kept by who ranks as high."""
        best = max(rows, key=lambda row: (self.rank(row["source"], row["author"]), row["number"]))
        return None if self._outranked((best["source"], best["author"])) else best["source"]

    @verb
    def amend(
        self, id: str, patch: dict[str, Any], *, valid_from: datetime | None = None,
        valid_to: datetime | None = None, source: str | None = None,
    ) -> list[int]:  # fmt: skip
        """Change fields where something stands. One new number for each version that is changed."""
        self._node_only(id)
        span = (valid_from or START, valid_to or END)
        if span[0] >= span[1]:
            raise Refused(InvalidError)
        rows = [row for row in self._now_rows(id) if common(valid(row), span)]
        if not rows:
            raise Refused(NotFoundError, ConflictError)
        if valid_from is not None and valid_from < (self._stated_start(id) or valid_from):
            raise Refused(InvalidError)
        rows = [row for row in rows if {**row["content"], **patch} != row["content"]]
        self._guard(rows, source)
        numbers: list[int] = []
        versions: dict[int, list[Row]] = {}
        for row in sorted(rows, key=lambda row: row["valid_from"]):
            versions.setdefault(row["number"], []).append(row)
        for changed in versions.values():  # each as a whole: what nothing is left of has no number
            parts = [common(valid(row), span) for row in changed]
            for row, part in zip(changed, parts, strict=True):
                assert part
                self._clear(self.rows, [row], part)
            numbers.append(self._next_number(id))
            for row, part in zip(changed, parts, strict=True):
                content = {**row["content"], **patch}
                kept = {
                    "tags": row["tags"],
                    "text": row["text"],
                    "source": source or self._kept_source([row]),
                }
                self._describe(self._description(id, numbers[-1], content, **kept), part)
            again = next(row for row in self._now_rows(id) if row["number"] == numbers[-1])
            old = [part for part in self._kept(id) if part["row"]["number"] == changed[0]["number"]]
            self._keep([(again, part) for _, part in self._clear(self.taken, old, span)])
        self._enforce(id)
        return sorted(numbers)

    @verb
    def end(self, id: str, *, at: datetime | None = None, if_number: int | None = None) -> None:
        self._node_only(id)
        at = at or self.block
        start = self._stated_start(id)
        if start is None or not self._stated(id, (at, END)):
            raise Refused(NotFoundError)
        if start >= at:
            raise Refused(InvalidError)
        self._expect(id, if_number)
        gone = [part for _, part in self._take_away(id, (at, END), "end")]
        self._write(self.given, {"id": id}, (at, END))
        gone += self._drop_kept(id, (at, END))
        corrects = any(link["kind"] == "corrects" and link["source"] == id for link in self.links)
        if self.nodes[id]["key"] is not None or corrects:  # nothing holds where it would
            self._keep([({"id": id, "number": 0, "ended": True}, part) for part in joined(gone)])

    @verb
    def retract(
        self, id: str, *, valid_from: datetime | None = None, valid_to: datetime | None = None,
        if_number: int | None = None,
    ) -> None:  # fmt: skip
        self._known(id)
        span = (valid_from or START, valid_to or END)
        if id in self.events:
            if valid_from is not None or valid_to is not None:
                raise Refused(InvalidError, ConflictError, NotFoundError)
            if not self._alive(id):
                raise Refused(NotFoundError)
            self._expect(id, if_number)
            stated = self._stated(id, ALWAYS)
            self._end_life(id)
            self._let_go(id, ALWAYS, stated, stated)
            return
        if span[0] >= span[1]:
            raise Refused(InvalidError)
        if not any(common(valid(row), span) for row in self._now_rows(id)):
            raise Refused(NotFoundError)
        self._expect(id, if_number)
        stated = self._stated(id, span)
        gone = [part for _, part in self._take_away(id, span, "retract")]
        self._write(self.given, {"id": id}, span)
        if not self._now_rows(id):  # what leaves nothing takes back all of it
            span, stated = ALWAYS, joined([*stated, *self._stated(id, ALWAYS)])
        ended = [part for part in self._kept_or_ended(id) if part["row"].get("ended")]
        gone += [part for one in ended if (part := common(valid(one), span))]
        self._drop_kept(id, span)
        self._let_go(id, span, stated, gone)

    def _end_life(
        self, id: str, source: str | None = None, why: str = "retract", by: str | None = None
    ) -> None:
        alive = self._alive(id)
        self._guard(alive, source)
        for life in alive:
            self._close(self.lives, life)
        self._write(self.gone, {"id": id, "why": why, "by": by}, ALWAYS)

    def _let_go(self, new: str, span: Span, stated: list[Span], gone: list[Span]) -> None:
        """The supersessions and corrections a thing made go with it over that time, and what they and its place in a slot took comes back."""
        regions = [*gone, *(stated if new in self.given_end else [])]
        withdrawn: list[tuple[Row, Span]] = []
        begins = self._stated_start(new)
        if begins is not None and stated and stated[0][0] < begins:
            regions += self._stated(new, ALWAYS)  # it begins later now, and may win over others
        for link in sorted(self._now_links(), key=lambda link: link["made"]):
            if (
                link["kind"] in ("supersedes", "corrects")
                and link["source"] == new
                and common(valid(link), span)
            ):
                self._guard_links([link])
                part = self._withdraw(link, span)
                withdrawn.append((link, part))
                old = link["target"]
                first, later = (
                    self._stated_start(old),
                    self._rank_in_slot(new)[1] > self._rank_in_slot(old)[1]
                    if old in self.nodes and new in self.nodes
                    else False,
                )
                if (
                    self._in_one_slot(new, old)
                    and later
                    and stated
                    and (first is None or stated[0][0] >= first)
                ):
                    regions += [
                        *outside(part, stated),
                        *self._limits(new, part),
                        *self._kept_from(old, part),
                    ]
                else:
                    self._give_back(old, part)
        self._settle(new, regions)
        for link, part in withdrawn:
            self._uncorrect(link, part)

    @verb
    def supersede(
        self, *old: str, by: str, reason: str | None = None, valid_from: datetime | None = None,
        if_number: int | None = None,
    ) -> list[str]:  # fmt: skip
        try:
            self._known(*old, by)
            if if_number is not None and len(old) > 1:
                raise Refused(InvalidError)
            for one in old:
                self._expect(one, if_number)
            return [self._supersede(by, one, reason=reason, valid_from=valid_from) for one in old]
        except Refused as refused:
            if len(old) == 1 and by not in old:
                raise
            # which of several faults is named first is nobody's promise
            raise Refused(*refused.classes, NotFoundError, InvalidError, ConflictError) from None

    def _supersede(self, new: str, old: str, *, reason: str | None = None, strength: int | None = None,
                   valid_from: datetime | None = None, valid_to: datetime | None = None,
                   created_by: str = "user", writer: str | None = None) -> str:  # fmt: skip
        if new == old:
            raise Refused(InvalidError, ConflictError)
        started = self.start(old) if old in self.events else self._stated_start(old)
        starts = [
            at
            for at in (
                valid_from or (self.start(new) if new in self.events else self._stated_start(new)),
                started,
            )
            if at is not None
        ]
        span = (max(starts, default=END), valid_to or END)
        if valid_from is None and valid_to is None and started is not None and old in self.nodes:
            assert self.block
            if started > self.block:  # a plan: all of it is replaced
                span = (started, END)
            elif new in self.given_end and (stop := self._stated(new, ALWAYS)[-1:]):
                end = stop[0][1]  # where the old one is stated for longer, it holds again from there on
                if end > span[0] and self._stated(old, (end, END)):
                    span = (span[0], end)
        wrong: list[type[GraphStoreError]] = []
        if self.start(new) is None:
            wrong.append(ConflictError)
        elif span[0] >= span[1]:
            wrong.append(InvalidError)
        if self._cycle(new, "supersedes", old) or self._gives_way(old, "corrects", new, span):
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
            self._bound(old, span, "supersede", writer)
        return id

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
        if outside(span, [valid(row)]):
            raise Undecided("without a date, and a part of the link's period was unlinked")
        if not equal:
            self._clear(self.links, [row], valid(row))
            self._link_row(row["id"], row["source"], "supersedes", row["target"], valid(row), same)
        return row["id"], valid(row)

    @verb
    def link(self, source: str, kind: str, target: str, **more: Any) -> str:
        return self._link(source, kind, target, **more)

    def _link(
        self, source: str, kind: str, target: str, *, reason: str | None = None, strength: int | None = None,
        confidence: str = "explicit", created_by: str = "user", valid_from: datetime | None = None,
        valid_to: datetime | None = None, writer: str | None = None, history: bool = False,
    ) -> str:  # fmt: skip
        wrong: list[type[GraphStoreError]] = []
        plain = kind.removeprefix("possibly_")
        if plain != kind:
            confidence = "inferred"
        plain = SAME.get(plain, plain)
        if plain in TURNED:
            source, plain, target = target, TURNED[plain], source
        if history and plain not in DEPENDANT:
            wrong.append(InvalidError)
        if plain not in PLAIN or (plain in FOR_THE_STORE and created_by != "store"):
            wrong.append(InvalidError)
        if confidence not in ("explicit", "inferred") or strength not in (None, 1, 2, 3, 4, 5):
            wrong.append(InvalidError)
        if plain in ("supersedes", "corrects") and confidence == "inferred":
            if plain == "corrects" and not wrong:
                raise Undecided("an inferred correction")
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
        if plain == "corrects" and self._gives_way(target, "supersedes", source, span):
            wrong.append(ConflictError)
        same = {"reason": reason, "strength": strength, "confidence": confidence, "created_by": created_by}
        same["history"] = history
        if wrong:
            if out_of_order and self._alike(source, plain, target):
                raise Undecided("a known link that would be refused today")
            raise Refused(*wrong)
        id = self._again(source, plain, target, span, same)
        if id is None:
            id = self._new_link(source, plain, target, span, same)
        if plain == "corrects":
            self._correct(source, target, span, writer)
        return id

    def _begins(self, source: str, kind: str, target: str) -> datetime:
        """From when on a link holds when nothing is said."""
        if kind in DEPENDANT:
            return self.start((source, target)[DEPENDANT[kind]]) or self.now
        if kind == "corrects":
            return self.start(source) or self.now
        return self.now

    def _correct(self, new: str, old: str, span: Span, source: str | None) -> None:
        """The old one is taken back over the time the new one is stated for, an event whole."""
        spans = self._stated(new, span)
        if old in self.events:
            if spans and self._alive(old):
                self._keep([(life, ALWAYS) for life in self._alive(old)])
                self._end_life(old, source, "correct", new)
            return
        went = [one for part in spans for one in self._take_away(old, part, "correct", source, new)]
        self._keep(went)
        self._settle(
            old, [part for _, part in went] + [one for part in spans for one in self._kept_from(old, part)]
        )

    def _new_link(self, source: str, kind: str, target: str, span: Span, same: Row) -> str:
        """A new link, or a further period of one that touches this."""
        beside = {link["id"] for link in self._alike(source, kind, target) if touching(valid(link), span)}
        if len(beside) > 1:
            raise Undecided("it joins two links of one sentence")
        self.made += 1
        id = beside.pop() if beside else f"?{self.made}.{next(UIDS)}"
        self._link_row(id, source, kind, target, span, same)
        return id

    def _link_row(self, id: str, source: str, kind: str, target: str, span: Span, same: Row) -> None:
        row = {"id": id, "source": source, "kind": kind, "target": target, "history": False, **same}
        self._write(self.first, {"id": id}, span)
        self._write(self.links, {**row, "author": self.author, "told": self.block}, span)

    def _alike(self, source: str, kind: str, target: str) -> list[Row]:
        ends = [(source, target), (target, source)] if kind in SYMMETRIC else [(source, target)]
        return [
            link
            for link in self._now_links()
            if link["kind"] == kind and (link["source"], link["target"]) in ends
        ]

    def _again(self, source: str, kind: str, target: str, span: Span, same: Row) -> str | None:
        """The id of the believed link that says so already, upgraded or continued if need be; None when there is none."""
        alike = self._alike(source, kind, target)
        rows = [link for link in alike if common(valid(link), span)]
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
        near = [link for link in alike if touching(valid(link), span)]
        if len({row["id"] for row in [*rows, *near]}) > 1:
            raise Undecided("it joins two links of one sentence")
        row = rows[0]
        ends = row["source"], kind, row["target"]
        if all(equal):
            for piece in outside(span, [valid(row) for row in rows]):
                self._link_row(row["id"], *ends, piece, same)
            return str(row["id"])
        if any(equal):
            raise Undecided("it overlaps an explicit and an inferred row of one link")
        self._clear(self.links, rows, span)
        self._link_row(row["id"], *ends, span, same)
        return str(row["id"])

    def _backwards(
        self, source: str, kind: str, target: str, since: datetime | None, t: datetime | None = None
    ) -> bool:
        first, second = self.start(source, t), self.start(target, t)
        if first is None or second is None:
            return False
        if kind == "caused_by":
            if since is not None and (source in self.nodes or since <= self.lately(source, t)):
                first = max(first, since)
            return second > first
        return kind in EARLIER_SOURCE and first > second

    def _mutual(self, source: str, kind: str, target: str, span: Span) -> bool:
        """Two things that cause each other over one time."""
        back = self._alike(target, kind, source) if kind == "caused_by" else []
        return any(common(valid(link), span) for link in back)

    def _gives_way(self, source: str, kind: str, target: str, span: Span) -> bool:
        """One of the two gives way to the other already by a link that a writer made: neither would hold."""
        return any(
            common(valid(link), span) and link["created_by"] != "store"
            for link in self._alike(source, kind, target)
        )

    def _cycle(self, source: str, kind: str, target: str, without: Collection[int] = ()) -> bool:
        if kind not in ACYCLIC:
            return False
        reached, grew = {target}, True
        while grew:
            more = {
                link["target"]
                for link in self._now_links()
                if link["kind"] == kind and link["source"] in reached and link["uid"] not in without
            }
            grew = not more <= reached
            reached |= more
        return source in reached

    @verb
    def unlink(
        self, id: str, *, valid_from: datetime | None = None, valid_to: datetime | None = None
    ) -> None:
        if not any(link["id"] == id for link in self.links):
            raise Refused(NotFoundError, *self._empty(valid_from, valid_to))
        self._unlink([link for link in self._now_links() if link["id"] == id], valid_from, valid_to)

    @verb
    def unlink_said(
        self, source: str, kind: str, target: str, *, valid_from: datetime | None = None,
        valid_to: datetime | None = None,
    ) -> None:  # fmt: skip
        """`unlink(source=, kind=, target=)`: every link of the sentence."""
        self._known(source, target)
        self._unlink(self._alike(source, kind, target), valid_from, valid_to)

    def _empty(self, valid_from: datetime | None, valid_to: datetime | None) -> list[type[GraphStoreError]]:
        return [InvalidError] if (valid_from or START) >= (valid_to or END) else []

    def _unlink(self, rows: list[Row], valid_from: datetime | None, valid_to: datetime | None) -> None:
        span = (valid_from or START, valid_to or END)
        if self._empty(valid_from, valid_to):
            raise Refused(InvalidError, *([] if rows else [NotFoundError]))
        rows = [link for link in rows if common(valid(link), span)]
        if not rows:
            raise Refused(NotFoundError)
        self._guard_links(rows)
        if rows[0]["kind"] not in ("supersedes", "corrects"):
            self._clear(self.links, rows, span)
            return
        for row in rows:
            old, part = row["target"], self._withdraw(row, span)
            self._give_back(old, part)
            self._uncorrect(row, part)
            for kept in self._kept(old) if old in self.nodes else []:
                freed = common(valid(kept), part)
                if freed and self._slot_taken(self.nodes[old], outside(freed, self._limits(old, freed))):
                    raise Refused(ConflictError)

    def _uncorrect(self, link: Row, freed: Span) -> None:
        """What other bounds keep of a thing was not taken by a correction that is withdrawn."""
        old = link["target"]
        if link["kind"] != "corrects" or old not in self.nodes:
            return
        for kept in self._kept(old):
            part = common(valid(kept), freed)
            corrected = self._limits(old, part, ("corrects",)) if part else []
            for left in outside(part, corrected) if part else []:
                for cell in cut_at(left, [valid(gone) for gone in self.gone if gone["id"] == old]):
                    if self.bare_standing(old, cell[0], END - TICK) == "retracted":
                        self._write(self.gone, {"id": old, "why": "supersede", "by": None}, cell)

    def _withdraw(self, link: Row, span: Span) -> Span:
        """The link, and what was minted beside it, goes over that time."""
        ((_, part),) = self._clear(self.links, [link], span)
        ends = link["source"], link["target"]
        beside = [
            other for other in self._now_links()
            if (other["source"], other["target"]) == ends
            and (other["kind"] == "transition" or (other["kind"], other["created_by"]) == ("contradicts", "store"))
        ]  # fmt: skip
        if link["kind"] == "supersedes":
            self._clear(self.links, beside, span)
        return part

    def _restore(self, row: Row, span: Span) -> None:
        """Write the row again; with what it touches of its own version it is one."""
        whole = [span]
        for other in self._now_rows(row["id"]):
            if other["number"] == row["number"] and len(joined([*whole, valid(other)])) == 1:
                whole = joined([*whole, valid(other)])
                self._close(self.rows, other)
        self._write(self.rows, row, whole[0])

    # ------------------------------------------------------------------ events

    @verb
    def record_event(
        self, id: str, type: str, description: str, *, occurred_at: datetime | None = None,
        related_to: str | None = None, source: str | None = None,
    ) -> list[str]:  # fmt: skip
        if id in self.nodes or id in self.events:
            raise Undecided("an event id that is known")
        at = occurred_at or self.block
        self.born[id] = self.block
        self.events[id] = {"id": id, "type": type, "description": description, "source": source}
        self._write(self.lives, {"id": id, "source": source, "author": self.author})
        self._write(self.occurrences, {"id": id, "at": at})
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
            and self._alive(id)
            and not any(covers(link, self.block) for link in self._takers(id, self.block))
        ]  # fmt: skip
        if not alike:
            raise Undecided("it would be a new event, under an id of the store's own")
        id, at = alike[-1], occurred_at or self.block
        self._write(self.occurrences, {"id": id, "at": at})
        return id, self._relate(id, related_to, at)

    def _relate(self, id: str, other: str | None, at: datetime) -> list[str]:
        if other is None:
            return []
        source, kind, target = id, "related_to", other
        if self._mends(id) and self._can_be_open(other):
            source, kind, target = other, "resolved_by", id
        if self._can_be_open(id) and self._mends(other):
            kind = "resolved_by"
            at = self.start(other) or at  # from when the fix happened
        try:
            return [self._link(source, kind, target, valid_from=at, created_by="store")]
        except Refused:
            return []  # recorded all the same, with a warning

    def _mends(self, id: str) -> bool:
        return id in self.events and self.events[id]["type"] in MENDING

    def _can_be_open(self, id: str) -> bool:
        return id in self.events and self.events[id]["type"] not in NEVER_OPEN

    def name_link(self, made: str, id: str) -> None:
        """Take over the id the store gave."""
        for table in (self.links, self.first):
            for row in table:
                if row["id"] == made:
                    row["id"] = id

    # ------------------------------------------------------------------ undo

    @verb
    def undo(self, tx: datetime) -> None:
        """Take back one transaction: what it opened is closed, what it closed is open again."""
        if tx == self.block:
            raise Undecided("a transaction inside itself")
        if not any(tx in (row["tx_from"], row["tx_to"]) for name in TABLES for row in getattr(self, name)):
            raise Refused(NotFoundError)
        if self._begun_again(tx):
            raise Undecided("the begin of an event that was moved again since")
        if self._is_undone(tx) or self.built_on(tx):
            raise Refused(ConflictError)
        self._guard([*self._as_left("rows", tx), *self._as_left("lives", tx)])
        self._guard_links(self._as_left("links", tx))
        if self._outranked((None, self.authors.get(tx))):
            raise Refused(ConflictError)
        born = {id for id in (*self.nodes, *self.events) if self.born[id] == tx}
        for name in TABLES:
            table = getattr(self, name)
            closed = [row for row in table if row["tx_to"] == tx]
            for row in self._as_left(name, tx):
                row["tx_to"] = self.block
            for row in closed:  # all but its place on the transaction axis is what it was
                table.append({**row, "tx_from": self.block, "tx_to": END, "uid": next(UIDS)})
        for id in sorted(born):
            self._write(self.gone, {"id": id, "why": "undo"}, ALWAYS)
        if tx != self.last:  # later transactions may have set or withdrawn bounds
            bounded = {
                link["target"] for link in self.links
                if link["tx_from"] == tx and link["kind"] in ("supersedes", "corrects")
            }  # fmt: skip
            for id in sorted(
                bounded | {part["row"]["id"] for part in self.taken if tx in (part["made"], part["tx_to"])}
            ):
                self._give_back(id, ALWAYS)
            for row in [row for row in self.rows if row["tx_from"] == tx]:
                self._settle(row["id"], [valid(row)])
            opened = {link["target"] for link in self.links if link["tx_to"] == tx}
            for id in sorted(opened | {row["id"] for row in [*self.rows, *self.lives] if row["tx_to"] == tx}):
                self._enforce(id)
        self.undos.append((self.block, tx))

    def _begun_again(self, tx: datetime) -> bool:
        """Whether a transaction told an occurrence before all others, and a later one told one that is earlier still."""
        for one in [one for one in self.occurrences if one["made"] == tx]:
            others = [other for other in self.occurrences if other["id"] == one["id"]]
            before = [other["at"] for other in others if other["made"] < tx]
            if before and one["at"] < min(before) and any(other["at"] < one["at"] for other in others):
                return True
        return False

    def _is_undone(self, tx: datetime, t: datetime = END) -> bool:
        """Whether a transaction is taken back, as known at `t`, by one that is not taken back itself."""
        return any(not self._is_undone(at, t) for at, of in self.undos if of == tx and at <= t)

    def _as_left(self, name: str, tx: datetime) -> list[Row]:
        """What a transaction opened and is open now as it left it, or as an undo brought it back."""
        table = getattr(self, name)
        opened = {essence(row) for row in table if row["tx_from"] == tx}
        return [row for row in table if row["tx_to"] == END and essence(row) in opened]

    def built_on(self, tx: datetime) -> list[Row]:
        """What was told since that hinders taking a transaction back. Empty: it can be undone."""
        found = []
        for name in TABLES:
            opened = [row for row in getattr(self, name) if row["tx_from"] == tx]
            if len(opened) != len(self._as_left(name, tx)):
                found += opened
        goes = {row["uid"] for name in ("rows", "links") for row in self._as_left(name, tx)}
        for row in [
            row for row in self.rows if row["tx_to"] == tx
        ]:  # where it would be open again nothing may be
            there = [*self._now_rows(row["id"]), *self._held(self.nodes[row["id"]])]
            found += [one for one in there if one["uid"] not in goes and common(valid(one), valid(row))]
            found += [
                link for link in self._now_links()
                if link["kind"] == "supersedes" and link["target"] == row["id"] and link["told"] > tx
                and link["created_by"] != "store" and common(valid(link), valid(row))
            ]  # fmt: skip
        for link in [link for link in self.links if link["tx_to"] == tx]:
            there = self._alike(link["source"], link["kind"], link["target"])
            found += [one for one in there if one["uid"] not in goes and common(valid(one), valid(link))]
            if self._cycle(link["source"], link["kind"], link["target"], without=goes):
                found.append(link)
            if (
                link["kind"] == "supersedes" and link["created_by"] != "store"
            ):  # what it took holds again by what was told since
                found += [
                    row for row in self.rows
                    if row["id"] == link["target"] and row["tx_to"] == END and row["tx_from"] > tx
                    and row["uid"] not in goes and common(valid(row), valid(link))
                ]  # fmt: skip
            if link["kind"] in ("supersedes", "corrects"):  # the bounds that it set went with it
                found += [
                    gone for gone in self.gone
                    if gone["id"] == link["source"] and gone["why"] == "retract" and gone["made"] > tx and gone["tx_to"] == END
                ]  # fmt: skip
        described = {row["id"] for row in self.rows if row["tx_from"] == tx == row["told"]} | {
            life["id"] for life in self.lives if life["tx_from"] == tx == life["made"]
        }
        since = [row for row in [*self.looks, *self.occurrences] if row["tx_to"] == END and row["made"] > tx]
        found += [row for row in since if row["id"] in described]
        found += [
            link for link in self._now_links()
            if link["told"] > tx and described & {link["source"], link["target"]}
        ]  # fmt: skip
        return found

    # ------------------------------------------------------------------ branches

    def fork(self) -> Oracle:
        """The same beliefs once more; what is told to one from here on does not reach the other."""
        fresh = Oracle(self.clock, self.store_author)
        fresh._load(copy.deepcopy(self._save()))
        fresh.given_end = set(self.given_end)
        fresh.numbers, fresh.undos, fresh.born = dict(self.numbers), list(self.undos), dict(self.born)
        fresh.last, fresh.handed, fresh.made = self.last, self.handed, self.made
        fresh.seq = fresh.forked = self.seq
        return fresh

    def touched(self, since: datetime) -> set[Any]:
        """Ids and slots of which something was told after an instant, and what is linked with them then."""
        found: set[Any] = set()
        for name in set(TABLES) - {"taken", "first", "trusts", "given"}:
            for row in getattr(self, name):
                if row["tx_from"] > since or since < row["tx_to"] < END:
                    found |= {row["source"], row["target"]} if name == "links" else {row["id"]}
        slots = [self.nodes[id] for id in found if id in self.nodes]
        return found | {(slot["key"], slot["scope"]) for slot in slots if slot["key"] is not None}

    def merge(self, branch: Oracle, since: datetime) -> None:
        """What was told on a branch after `since` is told here in one transaction, as what it was and in its order.

        Only where both sides told of different things: whose word holds otherwise says `disputed`.
        """
        if self.touched(since) & branch.touched(since):
            raise Undecided("both sides told of the same thing")
        with self.transaction() as tx:
            self.did = True
            self.nodes |= {id: node for id, node in branch.nodes.items() if id not in self.nodes}
            self.events |= {id: event for id, event in branch.events.items() if id not in self.events}
            shift = self.seq
            self.given_end |= branch.given_end
            for name in TABLES:
                mine = getattr(self, name)
                by_uid = {row["uid"]: row for row in mine}
                for row in getattr(branch, name):
                    if row["tx_from"] > since and row["tx_to"] == END:
                        later = {"seq": row["seq"] + shift} if row["seq"] > branch.forked else {}
                        later |= {"covers": carried(covered(row), branch.forked, shift)} if later else {}
                        told = {"told": tx} if "told" in row and row["told"] > since else {}
                        mine.append({**row, **later, **told, "tx_from": tx, "made": tx})
                    elif row["tx_from"] <= since < row["tx_to"] < END:
                        by_uid[row["uid"]]["tx_to"] = tx
            self.seq = shift + branch.seq

    def disputed(self, branch: Oracle, id: str, v: datetime, since: datetime) -> bool:
        """Whether a merge has to ask what holds of a node at v: both sides changed what holds, or why it does not."""
        was, ours, theirs = self._states(id, v, since), self._states(id, v), branch._states(id, v)
        gone = self._took_back(id, v, since) if ours is None else False
        gone_there = branch._took_back(id, v, since) if theirs is None else False
        if ours is not None and theirs is not None:
            return ours != was != theirs != ours
        if ours is None and theirs is None:
            here, there = self.bare_standing(id, v, END - TICK), branch.bare_standing(id, v, END - TICK)
            return was is not None and gone and gone_there and here != there
        if ours is None:
            never = self.bare_standing(id, v, END - TICK) == "retracted"
            confirmed = never and branch._confirmed(id, since)
            return (gone and (theirs != was or confirmed)) or (was is not None and theirs != was)
        never = branch.bare_standing(id, v, END - TICK) == "retracted"
        confirmed = never and self._confirmed(id, since)
        return (gone_there and (ours != was or confirmed)) or (was is not None and ours != was)

    def _states(self, id: str, v: datetime, t: datetime = END - TICK) -> Any:
        """What holds of a node, without its number."""
        rows = [row for row in self.rows if row["id"] == id and holds(row, v, t)]
        return (rows[0]["content"], rows[0]["tags"], rows[0]["trigger"]) if rows else None

    def _took_back(self, id: str, v: datetime, since: datetime) -> bool:
        """Whether a node was taken back at v after an instant: what was believed then, or time that a verb was given."""
        told = [*self.gone, *self.given]
        if any(
            row["id"] == id and row["made"] > since and row["tx_to"] == END and covers(row, v) for row in told
        ):
            return self.bare_standing(id, v, END - TICK) != "not_yet"
        takers = [
            link
            for link in self._now_links()
            if link["kind"] in ("supersedes", "corrects") and link["target"] == id
        ]
        if any(covers(link, v) and link["made"] > since for link in takers):
            return self.bare_standing(id, v, END - TICK) != "not_yet"
        went = sorted((part for part in self.gone if part["id"] == id and part["tx_to"] == END), key=order)
        is_last = bool(went) and went[-1]["made"] > since and went[-1]["why"] in RETRACTIONS
        return is_last and not self._now_rows(id)

    def _confirmed(self, id: str, since: datetime) -> bool:
        return any(look["id"] == id and look["made"] > since and look["tx_to"] == END for look in self.looks)

    # ------------------------------------------------------------------ reads, at (v, t)

    def _lives(self, id: str) -> list[Row]:
        return [life for life in self.lives if life["id"] == id]

    def known(self, id: str, t: datetime) -> bool:
        told = [row for row in [*self.rows, *self.lives] if row["id"] == id]
        told += [link for link in self.links if id in (link["source"], link["target"])]
        told += [part for part in self.taken if part["row"]["id"] == id and not part["row"].get("ended")]
        return any(row["tx_from"] <= t for row in told)

    def confirmations(self, id: str, t: datetime) -> int:
        return sum(look["id"] == id and believed(look, t) for look in self.looks)

    def standing(self, id: str, v: datetime, t: datetime) -> str:
        asked = (id, v, t)
        if asked not in self.stood:
            bare = self.bare_standing(id, v, t)
            self.stood[asked] = "shaky" if bare == "stands" and self.shaken(id, v, t) else bare
        return str(self.stood[asked])

    def words(self, v: datetime, t: datetime) -> dict[str, str]:
        """How each thing that is known stands."""
        return {id: self.standing(id, v, t) for id in [*self.nodes, *self.events] if self.known(id, t)}

    # what rests on what

    def shaken(self, id: str, v: datetime, t: datetime) -> list[tuple[datetime, str, int]]:
        """For each way from a thing to a fallen one on which nobody looked since: when that was told, what fell, how many links."""
        return [
            (fall["told"], way[-1], len(way) - 1)
            for way, fall in self._ways((id,), False, v, t)
            if all(self._shakes(one, way[-1], fall, v, t) for one in way[:-1])
        ]

    def _shakes(self, id: str, root: str, fall: Row, v: datetime, t: datetime) -> bool:
        """Whether a fall at the end of a way shakes a thing on it."""
        if root in self._replaced(id, t) and fall["word"] != "retracted":
            return False
        if fall["by"] is not None and root in self._replaced(id, t, "corrects"):
            return False  # it says so itself
        if any(since < fall["seq"] <= upto for since, upto in self._looks(id, v, t)):
            return False
        return not (id in self.events and fall["word"] == "ended")  # what happened, happened

    def _ways(
        self, way: tuple[str, ...], never_so: bool, v: datetime, t: datetime
    ) -> Iterator[tuple[tuple[str, ...], Row]]:
        """Every way from its start on to something fallen, over what stands or has ended, nothing twice: the way, and the fall at its end.

        `never_so`: a link before says that only what never was so counts.
        """
        for link, base in self.bases(way[-1], v, t):
            narrow = never_so or link["history"] or base in self._replaced(way[-1], t)
            for fall in self.falls(base, link, v, t):
                if fall["word"] in RESTS[link["kind"]] and (not narrow or fall["word"] == "retracted"):
                    yield (*way, base), fall
            if base not in way and "shaky" in RESTS[link["kind"]] and self._passes(base, v, t):
                yield from self._ways((*way, base), narrow, v, t)

    def _passes(self, id: str, v: datetime, t: datetime) -> bool:
        """Whether a thing stands, or has ended: a fall behind it still counts."""
        if id in self.events:
            return self.bare_standing(id, v, t) in ("stands", "superseded")
        rows = [row for row in self.rows if row["id"] == id and believed(row, t)]
        if any(covers(row, v) for row in rows):
            return True
        went = [part for part in self.gone if part["id"] == id and holds(part, v, t)]
        taken_back = went and max(went, key=order)["why"] in RETRACTIONS
        return any(row["valid_from"] <= v for row in rows) and not taken_back

    def bases(self, id: str, v: datetime, t: datetime) -> list[tuple[Row, str]]:
        """What a thing rests on, with the link that says so."""
        kinds = {"derived_from"} if id in self.events else set(RESTS)
        found = []
        for link in self.links:
            if link["kind"] in kinds and holds(link, v, t):
                thing, base = link["source"], link["target"]
                if link["kind"] in RESTED:
                    thing, base = base, thing
                if thing == id and not (link["kind"] in RESTED and self._confirms(base)):
                    found.append((link, base))
        return found

    def _replaced(self, id: str, t: datetime, *kinds: str) -> set[str]:
        """What a thing itself supersedes or corrects: only what never was so counts of that."""
        kinds = kinds or ("supersedes", "corrects")
        return {
            link["target"] for link in self.links
            if link["source"] == id and link["kind"] in kinds and believed(link, t)
        }  # fmt: skip

    def _confirms(self, id: str) -> bool:
        return id in self.events and self.events[id]["type"] == "confirmation"

    def _looks(self, id: str, v: datetime, t: datetime) -> list[tuple[int, int]]:
        """Which falls the looks at a thing cover, as ranges of operations: (after, up to). A look is a confirmation, or a change of the content at v;
        where the thing has ended, at the end of what it was."""
        rows = [row for row in self.rows if row["id"] == id and believed(row, t)]
        if rows and not any(covers(row, v) for row in rows):
            v = max((row["valid_to"] for row in rows if row["valid_to"] <= v), default=v + TICK) - TICK
        looks = [look for look in self.looks if look["id"] == id and believed(look, t)]
        looks += [turn for turn in self.turns if turn["id"] == id and holds(turn, v, t)]
        return [part for look in looks for part in covered(look)]

    def falls(self, id: str, link: Row, v: datetime, t: datetime) -> list[Row]:
        """What became of a foundation at v, as far as it counts for one link: by which operation, told when, what, and which correction."""
        if self.bare_standing(id, v, t) == "stands":
            first = min(
                one["seq"] for one in self.first
                if one["id"] == link["id"] and covers(one, v) and one["tx_from"] <= t
            )  # fmt: skip
            turns = [turn for turn in self.turns if turn["id"] == id and holds(turn, v, t)]
            return [self._fall(turn, "revised") for turn in turns if turn["seq"] > first]
        return self._event_fell(id, v, t) if id in self.events else self._node_fell(id, v, t)

    def _fall(self, record: Row, word: str) -> Row:
        return {"seq": record["seq"], "told": self._told(record), "word": word, "by": record.get("by")}

    def _told(self, row: Row) -> datetime:
        """When a record was told first; one that an undo brought back was told before."""
        return min(
            other["tx_from"] for name in TABLES for other in getattr(self, name)
            if other["seq"] == row["seq"] and other["made"] == row["made"]
        )  # fmt: skip

    def _event_fell(self, id: str, v: datetime, t: datetime) -> list[Row]:
        word = self.bare_standing(id, v, t)
        if word == "retracted":
            last = max((part for part in self.gone if part["id"] == id and believed(part, t)), key=order)
            return [self._fall(last, word)]
        begun = self.begun(id, t)
        whole = [
            one for link in self._takers(id, t) if link["valid_from"] <= begun and link["valid_to"] == END
            for one in self.first if one["id"] == link["id"] and one["tx_from"] <= t
        ]  # fmt: skip
        found = [self._fall(min(whole, key=order), "superseded")] if whole else []
        by = self._first_takers(id, v, t)
        if word == "superseded":
            found.append({"seq": by[0]["seq"], "told": by[0]["tx_from"], "word": word, "by": None})
        return found

    def _node_fell(self, id: str, v: datetime, t: datetime) -> list[Row]:
        went = sorted((part for part in self.gone if part["id"] == id and believed(part, t)), key=order)
        here = [part for part in went if covers(part, v)]
        by = self._first_takers(id, v, t)
        found = []
        if went and not any(row["id"] == id and believed(row, t) for row in self.rows):
            # nothing is left of it: what took the last of it counts at every instant
            other = "superseded" if self._takers(id, t) else "ended"
            found.append(self._fall(went[-1], "retracted" if went[-1]["why"] in RETRACTIONS else other))
        if here and here[-1]["why"] in RETRACTIONS:
            return [*found, self._fall(here[-1], "retracted")]
        if by:
            told = max(
                [(by[0]["seq"], by[0]["tx_from"]), *((one["seq"], self._told(one)) for one in here[-1:])]
            )
            return [*found, {"seq": told[0], "told": told[1], "word": "superseded", "by": None}]
        if here:
            return [*found, self._fall(here[-1], "ended")]
        if found or self.bare_standing(id, v, t) == "not_yet":
            return found
        born = min((said for said in self.said if said["id"] == id), key=order)
        return [self._fall(born, "ended")]

    def _first_takers(self, id: str, v: datetime, t: datetime) -> list[Row]:
        """The first word of each supersession of a thing that holds, the earliest first."""
        by = {link["id"] for link in self._takers(id, t) if covers(link, v)}
        first = [
            min((one for one in self.first if one["id"] == link and one["tx_from"] <= t), key=order) for link in by
        ]  # fmt: skip
        return sorted(first, key=order)

    def _takers(self, id: str, t: datetime) -> list[Row]:
        return [
            link for link in self.links
            if link["kind"] == "supersedes" and link["target"] == id and believed(link, t)
        ]  # fmt: skip

    def _takers_at(self, id: str, v: datetime, t: datetime) -> list[Row]:
        """The supersessions of a thing that hold at v; where nothing is left of it also those that begin later."""
        is_left = id in self.events or any(row["id"] == id and believed(row, t) for row in self.rows)
        takers = self._takers(id, t)
        return [link for link in takers if covers(link, v) or (not is_left and v < link["valid_from"])]

    def bare_standing(self, id: str, v: datetime, t: datetime) -> str:
        """How it stands, whatever it rests on."""
        superseded = bool(self._takers_at(id, v, t))
        if id in self.events:
            if not any(believed(life, t) for life in self._lives(id)):
                return "retracted"
            if v < self.begun(id, t):
                return "not_yet"
            return "superseded" if superseded else "stands"
        rows = [row for row in self.rows if row["id"] == id and believed(row, t)]
        if any(covers(row, v) for row in rows):
            return "stands"
        went = sorted((part for part in self.gone if part["id"] == id and believed(part, t)), key=order)
        if rows and all(row["valid_from"] > v for row in rows):
            return "not_yet"
        if not rows and went and went[-1]["why"] in RETRACTIONS:
            return "retracted"
        here = [part for part in went if covers(part, v)]
        if here and here[-1]["why"] in RETRACTIONS:
            return "retracted"
        return "superseded" if superseded else "ended"

    # nodes and events

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
        return {**self.nodes[row["id"]], **seen(row, t), "recorded_at": row["told"]}

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
        if id not in self.events or not any(believed(life, t) for life in self._lives(id)):
            return None
        if self.begun(id, t) > v:
            return None
        instants = self.happened(id, v, t)
        return {
            **seen(self.event_row(id, t), t),
            "standing": self.standing(id, v, t),
            "occurred_at": instants[0],
            "first_seen": instants[0],
            "last_seen": instants[-1],
            "count": len(instants),
            "status": self.status(id, v, t),
        }

    def event_row(self, id: str, t: datetime = END) -> Row:
        """The event as its table has it: first told, and until when it is believed."""
        lives = [life for life in self._lives(id) if life["tx_from"] <= t]
        return {**self.events[id], "tx_from": lives[0]["tx_from"], "tx_to": lives[-1]["tx_to"]}

    def told(self, id: str, t: datetime = END - TICK) -> list[tuple[datetime, datetime]]:
        """The occurrences of an event that are believed: when it happened, and when that was told."""
        return [
            (one["at"], one["tx_from"]) for one in self.occurrences if one["id"] == id and believed(one, t)
        ]

    def begun(self, id: str, t: datetime | None) -> datetime:
        """When an event happened first, as known at t. One that was taken back altogether, when it was said to have."""
        known = self.told(id, END - TICK if t is None else t)
        return min(at for at, _ in known or [(one["at"], 0) for one in self.occurrences if one["id"] == id])

    def lately(self, id: str, t: datetime | None) -> datetime:
        """When an event happened last, as known at t."""
        known = self.told(id, END - TICK if t is None else t)
        return max((at for at, _ in known), default=self.begun(id, t))

    def happened(self, id: str, v: datetime, t: datetime) -> list[datetime]:
        return sorted(at for at, _ in self.told(id, t) if at <= v)

    def status(self, id: str, v: datetime, t: datetime) -> str | None:
        if not self._can_be_open(id):
            return None
        if any(covers(link, v) for link in self._takers(id, t)):
            return "superseded"
        resolved = []
        for link in self.links_from(id, v, t, "resolved_by"):
            if link["target"] in self.events and not any(
                believed(life, t) for life in self._lives(link["target"])
            ):
                continue
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

    # links

    def link_rows(self, id: str, t: datetime, every: bool = False) -> list[Row]:
        """`history(link_id)`: the periods believed, by valid time; with `every` `versions(link_id)`: also those once believed."""
        rows = [link for link in self.links if link["id"] == id and link["tx_from"] <= t]
        if every:
            return [
                seen(link, t) for link in sorted(rows, key=lambda row: (row["tx_from"], row["valid_from"]))
            ]
        rows = [link for link in rows if believed(link, t)]
        return [seen(link, t) for link in sorted(rows, key=lambda link: link["valid_from"])]

    def link_history(self, source: str, kind: str, target: str, t: datetime) -> list[Row]:
        """Every period of every link of one sentence, by (valid_from, tx_from, id)."""
        ends = [(source, target), (target, source)] if kind in SYMMETRIC else [(source, target)]
        rows = [
            seen(link, t) for link in self.links
            if link["kind"] == kind and (link["source"], link["target"]) in ends and believed(link, t)
        ]  # fmt: skip
        return sorted(rows, key=lambda link: (link["valid_from"], link["made"], link["id"]))

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
        return sorted(rows, key=lambda link: (link["valid_from"], link["made"], link["id"]))

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
        """The steps over the whole time line believed at t; what stands now is reached by links that hold at v."""
        links = self._leading_away(v, t)
        here = [link for link in links if covers(link, v)]
        in_place = {id}
        for _ in links:
            in_place |= {link["source"] for link in here if link["target"] in in_place}
        steps, told, planned, closed, current, seen_ids, level = [], [], [], [], [], {id}, [id]
        while level:
            following = []
            for link in links:
                if link["target"] in level and link["source"] not in seen_ids:
                    seen_ids.add(link["source"])
                    following.append(link["source"])
                    how = "corrected" if link["kind"] == "corrects" else "superseded"
                    steps.append((how, link["id"], link["source"]))
                    told.append((link["author"], link["reason"], link["told"]))
                    planned.append(v < link["valid_from"])
            for one in [one for one in level if one in in_place]:
                leads = {link["kind"] for link in here if link["target"] == one}
                standing = self.standing(one, v, t)
                if standing in UPRIGHT and not leads - {"corrects"}:
                    current.append(one)
                elif standing in ("ended", "retracted") and not leads and not self._is_corrected(one, v, t):
                    closed.append(standing)
            level = following
        standing = self.standing(id, v, t)
        is_only_revised = not steps and not closed and standing in {*UPRIGHT, "not_yet"}
        return {
            "steps": steps, "told": told, "planned": planned, "closed": sorted(closed), "current": sorted(current),
            "standing": standing, "revised": self._last_revision(id, t) if is_only_revised else None,
        }  # fmt: skip

    def _leading_away(self, v: datetime, t: datetime) -> list[Row]:
        """Each pair once: by a link that holds, else by the next one planned, else by the last one; of several the one that says most."""
        best: dict[tuple[str, str], tuple[Any, Row]] = {}
        for link in self.links:
            if link["kind"] not in LEADS_AWAY or not believed(link, t):
                continue
            rank: tuple[Any, ...] = (0, LEADS_AWAY.index(link["kind"]))
            if v < link["valid_from"]:
                rank = (1, link["valid_from"] - START, LEADS_AWAY.index(link["kind"]))
            elif link["valid_to"] <= v:
                rank = (2, END - link["valid_to"], LEADS_AWAY.index(link["kind"]))
            pair = (link["source"], link["target"])
            if pair not in best or rank < best[pair][0]:
                best[pair] = (rank, link)
        return sorted(
            (seen_whole(link, t) for _, link in best.values()),
            key=lambda link: (link["valid_from"], link["made"], link["id"]),
        )

    def _is_corrected(self, id: str, v: datetime, t: datetime) -> bool:
        """Whether a correction took a thing at v, of which a link says so."""
        if not any(
            link["kind"] == "corrects" and link["target"] == id and believed(link, t) for link in self.links
        ):
            return False
        went = sorted((part for part in self.gone if part["id"] == id and believed(part, t)), key=order)
        nothing_left = not any(row["id"] == id and believed(row, t) for row in self.rows)
        if nothing_left and went and went[-1]["why"] in RETRACTIONS:
            return bool(went[-1]["why"] == "correct")
        here = [part for part in went if covers(part, v)]
        return bool(here) and here[-1]["why"] == "correct"

    def _last_revision(self, id: str, t: datetime) -> int | None:
        """The highest version written over time that an earlier one had lost."""
        numbers = {row["number"] for row in self.rows if row["id"] == id and row["tx_from"] <= t}
        return max((new for number in numbers for new in self.revised(id, number, t)), default=None)

    def revised(self, id: str, number: int, t: datetime) -> set[int]:
        """The numbers of the newer versions written over valid time that version `number` had lost, without those an undo took back."""
        rows = [row for row in self.rows if row["id"] == id and row["tx_from"] <= t]
        mine = [row for row in rows if row["number"] == number]
        return {
            row["number"]
            for row in rows
            for old in mine
            if row["number"] > number and row["tx_from"] >= old["tx_to"] and common(valid(row), valid(old))
            if not self._is_undone(row["told"], t)
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
        before = {node["id"]: (node["content"], node["text"], node["tags"]) for node in self.nodes_at(*a)}
        after = {node["id"]: (node["content"], node["text"], node["tags"]) for node in self.nodes_at(*b)}
        both = set(before) & set(after)
        return (
            set(after) - both,
            set(before) - both,
            {id for id in both if before[id] != after[id]},
        )

    # ------------------------------------------------------------------ where it gets interesting

    def instants(self) -> tuple[list[datetime], list[datetime]]:
        """Every boundary of valid time and every instant of transaction time."""
        valids = {row[end] for row in [*self.rows, *self.links] for end in ("valid_from", "valid_to")} - {END}
        valids |= {one["at"] for one in self.occurrences}
        txs = {
            row[end] for name in TABLES for row in getattr(self, name) for end in ("tx_from", "tx_to")
        } - {END}  # fmt: skip
        return sorted(valids), sorted(txs)


def covered(look: Row) -> list[tuple[int, int]]:
    """Which operations a look covers: those of its line up to itself."""
    return look.get("covers") or [(0, look["seq"])]


def carried(ranges: list[tuple[int, int]], forked: int, shift: int) -> list[tuple[int, int]]:
    """Ranges of operations of a branch as those of the trunk: what was told before the fork has its number, the rest comes with the merge."""
    before = [(since, min(upto, forked)) for since, upto in ranges if since < forked]
    return before + [(max(since, forked) + shift, upto + shift) for since, upto in ranges if upto > forked]


def order(row: Row) -> int:
    """Which operation said it: later ones are greater."""
    return int(row["seq"])


def essence(row: Row) -> str:
    """A record without its place on the transaction axis."""
    return repr(
        sorted((name, str(value)) for name, value in row.items() if name not in ("tx_from", "tx_to", "uid"))
    )


def seen(row: Row, t: datetime) -> Row:
    """The row as it is shown at t: an open end is None, and so is one that was learned later."""
    out = dict(row)
    out["tx_to"] = None if row["tx_to"] > t else row["tx_to"]
    if "valid_to" in row:
        out["valid_to"] = None if row["valid_to"] == END else row["valid_to"]
    return out


def seen_whole(row: Row, t: datetime) -> Row:
    """The row as it is known at t."""
    return {**row, "tx_to": END if row["tx_to"] > t else row["tx_to"]}


def turned(link: Row) -> Row:
    """The link as a sentence that begins with its other end."""
    out = dict(link)
    for suffix in ("", "_standing"):
        out["source" + suffix], out["target" + suffix] = link["target" + suffix], link["source" + suffix]
    return out
