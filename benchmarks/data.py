"""One history with a fixed seed, so that every store loads the same rows and every run asks the same questions.

A size is a number of versions: 100k is 10,000 nodes of 10 versions each, 30,000 links and 7,500 events, 137,500 rows in all. One version in five corrects
the description of the period before it, so both axes of time matter. A third of the nodes rest on others, in chains of `derived_from` and `supports`; one in
twenty of what they rest on falls: it ends, or is taken back. Coordinates are drawn evenly over all that is told, before and after the falls.
`shape` makes three others: things that rest on things, in a web, in a notebook and in a chain.
`Oracle` answers from the plain rows: no store is timed before it gave the same answers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.shared import CAUSES, DAY, LATEST, MILLI, OPEN, SPAN, START

SEED = 20260130
KINDS = ("fact", "decision", "preference", "task")
STATES = ("open", "settled", "dropped", "waiting")
WORDS = tuple(
    "auth cache deploy index journal ledger login orbit parser policy queue region retry schema session token".split()
)
EVENT_TYPES = ("deploy", "error", "fix", "build", "review")
LINK_KINDS = ("supersedes", "caused_by", "reference", "derived_from", "supports", "uses")
CHAIN, DEPTH = 5, 10
RESTING, FALLEN = 1 / 3, 1 / 20
RESTS_ON, GROUNDED = 2, 0.4
SHAPES = {"history": 0, "web": 20_000, "notebook": 50_000, "chain": 10_000}
"""How many things each shape has in a run of 100,000 versions or more. `history` depends on the run."""
TOPIC, DEEPEST = 12, 6
"""How many facts of a notebook are about one topic, and how deep their foundations go."""
Coordinate = tuple[str, "int | None", "int | None"]
"""An id, a valid time and a transaction time; None is now."""
WHEN = ("now", "a past day", "any coordinate")
"""Now; at a random valid time, as believed now; at a random valid time and a random transaction time."""


@dataclass(frozen=True)
class Data:
    """Instants are whole microseconds since 1970 UTC; an open end is `OPEN`."""

    nodes: pa.Table  # id, kind
    versions: pa.Table  # row, node_id, number, content, text, valid_from, valid_to, tx_from, tx_to
    told: (
        pa.Table
    )  # the versions as a caller tells them, tx after tx: no row and number; tx_to where it was taken back
    links: pa.Table  # id, source, kind, target, reason, strength, valid_from, valid_to, tx_from, tx_to
    events: pa.Table  # id, type, description, occurred_at, source, metadata, tx_from
    heads: list[str]  # first of a chain in which each next one superseded the one before, CHAIN times
    effects: list[str]  # nodes with at least three causes behind each other
    written: list[str]  # never asked for: the writes beside the reads change them, and others rest on some
    falls: tuple[int, int] = (
        OPEN,
        OPEN,
    )  # the first valid time at which one ends, the first tx at which one is taken back
    verbs: tuple[
        tuple[Any, ...], ...
    ] = ()  # how ours records it, where that is not by bulk_load: tx, verb, what it takes

    @property
    def rows(self) -> int:
        return self.told.num_rows + self.links.num_rows + self.events.num_rows


def history(versions: int, *, corrected: float = 0.2) -> Data:
    """The main history: ten versions a node, three links a node, three events for every four nodes."""
    chance = np.random.default_rng(SEED)
    count = versions // DEPTH
    transactions = min(max(versions // 100, 1_000), 10_000)
    instants = _whole(START + (np.arange(transactions) + 1) * (SPAN // transactions))
    chained = max(count // 100, 1) * (CHAIN + 1)
    others = chained + chance.permutation(count - chained)
    resting = others[: max(int(count * RESTING), 1)]
    grounds = others[resting.size : resting.size + max(count // 10, 2)]
    olds = np.arange(chained).reshape(-1, CHAIN + 1)[:, :CHAIN].ravel()
    rests = np.repeat(np.arange(resting.size), RESTS_ON)
    earlier = resting[(chance.random(rests.size) * rests).astype(int)]
    ground = (chance.random(rests.size) < GROUNDED) | (rests == 0)
    on = np.concatenate([grounds, olds[:: 2 * CHAIN]])  # some rest on what is superseded
    rests_on = np.where(ground, on[chance.integers(0, on.size, rests.size)], earlier)
    rests, rests_on = np.unique(np.stack([resting[rests], rests_on]), axis=1)
    foundations = np.setdiff1d(rests_on, olds)
    rests, rests_on = np.append(rests, olds[::2] + 1), np.append(rests_on, olds[::2])
    fallen = chance.permutation(foundations)[: max(int(foundations.size * FALLEN), 2)]
    ended, retracted = fallen[::2], fallen[1::2]

    # What happens to a node fills this share of the whole span, in valid time and in the order of telling.
    world, telling = np.ones(count), np.ones(count)
    world[:chained], telling[:chained], telling[resting], telling[retracted] = 0.3, 0.2, 0.5, 0.5
    world[ended] = 0.2 + 0.7 * chance.random(ended.size)
    ends = np.full(count, OPEN)
    ends[ended] = _whole(START + world[ended] * SPAN)
    since = 350 + 600 * chance.random(chained // (CHAIN + 1))
    superseded = _whole(START + (since[:, None] + 3 * np.arange(CHAIN)) * DAY)
    ends[:chained].reshape(-1, CHAIN + 1)[:, :CHAIN] = superseded
    taken_back = np.full(count, OPEN)
    taken_back[retracted] = instants[chance.integers(int(0.6 * transactions), transactions, retracted.size)]

    turns = np.arange(DEPTH)
    correction = chance.random((count, DEPTH)) < corrected
    correction[:, 0] = False
    changes = _whole(START + (turns * 100 + chance.random((count, DEPTH)) * 50) * DAY * world[:, None])
    steps = (turns + 0.5 + chance.random((count, DEPTH)) / 2) * (transactions / DEPTH) * telling[:, None]
    tells = instants[np.minimum(steps.astype(int), transactions - 1)]
    period = np.maximum.accumulate(np.where(correction, 0, turns), axis=1)
    places = np.where(correction, DEPTH, turns)
    following = np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]
    following = np.concatenate([following[:, 1:], np.full((count, 1), DEPTH)], axis=1)
    begins = np.take_along_axis(changes, period, axis=1)
    stops = np.take_along_axis(np.concatenate([changes, ends[:, None]], axis=1), following, axis=1)
    again = np.concatenate([correction[:, 1:], np.zeros((count, 1), bool)], axis=1)
    after = np.concatenate([tells[:, 1:], np.full((count, 1), OPEN)], axis=1)
    closed = np.where(again, after, taken_back[:, None])

    ids = pc.binary_join_element_wise("n", _digits(np.arange(count), 7), "")
    node = np.repeat(np.arange(count), DEPTH)
    order = np.lexsort((np.tile(turns, count), node, tells.ravel()))
    given = np.where(again, OPEN, closed).ravel()[order]
    number = np.tile(turns, count)[order] + 1
    content, text = _contents(chance, ids.take(pa.array(node[order])), number)
    periods = {"valid_from": begins.ravel()[order], "valid_to": stops.ravel()[order]}
    named = {"node_id": ids.take(pa.array(node[order])), "content": content, "text": text, **periods}
    told = {**named, "tx_from": tells.ravel()[order], "tx_to": given}
    rows = {"row": np.arange(1, node.size + 1), **named, "tx_from": told["tx_from"]}
    rows = {**rows, "tx_to": closed.ravel()[order]}
    versions_ = pa.table(rows).add_column(2, "number", pa.array(number))

    made, cause = _links(chance, count, changes[:, 0], olds, superseded, rests, rests_on, instants)
    effects = _behind(cause, CAUSES)
    idle = np.setdiff1d(grounds, fallen)
    return Data(
        nodes=pa.table({"id": ids, "kind": pa.array(KINDS).take(pa.array(np.arange(count) % len(KINDS)))}),
        versions=versions_,
        told=pa.table(told),
        links=_table_of_links(ids, made),
        events=_events(min(count * 3 // 4, 100_000), instants),
        heads=ids.take(pa.array(np.arange(0, chained, CHAIN + 1))).to_pylist(),
        effects=ids.take(pa.array(effects)).to_pylist(),
        written=ids.take(pa.array(idle[: max(count // 25, 1)])).to_pylist(),
        falls=(int(ends[ended].min()), int(taken_back[retracted].min())),
    )


def long_chain(steps: int = 10_000) -> Data:
    """One thing after another, each superseding the one before, all told at once."""
    ids = pa.array([f"s{number}" for number in range(steps + 1)])
    places = np.arange(steps + 1)
    begins = _steps(steps + 1)
    ends = {"valid_from": begins[1:], "valid_to": np.full(steps, OPEN)}
    link = {"kind": np.zeros(steps, int), "source": places[1:], "target": places[:-1], **ends}
    return _at_once(ids, ids, np.ones(steps + 1, int), begins, np.append(begins[1:], OPEN), link, ["s0"])


def shape(name: str, count: int, *, superseded: float = 0.05) -> Data:
    """Make things that rest on others. `web`: each rests on three earlier ones. `notebook`: by topic, recorded by single verbs. `chain`: each rests on the one before.

    Each thing has one description. Some things supersede others, in chains of `CHAIN`. One in ten has a cause.
    """
    chance = np.random.default_rng(SEED)
    rests, rests_on = np.array(_foundations(name, count)).T
    begins = _whole(START + np.sort(chance.random(count)) * 0.3 * SPAN)
    told = _whole(START + (np.arange(count) + 1) * (0.5 * SPAN / count))
    late = np.arange(
        count - max(count // 50, 5), count
    )  # little rests on these: the writes beside the reads change them
    chains = max(int(superseded * count) // CHAIN, 1) if superseded else 0
    chained = chance.permutation(late[0])[: chains * (CHAIN + 1)].reshape(-1, CHAIN + 1)
    olds, news = chained[:, :-1].ravel(), chained[:, 1:].ravel()
    since = _whole(START + (350 + 600 * chance.random(chains)[:, None] + 3 * np.arange(CHAIN)) * DAY).ravel()
    closing = _whole(START + (0.55 + 0.3 * np.arange(olds.size) / max(olds.size, 1)) * SPAN)
    effects = np.arange(10, count, 10)
    caused = _whole(START + (0.9 + 0.05 * np.arange(effects.size) / effects.size) * SPAN)

    by_verbs = name == "notebook"  # what is superseded is cut then; elsewhere it is recorded with its end
    again = olds if by_verbs else olds[:0]
    closed, ends = np.full(count, OPEN), np.full(count, OPEN)
    (closed if by_verbs else ends)[olds] = closing if by_verbs else since
    periods = {
        "valid_from": np.append(begins, begins[again]),
        "valid_to": np.append(ends, since[: again.size]),
        "tx_from": np.append(told, closing[: again.size]),
        "tx_to": np.append(closed, np.full(again.size, OPEN)),
    }
    parts = (
        ("derived_from", rests, rests_on, begins[rests], told[rests]),
        ("supersedes", news, olds, since, closing),
        ("caused_by", effects, effects - 10, begins[effects], caused),
    )
    links = {
        "kind": np.repeat([LINK_KINDS.index(part[0]) for part in parts], [part[1].size for part in parts]),
        **{
            column: np.concatenate([part[place] for part in parts])
            for place, column in enumerate(("source", "target", "valid_from", "tx_from"), 1)
        },
    }
    cause = np.full(count, -1)
    cause[effects] = effects - 10
    ids = pc.binary_join_element_wise(name[0], _digits(np.arange(count), 6), "")
    data = _made(ids, np.arange(count), np.ones(count, int), periods, links, again)
    data = replace(
        data,
        events=_events(max(count // 100, 1), told),
        heads=ids.take(pa.array(chained[:, 0])).to_pylist(),
        effects=ids.take(pa.array(_behind(cause, CAUSES))).to_pylist(),
        written=ids.take(pa.array(late)).to_pylist(),
        falls=(int(since.min(initial=OPEN)), int(closing.min(initial=OPEN))),
    )
    return replace(data, verbs=_verbs(data)) if by_verbs else data


def _foundations(name: str, count: int) -> list[tuple[int, int]]:
    """Return pairs of things: the first rests on the second."""
    chance = random.Random(SEED)
    if name == "chain":
        return [(thing, thing - 1) for thing in range(1, count)]
    if name == "web":
        return [(thing, on) for thing in range(1, count) for on in chance.sample(range(thing), min(3, thing))]
    depths, pairs = [0] * count, []
    for thing in range(count):
        above = [other for other in range(thing - thing % TOPIC, thing) if depths[other] < DEEPEST]
        for on in chance.sample(above, min(chance.choice((1, 1, 2)), len(above))):
            pairs.append((thing, on))
            depths[thing] = max(depths[thing], depths[on] + 1)
    return pairs


def _verbs(data: Data) -> tuple[tuple[Any, ...], ...]:
    """Return the verbs that record this data, in the order of their tx."""
    links, rests_on = data.links.to_pylist(), {}
    for link in links:
        if link["kind"] == "derived_from":
            rests_on.setdefault(link["source"], []).append(link["target"])
    adds = [
        (row["tx_from"], "add", row["node_id"], row["content"], row["valid_from"], rests_on.get(row["node_id"], []))
        for row in data.versions.to_pylist()[: data.nodes.num_rows]
    ]  # fmt: skip
    supersedes = [
        (link["tx_from"], "supersede", link["target"], link["source"], link["valid_from"])
        for link in links
        if link["kind"] == "supersedes"
    ]
    causes = [
        (link["tx_from"], "cause", link["source"], link["target"], link["valid_from"])
        for link in links
        if link["kind"] == "caused_by"
    ]
    return (*adds, *supersedes, *causes)


def deep(versions: int, how: str) -> Data:
    """Make a node with a deep past and one with ten versions; and a node with many past links and one with ten. Three links hold at a time.

    Each version has its own tx. `appended`: it begins after the one before. `repeated`: it describes the whole valid time again.
    """
    ids = pa.array(["deep", "shallow", "many", "few", *(f"leaf{number}" for number in range(versions))])
    tells = np.concatenate([_steps(versions), _steps(10)])
    number = np.concatenate([np.arange(versions), np.arange(10)]) + 1
    last = number == np.where(np.arange(number.size) < versions, versions, 10)
    after = np.where(last, OPEN, np.roll(tells, -1))
    others = np.arange(2, len(ids))  # of these nothing changes
    of = np.concatenate([np.repeat([0, 1], [versions, 10]), others])
    lasting = np.full(others.size, START)
    begins = np.append(tells if how == "appended" else np.full(tells.size, START), lasting)
    cut = np.flatnonzero(~last) if how == "appended" else np.array([], int)
    periods = {
        "valid_from": np.append(begins, begins[cut]),
        "valid_to": np.append(np.full(of.size, OPEN), after[cut]),
        "tx_from": np.concatenate([tells, lasting, after[cut]]),
        "tx_to": np.concatenate([after, np.full(others.size + cut.size, OPEN)]),
    }
    ends = np.where(
        number + 3 > np.where(np.arange(number.size) < versions, versions, 10), OPEN, np.roll(tells, -3)
    )
    link = {"kind": np.full(tells.size, LINK_KINDS.index("reference")), "source": of[: tells.size] + 2}
    link |= {"target": number + 3, "valid_from": tells, "valid_to": ends, "tx_from": tells}
    return _made(ids, of, np.append(number, np.ones(others.size, int)), periods, link, cut)


def hub(links: int = 10_000) -> Data:
    """One node that so many refer to, told at once."""
    ids = pa.array(["hub", *(f"leaf{number}" for number in range(links))])
    starts, places = np.full(links + 1, START), np.arange(links + 1)
    ends = {"valid_from": starts[1:], "valid_to": np.full(links, OPEN)}
    kind = np.full(links, LINK_KINDS.index("reference"))
    link = {"kind": kind, "source": places[1:], "target": np.zeros(links, int), **ends}
    return _at_once(ids, ids, places * 0 + 1, starts, np.full(links + 1, OPEN), link, ["hub"])


def _steps(count: int) -> Any:
    return START + np.arange(count) * (SPAN // count // MILLI * MILLI)


def _at_once(
    ids: Any, of: Any, number: Any, begins: Any, ends: Any, link: dict[str, Any], heads: list[str]
) -> Data:
    """Versions and links that one transaction told, at the end of the span."""
    told = {"tx_from": np.full(len(of), START + SPAN), "tx_to": np.full(len(of), OPEN)}
    places = pc.index_in(of, ids).to_numpy()
    link = {**link, "tx_from": np.full(len(link["source"]), START + SPAN)}
    periods = {"valid_from": begins, "valid_to": ends, **told}
    return replace(_made(ids, places, number, periods, link, places[:0]), heads=heads)


def _made(ids: Any, of: Any, number: Any, periods: dict[str, Any], link: dict[str, Any], again: Any) -> Data:
    """Make the tables. `again` lists versions that have a second row, which the store makes itself. Links are open-ended by default."""
    content, text = _contents(np.random.default_rng(SEED), ids.take(pa.array(of)), number)
    rows = pa.array(np.append(np.arange(of.size), again))
    named = {
        "node_id": ids.take(pa.array(of)).take(rows),
        "content": content.take(rows),
        "text": text.take(rows),
    }
    table = pa.table({**named, **periods})
    numbered = pa.table(
        {
            "row": np.arange(1, len(rows) + 1),
            "node_id": named["node_id"],
            "number": pa.array(number).take(rows),
        }
    )
    for column in table.column_names[1:]:
        numbered = numbered.append_column(column, table[column])
    ends = {column: np.full(link["kind"].size, OPEN) for column in ("valid_to", "tx_to")}
    return Data(
        nodes=pa.table({"id": ids, "kind": ["fact"] * len(ids)}),
        versions=numbered,
        told=table.slice(0, of.size).set_column(6, "tx_to", pa.array(np.full(of.size, OPEN))),
        links=_table_of_links(ids, {**ends, **link}),
        events=_events(1, np.array([START + SPAN])),
        heads=[],
        effects=[],
        written=[],
    )


def linked(links: int = 100_000) -> tuple[list[dict[str, str]], list[dict[str, str | int]]]:
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


class Oracle:
    """The right answers, from the plain rows of a history."""

    def __init__(self, data: Data) -> None:
        self._versions = _Grouped(data.versions, "node_id", ("number", "content"))
        self._from = _Grouped(data.links, "source", ("id", "source", "kind", "target"))
        self._into = _Grouped(data.links, "target", ("id", "source", "kind", "target"))

    def node_as_of(self, id: str, valid: int | None, tx: int | None) -> tuple[str, int, Any] | None:
        found = self._versions.at(id, valid, tx)
        return (id, found[0][0], orjson.loads(found[0][1])) if found else None

    def links_from(self, id: str, valid: int | None, tx: int | None) -> list[tuple[Any, ...]]:
        return sorted(self._from.at(id, valid, tx))

    def backlinks_to(self, id: str, valid: int | None, tx: int | None) -> list[tuple[Any, ...]]:
        return sorted(self._into.at(id, valid, tx))

    def what_superseded(self, id: str, valid: int | None, tx: int | None) -> list[tuple[str, int, Any]]:
        """What superseded it, and what superseded that: each with the last that was said of it."""
        steps = []
        while found := [link for link in self._into.at(id, valid, tx) if link[2] == "supersedes"]:
            id = found[0][1]
            last = self._versions.at(id, valid, tx, until=True)[-1]
            steps.append((id, last[0], orjson.loads(last[1])))
        return steps

    def causes(self, id: str, valid: int | None, tx: int | None) -> list[tuple[str, int, Any]]:
        """Three causes behind each other, of those that stand."""
        steps = []
        for _ in range(CAUSES):
            found = [link for link in self._from.at(id, valid, tx) if link[2] == "caused_by"]
            if not found:
                break
            id = found[0][3]
            if standing := self.node_as_of(id, valid, tx):
                steps.append(standing)
        return steps

    def known(self, id: str, tx: int | None) -> bool:
        return bool(self._versions.told(id, tx))


class _Grouped:
    """Rows of a table by one of its columns."""

    def __init__(self, table: pa.Table, column: str, answer: tuple[str, ...]) -> None:
        names = table[column].combine_chunks().dictionary_encode()
        keys = names.indices.to_numpy(zero_copy_only=False)
        self._order = np.argsort(keys, kind="stable")
        self._starts = np.searchsorted(keys[self._order], np.arange(len(names.dictionary) + 1))
        self._places = {name: place for place, name in enumerate(names.dictionary.to_pylist())}
        self._periods = [table[name].to_numpy() for name in ("valid_from", "valid_to", "tx_from", "tx_to")]
        self._answer = [table[name].combine_chunks() for name in answer]

    def _rows(self, id: str) -> Any:
        place = self._places.get(id)
        return self._order[:0] if place is None else self._order[slice(*self._starts[place : place + 2])]

    def told(self, id: str, tx: int | None) -> list[int]:
        rows = self._rows(id)
        return rows[self._periods[2][rows] <= _instant(tx)].tolist()  # type: ignore[no-any-return]

    def at(self, id: str, valid: int | None, tx: int | None, *, until: bool = False) -> list[tuple[Any, ...]]:
        """What holds there; `until`: what began by then, the latest last."""
        rows, v, t = self._rows(id), _instant(valid), _instant(tx)
        begins, ends, told, closed = (column[rows] for column in self._periods)
        rows = rows[(begins <= v) & ((ends > v) | until) & (told <= t) & (closed > t)]
        rows = rows[np.argsort(self._periods[0][rows], kind="stable")]
        return [tuple(column[row].as_py() for column in self._answer) for row in rows.tolist()]


@dataclass
class Draws:
    """Coordinates at random, and what became of them: how many lie after the first fall, in how many nothing stands or nothing is told."""

    data: Data
    oracle: Oracle
    drawn: int = 0
    after_a_fall: int = 0
    kept: int = 0

    def __call__(
        self,
        verb: str,
        when: str,
        count: int,
        *,
        standing: bool = True,
        among: list[str] | None = None,
        whole: bool = False,
    ) -> list[tuple[Coordinate, Any]]:
        """So many coordinates with the right answers: full chains, ends that are known, nodes that stand or (`standing=False`) do not. `whole` takes chains of any length."""
        chance = random.Random(f"{SEED} {verb} {when} {standing}")
        written = set(self.data.written)
        asked = []
        for coordinate in islice(self._all(among or self._ids(verb), when, chance), 400 * count):
            id, valid, tx = coordinate
            self.drawn += 1
            ended, taken_back = self.data.falls
            self.after_a_fall += _instant(valid) >= ended or _instant(tx) >= taken_back
            right = getattr(self.oracle, verb)(*coordinate)
            if id in written or not self.oracle.known(id, tx):
                continue
            if verb in ("what_superseded", "causes") and not whole:
                named = {step[0] for step in right}
                if len(right) != (CHAIN if verb == "what_superseded" else CAUSES) or named & written:
                    continue
            if verb == "node_as_of" and (right is not None) != standing:
                continue
            self.kept += 1
            asked.append((coordinate, right))
            if len(asked) == count:
                break
        assert asked, f"{verb} at {when}: no coordinate has a full answer"
        return asked

    def _ids(self, verb: str) -> list[str]:
        if verb in ("what_superseded", "causes"):
            return self.data.heads if verb == "what_superseded" else self.data.effects
        return self.data.nodes["id"].to_pylist()  # type: ignore[no-any-return]

    def _all(self, ids: list[str], when: str, chance: random.Random) -> Iterator[Coordinate]:
        while True:
            valid = None if when == "now" else _rounded(chance.randrange(START, LATEST))
            tx = _rounded(chance.randrange(START, LATEST)) if when == "any coordinate" else None
            yield chance.choice(ids), valid, tx


def description(number: int) -> dict[str, object]:
    """The content of something that is written while it is timed."""
    return {
        "n": number,
        "score": number % 100,
        "state": STATES[number % 4],
        "summary": f"{WORDS[number % 16]} moved to {number}",
    }


def _instant(at: int | None) -> int:
    return OPEN - 1 if at is None else at


def _rounded(instant: int) -> int:
    return instant // MILLI * MILLI


def _whole(instants: Any) -> Any:
    return np.asarray(instants).astype(np.int64) // MILLI * MILLI


def _digits(numbers: Any, width: int) -> Any:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, padding="0")


def _contents(chance: Any, ids: Any, number: Any) -> tuple[Any, Any]:
    numbers = pa.array(number).cast(pa.string())
    word, state = (
        pa.array(among).take(pa.array(chance.integers(0, len(among), len(ids)))) for among in (WORDS, STATES)
    )
    score = pa.array(chance.integers(0, 100, len(ids))).cast(pa.string())
    text = pc.binary_join_element_wise(word, " of ", ids, " as described ", numbers, "")
    parts = ('{"n":', numbers, ',"score":', score, ',"state":"', state, '","summary":"', text, '"}', "")
    return pc.binary_join_element_wise(*parts), text


def _links(
    chance: Any, count: int, starts: Any, olds: Any, superseded: Any, rests: Any, rests_on: Any, instants: Any
) -> tuple[dict[str, Any], Any]:
    """Columns of all links, with numbers of nodes and of kinds; and the cause of each node, -1 for none."""
    transactions = len(instants)

    def told(size: int, lo: float, hi: float) -> Any:
        return instants[chance.integers(int(lo * transactions), int(hi * transactions), size)]

    def begins(size: int) -> Any:
        return _whole(START + (51 + 300 * chance.random(size)) * DAY)

    def part(kind: str, source: Any, target: Any, since: Any, tx: Any) -> dict[str, Any]:
        size = len(source)
        kinds = np.full(size, LINK_KINDS.index(kind))
        ends = {"valid_to": np.full(size, OPEN), "tx_to": np.full(size, OPEN)}
        return {"kind": kinds, "source": source, "target": target, "valid_from": since, "tx_from": tx, **ends}

    parts = [part("supersedes", olds + 1, olds, superseded.ravel(), told(olds.size, 0.3, 0.6))]
    order = np.argsort(starts, kind="stable")
    cause = np.full(count, -1)
    cause[order[1:]] = order[(chance.random(count - 1) * np.arange(1, count)).astype(int)]
    effect = order[1:]
    since = np.full(effect.size, START + 51 * DAY)
    parts.append(part("caused_by", effect, cause[effect], since, told(effect.size, 0.1, 1)))
    half = rests.size // 2
    for kind, source, target in (
        ("derived_from", rests[:half], rests_on[:half]),
        ("supports", rests_on[half:], rests[half:]),
    ):
        parts.append(part(kind, source, target, begins(source.size), told(source.size, 0.15, 0.55)))
    wanted = 3 * count - sum(len(one["kind"]) for one in parts)
    pairs = np.unique(chance.integers(0, count, (2 * wanted, 2)), axis=0)
    pairs = chance.permutation(pairs[pairs[:, 0] != pairs[:, 1]])[:wanted]
    for number, kind in enumerate(("reference", "uses")):
        source, target = pairs[number::2].T
        one = part(kind, source, target, begins(source.size), told(source.size, 0.1, 0.9))
        short, forgotten = chance.random(source.size) < 0.2, chance.random(source.size) < 0.05
        lasts = _whole((1 + 599 * chance.random(source.size)) * DAY)
        one["valid_to"] = np.where(short, one["valid_from"] + lasts, OPEN)
        later = (
            np.searchsorted(instants, one["tx_from"])
            + 1
            + chance.integers(0, transactions // 10 - 1, source.size)
        )
        one["tx_to"] = np.where(forgotten, instants[np.minimum(later, transactions - 1)], OPEN)
        parts.append(one)
    return {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}, cause


def _behind(cause: Any, steps: int) -> Any:
    """Nodes with so many causes behind each other."""
    at = np.arange(cause.size)
    for _ in range(steps):
        at = np.where(at >= 0, cause[at], -1)
    return np.flatnonzero(at >= 0)


def _table_of_links(ids: Any, made: dict[str, Any]) -> pa.Table:
    order = np.argsort(made["tx_from"], kind="stable")
    made = {name: column[order] for name, column in made.items()}
    kinds = pa.array(LINK_KINDS).take(pa.array(made["kind"]))
    return pa.table(
        {
            "id": pc.binary_join_element_wise("l", _digits(np.arange(order.size), 7), ""),
            "source": ids.take(pa.array(made["source"])),
            "kind": kinds,
            "target": ids.take(pa.array(made["target"])),
            "reason": pa.array(["found wanting"] * order.size),
            "strength": pa.array([3] * order.size),
            **{name: made[name] for name in ("valid_from", "valid_to", "tx_from", "tx_to")},
        }
    )


def _events(count: int, instants: Any) -> pa.Table:
    chance = random.Random(SEED)
    told = sorted(chance.choices(instants.tolist(), k=count))
    types = chance.choices(EVENT_TYPES, k=count)
    return pa.table(
        {
            "id": [f"e{number:07d}" for number in range(count)],
            "type": types,
            "description": [
                f"{kind} of {chance.choice(WORDS)} {number}" for number, kind in enumerate(types)
            ],
            "occurred_at": [_rounded(tx - chance.randrange(1, DAY)) for tx in told],
            "source": ["ci"] * count,
            "metadata": [
                f'{{"attempt":{chance.randrange(5)},"host":"h{chance.randrange(20)}"}}' for _ in range(count)
            ],
            "tx_from": told,
        }
    )
