"""The classes of TPC-BiH (time travel, key in time, range and time slice, both times together) on a store with late corrections, portions that are retracted
and moves that are dated back, each beside DuckDB on a plain table with two periods that is kept by the rules of SQL:2011 alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

import graphstore
from graphstore import GraphStore
from tests.conftest import Clock, day

pytestmark = pytest.mark.in_process("compares one store with tables outside of it")
duckdb = pytest.importorskip("duckdb")

FIRST, LAST = day("2025-01-01"), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)


class Row(NamedTuple):
    """A row of the outside table."""

    id: str
    region: str
    total: int
    vf: datetime
    vt: datetime
    tf: datetime
    tt: datetime


class Outside:
    """Rows with two periods. A write over a portion closes what it overlaps, writes back what sticks out, and adds what it says."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def write(
        self, tx: datetime, id: str, begin: datetime, end: datetime, said: tuple[str, int] | None
    ) -> None:
        for at, row in enumerate(list(self.rows)):
            if row.id == id and row.tt == LAST and row.vf < end and begin < row.vt:
                self.rows[at] = row._replace(tt=tx)
                if row.vf < begin:
                    self.rows.append(row._replace(vt=begin, tf=tx))
                if end < row.vt:
                    self.rows.append(row._replace(vf=end, tf=tx))
        if said is not None:
            self.rows.append(Row(id, *said, begin, end, tx, LAST))


class World(NamedTuple):
    """A store, the table outside, and instants in the middle of both."""

    store: GraphStore
    sql: Any
    txs: list[datetime]
    days: list[datetime]

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of DuckDB."""
        rows = self.sql.execute(query, [plain(value) for value in values]).fetchall()
        return [
            tuple(each.replace(tzinfo=UTC) if isinstance(each, datetime) else each for each in row)
            for row in rows
        ]


def plain(value: Any) -> Any:
    """A value as DuckDB takes it: instants in UTC without saying so."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


@pytest.fixture(scope="module", params=[1, 2])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    clock, chance, outside = Clock(), random.Random(request.param), Outside()
    txs = []
    with graphstore.open(":memory:", clock=clock) as store:
        for number in range(150):
            clock.move(hours=1)
            which = f"a{number % 25}" if number < 25 else f"a{chance.randrange(25)}"
            begin = FIRST + timedelta(days=chance.randrange(300))
            end = chance.choice([LAST, begin + timedelta(days=chance.randrange(1, 120))])
            said = (chance.choice(["north", "south", "west"]), chance.randrange(100))
            content = {"region": said[0], "total": said[1]}
            until = None if end == LAST else end
            if number < 25:
                store.add_node("account", content, id=which, valid_from=begin)
                end = LAST
            elif number % 7 == 6:
                held = [row for row in outside.rows if row.id == which and row.tt == LAST]
                if not held:
                    continue
                row = chance.choice(held)
                begin, end = row.vf, min(row.vt, row.vf + timedelta(days=15))
                said = None  # type: ignore[assignment]
                store.retract(which, valid_from=begin, valid_to=end, reason="never was")
            elif any(row.id == which and row.tt == LAST for row in outside.rows):
                store.revise(which, content, valid_from=begin, valid_to=until)
            else:
                continue
            txs.append(store.changes()[-1].tx)
            outside.write(txs[-1], which, begin, end, said)
        sql = duckdb.connect()
        sql.execute(
            "CREATE TABLE a (id TEXT, region TEXT, total BIGINT, vf TIMESTAMP, vt TIMESTAMP, tf TIMESTAMP, tt TIMESTAMP)"
        )
        sql.executemany(
            "INSERT INTO a VALUES (?, ?, ?, ?, ?, ?, ?)",
            [[plain(value) for value in row] for row in outside.rows if row.tf < row.tt],
        )
        days = [FIRST + timedelta(days=number) for number in (3, 60, 150, 299, 500)]
        yield World(store, sql, [txs[at] for at in (2, 30, 80, 120, -1)], days)


def spans(rows: list[tuple[Any, ...]], ends: int) -> list[tuple[Any, ...]]:
    """Sorted, with the last `ends` columns as instants, an open end as the last one."""
    return sorted(
        (*row[:-ends], *(LAST if each is None else each.astimezone(UTC) for each in row[-ends:]))
        for row in rows
    )


def test_t_time_travel(world: World) -> None:
    text = "MATCH (v:Version) WHERE AS_OF(v) RETURN v.node_id, FIELD(v, 'region'), FIELD(v, 'total')"
    query = "SELECT id, region, total FROM a WHERE vf <= ? AND ? < vt AND tf <= ? AND ? < tt"
    for valid in world.days:
        for tx in world.txs:
            expected = sorted(world.ask(query, valid, valid, tx, tx))
            assert sorted(world.store.query_tables(text, valid=valid, tx=tx).tuples()) == expected
            view = world.store.as_of(valid=valid, tx=tx)
            assert sorted((n.id, n.content["region"], n.content["total"]) for n in view.nodes()) == expected
            assert (
                sorted(
                    view.query("MATCH (n:Node) RETURN n.id, FIELD(n, 'region'), FIELD(n, 'total')").tuples()
                )
                == expected
            )


@pytest.mark.parametrize("axis", ["valid", "tx", "both"])
def test_k_key_in_time(world: World, axis: str) -> None:
    for id in ("a0", "a7", "a19"):
        for tx, valid in zip(world.txs, world.days, strict=True):
            instant = timedelta(microseconds=1)
            if axis == "valid":
                given: dict[str, Any] = {"tx": tx}
                expected = world.ask(
                    "SELECT id, total, vf, vt FROM a WHERE id = ? AND tf <= ? AND ? < tt", id, tx, tx
                )
                shown: tuple[str, ...] = ("valid_from", "valid_to")
            elif axis == "tx":
                given = {"tx": (None, None), "valid": (valid, valid + instant)}
                expected = world.ask(
                    "SELECT id, total, tf, tt FROM a WHERE id = ? AND vf <= ? AND ? < vt", id, valid, valid
                )
                shown = ("tx_from", "tx_to")
            else:
                given = {"tx": (None, None)}
                expected = world.ask("SELECT id, total, vf, vt, tf, tt FROM a WHERE id = ?", id)
                shown = ("valid_from", "valid_to", "tx_from", "tx_to")
            rows = world.store.history_table("account", **given).rows()
            found = [(id, row["total"], *(row[name] for name in shown)) for row in rows if row["id"] == id]
            assert spans(found, len(shown)) == spans(expected, len(shown))


def test_r_range_and_time_slice(world: World) -> None:
    begin, end = world.days[1], world.days[2]
    expected = world.ask(
        "SELECT id, total, greatest(vf, ?), least(vt, ?) FROM a WHERE vf < ? AND ? < vt AND tt = ?",
        begin,
        end,
        end,
        begin,
        LAST,
    )
    rows = world.store.history_table("account", valid=(begin, end), clip=True).rows()

    assert spans([(row["id"], row["total"], row["valid_from"], row["valid_to"]) for row in rows], 2) == spans(
        expected, 2
    )


@pytest.mark.parametrize("aggregate", ["count(*)", "sum(total)", "max(total)", "avg(total)"])
def test_r_temporal_aggregation(world: World, aggregate: str) -> None:
    query = f"""WITH believed AS (SELECT * FROM a WHERE tf <= $1 AND $1 < tt), points AS (SELECT vf AS since FROM believed UNION SELECT vt FROM believed),
      pieces AS (SELECT since, lead(since) OVER (ORDER BY since) AS until FROM points)
      SELECT region, since, until, {aggregate} FROM pieces JOIN believed ON vf <= since AND since < vt WHERE until IS NOT NULL GROUP BY ALL ORDER BY 1, 2"""
    for tx in world.txs:
        joined: list[list[Any]] = []
        for region, begin, until, value in world.ask(query, tx):
            if joined and joined[-1][0] == region and joined[-1][2] == begin and joined[-1][3] == value:
                joined[-1][2] = until
            else:
                joined.append([region, begin, until, value])
        found = world.store.history_table("account", tx=tx).steps(aggregate, by="region").tuples()
        assert [(row[0], row[3]) for row in found] == [(row[0], pytest.approx(row[3])) for row in joined]
        assert [tuple(row[1:3]) for row in found] == [
            (begin, None if until == LAST else until) for _, begin, until, _ in joined
        ]


def test_r_temporal_join(world: World) -> None:
    text = """MATCH (v:Version), (w:Version) WHERE BELIEVED(v) AND BELIEVED(w) AND v.node_id < w.node_id AND FIELD(v, 'total') = FIELD(w, 'total')
      WITH v, w, MEET(v, w) AS m WHERE m IS NOT NULL RETURN v.node_id, w.node_id, m.valid_from, m.valid_to"""
    query = """SELECT v.id, w.id, greatest(v.vf, w.vf), least(v.vt, w.vt) FROM a v JOIN a w ON v.id < w.id AND v.total = w.total AND v.vf < w.vt AND w.vf < v.vt
      WHERE v.tf <= $1 AND $1 < v.tt AND w.tf <= $1 AND $1 < w.tt"""
    for tx in world.txs:
        assert spans(world.store.query_tables(text, tx=tx).tuples(), 2) == spans(world.ask(query, tx), 2)


def test_r_coalescing(world: World) -> None:
    query = """WITH ordered AS (SELECT *, max(vt) OVER (PARTITION BY id, region ORDER BY vf ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM a WHERE tf <= $1 AND $1 < tt),
      marked AS (SELECT *, sum(CASE WHEN before >= vf THEN 0 ELSE 1 END) OVER (PARTITION BY id, region ORDER BY vf) AS island FROM ordered)
      SELECT id, region, min(vf), max(vt) FROM marked GROUP BY id, region, island"""
    for tx in world.txs:
        rows = world.store.history_table("account", tx=tx, coalesce_on="region").rows()
        found = [(row["id"], row["region"], row["valid_from"], row["valid_to"]) for row in rows]
        assert spans(found, 2) == spans(world.ask(query, tx), 2)


@pytest.mark.parametrize("valid", ["at", "range", "all"])
@pytest.mark.parametrize("tx", ["at", "range", "all"])
def test_b_both_times_together(world: World, valid: str, tx: str) -> None:
    """Pairs of accounts with the same region: at one instant of each time, at the same instant of a range, or at any."""
    on = {"at": "{x}f <= {a} AND {a} < {x}t", "range": "{x}f < {b} AND {a} < {x}t", "all": "TRUE"}
    instants = {"v": (world.days[1], world.days[2]), "t": (world.txs[1], world.txs[3])}
    conditions = [
        on[how].format(
            x=f"{row}.{axis}",
            a=f"TIMESTAMP '{plain(a).isoformat()}'",
            b=f"TIMESTAMP '{plain(b).isoformat()}'",
        )
        for row in "pq"
        for axis, how in (("v", valid), ("t", tx))
        for a, b in [instants[axis]]
    ]
    expected = world.ask(
        "SELECT p.id, q.id, greatest(p.vf, q.vf), least(p.vt, q.vt), greatest(p.tf, q.tf), least(p.tt, q.tt) FROM a p JOIN a q ON p.id < q.id AND p.region = q.region "
        "AND p.total = q.total AND p.vf < q.vt AND q.vf < p.vt AND p.tf < q.tt AND q.tf < p.tt WHERE "
        + " AND ".join(conditions)
    )
    words = {
        "at": {"v": "x.valid_from <= $va AND $va < x.valid_to", "t": "x.tx_from <= $ta AND $ta < x.tx_to"},
        "range": {"v": "HOLDS(x, $va, $vb)", "t": "x.tx_from < $tb AND $ta < x.tx_to"},
        "all": {"v": "true", "t": "true"},
    }
    tests = " AND ".join(
        f"({words[how][axis].replace('x.', f'{row}.').replace('(x,', f'({row},')})"
        for row in "pq"
        for axis, how in (("v", valid), ("t", tx))
    )
    text = (
        f"MATCH (p:Version), (q:Version) WHERE p.node_id < q.node_id AND FIELD(p, 'region') = FIELD(q, 'region') AND FIELD(p, 'total') = FIELD(q, 'total') AND {tests} "
        "WITH p, q, MEET(p, q) AS m WHERE m IS NOT NULL RETURN p.node_id, q.node_id, m.valid_from, m.valid_to, m.tx_from, m.tx_to"
    )
    params = {
        name: value
        for axis in "vt"
        for name, value in zip((f"{axis}a", f"{axis}b"), instants[axis], strict=True)
        if f"${name}" in text
    }
    assert spans(world.store.query_tables(text, **params).tuples(), 4) == spans(expected, 4)
