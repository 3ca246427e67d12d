"""The classes of TPC-BiH (time travel, key in time, range, both times together) beside DuckDB on one plain table with two periods, on the same rows.

What both answer is compared before it is timed. DuckDB's table has typed columns and an instant in place of an open end, as one would make it by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import ours
from benchmarks.arena import Arena, Limit, Row, loaded
from benchmarks.data import Data
from benchmarks.shared import DAY, LATEST, OPEN, START
from benchmarks.timing import once, race
from graphstore import GraphStore, Result

INSTANT = pa.timestamp("us")
_AT = "vf <= $valid AND $valid < vt AND tf <= $tx AND $tx < tt"
_SWEEP = """WITH ends AS (SELECT state, vf AS since, score AS more, 1 AS held FROM p WHERE tf <= $tx AND $tx < tt
    UNION ALL SELECT state, vt, -score, -1 FROM p WHERE tf <= $tx AND $tx < tt),
  summed AS (SELECT state, since, sum(more) AS more, sum(held) AS held FROM ends GROUP BY ALL),
  run AS (SELECT state, since, lead(since) OVER ahead AS until, sum(more) OVER ahead AS total, sum(held) OVER ahead AS held FROM summed
    WINDOW ahead AS (PARTITION BY state ORDER BY since))
  SELECT state, since, until, total::BIGINT FROM run WHERE held > 0"""
_ISLANDS = """WITH ordered AS (SELECT *, max(vt) OVER (PARTITION BY id, state ORDER BY vf ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM p WHERE tf <= $tx AND $tx < tt),
  marked AS (SELECT *, sum(CASE WHEN before >= vf THEN 0 ELSE 1 END) OVER (PARTITION BY id, state ORDER BY vf) AS island FROM ordered)
  SELECT id, state, min(vf), max(vt) FROM marked GROUP BY id, state, island"""
_PAIRS = """SELECT q.id, q.number, greatest(p.vf, q.vf), least(p.vt, q.vt), greatest(p.tf, q.tf), least(p.tt, q.tt) FROM p p JOIN p q ON p.number = q.number
  AND p.vf < q.vt AND q.vf < p.vt AND p.tf < q.tt AND q.tf < p.tt WHERE p.id = $id AND q.id <> p.id AND """


class Question(NamedTuple):
    """The same question twice: of the store at a round, with the answer as a table, and in SQL with the parameters of that round. `times`: the budget, in
    times of what DuckDB takes."""

    work: str
    ask: Callable[[int], Any]
    sql: str
    given: Callable[[int], dict[str, Any]]
    times: float | None = None


def tpc_bih(arena: Arena) -> Iterator[Row]:
    store, _ = loaded(ours, arena.folder / "tpc_bih", ours.prepare(arena.data), arena.data.versions.num_rows)
    outside = _table(arena.data) if "duckdb" in arena.twins else None
    try:
        for question in _questions(store, arena.data):
            yield _row(arena, question, outside)
        yield _month_ends(arena, store, outside)
    finally:
        store.close()


def _row(arena: Arena, question: Question, outside: Any) -> Row:
    answers: list[Callable[[int], Any]] = [question.ask]
    if outside is not None:
        answers.append(lambda turn: outside.sql(question.sql, params=question.given(turn)).to_arrow_table())
        found, right = (_plain(answer(0)) for answer in answers)
        assert found == right, (
            f"{question.work}: {found[:3]} …, not {right[:3]} … ({len(found)}, {len(right)})"
        )
        assert found, f"{question.work}: no rows"
    turns = {name: iter(range(1, 1_000)) for name in ("ours", "duckdb")}
    lanes = {
        name: lambda name=name, answer=answer: once(partial(answer, next(turns[name])))[0]  # type: ignore[misc]
        for name, answer in zip(turns, answers, strict=False)
    }
    limits = (Limit(question.times, "duckdb"),) if question.times else ()
    return arena.row(question.work, race(lanes, arena.rounds), limits)


def _month_ends(arena: Arena, store: GraphStore, outside: Any) -> Row:
    """Each round at other instants: the graph of none of them is there."""
    text = "MATCH (n:Node {kind: 'fact'}) RETURN count(*) AS facts, sum(n.score) AS score"
    tx = ours.at(LATEST)

    def many(turn: int) -> Any:
        begin, end = (ours.at(START + (400 + turn + days) * DAY) for days in (0, 360))
        assert begin is not None and end is not None
        return store.over(valid=(begin, end, "30 days"), tx=tx).query(text).to_arrow()

    if outside is not None:
        sql = f"SELECT valid, count(*), sum(score)::BIGINT FROM p, (SELECT unnest($instants) AS valid) WHERE kind = 'fact' AND {_AT.replace('$valid', 'valid')} GROUP BY valid"
        instants = [_naive(START + (400 + 30 * number) * DAY) for number in range(12)]
        right = outside.sql(sql, params={"instants": instants, "tx": _naive(LATEST)}).to_arrow_table()
        assert _plain(many(0)) == _plain(right)
    turns = iter(range(1, 1_000))
    lanes = {
        "ours": lambda: once(partial(many, next(turns)))[0],
        "floor": lambda: once(
            partial(
                store.as_of(valid=ours.at(START + (401 + next(turns)) * DAY + DAY // 2), tx=tx).query, text
            )
        )[0],
    }
    work = "T: a count and a sum at twelve month-ends"
    return arena.row(work, race(lanes, arena.rounds), (Limit(3.0, "floor"),), "the same at one of them")


def _questions(store: GraphStore, data: Data) -> Iterator[Question]:
    ids = data.heads + data.effects

    def day(turn: int, first: int) -> int:
        return START + (first + 7 * turn % 200) * DAY

    def valid(turn: int) -> dict[str, Any]:
        return {"valid": day(turn, 500), "tx": day(turn, 700)}

    def tables(text: str, given: dict[str, Any]) -> Any:
        aware = {name: ours.at(value) if isinstance(value, int) else value for name, value in given.items()}
        return store.query_tables(text, **aware).to_arrow()

    def question(
        work: str,
        ask: Callable[[dict[str, Any]], Any],
        sql: str,
        given: Callable[[int], dict[str, Any]],
        times: float | None = None,
    ) -> Question:
        return Question(
            work,
            lambda turn: ask(given(turn)),
            sql,
            lambda turn: {
                name: _naive(value) if isinstance(value, int) else value
                for name, value in given(turn).items()
            },
            times,
        )

    def of_key(turn: int) -> dict[str, Any]:
        return {"id": ids[turn % len(ids)]}

    def known(given: dict[str, Any]) -> Any:
        rows = store.as_of(tx=ours.at(given["tx"])).history(given["id"])
        return Result(
            ["number", "since", "until"], [(row.number, row.valid_from, row.valid_to) for row in rows]
        ).to_arrow()

    def span(turn: int) -> dict[str, Any]:
        return {"a": day(turn, 500), "b": day(turn, 530), "tx": day(turn, 700)}

    def history(given: dict[str, Any], names: tuple[str, ...], **more: Any) -> Any:
        return store.history_table(tx=ours.at(given["tx"]), **more).to_arrow().select(names)

    yield question(
        "T: what was true on a day, as believed on a day",
        partial(tables, "MATCH (v:Version) WHERE AS_OF(v) RETURN v.node_id, v.number"),
        f"SELECT id, number FROM p WHERE {_AT}",
        valid,
    )
    yield question(
        "K: the history of one thing, as believed on a day",
        known,
        "SELECT number, vf, vt FROM p WHERE id = $id AND tf <= $tx AND $tx < tt",
        lambda turn: of_key(turn) | {"tx": day(turn, 700)},
    )
    yield question(
        "K: all that was ever believed of one thing",
        partial(
            tables,
            "MATCH (:Node {id: $id})-[:HAS_VERSION]->(v:Version) RETURN v.number, v.valid_from, v.valid_to, v.tx_from, v.tx_to",
        ),
        "SELECT number, vf, vt, tf, tt FROM p WHERE id = $id",
        of_key,
    )
    yield question(
        "R: thirty days, clipped, with two fields",
        lambda given: history(
            given,
            ("id", "state", "score", "valid_from", "valid_to"),
            fields=["state", "score"],
            valid=(ours.at(given["a"]), ours.at(given["b"])),
            clip=True,
        ),
        "SELECT id, state, score, greatest(vf, $a), least(vt, $b) FROM p WHERE vf < $b AND $a < vt AND tf <= $tx AND $tx < tt",
        span,
    )
    yield question(
        "R: stretches over which a field stays the same",
        lambda given: history(given, ("id", "state", "valid_from", "valid_to"), coalesce_on="state"),
        _ISLANDS,
        lambda turn: {"tx": day(turn, 700)},
    )
    table = store.history_table(fields=["state", "score"], tx=ours.at(LATEST))
    yield question(
        f"R: a sum over time by state, of {len(table):,} rows",
        lambda _: table.steps("sum(score)", by="state").to_arrow(),
        _SWEEP,
        lambda _: {"tx": LATEST},
        5.0,
    )
    both = "MATCH (:Node {id: $id})-[:HAS_VERSION]->(p:Version) MATCH (q:Version) WHERE q.number = p.number AND q.node_id <> $id AND "
    meet = " WITH q, MEET(p, q) AS m WHERE m IS NOT NULL RETURN q.node_id, q.number, m.valid_from, m.valid_to, m.tx_from, m.tx_to"
    yield question(
        "B3: rows with the number of one of a thing's, on a day, as believed on a day",
        partial(tables, f"{both}AS_OF(p) AND AS_OF(q){meet}"),
        _PAIRS + _both(_AT),
        lambda turn: of_key(turn) | valid(turn),
    )
    yield question(
        "B3: the same over thirty days",
        partial(tables, f"{both}BELIEVED(p) AND BELIEVED(q) AND HOLDS(p, $a, $b) AND HOLDS(q, $a, $b){meet}"),
        _PAIRS + _both("vf < $b AND $a < vt AND tf <= $tx AND $tx < tt"),
        lambda turn: of_key(turn) | span(turn),
    )
    yield question(
        "B3: the same over all of both times",
        partial(tables, f"{both}true{meet}"),
        f"{_PAIRS}true",
        of_key,
    )


def _both(condition: str) -> str:
    """The condition of two rows."""
    ends = ("vf", "vt", "tf", "tt")
    return " AND ".join(
        " ".join(f"{row}.{word}" if word in ends else word for word in condition.split(" ")) for row in "pq"
    )


def _table(data: Data) -> Any:
    """DuckDB with the rows of versions as one table of typed columns."""
    import duckdb

    versions = data.versions
    contents = orjson.loads(f"[{','.join(versions['content'].to_pylist())}]")
    kinds = dict(zip(data.nodes["id"].to_pylist(), data.nodes["kind"].to_pylist(), strict=True))
    columns = {
        "id": versions["node_id"],
        "kind": pa.array([kinds[id] for id in versions["node_id"].to_pylist()]),
        "number": versions["number"],
        "state": pa.array([content["state"] for content in contents]),
        "score": pa.array([content["score"] for content in contents]),
        **{
            short: versions[name].cast(INSTANT)
            for short, name in (("vf", "valid_from"), ("vt", "valid_to"), ("tf", "tx_from"), ("tt", "tx_to"))
        },
    }
    connection = duckdb.connect()
    connection.register("given", pa.table(columns))
    connection.execute("CREATE TABLE p AS SELECT * FROM given")
    return connection


def _naive(instant: int) -> Any:
    at = ours.at(instant)
    assert at is not None
    return at.replace(tzinfo=None)


def _plain(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in order: instants as numbers, an open end as the last one; steps that go on with the same value as one."""
    columns = [
        pc.fill_null(column.cast(INSTANT).cast(pa.int64()), OPEN).to_pylist()
        if pa.types.is_timestamp(column.type)
        else [
            int(value) if isinstance(value, int) or hasattr(value, "as_tuple") else value
            for value in column.to_pylist()
        ]
        for column in table.columns
    ]
    rows = sorted(zip(*columns, strict=True))
    joined: list[tuple[Any, ...]] = []
    for row in rows:
        last = joined[-1] if joined else None
        if (
            last
            and len(row) == 4
            and isinstance(row[3], int)
            and (last[0], last[2], last[3]) == (row[0], row[1], row[3])
        ):
            joined[-1] = (*last[:2], *row[2:])
        else:
            joined.append(row)
    return joined
