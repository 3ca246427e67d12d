"""The statements of `sql/` find their rows by key, and have the columns of their models."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore.errors import DamageError, GraphStoreError, NotFoundError
from graphstore.graph import graph_from_rows, history_from_rows
from graphstore.ledger import closings, forgotten_bodies
from graphstore.ledger.database import Database
from graphstore.ledger.statements import Statement, schema_statements
from graphstore.read import (
    chains,
    counted,
    described,
    differing,
    happened,
    ids,
    index_of_rows,
    inspected,
    link_story,
    linked,
    operations,
    points,
    settings,
    superseding,
    walks,
)
from graphstore.search import message_rows, model_vectors, name_rows, row_search
from graphstore.store import briefing, change_feed, forgetting
from graphstore.values.period import instant
from graphstore.view import history_rows, shaken, sight
from graphstore.write import retention

pytestmark = pytest.mark.in_process("asks the ledger of the store")

MODULES = (
    briefing, chains, closings, counted, described, differing, forgotten_bodies, happened, ids, index_of_rows,
    inspected, link_story, linked, message_rows, model_vectors, name_rows, operations, points, change_feed, forgetting, graph_from_rows, history_from_rows, retention, row_search,
    settings, shaken, sight, history_rows, superseding, walks,
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


@pytest.mark.parametrize("name", [name for name in STATEMENTS if name.startswith("brief_")])
def test_a_briefing_reads_no_table_whole_but_for_shaky_rows_and_the_beginnings_of_periods(name, empty):
    statement = STATEMENTS[name]
    own = {
        "found",
        "confirmed",
        "ground",
        "grounds",
        "described",
        "recent",
        "written",
        "last",
        "j",
        "CONSTANT",
        "all_shaky",
        "all_period",
        "all_absence",
    }

    plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {statement.text}", parameters(statement))]

    scans = [
        line
        for line in plan
        if line.startswith("SCAN") and line.split()[1] not in own and "subquery" not in line
    ]
    assert [] == [
        line for line in scans if "VIRTUAL TABLE" not in line and "INDEX confirmation" not in line
    ], plan


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
KINDS = (
    "derived_from", "caused_by", "caused_by", "resolved_by", "contradicts", "supports", "led_to", "meets", "corrects",
    "same_topic",
)  # fmt: skip


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
