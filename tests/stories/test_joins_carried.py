"""Joins on branches, in merges, counterfactual views, dumps and copies; and, on random stores, against a store in which nothing was known twice."""

from __future__ import annotations

import contextlib
import random

import pytest

import graphstore

pytestmark = pytest.mark.in_process("opens stores of its own, and restores dumps")

KINDS = ("works_on", "reference", "derived_from", "related_to", "uses", "part_of")


def known_twice(store):
    store.add_node("person", {"name": "Bob Smith"}, id="bob", valid_from="2020-01-01")
    store.add_node("person", {"name": "Robert Smith"}, id="robert", valid_from="2022-01-01")
    store.add_node("thing", {"says": "acme"}, id="acme", valid_from="2020-01-01")
    store.link("bob", "works_on", "acme", valid_from="2020-01-01")
    return store


def sentences(links):
    return sorted((link.source, link.kind, link.target) for link in links)


def test_a_join_holds_on_its_branch_and_comes_with_the_merge(store, clock):
    known_twice(store)
    branch = store.branch("dedup")
    clock.move(days=1)
    branch.join("bob", into="robert", reason="one passport")

    assert "robert" == branch.node("bob").id
    assert "bob" == store.node("bob").id
    clock.move(days=1)
    store.link("bob", "uses", "acme", valid_from="2022-01-01")
    merged = store.merge("dedup")
    assert merged.merged
    assert "robert" == store.node("bob").id
    assert [
        ("robert", "joined_from", "bob"),
        ("robert", "uses", "acme"),
        ("robert", "works_on", "acme"),
    ] == sentences(store.links_from("bob"))
    store.split("bob", reason="two people")
    assert [("bob", "uses", "acme"), ("bob", "works_on", "acme")] == sentences(store.links_from("bob"))
    assert [] == sentences(store.links_from("robert"))
    assert () == store.verify().problems


@pytest.mark.parametrize("other", [("bob", "rs"), ("robert", "bob"), ("robert", "rs"), ("rs", "robert")])
def test_a_merge_of_other_joins_of_one_node_is_refused(store, clock, other):
    known_twice(store)
    store.add_node("person", {"name": "R. S."}, id="rs", valid_from="2022-01-01")
    branch = store.branch("dedup")
    clock.move(days=1)
    branch.join("bob", into="robert")
    clock.move(days=1)
    store.join(other[0], into=other[1])
    with pytest.raises(graphstore.ConflictError, match=r"Take one of the two back first: split\("):
        store.merge("dedup", decide="trunk" if other == ("robert", "bob") else "branch")
    store.split(other[0], reason="not so")

    assert store.merge("dedup", decide="branch").merged
    assert "robert" == store.node("bob").id
    assert () == store.verify().problems


def test_a_link_of_a_branch_comes_to_what_was_joined_meanwhile(store, clock):
    known_twice(store)
    branch = store.branch("plan")
    clock.move(days=1)
    branch.link("bob", "uses", "acme", valid_from="2022-01-01")
    clock.move(days=1)
    store.join("bob", into="robert")
    clock.move(days=1)
    store.merge("plan")

    assert ("robert", "uses", "acme") in sentences(store.links_from("robert"))
    assert () == store.verify().problems


def test_without_the_join_both_are_as_they_were(store, clock):
    known_twice(store)
    clock.move(days=1)
    link = store.join("bob", into="robert")
    clock.move(days=1)
    store.link("acme", "part_of", "robert")
    view = store.without(tx=link.recorded_at)

    assert "bob" == view.node("bob").id
    assert ("acme", "part_of", "robert") in sentences(view.backlinks_to("robert"))
    other = store.without(id="acme")
    assert "robert" == other.node("bob").id


def test_a_join_is_repeated_and_split_without_something_else(store, clock):
    known_twice(store)
    store.add_node("thing", {"says": "away"}, id="away")
    clock.move(days=1)
    store.join("bob", into="robert", reason="one passport")
    clock.move(days=1)
    store.split("bob", reason="two people")
    view = store.without(id="away")

    assert "bob" == view.node("bob").id
    assert () == tuple(each for each in view.left_out if each.verb in ("join", "split"))


@pytest.mark.rest
def test_dumps_and_copies_contain_joins(tmp_path, clock):
    with graphstore.open(tmp_path / "one.gs", clock=clock) as store:
        known_twice(store)
        clock.move(days=1)
        store.join("bob", into="robert", reason="one passport")
        assert () == store.verify().problems
        store.export(tmp_path / "dump")
    graphstore.restore(tmp_path / "dump", tmp_path / "two.gs")
    with graphstore.open(tmp_path / "two.gs", clock=clock) as store:
        assert "robert" == store.node("bob").id
        assert () == store.verify().problems
        store.rebuild()
        assert () == store.verify().problems
        store.export(tmp_path / "again")
        assert "robert" == store.node("bob").id
    assert (tmp_path / "dump").read_bytes() == (tmp_path / "again").read_bytes()


def test_an_older_release_refuses_a_store_with_joins(store):
    known_twice(store)
    store.join("bob", into="robert")
    [(head,)] = store._core.journal.database.rows("SELECT head FROM chain ORDER BY number DESC LIMIT 1")

    assert b'"requires":["joins"]' in head


def build(store, clock, chance, *, twice):
    """Random things, links and invalidations of somebody known as `a` and `b`; with `twice` false all of it is of `b`."""
    name = {"a": "a" if twice else "b"}
    if twice:
        store.add_node("person", {"name": "A"}, id="a", valid_from="2020-01-01", valid_to="2022-01-01")
        store.add_node("person", {"name": "B"}, id="b", valid_from="2022-01-01")
    else:
        store.add_node("person", {"name": "A"}, id="b", valid_from="2020-01-01")
        store.revise("b", {"name": "B"}, valid_from="2022-01-01", minor=True)
    for other in "xyz":
        store.add_node("thing", {"says": other}, id=other, valid_from="2020-01-01")
    for _ in range(8):
        clock.move(hours=1)
        who, other, kind = chance.choice("ab"), chance.choice("xyz"), chance.choice(KINDS)
        since = {"valid_from": chance.choice(("2020-06-01", "2021-01-01", "2023-01-01"))}
        ends = (name.get(who, who), other) if chance.random() < 0.5 else (other, name.get(who, who))
        with contextlib.suppress(graphstore.ConflictError):
            store.link(ends[0], kind, ends[1], **since)
    if chance.random() < 0.5:
        clock.move(hours=1)
        store.retract(chance.choice("xyz"), reason="wrong")


def read(store):
    found = []
    for valid in ("2020-07-01", "2021-06-01", "2022-06-01", "2023-06-01"):
        view = store.as_of(valid=valid)
        found.append((valid, view.inspect("b").node.content, sorted(each.node.id for each in view.shaky())))
        found.append(sorted(node.id for node in view.nodes()))
        for id in "bxyz":
            links = [
                each for each in (*view.links_from(id), *view.backlinks_to(id)) if each.kind != "joined_from"
            ]
            found.append((id, sorted(set(sentences(links)))))
        found.append(sorted(node.id for node in view.walk("b", hops=2).nodes))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_joined_they_read_as_if_all_had_been_recorded_of_one(clock, seed):
    with graphstore.open(":memory:", clock=clock) as twice, graphstore.open(":memory:", clock=clock) as once:
        build(once, clock, random.Random(seed), twice=False)
        build(twice, clock, random.Random(seed), twice=True)
        before = read(twice)
        clock.move(days=1)
        twice.join("a", into="b")

        assert read(once) == read(twice)
        clock.move(days=1)
        twice.split("a", reason="two people")
        assert before == read(twice)


@pytest.mark.parametrize("seed", range(6))
def test_split_later_both_have_the_links_that_they_had(clock, seed):
    def linked(store):
        return [sentences([*store.links_from(id), *store.backlinks_to(id)]) for id in ("a", "x", "y", "z")]

    with graphstore.open(":memory:", clock=clock) as store:
        build(store, clock, random.Random(seed), twice=True)
        before, shaky = linked(store), [each.node.id for each in store.shaky()]
        clock.move(days=1)
        store.join("a", into="b")
        store.add_node("thing", {"says": "late"}, id="late", derived_from=["a"])
        store.revise("a", {"name": "B, and later"}, minor=True)
        clock.move(days=1)
        store.split("a", reason="two people")

        assert before == linked(store)
        assert shaky == [each.node.id for each in store.shaky()]
        assert [("late", "derived_from", "b")] == sentences(store.links_from("late"))
        assert "A" == store.as_of(valid="2021-01-01").node("a").content["name"]
        assert () == store.verify().problems
