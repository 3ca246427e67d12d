"""The graph tables: grown and rebuilt they are the same, and no state of their file on disk can do harm."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

import graphstore
from graphstore import GraphStore
from graphstore.errors import GraphStoreError
from graphstore.graph import projection
from tests.conftest import Clock

pytestmark = [pytest.mark.in_process("looks into the graph tables"), pytest.mark.driver]

DRIVER = os.environ.get("GRAPHSTORE_DRIVER", "kuzu")
open_store = partial(graphstore.open, driver=DRIVER)
KINDS = ("supersedes", "caused_by", "contradicts", "continuation", "related_to", "uses", "blocks")
Dump = dict[str, list[tuple[Any, ...]]]


def test_tables_that_take_long_to_follow_are_named_in_the_log(tmp_path, monkeypatch, caplog):
    with open_store(tmp_path / "memory.gs") as store:
        store.add_node("fact", {"n": 1}, id="one")
        monkeypatch.setattr(projection, "SLOW", 0.0)
        store.query_tables("MATCH (n:Node) RETURN n.id")
        [message] = caplog.messages
        assert re.fullmatch(r"the graph tables of .*graph\.kuzu took \d+\.\d seconds to follow", message)


# ------------------------------------------------------------------ a random life of a store


def wander(store: GraphStore, clock: Clock, steps: int, seed: int) -> None:
    """Many verbs of every sort, on both axes; those the store refuses are part of it."""
    chance = random.Random(seed)
    for _ in range(steps):
        clock.move(minutes=chance.randint(0, 90))
        try:
            step(store, clock, chance)
        except GraphStoreError:
            continue


def step(store: GraphStore, clock: Clock, chance: random.Random) -> None:
    things = known(store)
    nodes = [id for id, event in things if not event]
    verb = chance.choice(
        [
            "add",
            "add",
            "event",
            "revise",
            "revise",
            "supersede",
            "end",
            "retract",
            "link",
            "link",
            "link",
            "unlink",
            "many",
        ]
    )
    start = clock.now + timedelta(days=chance.randint(-40, 10))
    stop = chance.choice([None, start + timedelta(days=chance.randint(1, 30))])
    if verb == "add" or len(nodes) < 2:
        content = {
            "name": f"node {chance.random():.3f}",
            "rank": chance.randint(0, 9),
            "it's": "`}) DETACH DELETE n //",
        }
        store.add_node(
            chance.choice(["fact", "rule"]),
            content,
            text="text",
            tags=["a", "b"][: chance.randint(0, 2)],
            valid_from=start,
            valid_to=stop,
        )
    elif verb == "event":
        store.record_event(
            "error",
            f"failed {int(4 * chance.random())}",
            occurred_at=start,
            metadata={"code": chance.randint(0, 9)},
        )
    elif verb == "revise":
        store.revise(
            chance.choice(nodes),
            {"rank": chance.random(), "note": None},
            valid_from=start,
            valid_to=stop,
            reason="looked again",
        )
    elif verb == "supersede":
        store.supersede(chance.choice(nodes), by=chance.choice(nodes), reason="moved on")
    elif verb == "end":
        store.end(chance.choice(nodes), at=start)
    elif verb == "retract":
        store.retract(chance.choice(things)[0], reason="never so")
    elif verb == "link":
        ends = chance.sample(things, 2)
        confidence = chance.choice(["explicit", "inferred"])
        store.link(
            ends[0][0], chance.choice(KINDS), ends[1][0], reason="seen", strength=chance.choice([None, 1, 5]),
            confidence=confidence, valid_from=start, valid_to=stop, metadata={"by": ["hand"]},
        )  # fmt: skip
    elif verb == "unlink":
        links = [link for id in nodes[:20] for link in store.links_from(id)]
        if links:
            store.unlink(chance.choice(links).id, valid_from=chance.choice([None, clock.now]))
    else:
        with store.transaction(reason="all at once"):
            first = store.add_node("fact", {"rank": 1}, valid_from=start)
            store.retract(first.id, reason="at once")
            second = store.add_node("fact", {"rank": 2}, valid_from=start)
            store.link(second.id, "related_to", first.id)
            store.supersede(chance.choice(nodes), by=second.id)


def known(store: GraphStore) -> list[tuple[str, bool]]:
    """Every id of the store and whether it is an event."""
    rows = store._core.rows.database.rows("SELECT id, is_event FROM entity ORDER BY number")
    return [(id, bool(is_event)) for id, is_event in rows]


# ------------------------------------------------------------------ looking at the tables


def dump(store: GraphStore) -> Dump:
    """Every row of every table, in order."""
    ends = "label(a), a.id, label(b), b.id"
    names = [
        row["name"] for row in store.query_tables("CALL show_tables() WHERE type = 'REL' RETURN name").rows()
    ]
    found = {
        label: sorted_rows(store, f"MATCH (n:{label}) RETURN n")
        for label in ("Node", "Version", "Event", "Occurrence", "Op")
    }
    found["HAS_OCCURRENCE"] = sorted_rows(store, "MATCH (e)-[:HAS_OCCURRENCE]->(o) RETURN e.id, o.row")
    found["HAS_VERSION"] = sorted_rows(store, "MATCH (n)-[:HAS_VERSION]->(v) RETURN n.id, v.row")
    for name in names:
        if name not in ("HAS_VERSION", "HAS_OCCURRENCE"):
            rows = sorted_rows(store, f"MATCH (a)-[r:`{name}`]->(b) RETURN {ends}, r")
            if rows:
                found[name] = rows
    return found


def sorted_rows(store: GraphStore, cypher: str) -> list[tuple[Any, ...]]:
    rows = [
        tuple(tuple(sorted(v.items())) if isinstance(v, dict) else v for v in row.values())
        for row in store.query_tables(cypher)
    ]
    return sorted(rows, key=repr)


@pytest.fixture
def disk_store(tmp_path: Path, clock: Clock) -> Iterator[GraphStore]:
    """An empty store in a folder, on the driver that is tested."""
    with open_store(tmp_path / "memory.gs", clock=clock) as opened:
        yield opened


@pytest.fixture
def lived(tmp_path: Path, clock: Clock) -> Iterator[GraphStore]:
    """A store on disk with 60 steps behind it, its tables never opened."""
    with open_store(tmp_path / "memory.gs", clock=clock) as store:
        wander(store, clock, 40, seed=1)
        yield store


@pytest.fixture(scope="module")
def closed_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Dump, Clock]:
    """What `closed` copies: the store, what its tables held, and its clock."""
    path, clock = tmp_path_factory.mktemp("closed") / "memory.gs", Clock()
    with open_store(path, clock=clock) as store:
        wander(store, clock, 40, seed=1)
        return path, dump(store), clock


@pytest.fixture
def closed(closed_once: tuple[Path, Dump, Clock], tmp_path: Path, clock: Clock) -> tuple[Path, Dump]:
    """The folder of a store closed well after its tables were used, and what they held."""
    path, held, then = closed_once
    clock.now = then.now
    return shutil.copytree(path, tmp_path / "memory.gs"), held


def reopened(path: Path, clock: Clock) -> tuple[Dump, list[str]]:
    with open_store(path, clock=clock) as store:
        return dump(store), list(store.notices)


# ------------------------------------------------------------------ growing and rebuilding


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.rest)])
def test_tables_that_grew_equal_tables_rebuilt(disk_store: GraphStore, clock: Clock, seed: int) -> None:
    for part in range(6):
        wander(disk_store, clock, 15, seed=100 * seed + part)
        disk_store.query_tables("MATCH (n:Node) RETURN count(*)")
    grown = dump(disk_store)
    assert disk_store._core.graphs.verify() == []

    disk_store.rebuild()

    assert dump(disk_store) == grown
    assert disk_store._core.graphs.verify() == []


def test_tables_follow_every_reopening(disk_store: GraphStore, clock: Clock) -> None:
    path = disk_store.path
    disk_store.close()
    for part in range(4):
        with open_store(path, clock=clock) as store:
            wander(store, clock, 12, seed=part)
            store.query_tables("RETURN 1")
            assert store.notices == []

    with open_store(path, clock=clock) as store:
        grown = dump(store)
        assert store._core.graphs.verify() == []
        assert store.notices == []
        store.rebuild()
        assert dump(store) == grown


def test_an_event_whose_retraction_is_undone_is_believed_again_in_tables_that_grew(
    disk_store: GraphStore,
) -> None:
    def ends() -> dict[str, tuple[object, object]]:
        rows = disk_store.query_tables(
            "MATCH (e:Event) RETURN e.id AS id, e.tx_to AS till, e.closed_by AS by"
        )
        return {row["id"]: (row["till"], row["by"]) for row in rows}

    for id in ("back", "gone", "between"):
        disk_store.record_event("error", id, id=id)
    assert {(None, None)} == set(ends().values())
    for id in ("back", "gone", "between"):
        disk_store.retract(id, reason="wrong")
    assert (None, None) not in ends().values()
    for change in disk_store.changes()[-1:-4:-2]:
        disk_store.undo(change.tx, reason="it was right")
    with disk_store.transaction():
        disk_store.retract("back", reason="perhaps")
        assert [(None, None)] * 2 == [ends()[id] for id in ("back", "between")]
        disk_store.retract("between", reason="perhaps")

    grown = ends()

    assert (None, None) not in grown.values()
    assert disk_store._core.graphs.verify() == []
    disk_store.rebuild()
    assert grown == ends()


def test_tables_in_memory_equal_tables_on_disk(lived: GraphStore, clock: Clock) -> None:
    with open_store(lived.path, clock=clock, read_only=True) as follower:
        assert dump(follower) == dump(lived)


def test_writes_come_into_the_tables_without_being_asked_for(lived: GraphStore) -> None:
    lived.query_tables("RETURN 1")

    added = lived.add_node("fact", {"name": "new"})

    assert [added.id] == [
        row["id"] for row in lived.query_tables("MATCH (n:Node {id: $id}) RETURN n.id AS id", id=added.id)
    ]


def test_a_transaction_still_open_does_not_show(lived: GraphStore) -> None:
    before = dump(lived)
    node = lived.nodes()[0]

    with lived.transaction():
        lived.add_node("fact", {"name": "pending"})
        lived.retract(node.id, reason="perhaps")
        assert dump(lived) == before
    assert len(dump(lived)["Node"]) == len(before["Node"]) + 1
    assert lived._core.graphs.verify() == []


def test_a_transaction_that_failed_leaves_no_trace(lived: GraphStore) -> None:
    before = dump(lived)

    with pytest.raises(RuntimeError), lived.transaction():
        lived.retract(lived.nodes()[0].id, reason="perhaps")
        lived.query_tables("RETURN 1")
        raise RuntimeError
    lived.add_node("fact", {"name": "after"})

    assert len(dump(lived)["Version"]) == len(before["Version"]) + 1
    assert lived._core.graphs.verify() == []


def test_tables_never_asked_for_are_never_made(lived: GraphStore) -> None:
    path = lived.path
    lived.close()

    assert not list(path.rglob("graph.kuzu*"))


def test_many_closings_are_checkpointed(disk_store: GraphStore, clock: Clock) -> None:
    with disk_store.transaction():
        ids = [disk_store.add_node("fact", {"n": n}).id for n in range(2500)]
    disk_store.query_tables("RETURN 1")
    clock.move(days=1)
    with disk_store.transaction():
        for id in ids:
            disk_store.revise(id, {"n": -1})

    assert disk_store._core.graphs.verify() == []
    assert disk_store.query_tables(
        "MATCH (v:Version) WHERE v.closed_by IS NOT NULL RETURN count(*) AS n"
    ).single() == {"n": 2500}


def test_a_kind_of_200_characters_is_a_table_like_any_other(disk_store: GraphStore) -> None:
    a, b = (disk_store.add_node("fact", {"n": n}).id for n in (1, 2))
    names = ["k" * 200, "k" * 199 + "j"]
    for name in names:
        disk_store.define_kind(name)
        disk_store.link(a, name, b)
        assert 1 == len(disk_store.query(f"MATCH (:Node)-[r:{name.upper()}]->(:Node) RETURN r.id"))
    disk_store.promote_kind(names[0])

    assert [{"kind": names[0]}] == disk_store.query_tables(
        f"MATCH (:Node)-[r:{names[0].upper()}]->(:Node) RETURN r.kind AS kind"
    ).rows()
    assert [{"kind": names[1]}] == disk_store.query_tables(
        "MATCH (:Node)-[r:LINK]->(:Node) RETURN r.kind AS kind"
    ).rows()
    assert disk_store._core.graphs.verify() == []


def test_promoting_a_kind_moves_its_links_to_a_table_of_their_own(disk_store: GraphStore) -> None:
    a, b = (disk_store.add_node("fact", {"n": n}).id for n in (1, 2))
    disk_store.define_kind("owns")
    for kind in ("blocks", "owns"):
        disk_store.link(a, kind, b)
    disk_store.query_tables("MATCH (:Node)-[r:LINK]->(:Node) RETURN r.kind")

    for kind in ("blocks", "owns"):
        disk_store.promote_kind(kind)

    assert disk_store.query_tables("MATCH (:Node)-[r:BLOCKS]->(:Node) RETURN r.kind AS kind").rows() == [
        {"kind": "blocks"}
    ]
    assert disk_store.query_tables("MATCH (:Node)-[r:OWNS]->(:Node) RETURN r.kind AS kind").rows() == [
        {"kind": "owns"}
    ]
    assert disk_store.query_tables("MATCH (:Node)-[r:LINK]->(:Node) RETURN r.kind").rows() == []
    assert disk_store._core.graphs.verify() == []


def test_rebuild_reports_progress(lived: GraphStore) -> None:
    seen: list[tuple[int, int]] = []

    lived.rebuild(progress=lambda at, total: seen.append((at, total)))

    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] > 0


def test_a_view_as_arrow_is_the_nodes_of_the_view(lived: GraphStore, clock: Clock) -> None:
    for valid, tx in (
        (clock.now, clock.now),
        (clock.now - timedelta(days=9), clock.now - timedelta(hours=9)),
    ):
        view = lived.as_of(valid=valid, tx=tx)
        expected = [node.model_dump(exclude={"standing"}) for node in view.nodes()]

        rows = view.to_arrow().to_pylist()

        for row in rows:
            row["content"], row["tags"] = orjson.loads(row["content"]), tuple(row["tags"])
        assert sorted(rows, key=lambda row: row["id"]) == sorted(expected, key=lambda row: row["id"])


def test_an_open_transaction_sees_itself_as_arrow(disk_store: GraphStore) -> None:
    disk_store.add_node("fact", {"name": "before"})

    with disk_store.transaction():
        disk_store.add_node("fact", {"name": "pending"}, tags=["a"])
        rows = disk_store.to_arrow().to_pylist()

    assert sorted(row["content"] for row in rows) == ['{"name":"before"}', '{"name":"pending"}']


def test_a_rebuild_that_is_interrupted_does_no_harm(lived: GraphStore) -> None:
    expected = dump(lived)

    def interrupt(at: int, total: int) -> None:
        if 2 * at > total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lived.rebuild(progress=interrupt)

    assert dump(lived) == expected
    assert lived._core.graphs.verify() == []


def test_tables_that_cannot_be_written_do_not_keep_a_store_from_closing(
    lived: GraphStore, clock: Clock
) -> None:
    lived.query_tables("RETURN 1")
    lived.add_node("fact", {"name": "late"})
    expected = len(known(lived))
    state_file(lived.path).with_name("graph.json.new").mkdir()

    lived.close()

    assert any("graph tables left as they are" in notice for notice in lived.notices)
    state_file(lived.path).with_name("graph.json.new").rmdir()
    with open_store(lived.path, clock=clock) as store:
        assert expected == len(dump(store)["Node"]) + len(dump(store).get("Event", []))


def test_content_stays_as_it_is_in_the_tables(disk_store: GraphStore) -> None:
    contents = [
        {},
        {"salt": "own", "nested": {"salt": "deep", "list": [{"salt": "x"}]}},
        {"text": '","salt":"', "tags": ["\\", '"}', "'"]},
        {"odd": "\u0000\u2028\u202e\U0001f600é\ufffe", "cypher": "'}) MATCH (n) DETACH DELETE n //"},
        {"big": "x" * 100_000, "number": 2**63, "small": -1e-300, "none": None},
    ]
    for content in contents:
        disk_store.add_node("fact", content, text='a,"salt":"b', tags=['","salt":"'], source="`$x`")

    rows = disk_store.query_tables(
        "MATCH (v:Version) RETURN v.content AS content, v.text AS text, v.tags AS tags, v.source AS source"
    ).rows()

    assert sorted(orjson.dumps(c, option=orjson.OPT_SORT_KEYS).decode() for c in contents) == sorted(
        row["content"] for row in rows
    )
    assert {(row["text"], *row["tags"], row["source"]) for row in rows} == {
        ('a,"salt":"b', '","salt":"', "`$x`")
    }


# ------------------------------------------------------------------ what the file can be like


def test_tables_closed_well_are_taken_as_they_are(closed: tuple[Path, Dump], clock: Clock) -> None:
    path, held = closed
    before = table_file(path).read_bytes()

    assert reopened(path, clock) == (held, [])
    assert table_file(path).read_bytes() == before


def table_file(path: Path) -> Path:
    return next(path.rglob("graph.kuzu"))


def state_file(path: Path) -> Path:
    return next(path.rglob("graph.json"))


def change_state(path: Path, **fields: Any) -> None:
    state = orjson.loads(state_file(path).read_bytes())
    state_file(path).write_bytes(orjson.dumps({**state, **fields}))


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 0x55
    file.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: table_file(path).unlink(),
    "empty": lambda path: table_file(path).write_bytes(b""),
    "cut": lambda path: table_file(path).write_bytes(table_file(path).read_bytes()[:-4096]),
    "longer": lambda path: table_file(path).write_bytes(table_file(path).read_bytes() + b"\0" * 4096),
    "noise": lambda path: table_file(path).write_bytes(random.Random(1).randbytes(50_000)),
    "left dirty": lambda path: change_state(path, clean=False),
    "another engine": lambda path: change_state(path, engine="kuzu 0.9"),
    "another schema": lambda path: change_state(path, schema=0),
    "another digest": lambda path: change_state(path, digest="0" * 32),
    "another instant": lambda path: change_state(path, last_tx=1),
    "ahead of the journal": lambda path: change_state(
        path, mark={**orjson.loads(state_file(path).read_bytes())["mark"], "rows": 10**6}
    ),
    "a mark of words": lambda path: change_state(path, mark={"rows": "many"}),
    "no tables named": lambda path: change_state(path, tables=None),
    "state deleted": lambda path: state_file(path).unlink(),
    "state cut": lambda path: state_file(path).write_bytes(state_file(path).read_bytes()[:40]),
    "state a list": lambda path: state_file(path).write_bytes(b"[]"),
    "a log left over": lambda path: table_file(path).with_name("graph.kuzu.wal").write_bytes(b"left over"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_tables_are_rebuilt_with_a_word(closed: tuple[Path, Dump], clock: Clock, damage: str) -> None:
    path, held = closed
    DAMAGES[damage](path)

    found, notices = reopened(path, clock)

    assert found == held
    assert len(notices) == 1
    assert notices[0].startswith("graph tables rebuilt: ")
    assert reopened(path, clock) == (held, [])


def test_a_flipped_byte_anywhere_is_found(closed: tuple[Path, Dump], clock: Clock) -> None:
    path, held = closed
    whole = table_file(path).read_bytes()
    chance = random.Random(7)
    for at in [0, 9, len(whole) - 1, chance.randrange(len(whole))]:
        flip(table_file(path), at)

        found, notices = reopened(path, clock)

        assert (at, found, len(notices)) == (at, held, 1)


def test_tables_of_another_journal_are_not_believed(closed: tuple[Path, Dump], tmp_path: Path) -> None:
    path, _ = closed
    other = tmp_path / "other.gs"
    clock = Clock()
    with open_store(other, clock=clock) as store:
        wander(store, clock, 80, seed=2)
        expected = dump(store)
    for name in (table_file(path), state_file(path)):
        shutil.copy(name, other / name.relative_to(path))

    found, notices = reopened(other, clock)

    assert found == expected
    assert len(notices) == 1


def test_tables_of_an_older_moment_catch_up(closed: tuple[Path, Dump], clock: Clock, tmp_path: Path) -> None:
    path, _ = closed
    kept = [(name, name.read_bytes()) for name in (table_file(path), state_file(path))]
    with open_store(path, clock=clock) as store:
        wander(store, clock, 30, seed=3)
        expected = dump(store)
    for name, data in kept:
        name.write_bytes(data)

    assert reopened(path, clock) == (expected, [])


def test_tables_left_open_by_a_crash_are_rebuilt(lived: GraphStore, clock: Clock, tmp_path: Path) -> None:
    held = dump(lived)
    crashed = tmp_path / "crashed.gs"
    shutil.copytree(lived.path, crashed)

    found, notices = reopened(crashed, clock)

    assert found == held
    assert len(notices) == 1


def test_verify_names_a_row_that_differs(lived: GraphStore) -> None:
    engine = lived._core.graphs.tables()
    engine.run("MATCH (v:Version {row: '0'}) SET v.closed_by = 'nobody'")

    problems = lived._core.graphs.verify()

    assert len(problems) == 1
    assert "Version, row '0': closed_by is 'nobody'" in problems[0].message
