"""The benchmark's own arithmetic: percentiles, right answers, coordinates, verdicts, and that a wrong answer is named instead of timed."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from benchmarks import data as history
from benchmarks import promises, report, sqlite_twin
from benchmarks.arena import Arena, Limit, Row, count_of
from benchmarks.data import SHAPES, WHEN, Data, Draws, Oracle
from benchmarks.shared import CAUSES, LATEST, OPEN, START, steps
from benchmarks.timing import Spread, spread

pytestmark = pytest.mark.in_process("makes stores of its own, or none")
SMALL = history.history(200)


def row(**given) -> Row:
    return Row(**{"work": "a read", "size": "200", "took": {}, **given})


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([3.0], Spread(3.0, 3.0, 3.0)),
        (list(range(1, 101)), Spread(50, 99, 100)),
        (list(range(1, 201)), Spread(100, 198, 200)),
        ([1.0, 9.0], Spread(1.0, 9.0, 9.0)),
    ],
)
def test_percentiles_are_times_that_were_measured(samples, expected):
    assert expected == spread(samples)


@pytest.mark.parametrize(("text", "count"), [("200", 200), ("10k", 10_000), ("1m", 1_000_000)])
def test_a_size_is_a_number_of_versions(text, count):
    assert count == count_of(text)


def test_the_same_history_every_time():
    again = history.history(200)

    for name in ("nodes", "versions", "told", "links", "events"):
        assert getattr(SMALL, name).equals(getattr(again, name))


MADE = {
    "200": history.history(200),
    "5000": history.history(5_000),
    **{name: history.shape(name, 600) for name in SHAPES if name != "history"},
    **{how: history.deep(200, how) for how in ("appended", "repeated")},
}


@pytest.mark.parametrize("name", MADE)
def test_no_two_believed_versions_of_a_node_overlap(name):
    rows = MADE[name].versions.to_pylist()

    for one in rows:
        assert one["valid_from"] < one["valid_to"] and one["tx_from"] < one["tx_to"]
    for tx in {START + 10**13, LATEST} | {one["tx_from"] for one in rows[:50]}:
        by_node: dict[str, list] = {}
        for one in rows:
            if one["tx_from"] <= tx < one["tx_to"]:
                by_node.setdefault(one["node_id"], []).append(one)
        for of_node in by_node.values():
            believed = sorted(of_node, key=lambda one: one["valid_from"])
            for older, newer in itertools.pairwise(believed):
                assert older["valid_to"] <= newer["valid_from"]


@pytest.mark.parametrize(
    ("name", "foundations", "deepest"), [("web", 3, None), ("notebook", 2, 6), ("chain", 1, 599)]
)
def test_a_shape_has_the_foundations_that_its_name_says(name, foundations, deepest):
    data = MADE[name]
    ids = data.nodes["id"].to_pylist()
    on: dict[str, list[str]] = {id: [] for id in ids}
    superseded = set()
    for link in data.links.to_pylist():
        if link["kind"] == "derived_from":
            on[link["source"]].append(link["target"])
        if link["kind"] == "supersedes":
            superseded.add(link["target"])
    depths: dict[str, int] = {}
    for id in ids:
        depths[id] = max((depths[each] + 1 for each in on[id]), default=0)

    assert foundations == max(map(len, on.values()))
    assert max(depths.values()) == (deepest or max(depths.values()))
    assert len(ids) * 0.04 < len(superseded) <= len(ids) * 0.05


def test_a_third_rests_on_something_and_some_of_that_fell():
    data = history.history(10_000)
    resting = {one["source"] for one in data.links.to_pylist() if one["kind"] == "derived_from"}
    resting |= {one["target"] for one in data.links.to_pylist() if one["kind"] == "supports"}

    assert 0.3 < len(resting) / data.nodes.num_rows < 0.4
    assert all(START < fall < OPEN for fall in data.falls)


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("verb", ["node_as_of", "links_from", "backlinks_to", "what_superseded", "causes"])
def test_what_is_asked_has_the_answer_that_is_wanted(verb, when):
    draws = Draws(SMALL, Oracle(SMALL))

    asked = draws(verb, when, 20)

    wanted = {"what_superseded": history.CHAIN, "causes": CAUSES}.get(verb)
    for (id, valid, tx), right in asked:
        assert (valid is None, tx is None) == (when == "now", when != "any coordinate")
        assert right is not None and id not in SMALL.written
        assert wanted in (None, len(right))
    assert draws.kept == 20 <= draws.drawn


def test_coordinates_are_drawn_evenly_over_both_times():
    draws = Draws(SMALL, Oracle(SMALL))
    seen = list(draws("links_from", "any coordinate", 400))
    middle = (START + LATEST) // 2

    late = sum(valid > middle for (_, valid, _), _ in seen)

    assert 150 < late < 250
    assert draws.after_a_fall > 200


def test_a_wrong_answer_is_named_and_not_timed(tmp_path):
    def twin(answer):
        return SimpleNamespace(
            at=lambda instant: instant,
            right=lambda verb, right: right,
            plain=lambda value: value,
            node_as_of=lambda store, id, valid, tx: answer,
            add_node=lambda store, id, content: None,
            close=lambda store: None,
        )

    twins = {"ours": twin("yes"), "sqlite": twin("no")}
    arena = Arena("200", SMALL, tmp_path, twins, {"ours": 0, "sqlite": 0})
    limits = (Limit(1.6, "sqlite"),)

    made = arena.timed("a read", "node_as_of", [(("n", None, None), "yes")], limits=limits)

    assert {"ours"} == made.took.keys() == made.spreads.keys()
    assert made.wrong[0].startswith("sqlite: node_as_of")
    assert made.measured(*limits) is None
    assert "wrong, so not timed: a read (200): sqlite" in "\n".join(report.losses([made], {}))
    assert "| wrong |" in report.table([made, row(took={"ours": 1.0, "sqlite": 2.0})])[2]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Limit(1.6, "sqlite"), 1.5),
        (Limit(2.5, "sqlite", tail=True), 4.0),
        (Limit(0.025, "floor", above=True), 2e-6),
        (Limit(0.003), 3e-6),
        (Limit(1.2, "kuzu"), None),
    ],
)
def test_a_limit_is_a_factor_a_distance_or_an_amount(limit, expected):
    spreads = {"ours": Spread(3e-6, 8e-6, 1e-3), "sqlite": Spread(2e-6, 2e-6, 3e-6)}
    made = row(took={"ours": 3e-6, "sqlite": 2e-6, "floor": 1e-6}, spreads=spreads)

    measured = made.measured(limit)

    assert measured == (None if expected is None else pytest.approx(expected))


def test_a_promise_is_one_line_with_the_worst_of_its_rows(monkeypatch):
    monkeypatch.setitem(promises.REASONS, promises.NODE, "the statement alone takes that long")
    limits = (Limit(1.6, "sqlite"), Limit(2.5, "sqlite", tail=True))
    rows = [
        row(
            work=work,
            took={"ours": ours, "sqlite": 1e-5},
            spreads={"ours": Spread(ours, p99, 1e-3), "sqlite": Spread(1e-5, 1e-5, 1e-5)},
            promise=promises.NODE,
            limits=limits,
        )
        for work, ours, p99 in (("one", 1e-5, 2e-5), ("other", 3e-5, 2e-5), ("third", 1.5e-5, 2.4e-5))
    ]
    rows.append(row(took={"ours": 0.01}, promise=promises.CLOSE, limits=(Limit(0.02),)))

    _, _, node, close = report.promised(rows)

    assert "**3.00** of 1.6 × SQLite; p99 2.40 of 2.5 × SQLite" in node
    assert "**missed**: the statement alone takes that long" in node
    assert "10 ms of 20 ms" in close and "met" in close
    assert ["missed" in line for line in report.table(rows)] == [False] * 6


def test_a_promise_without_a_right_answer_is_missed():
    wrong = row(work="a wrong one", promise=promises.NODE, limits=(Limit(1.6, "sqlite"),))

    assert "**missed**: most by *a wrong one*" in report.promised([wrong])[2]


def test_every_reason_is_about_a_promise():
    assert promises.REASONS.keys() <= set(promises.ORDER)


@pytest.mark.parametrize("verb", ["NODE", "LINKS_FROM", "BACKLINKS_TO", "SUPERSEDED", "CAUSES"])
def test_the_twin_answers_what_is_believed_now_by_its_partial_indexes(verb, tmp_path):
    store = sqlite_twin.create(tmp_path)
    now, ever = getattr(sqlite_twin, verb)

    plans = [
        " ".join(
            row[3]
            for row in store.rows(f"EXPLAIN QUERY PLAN {statement}", {"id": "a", "v": 1, "t": 1, "depth": 5})
        )
        for statement in (now, ever)
    ]
    sqlite_twin.close(store)

    assert "_now" in plans[0] and "_now" not in plans[1]
    assert not any("SCAN version" in plan or "SCAN link" in plan for plan in plans)


def test_figures_replace_those_of_their_size_alone(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("above\n<!-- figures 10k -->\nold\n<!-- end figures 10k -->\nbelow\n", encoding="utf-8")

    report.write({"figures 10k": ["new"], "figures 1m": ["first"]}, page)

    text = page.read_text(encoding="utf-8")
    assert text.startswith("above\n<!-- figures 10k -->\n\nnew\n\n<!-- end figures 10k -->\nbelow")
    assert "<!-- figures 1m -->\n\nfirst\n\n<!-- end figures 1m -->" in text


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (None, "s", "–"),
        (5e-6, "s", "5 µs"),
        (0.0123, "s", "12.3 ms"),
        (2.5e8, "B", "250 MB"),
        (3e-10, "s", "0.3 ns"),
    ],
)
def test_amounts_are_read_by_people(value, unit, expected):
    assert expected == report.amount(value, unit)


def test_what_is_told_is_what_holds():
    data: Data = SMALL
    told = sum(len(versions) for _, versions, *_ in steps(data))
    links = sum(len(links) for _, _, links, *_ in steps(data))

    assert (told, links) == (data.versions.num_rows, data.links.num_rows)
