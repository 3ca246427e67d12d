"""Two ids of one thing: what a join moves, what is read through it, and how it is taken back."""

from __future__ import annotations

import unicodedata

import pytest

from graphstore import ConflictError, InvalidError, NotFoundError
from graphstore.memory import recall

pytestmark = pytest.mark.served
LATER = "2031-01-01"


@pytest.fixture
def bob(store, clock):
    """Bob, known twice, with what is linked to either."""
    store.add_node("person", {"name": "Bob Smith"}, id="bob", valid_from="2020-01-01")
    store.add_node("person", {"name": "Robert Smith"}, id="robert", valid_from="2022-01-01")
    for id in ("acme", "berlin", "report", "letter"):
        store.add_node("thing", {"says": id}, id=id, valid_from="2020-01-01")
    store.link("bob", "works_on", "acme", reason="his card says so", strength=4, valid_from="2020-01-01")
    store.link("robert", "located_at", "berlin", valid_from="2022-01-01")
    store.link("report", "derived_from", "bob")
    store.link("letter", "reference", "robert", valid_from="2022-01-01")
    store.link("robert", "related_to", "bob", valid_from="2022-01-01")
    clock.move(days=1)
    return store


def sentences(links):
    return sorted((link.source, link.kind, link.target) for link in links)


def answers(store, ids=("bob", "robert", "acme", "berlin", "report", "letter")):
    """Everything that is read of some ids at some valid times, without the instants of recording."""
    found = []
    for valid in ("2020-06-01", "2023-01-01", LATER):
        view = store.as_of(valid=valid)
        for id in ids:
            links = [*view.links_from(id), *view.backlinks_to(id)]
            found.append((id, view.inspect(id).node.standing, sentences(links), [each.id for each in links]))
            found.append(
                [(each.ref, each.content, each.valid_from, each.valid_to) for each in view.history(id)]
            )
            found.append(str(view.what_superseded(id)))
        found.append(sorted(each.id for each in view.nodes()))
        found.append(sorted(each.node.id for each in view.shaky()))
    return found


def test_links_of_both_are_links_of_one(bob):
    link = bob.join("bob", into="robert", reason="one passport")
    view = bob.as_of(valid="2023-01-01")

    assert ("robert", "joined_from", "bob", "one passport") == (
        link.source,
        link.kind,
        link.target,
        link.reason,
    )
    out = [
        ("robert", "joined_from", "bob"),
        ("robert", "located_at", "berlin"),
        ("robert", "works_on", "acme"),
    ]
    assert out == sentences(view.links_from("robert")) == sentences(view.links_from("bob"))
    into = [("letter", "reference", "robert"), ("report", "derived_from", "robert")]
    assert into == sentences(view.backlinks_to("robert")) == sentences(view.backlinks_to("bob"))
    [card] = view.links_from("bob", "works_on")
    assert ("his card says so", 4, "2020-01-01") == (
        card.reason,
        card.strength,
        f"{card.valid_from:%Y-%m-%d}",
    )


def test_a_node_is_read_under_either_id(bob):
    bob.join("bob", into="robert")

    assert "robert" == bob.node("bob").id == bob.inspect("bob").node.id
    assert {"name": "Robert Smith"} == bob.node("bob").content
    assert {"name": "Bob Smith"} == bob.as_of(valid="2021-01-01").node("robert").content
    assert ["robert"] == [node.id for node in bob.nodes("person")]


def test_the_history_has_what_either_was(bob):
    bob.join("bob", into="robert")
    found = bob.history("robert")

    assert found == bob.history("bob")
    assert ["robert", "robert", "bob"] == [version.id for version in found]
    assert {"name": "Bob Smith"} == found[-1].content
    assert found[-1].tx_to is not None
    assert (
        {"bob", "robert"}
        == {version.id for version in bob.versions("bob")}
        == {version.id for version in bob.versions("robert")}
    )


def test_what_superseded_it_names_the_join(bob):
    bob.join("bob", into="robert", reason="one passport")
    found = bob.what_superseded("bob")

    [step] = found.chain
    assert ("joined", "robert", "one passport") == (step.how, step.node.id, step.why)
    assert "bob was joined into robert since 2020-01-01" in str(found)
    assert ["robert"] == [node.id for node in found.current]


def test_a_word_of_either_finds_the_one(bob):
    bob.join("bob", into="robert")

    assert ["robert"] == [hit.node.id for hit in recall.recall(bob, "Bob", hops=0)]
    assert ["robert"] == [hit.node.id for hit in recall.recall(bob, "Smith", hops=0)]


def test_the_past_stays_as_it_was(bob):
    before, tx = answers(bob), bob.at.tx
    bob.join("bob", into="robert")
    then = bob.as_of(tx=tx)

    assert "bob" == then.node("bob").id
    assert [("bob", "related_to", "robert"), ("bob", "works_on", "acme")] == sentences(then.links_from("bob"))
    assert ["bob"] == [hit.node.id for hit in recall.recall(then, "Bob", hops=0)]
    assert before != answers(bob)


@pytest.mark.parametrize("way", ["undo", "split"])
def test_taken_back_everything_is_as_before(bob, clock, way):
    before = answers(bob)
    link = bob.join("bob", into="robert")
    clock.move(days=1)
    if way == "undo":
        bob.undo(link.recorded_at, reason="two people")
    else:
        bob.split("bob", reason="two people")

    assert before == answers(bob)
    assert "bob" == bob.node("bob").id
    assert ["bob"] == [hit.node.id for hit in recall.recall(bob, "Bob", hops=0)]


def test_what_was_recorded_since_stays_when_it_is_split(bob, clock):
    bob.join("bob", into="robert")
    clock.move(days=1)
    bob.link("bob", "uses", "letter")
    bob.revise("robert", {"name": "Robert A. Smith"})
    bob.unlink(source="robert", kind="works_on", target="acme", reason="he left")
    clock.move(days=1)
    bob.split("bob", reason="two people")

    assert {"name": "Bob Smith"} == bob.node("bob").content
    assert {"name": "Robert A. Smith"} == bob.node("robert").content
    assert ("robert", "uses", "letter") in sentences(bob.links_from("robert"))
    assert [("bob", "related_to", "robert")] == sentences(bob.links_from("bob"))
    assert ("report", "derived_from", "bob") in sentences(bob.backlinks_to("bob"))


def test_verbs_reach_the_one_under_either_id(bob):
    bob.join("bob", into="robert")
    bob.amend("bob", {"age": 40})
    bob.link("letter", "part_of", "bob")

    assert 40 == bob.node("robert").content["age"]
    assert ("letter", "part_of", "robert") in sentences(bob.backlinks_to("robert"))


def test_a_chain_of_joins_means_its_end(bob, clock):
    bob.add_node("person", {"name": "R. Smith"}, id="rs", valid_from="2023-01-01")
    bob.join("bob", into="robert")
    clock.move(days=1)
    bob.join("robert", into="rs")

    assert "rs" == bob.node("bob").id == bob.node("robert").id
    assert [("joined", "robert"), ("joined", "rs")] == [
        (step.how, step.node.id) for step in bob.what_superseded("bob").chain
    ]
    assert {"bob", "robert", "rs"} == {version.id for version in bob.history("bob")}
    assert ("rs", "works_on", "acme") in sentences(bob.links_from("bob"))
    bob.split("robert", reason="not that one")
    assert "robert" == bob.node("bob").id
    assert ("robert", "works_on", "acme") in sentences(bob.links_from("bob"))


def test_the_same_join_again_is_the_same_link(bob):
    link = bob.join("bob", into="robert")
    changes = len(bob.changes())

    assert link.id == bob.join("bob", into="robert").id
    assert changes == len(bob.changes())


def test_what_cannot_be_one_thing_is_refused(bob):
    bob.add_node("person", {"name": "Eve"}, id="eve", scope="west")
    bob.add_node("person", {"name": "Gone"}, id="gone")
    bob.retract("gone", reason="a slip")
    bob.record_event("visit", "Bob came", id="visit")
    bob.add_node("person", {"name": "the boss"}, id="boss", key="boss")
    cases = [
        (("bob", "bob"), InvalidError, "joined into itself"),
        (("bob", "nobody"), NotFoundError, "nobody"),
        (("nobody", "bob"), NotFoundError, "nobody"),
        (("bob", "acme"), InvalidError, "of kind 'person' and 'acme' of kind 'thing'"),
        (("bob", "eve"), InvalidError, "of scope '' and 'eve' of scope 'west'"),
        (("visit", "bob"), InvalidError, "is an event"),
        (("bob", "gone"), ConflictError, "nothing is believed of 'gone'"),
        (("boss", "bob"), ConflictError, "slot 'boss'.*join\\('bob', into='boss'\\)"),
    ]
    for (id, into), error, words in cases:
        with pytest.raises(error, match=words):
            bob.join(id, into=into)
    bob.join("bob", into="robert")
    with pytest.raises(ConflictError, match=r"joined into 'robert' already.*split"):
        bob.join("bob", into="boss")
    with pytest.raises(InvalidError, match="'bob' is joined into it"):
        bob.join("robert", into="bob")
    with pytest.raises(NotFoundError, match="not joined into anything"):
        bob.split("acme", reason="none")
    with pytest.raises(InvalidError, match="split"):
        bob.unlink(source="robert", kind="joined_from", target="bob", reason="by hand")
    with pytest.raises(InvalidError, match="join"):
        bob.link("robert", "joined_from", "boss")


def test_what_one_transaction_wrote_is_joined_in_a_later_one(bob):
    with bob.transaction():
        bob.add_node("person", {"name": "Rob"}, id="rob")
        with pytest.raises(ConflictError, match="later transaction"):
            bob.join("rob", into="bob")
        bob.link("acme", "uses", "robert")
        with pytest.raises(ConflictError, match="later transaction"):
            bob.join("robert", into="bob")
    with bob.transaction():
        bob.join("rob", into="bob")
        bob.join("robert", into="bob")
    bob.split("robert", reason="two people")
    assert ("acme", "uses", "robert") in sentences(bob.backlinks_to("robert"))


def test_a_join_that_would_close_a_cycle_is_refused(store):
    for day, id in enumerate(("one", "two", "three"), 1):
        store.add_node("fact", {"says": id}, id=id, valid_from=f"2024-01-0{day}")
    store.supersede("one", by="two")
    store.supersede("two", by="three")

    with pytest.raises(ConflictError, match="cycle"):
        store.join("one", into="three")
    assert "superseded" == store.inspect("one").node.standing


def test_what_superseded_one_superseded_the_other(store, clock):
    store.add_node("fact", {"says": "100 requests"}, id="old", valid_from="2024-01-01")
    store.add_node("fact", {"says": "100 requests a minute"}, id="twin", valid_from="2024-02-01")
    store.add_node("fact", {"says": "200 requests"}, id="new", valid_from="2024-03-01", supersedes=["old"])
    clock.move(days=1)
    before = answers(store, ("old", "twin", "new"))
    store.join("old", into="twin")

    assert "superseded" == store.inspect("twin").node.standing
    assert ["new"] == [node.id for node in store.what_superseded("old").current]
    assert "100 requests" == store.as_of(valid="2024-01-15").node("old").content["says"]
    clock.move(days=1)
    store.split("old", reason="another limit")
    assert before == answers(store, ("old", "twin", "new"))


def test_one_that_was_retracted_is_what_it_was_joined_into(bob, clock):
    bob.retract("bob", reason="a slip")
    assert ["report"] == [each.node.id for each in bob.shaky()]
    clock.move(days=1)
    bob.join("bob", into="robert")

    assert "stands" == bob.inspect("bob").node.standing
    assert [] == bob.shaky()
    assert ["robert"] == [each.id for each in bob.grounds("report").foundations]


def test_what_rests_on_one_rests_on_the_other(bob, clock):
    bob.join("bob", into="robert")
    clock.move(days=1)
    bob.retract("robert", reason="nobody")

    assert ["report"] == [each.node.id for each in bob.shaky()]
    with pytest.raises(NotFoundError, match="retracted"):
        bob.node("bob")


def test_values_of_one_slot_stay_one_at_a_time(store, clock):
    store.add_node("person", {"name": "Ann"}, id="ann", key="boss", valid_from="2020-01-01")
    store.add_node("person", {"name": "Ben"}, id="ben", key="boss", valid_from="2022-01-01")
    store.add_node("person", {"name": "Anne"}, id="anne", key="boss", valid_from="2024-01-01")
    clock.move(days=1)
    before = answers(store, ("ann", "ben", "anne"))
    store.join("ann", into="anne")

    held = [
        store.as_of(valid=f"{year}-06-01").nodes(key="boss")[0].content["name"] for year in (2020, 2022, 2024)
    ]
    assert ["Ann", "Ben", "Anne"] == held
    clock.move(days=1)
    store.split("ann", reason="two people")
    assert before == answers(store, ("ann", "ben", "anne"))


def test_both_are_erased_together(bob):
    bob.join("bob", into="robert")
    bob._trunk.erase("bob", reason="asked for") if hasattr(bob, "_trunk") else bob.erase(
        "bob", reason="asked for"
    )

    assert {"erased"} == {bob.inspect(id).node.standing for id in ("bob", "robert")}


def test_the_graph_is_read_through_the_join(bob):
    bob.join("bob", into="robert")
    found = bob.query(
        "MATCH (p:Node {kind: 'person'})-[r]->(o:Node) RETURN p.id AS p, label(r) AS r, o.id AS o"
    )

    assert {("robert", "LOCATED_AT", "berlin"), ("robert", "WORKS_ON", "acme")} == {
        (row["p"], row["r"], row["o"]) for row in found if row["r"] != "JOINED_FROM"
    }


def test_an_id_is_the_same_however_it_is_composed(store):
    composed, decomposed = (unicodedata.normalize(form, "Zoë/Å") for form in ("NFC", "NFD"))
    assert composed != decomposed
    store.add_node("person", {"name": "Zoë"}, id=decomposed)
    store.add_node("thing", {"says": "a desk"}, id="desk")
    store.link("desk", "part_of", decomposed, id=unicodedata.normalize("NFD", "lé"))

    assert composed == store.node(decomposed).id == store.node(composed).id
    assert 1 == len(store.history(decomposed)) == len(store.history(composed))
    assert [composed] == [link.target for link in store.links_from("desk")]
    assert ["desk"] == [link.source for link in store.backlinks_to(decomposed)]
    with pytest.raises(ConflictError, match="known already"):
        store.add_node("person", {"name": "again"}, id=composed)
    with pytest.raises(ConflictError, match="known already"):
        store.add_node("person", {"name": "again"}, id=decomposed)
    store.revise(decomposed, {"name": "Zoé"})
    assert "Zoé" == store.node(f"{decomposed}-v2").content["name"]
    assert "stands" == store.what_superseded(decomposed).standing
    assert composed == store.causes(decomposed).root.id


def test_rows_of_a_load_compare_ids_as_verbs_do(store):
    composed, decomposed = (unicodedata.normalize(form, "Å") for form in ("NFC", "NFD"))
    versions = [
        {"node_id": each, "content": {"says": each}, "valid_from": day}
        for each, day in ((decomposed, "2024-01-01"), (composed, "2024-02-01"))
    ]
    store.bulk_load(versions=versions)

    assert [composed] == [node.id for node in store.nodes()]
    assert 2 == store.node(decomposed).number


@pytest.mark.parametrize("two", [("ÅNGSTRÖM", "A\u030angstro\u0308m"), ("Bob Smith", "bob  smith")])
def test_one_name_makes_a_candidate(store, two):
    for number, name in enumerate(two):
        store.add_node("person", {"name": name}, id=f"n{number}", valid_from=f"2024-01-0{number + 1}")
    store.add_node("person", {"name": "Somebody Else"}, id="other")
    [found] = store.joinable()

    assert ("n1", "n0") == (found.node.id, found.into.id)
    assert "join('n1', into='n0', reason=…)" in found.call
    store.link("n1", "contrasts_with", "n0", reason="two people")
    assert [] == store.joinable()


def test_the_same_statement_makes_a_candidate_and_another_value_does_not(store):
    for id, says in (
        ("a", "The deploy runs every Friday at 5"),
        ("b", "the deploy runs every friday at 5."),
        ("c", "The deploy runs every Friday at 6"),
    ):
        store.add_node("fact", {"says": says}, id=id, valid_from=f"2024-01-0{ord(id) - 96}")

    assert [("b", "a")] == [(each.node.id, each.into.id) for each in store.joinable()]
    store.join("b", into="a", reason="said twice")
    assert [] == store.joinable()


def test_a_review_has_the_call_that_settles_each(store):
    from graphstore.sessions import sessions

    store.add_node("fact", {"says": "limit is 10"}, id="limit", valid_from="2024-01-01")
    store.add_node("fact", {"says": "so we wait"}, id="wait", derived_from=["limit"], valid_from="2024-01-02")
    store.retract("limit", reason="wrong")
    store.add_node("person", {"name": "Bob"}, id="n1", valid_from="2024-01-01")
    store.add_node("person", {"name": "bob"}, id="n2", valid_from="2024-01-02")
    store.link("n1", "contradicts", "wait", reason="odd")
    found = {each.what: each for each in sessions.review(store)}

    assert {"shaky", "join", "contradiction"} == set(found)
    assert "confirm('wait', reason=…)" in found["shaky"].call
    assert found["join"].call.startswith("join('n2', into='n1'")
    assert "resolve(" in found["contradiction"].call
