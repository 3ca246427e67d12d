"""Named queries: how their texts are found and put together, what they answer on tables filled by hand, and that the
one-hop reads say what the store says from memory."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import graphstore
from graphstore.errors import InvalidError, QueryError
from graphstore.graph import texts
from graphstore.graph.engine import Engine
from graphstore.graph.guard import check_aggregates, guard
from graphstore.graph.statement import parse
from graphstore.values.vocabulary import KINDS
from tests.support import named_queries as queries

pytestmark = pytest.mark.driver

SYMMETRIC = [kind.name for kind in KINDS.values() if kind.symmetric]
DRIVER = os.environ.get("GRAPHSTORE_DRIVER", "kuzu")
FOREVER = datetime.max.replace(tzinfo=UTC)
READING = {"reads.cypher", "cookbook.cypher"}


def read_anew() -> None:
    """Forget the texts that were read."""
    for read in (texts.sections, texts.macros):
        read.cache_clear()


def day(number: int) -> datetime:
    """A day of January 2026."""
    return datetime(2026, 1, number, tzinfo=UTC)


# --------------------------------------------------------------------------------------------------- texts, macros, holes


def test_every_named_text_has_a_sentence() -> None:
    for section in texts.sections().values():
        assert section.doc.endswith("."), section.name
        assert section.text, section.name


def test_no_macro_and_no_comment_mark_is_left_in_a_text() -> None:
    for section in texts.sections().values():
        for macro in ("AS_OF(", "BELIEVED(", "KNOWN(", "TX_TO(", "_COLUMNS("):
            assert macro not in section.text, section.name


def test_the_temporal_filter_is_written_once() -> None:
    written = [
        path.name
        for path in texts.folder().rglob("*.cypher")
        if "<= $valid" in path.read_text(encoding="utf-8")
    ]

    assert sorted(written) == ["as_of.cypher", "schema.cypher"]  # the second tells it to a reader
    assert "v.valid_from <= $valid AND $valid < v.valid_to" in texts.text("node_as_of")
    assert texts.text("node_as_of").count("CASE WHEN v.valid_from") == 1


def test_shipped_reads_only_read_and_keep_their_aggregates_in_order() -> None:
    for section in texts.sections().values():
        if section.file in READING:
            guard(parse(section.text))
            check_aggregates(parse(section.text))


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidError, match="Did you mean 'links_from'"):
        texts.text("link_from")
    with pytest.raises(InvalidError, match="unknown query"):
        queries.query("nothing_like_it", queries.LinkRow)


@pytest.mark.parametrize("filling", ["", "A`B", "A B", "A; DROP TABLE Node", "1A", "Ä", "A\n"])
def test_a_hole_takes_plain_names_only(filling: str) -> None:
    with pytest.raises(InvalidError, match="kind of a query"):
        texts.text("link_table", KIND=filling)


def test_a_hole_is_filled_wherever_it_stands() -> None:
    text = texts.text("close_links", KIND="SUPERSEDES", SOURCE="Node", TARGET="Event")

    assert "MATCH (a:`Node` {id: source})-[l:`SUPERSEDES`]->(b:`Event` {id: target})" in text
    assert "__" not in text


def test_macros_within_macros_are_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cypher").write_text(
        "// name: one\n// What is one.\nRETURN ONE(1) AS x\n\n// macro: ONE(x)\n// It.\nx + TWO(x)\n// macro: TWO(y)\ny * 2\n"
    )
    monkeypatch.setattr(texts, "folder", lambda: tmp_path)
    read_anew()
    try:
        assert texts.text("one") == "RETURN 1 + 1 * 2 AS x"
    finally:
        monkeypatch.undo()
        read_anew()


def test_texts_inside_a_wheel_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "graphstore" / "_cypher").mkdir(parents=True)
    monkeypatch.setattr(texts, "__file__", str(tmp_path / "graphstore" / "graph" / "texts.py"))

    assert texts.folder() == tmp_path / "graphstore" / "_cypher"
    (tmp_path / "graphstore" / "_cypher").rmdir()
    assert texts.folder() == tmp_path / "cypher"


def test_every_kind_people_write_has_a_table_from_the_start(tables: Engine) -> None:
    own = {kind.name.upper() for kind in KINDS.values() if kind.table}
    found = dict(tables.run(texts.text("tables_there_are")))

    assert own | {"LINK", "HAS_VERSION", "HAS_OCCURRENCE"} == {
        name for name, sort in found.items() if sort == "REL"
    }
    assert {"Node", "Version", "Event", "Occurrence", "Op"} == {
        name for name, sort in found.items() if sort == "NODE"
    }


# --------------------------------------------------------------------------------------------- answers, tables by hand


def instants(values: list[datetime]) -> pa.Array:
    return pa.array(values, pa.timestamp("us", tz="UTC"))


def rows(table: str, columns: list[str], *values: tuple[Any, ...]) -> dict[str, pa.Array]:
    named = dict(zip(columns, zip(*values, strict=True), strict=True))
    return {
        name: instants(list(column)) if isinstance(column[0], datetime) else pa.array(list(column))
        for name, column in named.items()
    }


def add(
    engine: Engine, table: str, columns: str, *values: tuple[Any, ...], pair: tuple[str, str] | None = None
) -> None:
    """Rows of a table by hand; columns that are not named are null."""
    given = rows(table, columns.split(), *values)
    known = [name for (name,) in engine.run(f"CALL table_info('{table}') RETURN name")]
    rest = {name: pa.nulls(len(values)) for name in known if name not in given}
    engine.copy(table, pa.table({**given, **rest}), pair=pair)


LINK = "source target row id kind reason created_by confidence history metadata author told told_by remainder valid_from valid_to tx_from tx_to opened_by"


def make(engine: Engine) -> None:
    """Sessions were kept in cookies; from the 10th in Redis, learned on the 12th, because of an outage on the 9th.

    The cookies were first said to expire in an hour; on the 5th that was described better. On the 20th the link to the
    outage was taken back, as of tx.
    """
    for statement in texts.schema():
        engine.run(statement)
    add(engine, "Op", "id tx verb subject author reason",
        ("0", day(1), "add", "cookies", "ann", "setup"), ("1", day(5), "revise", "cookies", "bob", "measured"),
        ("2", day(12), "supersede", "redis", "ann", "outage"), ("3", day(20), "unlink", "l2", "eve", "not it"))  # fmt: skip
    add(
        engine,
        "Node",
        "id kind scope tx_from",
        ("cookies", "fact", "", day(1)),
        ("redis", "fact", "", day(12)),
    )
    add(engine, "Event", "id type occurred_at description origin metadata tx_from tx_to opened_by",
        ("evt", "error", day(9), "outage", "agent", "{}", day(9), FOREVER, "2"))  # fmt: skip
    add(engine, "Version", "row node_id ref number content text tags trigger author told told_by remainder valid_from valid_to tx_from tx_to opened_by closed_by",
        ("0", "cookies", "cookies-v1", 1, '{"ttl": 60}', "an hour", ["a"], "initial", "ann", day(1), "0", False, day(1), FOREVER, day(1), day(5), "0", "1"),
        ("1", "cookies", "cookies-v2", 2, '{"ttl": 30}', "half", ["a"], "initial", "bob", day(5), "1", False, day(1), FOREVER, day(5), day(12), "1", "2"),
        ("2", "cookies", "cookies-v2", 2, '{"ttl": 30}', "half", ["a"], "initial", "bob", day(5), "1", True, day(1), day(10), day(12), FOREVER, "2", None),
        ("3", "redis", "redis-v1", 1, '{"ttl": 5}', "redis", ["b"], "initial", "ann", day(12), "2", False, day(10), FOREVER, day(12), FOREVER, "2", None),
        )  # fmt: skip
    versions = {"source": ["cookies", "cookies", "cookies", "redis"], "target": ["0", "1", "2", "3"]}
    engine.copy("HAS_VERSION", pa.table(versions), pair=("Node", "Version"))
    add(engine, "SUPERSEDES", LINK,
        ("redis", "cookies", "0", "l1", "supersedes", "outage", "ann", "explicit", False, '{"n": 1}',
         "ann", day(12), "2", False, day(10), FOREVER, day(12), FOREVER, "2"), pair=("Node", "Node"))  # fmt: skip
    add(engine, "CAUSED_BY", LINK + " closed_by",
        ("redis", "evt", "1", "l2", "caused_by", None, "ann", "inferred", False, "{}",
         "ann", day(12), "2", False, day(10), FOREVER, day(12), day(20), "2", "3"), pair=("Node", "Event"))  # fmt: skip
    add(engine, "CONTRADICTS", LINK,
        ("evt", "cookies", "2", "l3", "contradicts", None, "ann", "explicit", False, "{}",
         "ann", day(9), "2", False, day(9), FOREVER, day(9), FOREVER, "2"), pair=("Event", "Node"))  # fmt: skip
    add(engine, "Occurrence", "row event_id occurred_at tx_from opened_by",
        ("0", "evt", day(7), day(11), "2"), ("1", "evt", day(13), day(13), "2"))  # fmt: skip
    engine.copy(
        "HAS_OCCURRENCE",
        pa.table({"source": ["evt", "evt"], "target": ["0", "1"]}),
        pair=("Event", "Occurrence"),
    )


@pytest.fixture(scope="module")
def tables() -> Iterator[Engine]:
    with Engine(None, driver=DRIVER) as engine:
        make(engine)
        yield engine


@pytest.mark.parametrize(
    ("valid", "tx", "ref", "valid_to"),
    [
        (3, 3, "cookies-v1", None),
        (3, 5, "cookies-v2", None),
        (11, 11, "cookies-v2", None),
        (3, 12, "cookies-v2", 10),
        (10, 12, None, None),
    ],
)
def test_node_as_of(tables: Engine, valid: int, tx: int, ref: str | None, valid_to: int | None) -> None:
    found = queries.NODE_AS_OF(tables, id="cookies", valid=day(valid), tx=day(tx))

    assert [version.ref for version in found] == ([ref] if ref else [])
    assert [version.valid_to for version in found] == ([valid_to and day(valid_to)] if ref else [])


def test_node_as_of_says_nothing_that_was_learned_later(tables: Engine) -> None:
    [version] = queries.NODE_AS_OF(tables, id="cookies", valid=day(3), tx=day(3))

    assert version.content == {"ttl": 60}
    assert version.tags == ("a",)
    assert version.tx_to is None


def test_history_and_versions(tables: Engine) -> None:
    believed = queries.HISTORY(tables, id="cookies", tx=day(15))
    known = queries.VERSIONS(tables, id="cookies", tx=day(15))

    assert [(version.ref, version.valid_to) for version in believed] == [("cookies-v2", day(10))]
    assert [(version.ref, version.tx_from, version.tx_to) for version in known] == [
        ("cookies-v1", day(1), day(5)),
        ("cookies-v2", day(5), day(12)),
        ("cookies-v2", day(12), None),
    ]
    assert [version.tx_to for version in queries.VERSIONS(tables, id="cookies", tx=day(11))] == [day(5), None]


def test_links_from_and_backlinks_to_of_nodes_and_events(tables: Engine) -> None:
    at = {"valid": day(15), "tx": day(15)}

    assert [link.id for link in queries.LINKS_FROM(tables, symmetric=SYMMETRIC, id="redis", **at)] == [
        "l1",
        "l2",
    ]
    assert [link.id for link in queries.LINKS_FROM(tables, symmetric=SYMMETRIC, id="evt", **at)] == ["l3"]
    assert [link.id for link in queries.BACKLINKS_TO(tables, symmetric=SYMMETRIC, id="cookies", **at)] == [
        "l3",
        "l1",
    ]
    assert [link.id for link in queries.BACKLINKS_TO(tables, symmetric=SYMMETRIC, id="evt", **at)] == [
        "l3",
        "l2",
    ]
    [first, *_] = queries.LINKS_FROM(tables, symmetric=SYMMETRIC, id="redis", **at)
    assert (first.source, first.kind, first.target, first.metadata) == (
        "redis",
        "supersedes",
        "cookies",
        {"n": 1},
    )


def test_links_follow_both_axes(tables: Engine) -> None:
    def links(valid: int, tx: int) -> list[str]:
        return [
            link.id
            for link in queries.LINKS_FROM(
                tables, symmetric=SYMMETRIC, id="redis", valid=day(valid), tx=day(tx)
            )
        ]

    assert links(9, 15) == []
    assert links(15, 11) == []
    assert links(15, 20) == ["l1"]


def test_what_superseded_is_one_step_with_its_reason(tables: Engine) -> None:
    [step] = queries.WHAT_SUPERSEDED(tables, id="cookies", valid=day(15), tx=day(15))

    assert (step.how, step.node, step.link, step.who, step.why) == (
        "superseded",
        "redis",
        "l1",
        "ann",
        "outage",
    )
    assert (step.since, step.recorded_at) == (day(10), day(12))
    assert queries.WHAT_SUPERSEDED(tables, id="redis", valid=day(15), tx=day(15)) == []


def test_causes_and_effects(tables: Engine) -> None:
    at = {"valid": day(15), "tx": day(15)}

    assert [(found.id, found.hops) for found in queries.CAUSES(tables, id="redis", **at)] == [("evt", 1)]
    assert [(found.id, found.hops) for found in queries.EFFECTS(tables, id="evt", **at)] == [("redis", 1)]
    assert queries.EFFECTS(tables, id="evt", valid=day(15), tx=day(25)) == []


def test_chains_go_on_over_nodes_and_events_until_a_link_does_not_hold() -> None:
    with Engine(None, driver=DRIVER) as engine:
        make(engine)
        add(
            engine, "Node", "id kind scope tx_from", *((name, "fact", "", day(1)) for name in ("a", "b", "c"))
        )
        for row, source, target, pair, since in (
            ("10", "a", "redis", ("Node", "Node"), 10),
            ("11", "evt", "b", ("Event", "Node"), 10),
            ("12", "b", "c", ("Node", "Node"), 18),
            ("13", "b", "a", ("Node", "Node"), 10),
        ):
            add(engine, "CAUSED_BY", LINK,
                (source, target, row, "l" + row, "caused_by", None, "ann", "explicit", False, "{}",
                 "ann", day(12), "2", False, day(since), FOREVER, day(12), FOREVER, "2"), pair=pair)  # fmt: skip

        def causes(valid: int, tx: int) -> list[tuple[str, int]]:
            return [
                (found.id, found.hops)
                for found in queries.CAUSES(engine, id="a", valid=day(valid), tx=day(tx))
            ]

        assert causes(15, 15) == [("redis", 1), ("evt", 2), ("b", 3)]
        assert causes(18, 18) == [("redis", 1), ("evt", 2), ("b", 3), ("c", 4)]
        assert causes(18, 21) == [("redis", 1)]
        effects = queries.EFFECTS(engine, id="c", valid=day(18), tx=day(18))
        assert [(found.id, found.hops) for found in effects] == [("b", 1), ("evt", 2), ("redis", 3), ("a", 4)]


def test_cookbook(tables: Engine) -> None:
    january = {"since": day(1), "until": day(30)}
    at = {"valid": day(15), "tx": day(15)}

    [taken] = queries.TAKEN_BACK(tables, **january)
    assert (taken.verb, taken.subject, taken.author, taken.reason) == ("unlink", "l2", "eve", "not it")
    [replaced] = queries.SUPERSEDED_BETWEEN(tables, **january, tx=day(15))
    assert (replaced.old, replaced.new, replaced.since) == ("cookies", "redis", day(10))
    assert queries.SUPERSEDED_BETWEEN(tables, **january, tx=day(11)) == []
    learned = queries.LEARNED_BETWEEN(tables, since=day(12), until=day(13))
    assert [(row.ref, row.late) for row in learned] == [("redis-v1", timedelta(days=2))]  # no remainder
    assert [
        (row.id, row.descriptions, row.believed_rows) for row in queries.MOST_REVISED(tables, tx=day(15))
    ] == [
        ("cookies", 2, 1),
        ("redis", 1, 1),
    ]
    counts = {row.kind: row.links for row in queries.LINKS_BY_KIND(tables, **at)}
    assert counts == {"supersedes": 1, "caused_by": 1, "contradicts": 1}
    assert [(row.id, row.replaced) for row in queries.MOST_SUPERSEDING(tables, **at)] == [("redis", 1)]
    assert [link.id for link in queries.CONTRADICTIONS_AS_OF(tables, **at)] == ["l3"]
    why = queries.WHY(tables, id="cookies")
    assert [(row.ref, row.author, row.reason, row.opened_author, row.closed_reason) for row in why] == [
        ("cookies-v1", "ann", "setup", "ann", "measured"),
        ("cookies-v2", "bob", "measured", "bob", "outage"),
        ("cookies-v2", "bob", "measured", "ann", None),
    ]


@pytest.mark.parametrize(
    ("valid", "tx", "expected"),
    [
        (15, 15, [("evt", 3, day(7), day(13))]),
        (12, 15, [("evt", 2, day(7), day(9))]),
        (15, 12, [("evt", 2, day(7), day(9))]),
        (8, 15, []),
        (15, 10, []),
    ],
)
def test_seen_again(tables: Engine, valid: int, tx: int, expected: list[Any]) -> None:
    found = queries.SEEN_AGAIN(tables, valid=day(valid), tx=day(tx))

    assert expected == [(row.id, row.times, row.first_seen, row.last_seen) for row in found]


def test_a_named_query_misses_no_parameter(tables: Engine) -> None:
    with pytest.raises(QueryError, match=r"\$tx, \$valid"):
        queries.LINKS_FROM(tables, id="redis")


def test_closing_statements_close_what_they_name() -> None:
    with Engine(None, driver=DRIVER) as engine:
        make(engine)
        closing = {"closed_at": instants([day(25)]), "op": ["9"]}
        engine.load(texts.text("close_versions"), pa.table({"row": ["3"], **closing}))
        engine.load(texts.text("close_events"), pa.table({"id": ["evt"], **closing}))
        text = texts.text("close_links", KIND="SUPERSEDES", SOURCE="Node", TARGET="Node")
        engine.load(text, pa.table({"source": ["redis"], "target": ["cookies"], "row": ["0"], **closing}))

        assert engine.run("MATCH (v:Version) WHERE v.closed_by = '9' RETURN v.row, v.tx_to") == [
            ("3", day(25))
        ]
        assert engine.run("MATCH (e:Event) RETURN e.tx_to, e.closed_by") == [(day(25), "9")]
        assert engine.run("MATCH ()-[l:SUPERSEDES]->() RETURN l.tx_to, l.closed_by") == [(day(25), "9")]
        assert engine.run("MATCH ()-[l:CAUSED_BY]->() RETURN l.closed_by") == [("3",)]


# ------------------------------------------------------------------------------------ the twins of the store's own reads


class Ticking:
    """A clock that is an hour later each time it is asked."""

    def __init__(self) -> None:
        self.now = day(1)

    def __call__(self) -> datetime:
        self.now += timedelta(hours=1)
        return self.now


def write(store: graphstore.GraphStore, dice: random.Random) -> None:
    """A random history of ten nodes and four events."""
    for n in range(10):
        store.add_node("fact", {"n": n}, id=f"node_{n}", tags=["t"] * (n % 3), valid_from=day(1 + n))
    store.define_kind("rhymes_with", symmetric=True)
    for n in range(2):  # values of the slot that node_10 holds first
        store.add_node("fact", {"n": n + 10}, id=f"node_{n + 10}", key="slot", valid_from=day(10 * n + 1))
    for n in range(4):
        store.record_event("error", f"event {n}", id=f"evt_{n}", occurred_at=day(2 + n))
    things = [f"node_{n}" for n in range(12)] + [f"evt_{n}" for n in range(4)]
    for _ in range(80):
        verb = dice.choice(["revise", "supersede", "link", "link", "unlink", "retract"])
        a, b = dice.sample(things, 2)
        since = day(dice.randint(1, 20))
        try:
            if verb == "revise":
                store.revise(a, {"r": dice.random()}, valid_from=since, valid_to=since + timedelta(days=5))
            elif verb == "supersede":
                store.supersede(a, by=b, reason="newer")
            elif verb == "link":
                kind = dice.choice(
                    ["supports", "caused_by", "corrects", "uses", "contradicts", "rhymes_with"]
                )
                store.link(a, kind, b, strength=dice.randint(1, 5), valid_from=since)
            elif verb == "retract":
                store.retract(a, valid_from=since, valid_to=since + timedelta(days=2), reason="wrong")
            else:
                links = [*store.links_from(a), *store.backlinks_to(a)]
                store.unlink(links[0].id, reason="no") if links else None
        except graphstore.GraphStoreError:
            continue


def test_the_symmetric_kinds_the_text_names_are_those_of_the_vocabulary() -> None:
    summary = texts.sections()["links_from"].doc
    listed = re.search(r"\[([^\]]+)\]", summary)
    assert listed is not None
    assert SYMMETRIC == re.findall(r"\w+", listed[1])


@pytest.mark.parametrize(
    ("seed", "views"), [(1, 3), *(pytest.param(seed, 8, marks=pytest.mark.rest) for seed in (2, 3))]
)
def test_one_hop_reads_in_cypher_say_what_the_store_says(seed: int, views: int) -> None:
    dice = random.Random(seed)
    clock = Ticking()
    ends = {"source_standing", "target_standing"}
    with graphstore.open(":memory:", clock=clock, driver=DRIVER) as store:
        write(store, dice)
        things = [f"node_{n}" for n in range(12)] + [f"evt_{n}" for n in range(4)]
        own = [*SYMMETRIC, "rhymes_with"]
        last = clock.now

        def ask(named: queries.Query[Any], **params: Any) -> list[dict[str, Any]]:
            result = store.query_tables(texts.text(named.name), **params)
            order = texts.sections()[named.name].order
            rows = sorted(result, key=lambda row: [row[column] for column in order])
            return [named.model.model_validate(row).model_dump() for row in rows]

        for _ in range(views):
            tx = day(1) + (last - day(1)) * dice.random()
            at = {"valid": day(dice.randint(1, 25)), "tx": tx}
            view = store.as_of(**at)
            known = {change.subject for change in store.changes() if change.tx <= tx}
            for id in things:
                if id not in known:
                    continue
                for named, links in (
                    (queries.LINKS_FROM, view.links_from),
                    (queries.BACKLINKS_TO, view.backlinks_to),
                ):
                    assert ask(named, id=id, symmetric=own, **at) == [
                        link.model_dump(exclude=ends) for link in links(id)
                    ]
                if id.startswith("node"):
                    for named, rows in ((queries.HISTORY, view.history), (queries.VERSIONS, view.versions)):
                        assert ask(named, id=id, tx=tx) == [version.model_dump() for version in rows(id)]
                    try:
                        node = view.node(id)
                        expected = [
                            (node.ref, node.content, node.valid_from, node.valid_to, node.tx_from, node.tx_to)
                        ]
                    except graphstore.NotFoundError:
                        expected = []
                    found = queries.NODE_AS_OF
                    assert expected == [
                        (
                            row["ref"],
                            row["content"],
                            row["valid_from"],
                            row["valid_to"],
                            row["tx_from"],
                            row["tx_to"],
                        )
                        for row in ask(found, id=id, **at)
                    ]
                chain = [step for step in view.what_superseded(id).chain if step.link is not None]
                steps = {
                    (s.how, s.link.id, s.node.id, s.why, s.since, s.recorded_at, s.planned)
                    for s in chain
                    if s.link.target == id
                }
                rows = ask(queries.WHAT_SUPERSEDED, id=id, **at)
                # A node that is reached twice is one step of the chain, and the subject is none.
                assert steps <= {
                    (
                        row["how"],
                        row["link"],
                        row["node"],
                        row["why"],
                        row["since"],
                        row["recorded_at"],
                        row["planned"],
                    )
                    for row in rows
                }
                assert len(rows) == len({row["node"] for row in rows})
                assert {row["node"] for row in rows} <= {step.node.id for step in chain} | {id}
