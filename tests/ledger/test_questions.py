"""The statements of `sql/` answer what a view answers, and find their rows by key."""

from __future__ import annotations

import random
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore.core.index import index_of_rows, part_of_index
from graphstore.core.read import history_rows, light_rows, shaken, sight
from graphstore.core.read.view_diff import field_changes
from graphstore.core.search import event_fingerprints, message_rows, model_vectors, name_rows, row_search
from graphstore.core.tables import graph_from_rows, history_from_rows
from graphstore.core.write import evictable_rows
from graphstore.errors import DamageError, GraphStoreError, NotFoundError
from graphstore.ledger import closings, forgotten_bodies
from graphstore.ledger.database import Database, schema_statements
from graphstore.ledger.statements import Statement
from graphstore.read import (
    chains,
    counted,
    described,
    differing,
    event_list,
    happened,
    ids,
    inspected,
    link_story,
    linked,
    operations,
    points,
    settings,
    superseding,
    walks,
    whole_view,
)
from graphstore.store import feed_from_rows
from graphstore.values import generated_ids
from graphstore.values.period import OPEN, instant
from tests.support import standing_rows
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("asks the ledger of the store")

STANDINGS_ARE_WRITTEN = True
"""Whether the writer fills the tables `absence` and `shaky`. Until it does, a copy of the ledger gets the rows of one coordinate from the view."""

MODULES = (
    chains, closings, counted, described, differing, event_fingerprints, event_list, evictable_rows, forgotten_bodies, happened, ids, index_of_rows,
    inspected, link_story, linked, message_rows, model_vectors, name_rows, operations, part_of_index, points, feed_from_rows, graph_from_rows, history_from_rows, row_search,
    settings, shaken, sight, history_rows, superseding, walks, whole_view,
)  # fmt: skip
STATEMENTS = {
    one.name: one for module in MODULES for one in vars(module).values() if isinstance(one, Statement)
}
FREE = re.compile(r"--[^\n]*")
PARAMETER = re.compile(r":([a-z_]+)")


def parameters(statement: Statement[Any]) -> dict[str, None]:
    return dict.fromkeys(PARAMETER.findall(FREE.sub("", statement.text)))


ABOUT_ONE_THING = [
    name
    for name, statement in STATEMENTS.items()
    if {"id", "ids", "number", "numbers", "periods", "beginning", "first", "line"}
    & parameters(statement).keys()
]
FROM_AN_INSTANT_ON = ["changes", "last_changes", "evictions_since", "forgotten_since", "vectors"]
OF_ALL_PERIODS = ["differing_things", "differing_links"]
OF_ALL_THAT_HOLDS = ["held", "held_links"]


@pytest.fixture(scope="module")
def empty() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in schema_statements():
            connection.execute(statement)
        yield connection


@pytest.mark.parametrize("name", [*ABOUT_ONE_THING, *FROM_AN_INSTANT_ON])
def test_a_statement_finds_its_rows_by_key(name, empty):
    statement = STATEMENTS[name]
    own = {*re.findall(r"^(?:WITH(?: RECURSIVE)? )?(\w+) \([\w, ]+\) AS ", statement.text, re.MULTILINE)}

    plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {statement.text}", parameters(statement))]

    scans = [line.split()[1] for line in plan if line.startswith("SCAN") and "VIRTUAL TABLE" not in line]
    assert {*scans} <= own, plan


@pytest.mark.parametrize("name", OF_ALL_PERIODS)
def test_a_statement_about_all_periods_reads_each_once(name, empty):
    statement = STATEMENTS[name]

    plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {statement.text}", parameters(statement))]

    scans = [line for line in plan if line.startswith("SCAN")]
    assert scans in [[f"SCAN all_{table}", "SCAN moved", "SCAN d"] for table in ("period", "link_period")], (
        plan
    )


@pytest.mark.parametrize("name", OF_ALL_THAT_HOLDS)
def test_a_statement_about_all_that_holds_reads_each_period_once_and_in_order(name, empty):
    statement = STATEMENTS[name]

    plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {statement.text}", parameters(statement))]

    scans = [line for line in plan if line.startswith(("SCAN", "USE TEMP"))]
    assert [line for line in scans if line != "SCAN held"] in (
        ["SCAN all_period"],
        ["SCAN all_link_period"],
    ), plan


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_has_the_columns_of_its_model(name, empty):
    statement = STATEMENTS[name]
    found = [column for column, *_ in empty.execute(statement.text, parameters(statement)).description]
    fields = list(statement.model._fields)
    required = [field for field in fields if field not in statement.model._field_defaults]

    assert fields[: len(found)] == found
    assert required == found[: len(required)]


def test_each_statement_says_what_it_answers_and_what_it_takes():
    for statement in STATEMENTS.values():
        head = statement.text.partition("\nWITH")[0].partition("\nSELECT")[0]
        assert head.startswith("-- Wh"), statement.name
        assert "-- Columns: " in head, statement.name
        assert {f":{name}" for name in parameters(statement)} <= {*re.findall(r":\w+", head)}, statement.name


def test_a_damaged_content_is_refused_by_the_name_of_its_thing(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "blue"}, id="sky", reason="it is seen")
        store.record_event("deploy", "release 7", id="release")
        link = store.link("sky", "derived_from", "release", reason="it was seen").id
        view, vocabulary = store.as_of(), store.vocabulary
        where = instant(view.at.valid), instant(view.at.tx)
    with closing(sqlite3.connect(path / "ledger.db")) as connection:
        damaged = connection.execute(
            "UPDATE body SET data = CAST(upper(CAST(data AS TEXT)) AS BLOB)"
        ).rowcount
        connection.commit()
    assert damaged >= 3

    with closing(Database(path / "ledger.db", read_only=True)) as database:
        point = points.Point(database, *where, vocabulary)
        for read, id, name in (
            (described.node, "sky", "version 1 of 'sky'"),
            (described.history, "sky", "version 1 of 'sky'"),
            (linked.links_from, "sky", f"what was noted when link wrote '{link}'"),
            (superseding.what_superseded, "release", "version 1 of 'release'"),
            (described.event, "release", f"what was noted when link wrote '{link}'"),
            (inspected.inspect, "sky", f"what was noted when link wrote '{link}'"),
            (inspected.inspect, link, "version 1 of 'sky'"),
            (superseding.what_superseded, link, f"what was noted when link wrote '{link}'"),
            (operations.operations, "sky", "what was noted when add_node wrote 'sky'"),
        ):
            with pytest.raises(
                DamageError,
                match=rf"ledger.db line \d: body \d: its bytes do not match their checksum, {name}\.",
            ):
                read(point, id)


def test_two_nodes_that_disagree_are_a_candidate(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        with store.transaction():
            for id, port, named in (
                ("a", 80, {}),
                ("b", 8080, {}),
                ("c", 80, {"scope": "here"}),
                ("d", 8080, {"scope": "here"}),
                ("e", 1, {"kind": "session"}),
            ):
                content = {"service": "api", "port": port}
                store.add_node(named.pop("kind", "fact"), content, id=id, **named)
        store.revise("a", {"service": "api", "port": 443}, valid_from=store.node("a").valid_from)
        store.link("c", "supports", "d")
        view = store.as_of()
        pairs = [(each.source.id, each.target.id) for each in view.contradictions()]
        assert pairs == [("a", "b")]
        with pytest.raises(NotFoundError, match="do not contradict each other"):
            view.contradiction("c", "d")
        assert view.contradiction("b", "a").about == "port of api"


def test_a_merged_version_is_found_by_its_number_on_the_branch(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "blue"}, id="sky")
        with store.branch("side") as side:
            side.revise("sky", {"says": "red"})
        store.revise("sky", {"says": "grey"}, valid_from="2026-01-01", valid_to="2026-01-02")
        store.merge("side")
        store.branch("other")
        store.merge("other")
    with graphstore.open(path, read_only=True) as store:
        view, side = store.as_of(), store.on("side")
        assert view.node("sky-v2@side").content == {"says": "red"}
        assert view.node("sky-v2@side").ref == "sky-v3"
        assert view.diff("sky-v2@side", 1, 3) == view.diff("sky", 1, 3)
        assert view.inspect("sky-v2@side") == view.inspect("sky")
        assert view.operations("sky-v2@side") == view.operations("sky")
        assert store.on("other").node("sky-v2@side").content == {"says": "red"}
        for line, id in (
            (view, "sky-v1@side"), (view, "sky-v2@sid"), (view, "sky-v99999999999999999999@side"), (side, "sky-v2@side"),
            (store.as_of(tx=store.changes()[0].tx), "sky-v2@side"),
        ):  # fmt: skip
            with pytest.raises(NotFoundError):
                line.node(id)


# ---------------------------------------------------------------------- random histories

DAYS = [datetime(2026, 1, number, tzinfo=UTC) for number in range(1, 9)]
NODES = ("alpha", "bravo", "charly", "delta", "echo")
EVENTS = ("event-a", "event-b", "event-c")
THINGS = NODES + EVENTS
IDS = (
    *NODES,
    *EVENTS,
    "alph",
    "no such",
    "\ud800",
    7,
    "alpha-v99999999999999999999",
    "event-a-v1",
    "event-a-v2",
    *(f"{id}-v{number}" for id in NODES for number in (1, 2, 3, 9)),
)
KINDS = (
    "derived_from", "caused_by", "caused_by", "resolved_by", "contradicts", "supports", "led_to", "meets", "corrects",
    "same_topic",
)  # fmt: skip
FILTERS = (
    (None, None, None, None),
    ("fact", None, None, None),
    ("fact", "Slot", None, None),
    (None, "slot", "here", "hot"),
    (None, None, None, 'say "so"'),
    ("no such", None, "here", None),
)
ASKED_KINDS = (
    "causes",
    ("relates_to",),
    ("caused_by", "supports"),
    ("meets", "superseded_by", "leads_to"),
    "no_such",
)


class History:
    """A store on disk, and random verbs of which some are refused."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.chance = random.Random(seed)
        self.now = DAYS[4]
        self.store = graphstore.open(path, clock=lambda: self.now)
        self.store.define_kind("led_to", inverse="leads_to", causal=True)
        self.store.define_kind("meets", symmetric=True)
        self.links: list[str] = []
        for _ in range(5):
            self.try_some(("add", "event"))

    def go_on(self, steps: int) -> None:
        """Do some verbs, each by itself or several in one transaction."""
        for _ in range(steps):
            self.now += self.chance.choice([timedelta(hours=5), timedelta(days=1), timedelta(days=-1)])
            if self.chance.random() < 0.7:
                self.try_some(VERBS + ALONE)
            else:
                with self.store.transaction(author=self.chance.choice([None, "ana"])):
                    for _ in range(self.chance.randint(2, 5)):
                        self.try_some(VERBS)

    def try_some(self, verbs: tuple[str, ...]) -> None:
        """Do one of some verbs, unless it is refused."""
        with suppress(GraphStoreError):
            getattr(self, self.chance.choice(verbs))()

    def coordinate(self) -> dict[str, datetime]:
        """A coordinate at or beside a boundary."""
        tick = timedelta(microseconds=self.chance.choice([-1, 0, 1]))
        changes = self.store.changes()
        tx = self.chance.choice([self.chance.choice(changes).tx, changes[-1].tx])
        return {"valid": self.chance.choice([*DAYS, self.now]) + tick, "tx": tx}

    def some_links(self) -> list[str]:
        """Some links of which something became, and some others."""
        subjects = [change.subject for change in self.store.changes() if change.subject.startswith("lnk_")]
        often = sorted({*subjects}, key=subjects.count)[-6:]
        return [*often, *self.chance.sample(self.links, min(3, len(self.links)))]

    def beginnings(self) -> list[Any]:
        """Beginnings of ids, and texts that begin none."""
        made = sorted({change.subject for change in self.store.changes()} - {*THINGS})
        begun = [
            f"{id[: self.chance.randint(5, len(id))]}{self.chance.choice(['', '-v2', '-v1@side'])}"
            for id in made
            if generated_ids.is_one(id)
        ]
        return [
            *begun,
            *(id[:6] for id in begun),
            *IDS,
            "evt_17",
            "evt_-1",
            "lnk_00",
            "012345",
            "",
            " ",
            "alpha-v1@side",
        ]

    # ------------------------------------------------------------------ what the verbs are given

    def known(self, among: tuple[str, ...]) -> str:
        return self.chance.choice([id for id in among if self.store.knows(id)] or [*among])

    def new(self, among: tuple[str, ...]) -> str | None:
        return self.chance.choice([None, *(id for id in among if not self.store.knows(id))])

    def period(self) -> dict[str, Any]:
        start, stop = sorted(self.chance.sample(range(len(DAYS)), 2))
        return {
            "valid_from": DAYS[start],
            "valid_to": self.chance.choice([graphstore.OPEN, graphstore.OPEN, DAYS[stop]]),
        }

    def some_period(self) -> dict[str, Any]:
        return self.period() if self.chance.random() < 0.5 else {}

    def content(self) -> dict[str, Any]:
        return {"says": self.chance.choice(["red", "green", "blue"]), "size": self.chance.choice([1, 2])}

    def tags(self) -> tuple[str, ...]:
        return self.chance.choice([(), ("hot",), ("hot", 'say "so"')])

    # ------------------------------------------------------------------ verbs

    def add(self) -> None:
        named: dict[str, Any] = {}
        if self.chance.random() < 0.3:
            named[self.chance.choice(["supersedes", "corrects", "derived_from"])] = [self.known(THINGS)]
        key, scope = self.chance.choice([None, "slot"]), self.chance.choice(["", "here"])
        self.store.add_node(
            "fact",
            self.content(),
            id=self.new(NODES),
            key=key,
            scope=scope,
            tags=self.tags(),
            **self.period(),
            **named,
        )

    def event(self) -> None:
        type = self.chance.choice(["error", "error", "fix", "deploy", "TEXT", "visit"])
        self.store.record_event(
            type,
            self.chance.choice(["it broke", "it failed"]),
            id=self.new(EVENTS),
            occurred_at=self.chance.choice(DAYS),
            metadata=self.chance.choice([None, {"n": 1}, {"n": 2}]),
            related_to=self.chance.choice([None, self.known(THINGS)]),
            trace_id=self.chance.choice([None, "t1"]),
        )

    def revise(self) -> None:
        self.store.revise(self.known(NODES), self.content(), tags=self.tags(), **self.some_period())

    def amend(self) -> None:
        self.store.amend(self.known(NODES), {"size": 3}, **self.some_period())

    def retract(self) -> None:
        self.store.retract(self.known(THINGS), reason="wrong", **self.some_period())

    def end(self) -> None:
        self.store.end(self.known(NODES), at=self.chance.choice(DAYS))

    def confirm(self) -> None:
        self.store.confirm(self.known(THINGS), reason="still so")

    def supersede(self) -> None:
        since = self.chance.choice([None, *DAYS])
        self.store.supersede(self.known(THINGS), by=self.known(THINGS), valid_from=since, reason="newer")

    def link(self) -> None:
        more = self.chance.choice(
            [
                {},
                {"metadata": {"n": 1}, "strength": 4, "reason": "it is so"},
                {"confidence": "inferred", "created_by": "agent:one", "strength": 2},
            ]
        )
        kind = self.chance.choice(KINDS)
        made = self.store.link(self.known(THINGS), kind, self.known(THINGS), **self.some_period(), **more)
        self.links.append(made.id)

    def say_again(self) -> None:
        if self.links:
            link = self.store.inspect(self.chance.choice(self.links)).link
            self.store.link(link.source, link.kind, link.target, valid_from=link.valid_from, strength=5)

    def unlink(self) -> None:
        if self.links:
            self.store.unlink(self.chance.choice(self.links), **self.some_period())

    def point(self) -> None:
        self.store.define_point("visit")

    def snapshot(self) -> None:
        self.store.snapshot(self.chance.choice(["first", "second", "snap: third"]))

    def undo(self) -> None:
        self.store.undo(self.chance.choice(self.store.changes()[-6:]).tx, reason="a slip")

    def evict(self) -> None:
        self.store.evict(ids=[self.known(THINGS)], reason="too large")

    def erase(self) -> None:
        self.store.erase(self.known(THINGS), reason="not ours")


class BranchingHistory(History):
    """A history of a store and of branches of it, in which kinds of link are promoted."""

    def branch(self) -> None:
        self.store.branch(self.chance.choice(BRANCHES))

    def write_on_branch(self) -> None:
        branch = self.store.on(self.chance.choice(BRANCHES))
        with branch.transaction(author=self.chance.choice([None, "ben"]), reason="perhaps"):
            branch.add_node("fact", self.content(), supersedes=self.known(THINGS))
            branch.define_kind(self.chance.choice(["inspires", "fits"]), symmetric=True)

    def merge(self) -> None:
        self.store.merge(self.chance.choice(BRANCHES), decide="branch", reason="it is so")

    def delete_branch(self) -> None:
        self.store.delete_branch(self.chance.choice(BRANCHES))

    def promote_kind(self) -> None:
        self.store.promote_kind(self.chance.choice(["led_to", "meets", "inspires"]))

    def by_another(self) -> None:
        with self.store.transaction(author="ben", reason=self.chance.choice([None, "", "so"])):
            self.add()

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            super().go_on(1)
            self.try_some(
                ("branch", "write_on_branch", "write_on_branch", "merge", "promote_kind", "by_another")
            )


BRANCHES = ("side", "other")
VERBS = (
    "add", "event", "event", "revise", "revise", "amend", "retract", "end", "confirm", "supersede", "supersede", "unlink", "say_again", *("link",) * 5,
)  # fmt: skip
ALONE = ("undo", "undo", "point", "snapshot")
FORGETTING = ("evict", "erase")


@pytest.mark.rest
@pytest.mark.parametrize("seed", [0, 1, 2, 731])
def test_the_statements_answer_what_a_view_answers(seed, tmp_path):
    history = History(tmp_path / "memory.gs", seed)
    with closing(history.store) as store:
        for round in range(6):
            history.go_on(10)
            if round > 3:
                history.try_some(FORGETTING)
            for _ in range(3):
                view = store.as_of(**history.coordinate())
                with asked_beside(history.path, view) as database:
                    compare(database, view, history)
                    compare_filtered(database, view)
                    compare_walks(database, view)
                    compare_shaky(database, view)
                    compare_with_others(database, view, history)


@pytest.mark.rest
@pytest.mark.parametrize("seed", [0, 1, 2, 731])
def test_the_statements_answer_what_a_store_with_branches_answers(seed, tmp_path):
    history = BranchingHistory(tmp_path / "memory.gs", seed)
    with closing(history.store) as store:
        compare_whole_store(history)
        for round in range(8):
            history.go_on(8)
            for _ in range(3):
                history.try_some(
                    ("write_on_branch", "merge", "delete_branch", *(FORGETTING if round > 3 else ()))
                )
            if round == 6:
                store.evict(ids=[history.known(THINGS)], keep_audit=False)
            compare_whole_store(history)


def compare_whole_store(history: History) -> None:
    """Assert that the statements answer what is asked of the whole store as the store does."""
    store = history.store
    valid, tx = store._coordinate()
    with closing(Database(history.path / "ledger.db", read_only=True)) as database:
        point = points.Point(database, valid, tx)
        every = store.changes()
        instants = [-OPEN, OPEN, *(instant(change.tx) + tick for change in every[::7] for tick in (-1, 0, 1))]
        for after, until in product(history.chance.sample(instants, min(5, len(instants))), repeat=2):
            for most in (None, 1, 2, 3, 1000):
                expected = store._between(after, until, most)
                assert expected == operations.changes(point, after, until, most), (after, until, most)
        assert every == operations.changes(point, -OPEN, OPEN, None)
        for most in (1, 2, 1000):
            assert store._last_changes(most) == operations.last_changes(point, most)
        expected_stats = {"path": str(history.path), **counted.stats(point)}
        assert list(store.stats().items()) == list(expected_stats.items())
        assert store.snapshots() == settings.snapshots(point)
        for asked in (*([id] for id in IDS), ["alpha", "event-a", "bravo"]):
            assert outcome(store._named_things, asked) == outcome(ids.things, point, asked), asked
        compare_with_others(database, store.as_of(**history.coordinate()), history)


class Leaning(History):
    """A history in which much rests on other things, often over several links, and much becomes of those."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(path, seed)
        self.store.define_kind("leans_on", rests=["revised", "shaky", "ended"])
        for _ in range(10):
            self.try_some(("add",))

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self.now += timedelta(hours=5)
            if self.chance.random() < 0.5:
                self.try_some((*FALLING, "undo"))
            else:
                with self.store.transaction():
                    for _ in range(self.chance.randint(2, 6)):
                        self.try_some(FALLING)

    def known(self, among: tuple[str, ...]) -> str:
        return super().known(among if among is EVENTS else (*among, *MORE_NODES))

    def new(self, among: tuple[str, ...]) -> str | None:
        return super().new(among if among is EVENTS else (*among, *MORE_NODES))

    def period(self) -> dict[str, Any]:
        return super().period() if self.chance.random() < 0.5 else {"valid_from": DAYS[0]}

    def lean(self) -> None:
        """Let one of two things rest on the other: mostly in one direction, so that ways get long."""
        ends = sorted((self.known(THINGS), self.known(THINGS)), reverse=self.chance.random() < 0.85)
        kind = self.chance.choice(["derived_from"] * 4 + ["supports", "leans_on", "caused_by"])
        source, target = reversed(ends) if kind == "supports" else ends
        since, until = self.chance.choice(DAYS[:3]), self.chance.choice([graphstore.OPEN] * 4 + [DAYS[5]])
        self.links.append(self.store.link(source, kind, target, valid_from=since, valid_to=until).id)


MORE_NODES = ("foxtrot", "golf", "hotel", "india", "juliett")
FALLING = (
    *("lean",) * 8, "add", "add", "event", "revise", "revise", "amend", "retract", "end", "confirm", "supersede", "unlink", "say_again", "link",
)  # fmt: skip


@pytest.mark.parametrize("seed", seeds(1, 4, 200))
def test_the_statements_find_what_is_shaky_and_why_as_a_view_does(seed, tmp_path):
    history = Leaning(tmp_path / "memory.gs", seed)
    shaky = 0
    with closing(history.store) as store:
        for round in range(8):
            history.go_on(10)
            if round > 4:
                history.try_some(FORGETTING)
            for _ in range(8):
                view = store.as_of(**history.coordinate())
                with asked_beside(history.path, view) as database:
                    compare_shaky(database, view)
                    shaky += len(view.shaky())
        assert shaky > 5
        assert [] == standing_rows.compare(store)[1]


def test_a_revision_that_an_older_release_recorded_shakes_where_the_content_differs(tmp_path):
    history, copy = Leaning(tmp_path / "memory.gs", 0), tmp_path / "copy.db"
    with closing(history.store) as store:
        history.go_on(40)
        with (
            closing(sqlite3.connect(history.path / "ledger.db")) as whole,
            closing(sqlite3.connect(copy)) as other,
        ):
            whole.backup(other)
            other.execute("UPDATE all_changed SET is_certain = 0")
            other.commit()
        with closing(Database(copy, read_only=True)) as database:
            for _ in range(30):
                compare_shaky(database, store.as_of(**history.coordinate()))


def point_of(database: Database, view: Any) -> points.Point:
    return points.Point(database, instant(view.at.valid), instant(view.at.tx), view.vocabulary)


def compare(database: Database, view: Any, history: History) -> None:
    """Assert that the statements answer each question as a view does."""
    point = point_of(database, view)

    def same(read: str, ask: Callable[..., Any], *args: Any, **named: Any) -> None:
        expected = outcome(getattr(view, read), *args, **named)
        assert expected == outcome(ask, point, *args, **named), (read, args, str(view.at))

    for kind, key, scope, tag in FILTERS:
        named = {"kind": kind, "key": key, "scope": scope, "tag": tag}
        assert view.nodes(**named) == described.nodes(point, **named), (named, str(view.at))
        scanned = named | {"tag": None}  # which things have a tag the index knows
        for events, content in ((False, False), (False, True), (True, False), (True, True)):
            same("scan", light_rows.scan, **scanned, events=events, content=content)
    same("scan", light_rows.scan, "error", events=True)
    same("scan", light_rows.scan, key="-")
    for id in [*IDS, *history.some_links()]:
        same("history", described.history, id)
        same("versions", described.versions, id)
        same("what_superseded", superseding.what_superseded, id)
        same("inspect", inspected.inspect, id)
        same("operations", operations.operations, id)
        same("knows", ids.knows, id)
        for old, new in ((1, 2), (2, 1), (1, 10**20), (0, 1)):
            same("diff", described.diff, id, old, new)
    for text in history.beginnings():
        same("whole_id", ids.whole_id, text)
    for id in IDS:
        same("node", described.node, id)
        same("event", described.event, id)
        same("supersedes", linked.supersedes, id)
        for kinds in ((), *ASKED_KINDS):
            same("links_from", linked.links_from, id, kinds)
            same("backlinks_to", linked.backlinks_to, id, kinds)
        for depth in (1, 2, 5, 100):
            same("causes", chains.causes, id, depth)
            same("effects", chains.effects, id, depth)


ASKED_EVENTS: tuple[dict[str, Any], ...] = (
    *({"type": type} for type in (None, "error", "TEXT", "fact", "\ud800", 7)),
    *({"related_to": id} for id in (*THINGS, "no such", "alpha-v1", 7, "")),
    {"type": "error", "related_to": "alpha"},
    *({"pattern": pattern} for pattern in ("", "BROKE", "it", "no such", 7)),
    {"since": "2026-01-03"},
    {"until": "2026-01-04", "type": "error"},
    {"since": "2026-01-02", "until": "2026-01-05", "related_to": "event-a"},
    {"since": "2026-01-02", "until": "2026-01-05"},
    {"since": "2026-01-03", "until": "2026-01-03"},
    {"since": "2026-01-05", "until": "2026-01-03"},
    *({"since": since} for since in ("2d", "yesterday", "beginning", "open", "first", "snap: third", "2026-01-05T00:00", "", 7)),
    {"until": "now"},
)  # fmt: skip
ASKED_CONTENT = (
    {},
    {"says": "red"},
    {"says": "blue", "size": 1},
    {"size": True},
    {"size": 2.0},
    {"other": None},
    {"says": "\ud800"},
    {1: 2},
    "says",
)
LINK_FILTERS: tuple[dict[str, Any], ...] = (
    *({"group": group} for group in ("factual", "lifecycle", "custom", "semantic", "no such", 7)),
    *({"strength": strength} for strength in (1, 3, 4, 6)),
    *({"confidence": confidence} for confidence in ("inferred", "explicit", "maybe")),
    *({"created_by": name} for name in ("user", "agent:one", "\ud800", 7)),
    {"kinds": ("causes", "meets", "contradicts"), "group": "custom"},
    {
        "kinds": ("causes", "meets", "contradicts"),
        "group": "factual",
        "confidence": "explicit",
        "strength": 3,
    },
)
SENTENCES = (
    "caused_by",
    "causes",
    "meets",
    "contradicts",
    "superseded_by",
    "possibly_supports",
    "no such",
    7,
)
SETTINGS = ("points", "no such", "snapshot:first", "\ud800")


def compare_filtered(database: Database, view: Any) -> None:
    """Assert that the statements answer as a view does where a filter, a sentence or a setting is asked for."""
    point = point_of(database, view)

    def same(expected: Any, ask: Callable[..., Any], *args: Any, **named: Any) -> None:
        assert expected == outcome(ask, point, *args, **named), (args, named, str(view.at))

    for named in ASKED_EVENTS:
        same(outcome(view.events, **named), event_list.events, **named)
    for content in ASKED_CONTENT:
        named = {"kind": "fact", "content": content}
        same(outcome(view.nodes, **named), described.nodes, **named)
    for id in (*THINGS, "no such"):
        for named in LINK_FILTERS:
            for read in (linked.links_from, linked.backlinks_to):
                expected = outcome(getattr(view, read.__name__), id, **named)
                same(expected, read, id, **named)
    for source in (*THINGS, "alpha-v1", "no such"):
        for target in ("alpha", "bravo", "event-a"):
            for kind in SENTENCES:
                said = source, kind, target
                same(outcome(view.link_history, *said), linked.link_history, *said)
    same(view._names(), settings.snapshots)
    for name in SETTINGS:
        same(view._setting(name), settings.setting, name)


WALKED_KINDS = ((), *ASKED_KINDS, ("caused_by", "meets"), ("supported_by", "derived_from"), "contradicts")
DIRECTIONS = ("out", "in", "both", "sideways")


def compare_walks(database: Database, view: Any) -> None:
    """Assert that the statements walk as a view does."""
    point = point_of(database, view)

    def same(ask: Callable[..., Any], *args: Any, **named: Any) -> None:
        expected = outcome(getattr(view, ask.__name__), *args, **named)
        assert expected == outcome(ask, point, *args, **named), (ask.__name__, args, named, str(view.at))

    asked: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
    for roots, hops in product(
        ("alpha", "event-a", "alpha-v1", "no such", 7, [], ["bravo", "event-b", "bravo"]), (0, 1, 2, 9)
    ):
        asked.append((walks.walk, (roots,), {"hops": hops}))
    for ends in product((*THINGS, "no such"), (*THINGS, "alpha-v1", 7)):
        for more in ({}, {"by": "arrival"}, {"by": "luck"}, {"depth": 1}, {"depth": 0}):
            asked.append((walks.path, ends, more))
        for more in ({}, {"limit": 2}, {"limit": 0}, {"depth": 2}):
            asked.append((walks.paths, ends, more))
    chance = random.Random(str(view.at))
    for read, args, more in chance.sample(asked, 250):
        kinds, direction = chance.choice(WALKED_KINDS), chance.choice(DIRECTIONS)
        same(read, *args, kinds=kinds, direction=direction, **more)


def compare_with_others(database: Database, view: Any, history: History) -> None:
    """Assert that the statements find what differs between a view and some others as the views do."""
    for _ in range(4):
        there = history.coordinate()
        for named in (there, {**there, "tx": view.at.tx}, {**there, "valid": view.at.valid}):
            other = history.store.as_of(**named)
            for before, after in ((view, other), (other, view)):
                point, where = point_of(database, before), (instant(after.at.valid), instant(after.at.tx))
                found = differing.compare(point, *where)
                assert before.compare(after) == found, (str(before.at), str(after.at))
                assert before.compare(after).model_dump_json() == found.model_dump_json()
                table = field_changes(point, *where)
                assert before.changes_to(after).to_arrow() == table.to_arrow(), (
                    str(before.at),
                    str(after.at),
                )


def compare_shaky(database: Database, view: Any) -> None:
    """Assert that the statements find what is shaky, in order and by the ways that a view finds."""
    point = point_of(database, view)
    for limit in (None, 0, 1, 3):
        expected, found = outcome(view.shaky, limit), outcome(shaken.shaky, point, limit)
        assert expected == found, (limit, str(view.at))
        assert [*map(repr, expected)] == [*map(repr, found)]


def outcome(read: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The answer, or the class and the text of the error."""
    try:
        return read(*args, **named)
    except GraphStoreError as error:
        return type(error), str(error)


@contextmanager
def asked_beside(path: Path, view: Any) -> Iterator[Database]:
    """The ledger of a store; until the writer fills its standings, a copy in which those of one coordinate are the view's."""
    if STANDINGS_ARE_WRITTEN:
        with closing(Database(path / "ledger.db", read_only=True)) as database:
            yield database
        return
    with tempfile.TemporaryDirectory(prefix="graphstore-asked-") as folder:
        copy = Path(folder) / "ledger.db"
        with closing(sqlite3.connect(path / "ledger.db")) as whole, closing(sqlite3.connect(copy)) as part:
            whole.backup(part)
            write_standings(part, view)
        with closing(Database(copy, read_only=True)) as database:
            yield database


def write_standings(connection: sqlite3.Connection, view: Any) -> None:
    """Write the rows of `absence` and `shaky` that hold at the coordinate of a view."""
    valid, tx = instant(view.at.valid), instant(view.at.tx)
    here = (valid, tx, valid + 1, tx + 1)
    for number, id in connection.execute(
        "SELECT number, id FROM entity WHERE tx_from <= ?", (tx,)
    ).fetchall():
        standing = view.inspect(id).node.standing
        if standing == "shaky":
            connection.execute("INSERT INTO all_shaky VALUES (?, ?, ?, 0, ?, ?)", (number, *here))
        elif standing in ("superseded", "ended", "retracted"):
            connection.execute(
                "INSERT INTO all_absence VALUES (?, ?, ?, 0, ?, ?, ?)", (number, *here, standing)
            )
    connection.commit()
