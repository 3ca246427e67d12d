"""The benchmark's own arithmetic: percentiles, right answers, coordinates, verdicts, and that a wrong answer is named instead of timed."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace

import pytest

from benchmarks import data as history
from benchmarks import report
from benchmarks.__main__ import count_of
from benchmarks.arena import Arena, Row
from benchmarks.data import WHEN, Data, Draws, Oracle
from benchmarks.shared import CAUSES, LATEST, OPEN, START, steps
from benchmarks.timing import Spread, at_most, spread

pytestmark = pytest.mark.in_process("makes stores of its own, or none")
SMALL = history.history(200)


def row(**given) -> Row:
    return Row(**{"work": "a read", "size": "200", "took": {}, "budget": None, "floor_is": "", **given})


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


def test_work_without_end_is_given_up():
    with pytest.raises(TimeoutError), at_most(0.01):
        time.sleep(60)


@pytest.mark.parametrize(("text", "count"), [("200", 200), ("10k", 10_000), ("1m", 1_000_000)])
def test_a_size_is_a_number_of_versions(text, count):
    assert count == count_of(text)


def test_the_same_history_every_time():
    again = history.history(200)

    for name in ("nodes", "versions", "told", "links", "events"):
        assert getattr(SMALL, name).equals(getattr(again, name))


@pytest.mark.parametrize("versions", [200, 5_000])
def test_no_two_believed_versions_of_a_node_overlap(versions):
    rows = history.history(versions).versions.to_pylist()

    for one in rows:
        assert one["valid_from"] < one["valid_to"] and one["tx_from"] < one["tx_to"]
    by_node: dict[str, list] = {}
    for one in rows:
        by_node.setdefault(one["node_id"], []).append(one)
    for of_node in by_node.values():
        believed = sorted((one for one in of_node if one["tx_to"] == OPEN), key=lambda one: one["valid_from"])
        for older, newer in itertools.pairwise(believed):
            assert older["valid_to"] <= newer["valid_from"]


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

    arena = Arena(
        "200", SMALL, tmp_path, {"ours": twin("yes"), "sqlite": twin("no")}, True, {"ours": 0, "sqlite": 0}
    )

    made = arena.timed("a read", "node_as_of", [(("n", None, None), "yes")], tail=4.0)

    assert {"ours"} == made.took.keys() == made.spreads.keys()
    assert made.wrong[0].startswith("sqlite: node_as_of")
    assert made.tail == 4 * made.took["ours"]
    assert "wrong, so not timed: a read (200): sqlite" in "\n".join(report.losses([made], {}))
    assert "| wrong |" in report.table([made, row(took={"ours": 1.0, "sqlite": 2.0})])[2]


def test_a_budget_is_met_or_missed_by_a_factor():
    met = row(took={"ours": 5e-6}, budget=1e-5)
    missed = row(work="a write", took={"ours": 3e-5, "sqlite": 1e-5}, budget=1e-5)

    lines = report.table([met, missed])

    assert "0.50 met" in lines[2] and "3.00 **missed**" in lines[3]
    assert "3.00 (10 µs)" in lines[3]
    lost = report.losses([met, missed], {"tgms": "No module named 'tgms'"})
    assert "1 of 2 budgets missed" in lost[0]
    assert "- a write (200): 3.00 times its budget" in lost
    assert "- slower than SQLite in 1 of 1 rows: a write (200) × 3.00" in lost
    assert "- tgms is not installed: No module named 'tgms'" in lost


def test_a_late_read_is_missed_whatever_the_median():
    late = row(took={"ours": 1e-6}, spreads={"ours": Spread(1e-6, 8e-6, 1e-3)}, tail=4e-6)

    assert "8 µs, 2.00 **missed**" in report.table([late])[2]
    assert "- a read (200): its p99 is 2.00 times what it may be" in report.losses([late], {})


def test_figures_replace_those_of_their_size_alone(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("above\n<!-- figures 10k -->\nold\n<!-- end 10k -->\nbelow\n", encoding="utf-8")

    report.write({"10k": ["new"], "1m": ["first"]}, page)

    text = page.read_text(encoding="utf-8")
    assert text.startswith("above\n<!-- figures 10k -->\n\nnew\n\n<!-- end 10k -->\nbelow")
    assert "<!-- figures 1m -->\n\nfirst\n\n<!-- end 1m -->" in text


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
