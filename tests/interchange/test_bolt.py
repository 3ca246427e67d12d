"""The graph of a Bolt server: what it says is what the store says, each row is there once whenever the follower is killed. On a real server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import ConflictError, EngineError, GraphStore, InvalidError
from graphstore.interchange import bolt
from graphstore.interchange.flat_graph import flat_graph
from graphstore.store.change_feed import ChangeFeed
from graphstore.store.recipes import recipes
from tests.conftest import Clock
from tests.support import bolt as servers
from tests.support import lake_worker
from tests.support.cutting_proxy import CuttingProxy
from tests.support.world import fill_further

pytestmark = [pytest.mark.rest, pytest.mark.in_process("reads the rows of a store of its own")]
needs_server = pytest.mark.skipif(not servers.THERE, reason="needs arcadedb-embedded and neo4j")
DAYS = ("2026-01-20", "2026-02-01", "2026-02-04", "2026-05-01")
THINGS = {
    "Node": "id",
    "Version": "row",
    "Event": "id",
    "Occurrence": "row",
    "Op": "id",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[servers.BoltServer]:
    if not servers.THERE:
        pytest.skip("needs arcadedb-embedded and neo4j")
    with servers.bolt_server(tmp_path_factory.mktemp("bolt")) as made:
        yield made


@pytest.fixture
def database(server, monkeypatch) -> str:
    """The name of an empty one, which the environment lets in."""
    monkeypatch.setenv("NEO4J_USERNAME", servers.USER)
    monkeypatch.setenv("NEO4J_PASSWORD", servers.PASSWORD)
    return str(server.database())


@pytest.fixture
def graph(server, database) -> Iterator[bolt.BoltGraph]:
    with bolt.BoltGraph(server.uri, database=database) as made:
        yield made


@pytest.fixture
def folder(tmp_path) -> Path:
    """A store with something of everything, in it an event that was taken back for a while, and what was described often."""
    path = tmp_path / "store.gs"
    clock = Clock()
    with graphstore.open(path, clock=clock) as store:
        fill_further(store, clock)
        store.link("n", "uses", "fell", reason="it says so")
    return path


@pytest.fixture
def store(folder) -> Iterator[GraphStore]:
    with graphstore.open(folder, clock=Clock("2026-06-01")) as opened:
        yield opened


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({name: row[name] for name in sorted(row)} for row in rows), key=repr)


def same_history(server: Any, database: str, store: GraphStore) -> None:
    """Every row of the tables is there once, with the same properties, and every link between the same ends."""
    for label, key in THINGS.items():
        found = store.query_tables(f"MATCH (n:{label}) RETURN n LIMIT 1").rows()
        columns = [column for column in found[0]["n"] if not column.startswith("_")] if found else [key]
        asked = f"MATCH (n:{label}) RETURN {', '.join(f'n.{name} AS {name}' for name in columns)}"
        mine = {str(row[key]): row for row in store.query_tables(asked).rows()}
        theirs = server.ask(database, asked)
        assert len(mine) == len(theirs), label
        for row in theirs:
            expected = {name: value for name, value in mine[str(row[key])].items() if name != "row"}
            assert expected == {name: value for name, value in row.items() if name != "row"}
    names = "id kind reason strength confidence created_by metadata author told told_by remainder valid_from valid_to tx_from tx_to opened_by closed_by"
    asked = (
        f"MATCH (a)-[l]->(b) WHERE l.kind IS NOT NULL RETURN a.id AS a, b.id AS b, {', '.join(f'l.{name} AS {name}' for name in names.split())}"
    )  # fmt: skip
    assert ordered(store.query_tables(asked).rows()) == ordered(server.ask(database, asked))
    owned = "MATCH (n)-[:HAS_VERSION]->(v:Version) RETURN n.id AS id, v.ref AS ref, v.tx_from AS tx_from, v.valid_from AS valid_from"
    assert ordered(store.query_tables(owned).rows()) == ordered(server.ask(database, owned))


def same_coordinate(server: Any, database: str, view: Any) -> None:
    """The graph is that of the view, no thing and no link more, and says its coordinate."""
    flat = flat_graph(view, reserved=("shown",))
    [mark] = server.ask(database, "MATCH (w:Watermark) RETURN w.valid AS valid, w.tx AS tx, w.whole AS whole")
    assert (flat.at.valid, flat.at.tx, True) == (mark["valid"], mark["tx"], mark["whole"])
    found = {}
    for label in ("Node", "Event", "Absent"):
        for row in server.ask(database, f"MATCH (n:{label}) RETURN properties(n) AS p"):
            properties = {name: servers.plain(value) for name, value in row["p"].items() if name != "shown"}
            assert (label, properties["id"]) not in found, "there twice"
            found[label, properties["id"]] = properties
    assert {(one.label, one.id): one.properties for one in flat.things} == found
    ties = server.ask(
        database, "MATCH (a)-[l]->(b) RETURN a.id AS a, type(l) AS kind, b.id AS b, properties(l) AS p"
    )
    assert ordered(
        [{"a": tie.source.id, "kind": tie.kind.upper(), "b": tie.target.id, **{f"p.{name}": value for name, value in tie.properties.items()}} for tie in flat.ties]
    ) == ordered(
        [{"a": row["a"], "kind": row["kind"], "b": row["b"],
          **{f"p.{name}": servers.plain(value) for name, value in row["p"].items() if name != "shown"}} for row in ties]
    )  # fmt: skip


# ---------------------------------------------------------------------- the whole history


@needs_server
def test_the_history_there_is_that_of_the_store(store, server, database, graph):
    done = graph.write_new(ChangeFeed(store))

    assert done.changed > 80 and done.tx == str(store.changes()[-1].tx)
    same_history(server, database, store)
    assert 0 == graph.write_new(ChangeFeed(store)).changed


@needs_server
def test_questions_of_the_cookbook_are_answered_alike(store, server, database, graph):
    graph.write_new(ChangeFeed(store))
    asked = 0
    for name, recipe in recipes().items():
        if not recipe.tables or name == "learned_between":  # a duration of months there
            continue
        text = bolt.written_out(recipe.text)
        for valid in DAYS:
            for tx in DAYS:
                at = store.as_of(valid=valid, tx=tx).at
                given = {
                    "valid": at.valid,
                    "tx": at.tx,
                    "since": at.tx - timedelta(days=200),
                    "until": at.tx,
                    "id": "n",
                }
                given = {each: given[each] for each in recipe.parameters}
                mine, theirs = (
                    store.query_tables(recipe.text, **given).rows(),
                    server.ask(database, text, **given),
                )
                assert ordered(mine) == ordered(theirs), name
                asked += len(mine)
    assert asked > 100


@needs_server
def test_what_held_is_asked_by_plain_comparisons(store, server, database, graph):
    graph.write_new(ChangeFeed(store))
    held = (
        "MATCH (n:Node)-[:HAS_VERSION]->(v:Version) WHERE v.valid_from <= $valid AND $valid < v.valid_to "
        "AND v.tx_from <= $tx AND $tx < v.tx_to RETURN n.id AS id, v.ref AS ref ORDER BY id"
    )
    chain = (
        "MATCH p = (b:Node)-[:SUPERSEDES*1..5]->(a:Node {id: 'sessions'}) WHERE all(l IN relationships(p) WHERE l.tx_from <= $tx "
        "AND $tx < l.tx_to) RETURN DISTINCT b.id AS id"
    )
    for valid in DAYS:
        for tx in DAYS:
            view = store.as_of(valid=valid, tx=tx)
            at = {"valid": view.at.valid, "tx": view.at.tx}
            assert sorted((node.id, node.ref) for node in view.nodes()) == [
                (row["id"], row["ref"]) for row in server.ask(database, held, **at)
            ]
            steps = (
                view.what_superseded("sessions").chain
                if "sessions" in {each.subject for each in store.changes() if each.tx <= view.at.tx}
                else ()
            )
            links = {step.link.source for step in steps if step.link is not None}
            assert links == {row["id"] for row in server.ask(database, chain, **at)}


@needs_server
def test_a_follower_killed_after_any_commit_loses_nothing_and_doubles_nothing(
    folder, store, server, database
):
    store.close()
    killed = 0
    for step in (1, 1, 2, 3, 1, 5, 1, 2, 100):
        done = subprocess.run(
            [sys.executable, lake_worker.__file__, folder, f"{server.uri}/{database}", str(step)],
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode in (0, -signal.SIGKILL)
        killed += done.returncode != 0

    assert 8 == killed and 0 == done.returncode
    with graphstore.open(folder) as again:
        same_history(server, database, again)


@needs_server
def test_of_two_followers_one_is_refused(store, server, database, graph):
    graph.write_new(ChangeFeed(store))
    store.add_node("fact", {"late": True}, id="late")
    feed = ChangeFeed(store)
    [mark] = server.ask(database, "MATCH (w:Watermark) RETURN w.nodes AS nodes")
    graph.write_new(feed)

    since = bolt._position(mark["nodes"])
    [(part, after)] = feed.parts("nodes", since, feed.goal()["nodes"])
    with pytest.raises(ConflictError, match="somebody else"):
        graph._move("nodes", since, after, list(graph._steps(feed, "nodes", part, since, after)))
    same_history(server, database, store)


@needs_server
def test_a_commit_whose_answer_was_lost_is_not_taken_for_that_of_another(store, server, database, graph):
    graph.write_new(ChangeFeed(store))
    move = {"token": "mine", "before": "1 2 3", "after": "4 5 6"}
    server.ask(database, "MATCH (w:Watermark) SET w.nodes = '4 5 6', w.moved_by = 'mine'")

    graph._write(
        [("RETURN 1 / 0", [{}], False)], (bolt.text("bolt_move", TABLE="nodes"), move)
    )  # and nothing is run

    [found] = server.ask(database, "MATCH (w:Watermark) RETURN w.nodes AS nodes")
    assert "4 5 6" == found["nodes"]


@needs_server
def test_what_is_erased_is_not_there(tmp_path, server, database, graph):
    with graphstore.open(tmp_path / "store.gs") as store:
        store.add_node("fact", {"secret": "kiwi-7731"}, id="gone", reason="because kiwi-7731")
        store.add_node("fact", {"open": "pear-1"}, id="stays")
        store.link("stays", "uses", "gone", reason="for kiwi-7731")
        store.record_event("error", "kiwi-7731 fell", id="fell")
        graph.write_new(ChangeFeed(store))
        assert "kiwi" in repr(server.ask(database, "MATCH (n) RETURN properties(n)"))

        store.erase("gone", reason="asked for")
        store.erase("fell", reason="asked for")
        graph.write_new(ChangeFeed(store))

        same_history(server, database, store)
    said = server.ask(database, "MATCH (n) RETURN properties(n)") + server.ask(
        database, "MATCH ()-[l]->() RETURN properties(l)"
    )
    assert "pear" in repr(said) and "kiwi" not in repr(said)


@needs_server
def test_the_graph_of_another_is_refused(store, server, database, graph):
    graph.write_new(ChangeFeed(store))
    with pytest.raises(ConflictError, match="history of this store"):
        graph.show(store)
    with graphstore.open(":memory:") as other:
        other.add_node("fact", {}, id="other")
        with pytest.raises(ConflictError, match="history of another store"):
            graph.write_new(ChangeFeed(other))
    mine = server.database()
    server.ask(mine, "CREATE (:Node {id: 'of somebody'})")
    with (
        bolt.BoltGraph(server.uri, database=mine) as theirs,
        pytest.raises(ConflictError, match="are of no store"),
    ):
        theirs.write_new(ChangeFeed(store))
    assert [{"id": "of somebody"}] == server.ask(mine, "MATCH (n) RETURN n.id AS id")


# ---------------------------------------------------------------------- a coordinate


@needs_server
def test_the_graph_of_a_coordinate_is_that_of_the_view(store, server, database, graph):
    for valid, tx in [(None, None), ("2026-01-20", "2026-05-01"), ("2026-05-01", "2026-02-04"), (None, None)]:
        view = store.as_of(valid=valid, tx=tx)
        graph.show(store, valid=view.at.valid, tx=view.at.tx)
        same_coordinate(server, database, view)


@needs_server
def test_only_what_differs_is_written_and_what_is_over_goes(store, server, database, graph):
    graph.show(store)
    store.add_node(
        "fact", {"auth": "passkeys"}, id="passkeys", supersedes=["jwt"], reason="newer", source="adr:9"
    )
    store.end("n")
    store.record_event("error", "again", id="again")

    done = graph.show(store)

    assert 0 < done.changed < 12
    same_coordinate(server, database, store.as_of())
    assert [{"id": "jwt"}] == server.ask(
        database, "MATCH (:Node {id: 'passkeys'})-[:SUPERSEDES]->(b:Absent) RETURN b.id AS id"
    )
    store.undo(store.changes()[-1], reason="not at all")
    with bolt.BoltGraph(server.uri, database=database) as again:  # that knows of nothing written before
        again.show(store)
    same_coordinate(server, database, store.as_of())


@needs_server
def test_a_large_change_is_whole_or_says_that_it_is_not(store, server, database, graph, monkeypatch):
    monkeypatch.setattr(bolt, "PART", 5)
    wrote = graph._write

    def cut_off(steps: Any, move: Any = None) -> None:
        wrote(steps, move)
        raise KeyboardInterrupt

    monkeypatch.setattr(graph, "_write", cut_off)
    with pytest.raises(KeyboardInterrupt):
        graph.show(store)
    assert [{"whole": False}] == server.ask(database, "MATCH (w:Watermark) RETURN w.whole AS whole")
    monkeypatch.setattr(graph, "_write", wrote)

    graph.show(store)

    same_coordinate(server, database, store.as_of())


# ---------------------------------------------------------------------- what is refused, the command


@pytest.mark.parametrize(
    "address, says",
    [
        ("http://one", "no address of a Bolt server"),
        ("bolt://", "no address"),
        ("bolt://a:b@one", "NEO4J_PASSWORD"),
    ],
)
def test_a_wrong_address_is_refused(address, says):
    with pytest.raises(InvalidError, match=says):
        bolt.BoltGraph(address)


def test_without_the_driver_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "neo4j", None)
    with pytest.raises(InvalidError, match=r"pip install 'graphstore\[bolt\]'"):
        bolt.BoltGraph("bolt://one")


@needs_server
def test_a_wrong_password_and_a_server_that_is_not_there_are_said(store, server, database):
    with (
        bolt.BoltGraph(server.uri, database=database, password="wrong") as wrong,
        pytest.raises(EngineError, match="NEO4J_PASSWORD"),
    ):
        wrong.write_new(ChangeFeed(store))
    with (
        bolt.BoltGraph("bolt://127.0.0.1:1") as nobody,
        pytest.raises(EngineError, match="cannot be written"),
    ):
        nobody.write_new(ChangeFeed(store))


@needs_server
@pytest.mark.parametrize("history", [True, False])
def test_a_follower_goes_on_when_the_server_comes_back(folder, store, server, database, tmp_path, history):
    proxy, said = CuttingProxy(server.port), tmp_path / "said"
    address = f"bolt://127.0.0.1:{proxy.port}"
    words = ["project", str(folder), address, "--database", database, "--every", "0.05", "--json"]
    with said.open("wb") as err:
        follower = subprocess.Popen(
            [sys.executable, "-m", "graphstore", *words, *(["--history"] if history else [])],
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
        )

    def within(true: Callable[[], object]) -> None:
        until = time.monotonic() + 60
        while not true():
            assert follower.poll() is None and time.monotonic() < until, said.read_text()
            time.sleep(0.05)

    def counted() -> int:
        asked = "MATCH (n:Node) WHERE n.id STARTS WITH 'told-' RETURN count(n) AS count"
        return int(server.ask(database, asked)[0]["count"])

    try:
        assert follower.stdout is not None and "changed" in follower.stdout.readline()
        proxy.close()
        store.add_node("fact", {"n": 1}, id="told-1")
        within(lambda: "It is tried again." in said.read_text())
        proxy = CuttingProxy(server.port, proxy.port)
        within(lambda: "It goes on, after" in said.read_text() and counted() == 1)
        for number, when in enumerate(("before", "middle", "after"), 2):
            proxy.cut(f"told-{number}".encode(), when)
            store.add_node("fact", {"n": number}, id=f"told-{number}")
            within(lambda number=number: counted() == number)
        assert 3 == proxy.cuts
    finally:
        os.kill(follower.pid, signal.SIGTERM)
        assert 0 == follower.wait(30), said.read_text()
        proxy.close()
    if history:
        same_history(server, database, store)
    else:
        assert 4 == counted()


@needs_server
@pytest.mark.parametrize("history", [True, False])
def test_the_command_follows_the_store(folder, store, server, database, history):
    words = ["project", str(folder), server.uri, "--database", database, "--every", "0.05", "--json"]
    follower = subprocess.Popen(
        [sys.executable, "-m", "graphstore", *words, *(["--history"] if history else [])],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    try:
        assert follower.stdout is not None and "changed" in follower.stdout.readline()
        for number in range(30):
            store.add_node("fact", {"n": number}, id=f"told-{number}")
        until = time.monotonic() + 30
        while (
            30
            > server.ask(database, "MATCH (n:Node) WHERE n.id STARTS WITH 'told-' RETURN count(n) AS count")[
                0
            ]["count"]
        ):
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        os.kill(follower.pid, signal.SIGTERM)
        assert 0 == follower.wait(30)
    if history:
        same_history(server, database, store)
