"""Counterfactual views: what would be believed if some operations had never been recorded, compared with a store in which they never were."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError, InvalidError, NotFoundError
from graphstore.store.scoped_store import ScopedStore
from tests.change.oracle import Oracle
from tests.change.programs import SEEDS, THINGS, Hours, Step, draw, instants, tell_store
from tests.change.test_change_properties import READS
from tests.conftest import Clock, day

pytestmark = pytest.mark.in_process("looks at views of stores in memory")

PEOPLE = ("ann", "ben", "crawler:one")


def plain(value: Any) -> Any:
    """A value without ids that a store draws."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, dict):
        return {
            name: plain(one)
            for name, one in value.items()
            if name != "id" or not str(one).startswith(("lnk_", "evt_1"))
        }
    if isinstance(value, list | tuple):  # links of one instant are in the order of ids that are drawn
        return sorted((plain(one) for one in value), key=repr)
    return value


def answers(view_at: Any) -> dict[tuple[Any, ...], Any]:
    """Every read at every instant that matters."""
    found: dict[tuple[Any, ...], Any] = {}
    for valid in instants():
        view = view_at(valid)
        found[valid, "nodes"] = plain(sorted(view.nodes(), key=lambda one: one.id))
        found[valid, "events"] = plain(sorted(view.events(), key=lambda one: one.id))
        found[valid, "shaky"] = plain(sorted(view.shaky(), key=lambda one: one.node.id))
        for id in THINGS:
            for read in (*READS, "versions", "inspect"):
                try:
                    found[valid, read, id] = plain(getattr(view, read)(id))
                except GraphStoreError as error:
                    found[valid, read, id] = type(error).__name__
    return found


def operations(store: GraphStore) -> int:
    """How many operations the open transaction knows."""
    working = store._core.working
    assert working is not None
    return len(working.o_tx)


def play(
    program: list[tuple[Step, str]], sizes: list[int], without: str | None, silent: set[int]
) -> tuple[GraphStore, Hours]:
    """A store to which a program was told, each step by somebody, but for what one of them said, and for the steps that write nothing (`silent`)."""
    hours = Hours()
    store = graphstore.open(":memory:", clock=hours)
    at = 0
    for size in sizes:
        hours.move()
        group = program[at : at + size]
        at += size
        with store.transaction(author=group[0][1]):
            for number, (step, _) in enumerate(group, at - size):
                if group[0][1] != without and number not in silent:
                    count = operations(store)
                    with suppress(GraphStoreError, StopIteration):
                        tell_store(store, step)
                    if without is None and operations(store) == count:
                        silent.add(number)
    return store, hours


@pytest.mark.parametrize(
    "seed", [*SEEDS, pytest.param(234, id="kept-pieces"), pytest.param(376, id="superseded-again")]
)
def test_it_is_what_a_store_says_that_was_never_told(seed: int) -> None:
    chance, hours = random.Random(seed), Hours()
    program = draw(chance, 24, Oracle(hours), hours)
    sizes: list[int] = []
    while sum(sizes) < len(program):
        sizes.append(min(chance.choice([1, 1, 1, 2, 4]), len(program) - sum(sizes)))
    people = [chance.choice(PEOPLE) for _ in program]
    told = list(zip(program, people, strict=True))
    silent: set[int] = set()
    store, _ = play(told, sizes, None, silent)
    for person in PEOPLE:
        other, _ = play(told, sizes, person, silent)
        view = store.without(author=person)
        expected, found = (
            answers(lambda valid, other=other: other.as_of(valid=valid)),
            answers(lambda valid, view=view: view.as_of(valid=valid)),
        )
        assert expected == found, person
        other.close()
    store.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_within_scopes_it_is_what_a_store_says_without_the_rest(seed: int) -> None:
    """Two teams write by turns, in their own transactions and with the same people."""
    chance, hours = random.Random(seed), Hours()
    teams = {
        scope: iter([
            step._replace(more={**step.more, **own.get(step.verb, {})})
            for own in [{"add": {"scope": scope}, "event": {"metadata": {"scope": scope}}}]
            for step in draw(chance, 16, Oracle(hours), hours, prefix)
        ])
        for scope, prefix in (("team/a", ""), ("team/b", "zebra-"))
    }  # fmt: skip
    turns = [(scope, chance.choice(PEOPLE)) for scope in chance.sample(["team/a", "team/b"] * 16, 32)]
    program = [(step, who, scope) for scope, who in turns for step in [next(teams[scope], None)] if step]
    both, alone = [(step, who) for step, who, _ in program], {
        at for at, (_, _, scope) in enumerate(program) if scope != "team/a"
    }  # fmt: skip
    sizes, silent = [1] * len(program), set[int]()
    store, _ = play(both, sizes, None, silent)
    part = ScopedStore(store, ("team/a",))
    for person in PEOPLE:
        other, _ = play(both, sizes, person, silent | alone)
        view = part.without(author=person)
        assert answers(lambda valid, other=other: other.as_of(valid=valid)) == answers(
            lambda valid, view=view: view.as_of(valid=valid)
        ), person
        assert "zebra" not in repr(view.left_out) + view.counterfact.model_dump_json()
        other.close()
    store.close()


def test_within_scopes_what_changed_from_outside_is_refused(told: GraphStore, clock: Clock) -> None:
    told.add_node("fact", {"says": "a"}, id="team/a/one", scope="team/a", source="crawler")
    told.add_node("fact", {"says": "a too"}, id="team/a/two", scope="team/a")
    part = ScopedStore(told, ("team/a",))
    assert ["team/a/two"] == [node.id for node in part.without(source="crawler").nodes()]
    with pytest.raises(NotFoundError, match="no operation of 'scraped'"):
        part.without(id="scraped")
    clock.move(days=1)
    told.add_node("fact", {"says": "zebra"}, id="zebra", supersedes=["team/a/two"])
    with pytest.raises(InvalidError, match="something outside of your scopes") as refused:
        part.without(source="crawler")
    assert "zebra" not in str(refused.value)


def test_a_dump_of_scopes_is_done_again_with_the_arguments_that_were_given(
    told: GraphStore, clock: Clock, tmp_path: Path
) -> None:
    told.add_node("fact", {"says": "a"}, id="team/a/one", scope="team/a", source="crawler")
    clock.move(days=1)
    told.add_node("fact", {"says": "b"}, id="team/a/two", scope="team/a", valid_from="2026-01-05")
    ScopedStore(told, ("team/a",)).export(tmp_path / "a.jsonl")
    with graphstore.restore(tmp_path / "a.jsonl", tmp_path / "a.gs") as restored:
        [node] = restored.without(source="crawler").nodes()
    assert day("2026-01-05") == node.valid_from


@pytest.fixture
def told(clock: Clock) -> GraphStore:
    """A crawler and Ben, and what rests on what they said."""
    store = graphstore.open(":memory:", clock=clock)
    with store.transaction(author="ann"):
        store.add_node(
            "fact", {"price": 10}, id="price", key="price", source="contract", valid_from="2026-01-01"
        )
    clock.move(days=1)
    with store.transaction(author="bot"):
        store.add_node("fact", {"price": 12}, id="scraped", key="price", source="crawler:shop")
    clock.move(days=1)
    with store.transaction(author="ben"):
        store.add_node("fact", {"says": "they raised it"}, id="raise", derived_from=["scraped"])
        store.add_node("fact", {"says": "we switch"}, id="switch", derived_from=["price"])
    clock.move(days=1)
    return store


def test_had_the_crawler_never_run(told: GraphStore) -> None:
    view = told.without(source="crawler")

    assert {"price": 10} == view.nodes(key="price")[0].content
    assert [("add_node", "raise")] == [(each.verb, each.subject) for each in view.left_out]
    assert "scraped" in view.left_out[0].reason
    assert not view.by_effects
    found = view.compare(told.as_of())
    assert {"scraped", "raise"} == {node.id for node in found.added}
    assert {"price"} == {node.id for node in found.removed}
    assert {"price": 12} == told.nodes(key="price")[0].content


def test_what_rests_on_ben_alone(told: GraphStore) -> None:
    fallen = told.as_of().compare(told.without(author="ben"))

    assert {"raise", "switch"} == {node.id for node in fallen.removed}


def test_several_arguments_name_what_fits_all(told: GraphStore) -> None:
    assert {"raise"} == {
        node.id for node in told.as_of().compare(told.without(author="ben", id="raise")).removed
    }
    assert not told.as_of().compare(told.without(author="ann", source="crawler"))


def test_a_transaction_is_omitted_by_its_instant_or_a_change(told: GraphStore) -> None:
    change = told.changes()[-1]

    assert {"raise", "switch"} == {node.id for node in told.as_of().compare(told.without(tx=change)).removed}
    assert {"raise", "switch"} == {
        node.id for node in told.as_of().compare(told.without(tx=change.tx)).removed
    }


def test_what_was_never_recorded_is_refused(told: GraphStore) -> None:
    with pytest.raises(InvalidError, match="Give source="):
        told.without()
    with pytest.raises(NotFoundError):
        told.without(id="nothing")
    with pytest.raises(NotFoundError):
        told.without(tx="2025-01-01")


def test_nothing_is_written(told: GraphStore) -> None:
    before = told.stats()

    told.without(source="crawler")

    assert before == told.stats()


def test_an_undo_goes_with_what_it_took_back(told: GraphStore, clock: Clock) -> None:
    tx = told.changes()[-1].tx
    with told.transaction(author="eve"):
        told.retract("price", reason="wrong")
    clock.move(days=1)
    told.undo(told.changes()[-1].tx, reason="no, right")

    view = told.without(author="eve")

    assert ["undo"] == [each.verb for each in view.left_out]
    assert tx <= view.left_out[0].tx
    assert not told.as_of().compare(view)


def test_links_that_came_and_went_within_a_transaction_go_again(clock: Clock) -> None:
    store = graphstore.open(":memory:", clock=clock)
    with store.transaction(author="nobody"):
        store.add_node("fact", {}, id="dummy")
    store.add_node("fact", {}, id="old")
    clock.move(days=1)
    with store.transaction(author="ann"):
        store.add_node("fact", {}, id="new", supersedes=["old"])
        store.unlink(store.links_from("new")[0].id)
        link = store.link("new", "supports", "old", strength=2, history=True)
        store.link("new", "related_to", "old")
        store.unlink(link.id)
        store.unlink(source="new", kind="related_to", target="old")
    clock.move(days=1)

    view = store.without(id="dummy")

    assert () == view.left_out
    assert ["dummy"] == [node.id for node in store.as_of().compare(view).removed]
    assert view.node("old") and not view.links_from("new")


def test_an_event_that_was_corrected_in_its_own_transaction_keeps_its_time(clock: Clock) -> None:
    store = graphstore.open(":memory:", clock=clock)
    with store.transaction(author="ann"):
        store.add_node("fact", {}, id="right", valid_from="2026-01-01")
    clock.move(days=1)
    with store.transaction(author="ben"):
        store.record_event("error", "boom", id="boom", occurred_at="2026-01-01")
        store.link("right", "corrects", "boom")
    clock.move(days=1)

    assert day("2026-01-01") == store.without(author="ann").event("boom").occurred_at


def test_large_transactions_are_done_again(clock: Clock) -> None:
    store = graphstore.open(":memory:", clock=clock)
    with store.transaction(author="nobody"):
        store.add_node("fact", {}, id="dummy")
    clock.move(days=1)
    with store.transaction(author="ann"):
        for n in range(1100):
            store.add_node("fact", {"n": n}, id=f"n{n}")
    store.bulk_load(
        versions=[{"node_id": f"b{n}", "content": {"n": n}, "valid_from": "2026-01-01"} for n in range(1100)],
        links=[{"source": f"b{n}", "kind": "uses", "target": "n7", "reason": "so"} for n in range(1100)],
    )
    clock.move(days=1)

    view = store.without(id="dummy")

    assert () == view.left_out
    found = store.as_of().compare(view)
    assert ["dummy"] == [node.id for node in found.removed]
    assert not (found.added or found.changed or found.links_added or found.links_removed)


def test_a_description_beside_the_pieces_that_it_left_is_done_again(clock: Clock) -> None:
    store = graphstore.open(":memory:", clock=clock)
    with store.transaction(author="nobody"):
        store.add_node("fact", {}, id="dummy")
    store.add_node("fact", {"n": 0}, id="a", valid_from="2026-01-01")
    clock.move(days=1)
    with store.transaction(author="ann"):
        store.revise("a", {"n": 1}, valid_from="2026-01-02")
        store.revise("a", {"n": 2}, valid_from="2026-01-03", valid_to="2026-01-04")
    clock.move(days=1)

    assert store.history("a") == store.without(id="dummy").history("a")


def test_a_branch_has_its_own(told: GraphStore, clock: Clock) -> None:
    branch = told.branch("idea")
    clock.move(days=1)
    with branch.transaction(author="eve"):
        branch.revise("switch", {"says": "we stay"})
    clock.move(days=1)
    branch.add_node("fact", {"n": 1}, id="more")

    view = branch.without(author="eve")

    assert {"says": "we switch"} == view.node("switch").content
    assert {"n": 1} == view.node("more").content
    assert ["switch"] == [each.id for each in branch.compare(view).changed]
    clock.move(days=1)
    told.merge("idea")
    assert {"says": "we switch"} == told.without(author="eve").node("switch").content


def test_everything_done_again_is_what_it_was(clock: Clock) -> None:
    store = graphstore.open(":memory:", clock=clock)
    with store.transaction(author="nobody"):
        store.add_node("fact", {}, id="dummy")
    clock.move(days=1)
    store.define_kind("likes")
    store.bulk_load(
        nodes=[{"id": "a", "kind": "fact"}, {"id": "b", "kind": "fact", "key": "slot"}],
        versions=[
            {"node_id": "a", "content": {"n": 1}, "valid_from": "2026-01-01", "valid_to": "2026-02-01"},
            {"node_id": "b", "content": {"n": 1}, "valid_from": "2026-01-01"},
        ],
        links=[{"source": "a", "kind": "likes", "target": "b", "reason": "so"}],
        events=[{"type": "error", "description": "boom", "occurred_at": "2026-01-03"}],
    )
    clock.move(days=1)
    with store.transaction(author="ann", reason="all at once"):
        store.add_node("fact", {"n": 2}, key="slot", tags=["t"], text="two")
        store.add_node("fact", {"n": 2}, key="slot", source="ben")
        store.link("b", "related_to", "a", strength=3, reason="r", metadata={"m": 1})
        store.amend("a", {"m": 2}, valid_from="2026-01-05", valid_to="2026-01-10")
    clock.move(days=1)
    store.record_event("error", "boom", related_to=["a"])
    store.fold(["a", "b"], into={"says": "sum"})
    clock.move(days=1)
    store.unlink(source="b", kind="related_to", target="a")
    store.confirm("a", reason="seen", source="zoe")
    store.snapshot("mark")
    store.supersede("a", by="b", reason="later", valid_from="2026-01-20")
    clock.move(days=1)

    view = store.without(id="dummy")

    found = store.as_of().compare(view)
    assert ["dummy"] == [node.id for node in found.removed]
    assert (0, 0, 0, 0, 0) == tuple(
        len(each)
        for each in (found.added, found.changed, found.links_added, found.links_removed, found.events_added)
    )
    assert () == view.left_out
    for id in ("a", "b"):
        assert store.history(id) == view.history(id)
        assert store.links_from(id) == view.links_from(id)
        assert store.what_superseded(id) == view.what_superseded(id)


def test_what_was_erased_stays_erased(told: GraphStore, clock: Clock) -> None:
    told.erase("raise", reason="asked", author="ben")
    clock.move(days=1)

    for view in (told.without(author="ben"), told.without(author="ann"), told.without(source="crawler")):
        with suppress(NotFoundError):
            assert "they raised it" not in str(view.inspect("raise"))
