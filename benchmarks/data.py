"""One history with a fixed seed, so that every store loads the same rows and every run asks the same questions.

A size is a number of versions: 100k is 10,000 nodes of 10 versions each, 30,000 links and 7,500 events, 137,500 rows in
all. One version in five corrects the description of the period before it, so both axes of time matter. The generator
knows the right answers: it is the first oracle of every row of the table.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson
import pyarrow as pa

SEED = 20260130
DAY = 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = (datetime(2023, 1, 1, tzinfo=UTC) - EPOCH).days * DAY
SPAN = 1_000 * DAY
LINKED = START + 1_020 * DAY
"""The last transaction of every history: the one that says what superseded what."""
LATEST = START + 1_021 * DAY
"""A coordinate that sees all of it."""
CUT = START + 1_030 * DAY
"""The world changes here in the writes that are timed."""
OPEN = 253_402_300_799_999_999
"""9999-12-31T23:59:59.999999Z."""

KINDS = ("fact", "decision", "preference", "task")
STATES = ("open", "settled", "dropped", "waiting")
WORDS = (
    "auth",
    "cache",
    "deploy",
    "index",
    "journal",
    "ledger",
    "login",
    "orbit",
    "parser",
    "policy",
    "queue",
    "region",
    "retry",
    "schema",
    "session",
    "token",
)
EVENT_TYPES = ("deploy", "error", "fix", "build", "review")
LINK_KINDS = ("supersedes", "caused_by", "reference", "derived_from", "uses")
CHAIN = 5

_VERSION = ("node_id", "number", "content", "text", "valid_from", "valid_to", "tx_from", "tx_to")
_TOLD = ("node_id", "content", "text", "valid_from", "valid_to", "tx_from")
_LINK = ("id", "source", "kind", "target", "reason", "strength", "valid_from", "valid_to", "tx_from", "tx_to")

Coordinate = tuple[str, int, int]


@dataclass(frozen=True)
class Data:
    """Instants are whole microseconds since 1970 UTC; an open end is `OPEN`."""

    nodes: pa.Table  # id, kind
    versions: pa.Table  # row, node_id, number, content, text, valid_from, valid_to, tx_from, tx_to
    told: pa.Table  # the versions as a caller tells them, tx after tx: without row, number and tx_to
    links: pa.Table  # id, source, kind, target, reason, strength, valid_from, valid_to, tx_from, tx_to
    events: pa.Table  # id, type, description, occurred_at, source, metadata, tx_from
    heads: list[str]  # first of a chain in which each next one superseded the one before, CHAIN times
    effects: list[str]  # nodes with at least three causes behind each other

    @property
    def rows(self) -> int:
        return self.told.num_rows + self.links.num_rows + self.events.num_rows


def history(versions: int, *, corrected: float = 0.2) -> Data:
    """The main history: ten versions a node, three links a node, three events for every four nodes."""
    chance = random.Random(SEED)
    count, transactions = versions // 10, max(versions // 100, 100)
    ids = [f"n{number:07d}" for number in range(count)]
    chained = max(count // 100, 1) * (CHAIN + 1)
    instants = [START + (step + 1) * SPAN // transactions for step in range(transactions)]
    tenth = transactions // 10

    rows: list[tuple[object, ...]] = []
    starts: list[int] = []
    for position, node in enumerate(ids):
        ends_at = OPEN
        if position < chained and position % (CHAIN + 1) != CHAIN:
            ends_at = START + (1_000 + 3 * (position % (CHAIN + 1))) * DAY
        changes, tells = _changes(chance, instants, tenth, corrected)
        starts.append(changes[0])
        rows.extend(_versions(chance, node, changes, tells, ends_at))
    rows.sort(key=lambda row: (row[6], row[0], row[1]))

    links = _links(chance, ids, starts, chained, instants)
    return Data(
        nodes=pa.table({"id": ids, "kind": [KINDS[number % len(KINDS)] for number in range(count)]}),
        versions=_table(_VERSION, rows),
        told=_table(
            _TOLD,
            [(row[0], *row[2:7]) for row in rows],
            numbered=False,
        ),
        links=_table(
            _LINK,
            links[0],
            numbered=False,
        ),
        events=_events(chance, count * 3 // 4, instants),
        heads=ids[: chained : CHAIN + 1],
        effects=links[1],
    )


def deep(depths: tuple[int, ...] = (1, 10, 100, 1_000), nodes: int = 10) -> tuple[Data, dict[int, list[str]]]:
    """Ten nodes of each depth. Every change holds from then on, so each cuts the row before it in two."""
    chance = random.Random(SEED + 1)
    step = SPAN // (max(depths) + 1)
    rows: list[tuple[object, ...]] = []
    told: list[tuple[object, ...]] = []
    ids: dict[int, list[str]] = {depth: [f"d{depth}_{number}" for number in range(nodes)] for depth in depths}
    for depth in depths:
        for node in ids[depth]:
            for number in range(1, depth + 1):
                tx, begins = START + number * step, START + number * step - step // 2
                content, text = _content(chance, node, number)
                told.append((node, content, text, begins, OPEN, tx))
                after = tx + step if number < depth else OPEN
                rows.append((node, number, content, text, begins, OPEN, tx, after))
                if number < depth:
                    rows.append((node, number, content, text, begins, begins + step, after, OPEN))
    told.sort(key=lambda row: (row[5], row[0]))
    rows.sort(key=lambda row: (row[6], row[0], row[1]))
    names = [node for depth in depths for node in ids[depth]]
    data = Data(
        nodes=pa.table({"id": names, "kind": ["fact"] * len(names)}),
        versions=_table(_VERSION, rows),
        told=_table(_TOLD, told, numbered=False),
        links=_table(
            _LINK,
            [("l0", names[0], "reference", names[1], "why", 3, START + step, OPEN, START + SPAN, OPEN)],
            numbered=False,
        ),
        events=_events(chance, 1, [START + SPAN]),
        heads=[],
        effects=[],
    )
    return data, ids


def long_chain(steps: int = 10_000) -> Data:
    """One thing after another, each superseding the one before, all told at once."""
    chance = random.Random(SEED + 3)
    ids, step, told = [f"s{number}" for number in range(steps + 1)], SPAN // (steps + 1), START + SPAN
    begins = [START + number * step for number in range(steps + 1)]
    ends = [*begins[1:], OPEN]
    said = [_content(chance, node, 1) for node in ids]
    rows: list[tuple[object, ...]] = [
        (node, 1, *said[place], begins[place], ends[place], told, OPEN) for place, node in enumerate(ids)
    ]
    links: list[tuple[object, ...]] = [
        (f"c{place:05d}", new, "supersedes", old, "found wanting", None, since, OPEN, told, OPEN)
        for place, (old, new, since) in enumerate(zip(ids[:-1], ids[1:], begins[1:], strict=True))
    ]
    return Data(
        nodes=pa.table({"id": ids, "kind": ["fact"] * len(ids)}),
        versions=_table(_VERSION, rows),
        told=_table(_TOLD, [(row[0], *row[2:7]) for row in rows], numbered=False),
        links=_table(_LINK, links, numbered=False),
        events=_events(chance, 1, [told]),
        heads=ids[:1],
        effects=[],
    )


def web(links: int = 100_000) -> tuple[list[dict[str, str]], list[dict[str, str | int]]]:
    """Nodes, five links for each, and the links, of strengths 1 to 5: a few nodes are hubs of hundreds. Every 2,000th node says `seed`."""
    chance, count = random.Random(SEED + 2), links // 5
    nodes = [
        {"id": f"w{number:06d}", "text": "seed" if number % 2_000 == 7 else "plain"}
        for number in range(count)
    ]
    made: set[tuple[int, int]] = set()
    while len(made) < links:
        source, target = chance.randrange(count), int(count * chance.random() ** 2)
        if source != target:
            made.add((source, target))
    return nodes, [
        {
            "id": f"k{number:06d}",
            "source": nodes[source]["id"],
            "kind": "reference",
            "target": nodes[target]["id"],
            "strength": chance.randint(1, 5),
        }
        for number, (source, target) in enumerate(sorted(made))
    ]


def questions(
    data: Data, count: int, among: set[str] | None = None
) -> list[tuple[Coordinate, tuple[str, int, object]]]:
    """Random coordinates at which something stands, each with the right answer `(id, number, content)`."""
    chance = random.Random(SEED + 2)
    versions = data.versions
    places: list[int] | range = range(versions.num_rows)
    if among is not None:
        places = [place for place, node in enumerate(versions["node_id"].to_pylist()) if node in among]
    picked = versions.take(pa.array(chance.choices(places, k=count))).to_pylist()
    asked = []
    for row in picked:
        valid = chance.randrange(row["valid_from"], max(min(row["valid_to"], LATEST), row["valid_from"] + 1))
        tx = chance.randrange(row["tx_from"], min(row["tx_to"], LATEST))
        asked.append(
            ((row["node_id"], valid, tx), (row["node_id"], row["number"], orjson.loads(row["content"])))
        )
    return asked


def description(number: int) -> dict[str, object]:
    """The content of something that is written while it is timed."""
    return {
        "n": number,
        "score": number % 100,
        "state": STATES[number % 4],
        "summary": f"{WORDS[number % 16]} moved to {number}",
    }


class Clock:
    """Strictly rising microseconds: the transaction time of the stores that have none of their own."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self) -> int:
        self.last = max(time.time_ns() // 1_000, self.last + 1)
        return self.last


def _changes(
    chance: random.Random, instants: list[int], tenth: int, corrected: float
) -> tuple[list[int | None], list[int]]:
    """Ten instants of change (None: a correction of the one before), and the tx at which each was told."""
    changes: list[int | None] = []
    tells = []
    for turn in range(10):
        correction = turn > 0 and chance.random() < corrected
        changes.append(None if correction else START + int((turn * 100 + chance.random() * 50) * DAY))
        tells.append(instants[turn * tenth + tenth // 2 + chance.randrange(tenth - tenth // 2)])
    return changes, tells


def _versions(
    chance: random.Random, node: str, changes: list[int | None], tells: list[int], ends_at: int
) -> list[tuple[object, ...]]:
    points = [change for change in changes if change is not None]
    period, standing = -1, -1
    rows: list[list[object]] = []
    for turn, change in enumerate(changes):
        content, text = _content(chance, node, turn + 1)
        if change is None:
            rows[standing][-1] = tells[turn]
        else:
            period += 1
        begins = points[period]
        ends = points[period + 1] if period + 1 < len(points) else ends_at
        standing = len(rows)
        rows.append([node, turn + 1, content, text, begins, ends, tells[turn], OPEN])
    return [tuple(row) for row in rows]


def _content(chance: random.Random, node: str, number: int) -> tuple[str, str]:
    word, score, state = chance.choice(WORDS), chance.randrange(100), chance.choice(STATES)
    text = f"{word} of {node} as described {number}"
    return f'{{"n":{number},"score":{score},"state":"{state}","summary":"{text}"}}', text


def _links(
    chance: random.Random, ids: list[str], starts: list[int], chained: int, instants: list[int]
) -> tuple[list[tuple[object, ...]], list[str]]:
    count, tenth = len(ids), len(instants) // 10
    rows: list[list[object]] = []
    made: set[tuple[str, int, int]] = set()
    for position in range(chained):
        place = position % (CHAIN + 1)
        if place != CHAIN:
            begins = START + (1_000 + 3 * place) * DAY
            rows.append(
                [
                    ids[position + 1],
                    "supersedes",
                    ids[position],
                    "found wanting",
                    None,
                    begins,
                    OPEN,
                    LINKED,
                    OPEN,
                ]
            )
    order = sorted(range(count), key=starts.__getitem__)
    depth = dict.fromkeys(order, 0)
    for rank in range(1, count):
        effect, cause = order[rank], order[chance.randrange(rank)]
        depth[effect] = depth[cause] + 1
        told = instants[tenth + chance.randrange(9 * tenth)]
        rows.append(
            [ids[effect], "caused_by", ids[cause], "seen in the log", 4, START + 51 * DAY, OPEN, told, OPEN]
        )
    wanted = 3 * count - len(rows)
    while wanted:
        kind = ("reference", "reference", "derived_from", "uses")[wanted % 4]
        source, target = chance.randrange(count), chance.randrange(count)
        if source == target or (kind, source, target) in made:
            continue
        made.add((kind, source, target))
        turn = tenth + chance.randrange(8 * tenth)
        begins = START + 51 * DAY + chance.randrange(300 * DAY)
        ends = begins + chance.randrange(DAY, 600 * DAY) if chance.random() < 0.2 else OPEN
        forgotten = instants[turn + 1 + chance.randrange(tenth)] if chance.random() < 0.05 else OPEN
        rows.append([ids[source], kind, ids[target], "why not", 3, begins, ends, instants[turn], forgotten])
        wanted -= 1
    rows.sort(key=lambda row: row[7])
    numbered = [(f"l{number:07d}", *row) for number, row in enumerate(rows)]
    return numbered, [ids[node] for node in order if depth[node] >= 3]


def _events(chance: random.Random, count: int, instants: list[int]) -> pa.Table:
    told = sorted(chance.choices(instants, k=count))
    types = chance.choices(EVENT_TYPES, k=count)
    return pa.table(
        {
            "id": [f"e{number:07d}" for number in range(count)],
            "type": types,
            "description": [
                f"{kind} of {chance.choice(WORDS)} {number}" for number, kind in enumerate(types)
            ],
            "occurred_at": [tx - chance.randrange(1, DAY) for tx in told],
            "source": ["ci"] * count,
            "metadata": [
                f'{{"attempt":{chance.randrange(5)},"host":"h{chance.randrange(20)}"}}' for _ in range(count)
            ],
            "tx_from": told,
        }
    )


def _table(names: tuple[str, ...], rows: list[tuple[object, ...]], *, numbered: bool = True) -> pa.Table:
    columns = {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    if numbered:
        columns = {"row": list(range(1, len(rows) + 1)), **columns}
    return pa.table(columns)
