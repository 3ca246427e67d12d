"""Rows loaded in bulk say what the verbs would: new things, mixed with all that needs them to be there."""

from __future__ import annotations

import json
import os
import random
from datetime import timedelta

import pytest

import graphstore
from graphstore import ConflictError, InvalidError
from graphstore.store import bulk
from graphstore.values import random_bits
from tests.conftest import Clock, day


@pytest.fixture
def one(clock):
    with graphstore.open(":memory:", clock=clock) as store:
        yield store


@pytest.fixture
def other(clock):
    with graphstore.open(":memory:", clock=clock) as store:
        yield store


def ends(link):
    return link.source, link.kind, link.target, link.created_by


def told(store):
    """What was told, but for the ids of links, which are drawn, as is their order, and the trigger, which says that it was a load."""
    nodes = [node.model_copy(update={"trigger": ""}) for node in store.nodes()]
    events = [event.model_copy(update={"links": sorted(map(ends, event.links))}) for event in store.events()]
    links = sorted(ends(link) for node in nodes for link in store.links_from(node.id))
    changes = [
        (change.verb, "" if change.verb == "link" else change.subject, change.reason)
        for change in store.changes()
    ]
    return nodes, events, links, changes


def test_rows_say_what_the_verbs_of_one_transaction_say(one, other):
    one.bulk_load(
        nodes=[
            {"id": "port", "kind": "rule", "scope": "api"},
            {"id": "day", "kind": "fact", "key": "Deploy Day"},
        ],
        versions=[
            {
                "node_id": "port",
                "content": {"port": 80},
                "text": "80",
                "tags": ["b", "a", "b"],
                "reason": "so",
            },
            {"node_id": "plain", "content": '{"n": 1}', "valid_from": "2026-01-01", "valid_to": "2026-02-01"},
            {"node_id": "port", "content": {"port": 81}},
            {"node_id": "day", "content": {"day": "mon"}, "source": "ci"},
            {"node_id": "last", "content": None},
        ],
        events=[
            {"type": "deploy", "description": "one", "id": "e1", "metadata": {"n": 1}},
            {"type": "error", "description": "broke", "id": "e2", "source": "ci"},
            {"type": "fix", "description": "mended", "id": "e3", "related_to": ["e2"]},
            {"type": "deploy", "description": "one", "id": "e1", "metadata": '{"n": 1}'},
        ],
        links=[{"source": "last", "kind": "related_to", "target": "plain"}],
    )
    with other.transaction():
        other.record_event("deploy", "one", id="e1", metadata={"n": 1})
        other.record_event("error", "broke", id="e2", source="ci")
        other.record_event("fix", "mended", id="e3", related_to="e2")
        other.record_event("deploy", "one", id="e1", metadata={"n": 1})
        other.add_node("rule", {"port": 80}, id="port", scope="api", text="80", tags=["b", "a"], reason="so")
        other.add_node("fact", {"n": 1}, id="plain", valid_from="2026-01-01", valid_to="2026-02-01")
        other.revise("port", {"port": 81}, tags=[])
        other.add_node("fact", {"day": "mon"}, id="day", key="deploy_day", source="ci")
        other.add_node("fact", {}, id="last")
        other.link("last", "related_to", "plain")

    assert told(other) == told(one)
    assert one.verify().ok


def test_the_counts_are_of_what_is_stored_and_not_of_what_was_given(one):
    versions = [
        {"node_id": "a", "content": {"n": 1}, "valid_from": "2026-01-01"},
        {"node_id": "a", "content": {"n": 2}, "valid_from": "2026-01-01"},
        {"node_id": "b", "content": {}, "valid_from": "beginning", "valid_to": "open"},
    ]
    events = [
        {"type": "error", "description": "it fell"},
        {"type": "error", "description": "it fell"},
        {"type": "deploy", "description": "v1", "id": "d"},
        {"type": "deploy", "description": "v1", "id": "d"},
    ]
    links = [
        {"source": "a", "kind": "uses", "target": "b"},
        {"source": "b", "kind": "used_by", "target": "a"},
    ]

    assert {"nodes": 2, "versions": 2, "events": 3, "links": 1} == one.bulk_load(
        nodes=[{"id": "a"}], versions=versions, events=events, links=links
    )
    assert [{"n": 2}, {}] == [version.content for id in ("a", "b") for version in one.versions(id)]
    assert (day("0001-01-01"), None) == (one.node("b").valid_from, one.node("b").valid_to)
    assert {"nodes": 0, "versions": 0, "events": 0, "links": 0} == one.bulk_load(
        nodes=[{"id": "a"}], events=events[2:3], links=links
    )


def test_what_was_taken_back_later_was_stored(one):
    times = {"tx_from": "2026-01-05", "tx_to": "2026-01-06"}
    counts = one.bulk_load(
        versions=[{"node_id": name, "content": {}, "tx_from": "2026-01-05"} for name in "ab"],
        links=[
            {"source": "a", "kind": "uses", "target": "b", **times},
            {"source": "a", "kind": "uses", "target": "b", "tx_from": "2026-01-06"},
        ],
    )

    assert {"nodes": 2, "versions": 2, "events": 0, "links": 2} == counts


def test_progress_sees_what_was_told_so_far(one):
    seen = []
    rows = [{"node_id": f"n{n}", "content": {}} for n in range(2_500)]
    one.bulk_load(versions=rows, progress=lambda done, _: seen.append((done, len(one.nodes()))))

    assert [(1000, 1000), (2000, 2000)] == seen


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"node_id": "a\x01"}, "versions row 1: id 'a.x01' holds control characters"),
        ({"node_id": " "}, "versions row 1: id is blank"),
        ({"node_id": "x", "tags": ["ok", " "]}, "versions row 1: tag is blank"),
        ({"node_id": "x", "content": "[]"}, "versions row 1: '\\[\\]' is no JSON object"),
        ({"node_id": 7}, "versions row 1: node_id 7 is no text"),
        ({"node_id": None}, "versions row 1 has no 'node_id'"),
        ({"node_id": "x", "when": 1}, "versions row 1: unknown column 'when'"),
    ],
)
def test_a_wrong_row_after_new_things_leaves_nothing(one, wrong, error):
    with pytest.raises(InvalidError, match=error):
        one.bulk_load(versions=[{"node_id": "right", "content": {}}, wrong])
    assert ([], []) == (one.nodes(), one.changes())
    assert "right" == one.add_node("fact", {}, id="right").id


@pytest.mark.parametrize(
    "wrong",
    [
        ['{"a":1', '"b":2}', "{},{}"],
        ['{"a":1},{"b":2', '"c":3}'],
        ['{"a":[{}', "{}]}", "{},{}"],
        ['{"a":"x}', '{y"}', "{},{}"],
        ['{"a":1},{"b":2}', ""],
        ['{"a":123456789012345678901}'],
        ['{"a":{"b":123456789012345678901}}'],
    ],
)
def test_texts_that_are_objects_only_together_are_refused(one, wrong):
    contents = ['{"a":1}', '{"b":2}', *wrong, '{"c":3}']
    rows = [{"node_id": f"n{n}", "content": content} for n, content in enumerate(contents)]

    with pytest.raises(InvalidError, match="versions row 2: "):
        one.bulk_load(versions=rows)

    assert [] == one.nodes()


@pytest.mark.parametrize(
    "text",
    [
        '{"b":1,"a":2}',
        '{"a": 1}',
        '{"a":{"c":[{}],"b":"{"}}',
        '{"a":"{"}',
        '{"a":"}"}',
        '{"a":1e5,"b":123456789012345678,"c":0.10}',
        '{"a":9223372036854775807}',
        '{"a":"\\u00e9é\\n"}',
        "{}",
    ],
)
def test_texts_are_read_alike_whatever_lies_beside_them(one, text):
    contents = ['{"a":1}', '{"b":"2"}', text, '{"c":3}']
    rows = [{"node_id": f"n{n}", "content": content} for n, content in enumerate(contents)]
    one.bulk_load(versions=rows)

    assert [json.loads(content) for content in contents] == [one.node(f"n{n}").content for n in range(4)]
    assert one.verify().ok


def test_a_text_with_a_name_twice_is_refused_whatever_lies_beside_it(one):
    for beside in ('{"b":2}', '{"b": {"c": 2}}', {"b": 2}):
        rows = [{"node_id": f"n{n}", "content": each} for n, each in enumerate((beside, '{"a":1,"a":2}'))]
        with pytest.raises(InvalidError, match=r"versions row 1: .* has 'a' twice in one object"):
            one.bulk_load(versions=rows)
    assert [] == one.nodes()


def test_an_event_may_not_have_the_id_of_a_new_node(one):
    with pytest.raises(ConflictError, match="versions row 0: 'same' is an event already"):
        one.bulk_load(
            events=[{"type": "deploy", "description": "one", "id": "same"}],
            versions=[{"node_id": "same", "content": {}}],
        )
    assert ([], []) == (one.nodes(), one.events())


LINKED = (
    "derived_from",
    "supports",
    "caused_by",
    "causes",
    "possibly_caused_by",
    "relates_to",
    "contradicts",
    "uses",
)


def random_rows(seed):
    """Versions and links of a few nodes over periods that cut each other or go on, told at five instants; no content twice, as a verb writes only what
    changes."""
    chance = random.Random(seed)
    versions, links, ended, spoken = [], [], {}, {}
    for at in (day(f"2025-0{month}-01") for month in range(1, 6)):
        for _ in range(chance.randrange(1, 12)):
            name, start = chance.choice("abcd"), day("2024-01-01") + timedelta(days=chance.randrange(60))
            if seed % 2 and chance.random() < 0.7:
                start = ended.get(name, start) + timedelta(days=chance.choice((0, 0, 3)))
            stop = chance.choice((None, start + timedelta(days=chance.randrange(1, 40))))
            if seed % 3 == 0 and name in spoken and chance.random() < 0.4:
                start, stop = spoken[name]  # the same time again, in this transaction or a later one
                stop = stop and stop + timedelta(days=chance.choice((0, 0, 5)))
            spoken[name] = start, stop
            ended[name] = max(ended.get(name, start), stop or start)
            content = {"n": len(versions), "deep": [1, 2.5, None]}
            row = {"node_id": name, "valid_from": start, "valid_to": stop, "tx_from": at}
            versions.append({**row, "content": chance.choice((content, json.dumps(content)))})
        known = sorted({row["node_id"] for row in versions})
        for _ in range(chance.randrange(3) if len(known) > 1 else 0):
            source, target = chance.sample(known, 2)
            kind = "derived_from" if seed < 24 else chance.choice(LINKED)
            links.append({"source": source, "kind": kind, "target": target, "tx_from": at})
    return versions, links


def say_by_verbs(store, versions, links):
    """What a load of the rows says, each row by its verb."""
    known = set()
    for at in sorted({row["tx_from"] for row in versions}):
        with store.transaction(at=at):
            for row in versions:
                if row["tx_from"] != at:
                    continue
                content = row["content"]
                content = json.loads(content) if isinstance(content, str) else content
                times = {"valid_from": row["valid_from"], "valid_to": row["valid_to"] or graphstore.OPEN}
                if row["node_id"] in known:
                    store.revise(row["node_id"], content, **times)
                else:
                    known.add(row["node_id"])
                    store.add_node("fact", content, id=row["node_id"], **times)
            for row in links:
                if row["tx_from"] == at:
                    store.link(row["source"], row["kind"], row["target"])


@pytest.mark.parametrize("seed", range(60))
def test_rows_that_cut_each_other_say_what_the_verbs_say(one, other, seed):
    versions, links = random_rows(seed)
    try:
        say_by_verbs(other, versions, links)
    except graphstore.GraphStoreError as error:
        with pytest.raises(type(error)):
            one.bulk_load(versions=versions, links=links)
        return
    one.bulk_load(versions=versions, links=links)

    for when in [None, *sorted({row["tx_from"] for row in versions})]:
        for valid in ("2024-01-15", "2024-02-20", "2025-06-01"):
            mine, theirs = one.as_of(valid=valid, tx=when), other.as_of(valid=valid, tx=when)
            assert mine.nodes() == theirs.nodes()
            assert [found.node for found in mine.shaky()] == [found.node for found in theirs.shaky()]
    for name in sorted({row["node_id"] for row in versions}):
        assert one.versions(name) == other.versions(name)
    assert told(one) == told(other)


@pytest.mark.parametrize("seed", range(60))
def test_how_many_rows_are_read_ahead_changes_nothing(seed, monkeypatch):
    """The same chain to the last digest, in many transactions and in one, with texts, tags, reasons and slots, and where a row is wrong the same error."""
    monkeypatch.setattr(os, "urandom", bytes)  # the same salts
    monkeypatch.setattr(random_bits, "_drawn", [])
    versions, links = random_rows(seed)
    chance = random.Random(seed)
    for row in versions:
        row |= {
            name: chance.choice(values)
            for name, values in (("text", ("said", "größer")), ("tags", (["b", "a"], [])), ("reason", ("so", "größer", None)), ("trigger", (None, "import")), ("source", ("ci", None)))
            if chance.random() < 0.2
        }  # fmt: skip
    for number, row in enumerate(links):
        row |= {"id": f"link-{number}"} | ({"reason": "so", "strength": 3} if chance.random() < 0.5 else {})
    if chance.random() < 0.2:
        chance.choice(versions)["content"] = "[]"
    nodes = [{"id": "a", "kind": "rule", "key": "slot" if seed % 4 == 0 else None}]
    if seed % 5 == 0:
        versions = [{name: row[name] for name in row if name != "tx_from"} for row in versions]
        links = [{name: row[name] for name in row if name != "tx_from"} for row in links]

    def left():
        with graphstore.open(":memory:", clock=Clock()) as store:
            try:
                told = store.bulk_load(nodes=nodes, versions=versions, links=links)
            except graphstore.GraphStoreError as error:
                told = str(error)
            return told, store._core.journal.last()[1]

    at_once = left()
    for block in (1, 7):
        monkeypatch.setattr(bulk, "_BLOCK", block)
        assert at_once == left()


def test_links_that_are_new_are_told_with_those_that_take_more(one, other):
    names = [f"n{number}" for number in range(6)]
    rows = [
        {
            "source": "n0",
            "kind": "uses",
            "target": "n1",
            "strength": 3,
            "reason": "so",
            "metadata": '{"a": 1}',
        },
        {
            "source": "n1",
            "kind": "used_by",
            "target": "n0",
            "strength": 3,
            "reason": "so",
            "metadata": {"a": 1},
        },
        {"source": "n2", "kind": "supersedes", "target": "n3", "id": "mine"},
        {"source": "n1", "kind": "derived_from", "target": "n2", "created_by": "agent:x"},
        {"source": "n2", "kind": "derived_from", "target": "n4", "confidence": "inferred", "id": "other"},
        {"source": "n4", "kind": "relates_to", "target": "n5"},
        {"source": "n5", "kind": "related_to", "target": "n4"},
    ]
    counts = one.bulk_load(versions=[{"node_id": name, "content": {}} for name in names], links=rows)
    with other.transaction():
        for name in names:
            other.add_node("fact", {}, id=name)
        for row in rows:
            plain = {name: value for name, value in row.items() if name not in ("metadata", "id")}
            other.link(**plain, **({"metadata": {"a": 1}} if "metadata" in row else {}))

    assert 5 == counts["links"]
    assert told(other) == told(one)
    assert {"mine", "other"} <= {link.id for name in names for link in one.links_from(name)}
    assert one.verify().ok


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"kind": "continuation", "source": "b", "target": "a"}, "would close a cycle"),
        ({"kind": "caused_by", "source": "d", "target": "c"}, "two things cannot cause each other"),
        ({"id": "lnk"}, "link 'lnk' is known already"),
        ({"id": "l\x01"}, "control characters"),
        ({"source": "a", "target": "a"}, "cannot be linked to itself"),
        ({"strength": 9}, "strength 9 is out of range"),
        ({"target": "nobody"}, "nobody"),
        ({"kind": "nokind"}, "unknown link kind 'nokind'"),
        ({"kind": ["uses"]}, "is no text"),
        ({"valid_from": "2026-02-01", "valid_to": "2026-01-01"}, "empty period"),
        ({"metadata": "[]"}, "is no JSON object"),
    ],
)
def test_a_wrong_link_after_new_ones_leaves_nothing(one, wrong, error):
    links = [
        {"source": "a", "kind": "continuation", "target": "b", "id": "lnk"},
        {"source": "c", "kind": "caused_by", "target": "d"},
        {"source": "a", "kind": "uses", "target": "c", **wrong},
    ]
    with pytest.raises(graphstore.GraphStoreError, match=f"links row 2: .*{error}"):
        one.bulk_load(versions=[{"node_id": name, "content": {}} for name in "abcd"], links=links)
    assert ([], []) == (one.nodes(), one.changes())


def test_a_load_in_many_transactions_knows_what_the_one_before_said(one):
    """A version that says the same content again changes nothing for what rests on it; one with other content shakes it."""
    say = [("a", {"n": 1}, "2025-01-01"), ("b", {"on": "a"}, "2025-01-01"), ("a", {"n": 1}, "2025-02-01")]
    begun = day("2024-01-01")
    rows = [
        {"node_id": name, "content": content, "valid_from": begun, "tx_from": day(at)}
        for name, content, at in [*say, ("a", {"n": 2}, "2025-03-01")]
    ]
    links = [{"source": "b", "kind": "derived_from", "target": "a", "tx_from": day("2025-01-02")}]
    one.bulk_load(versions=rows, links=links)

    assert [] == one.as_of(tx="2025-02-15").shaky()
    assert ["b"] == [found.node.id for found in one.shaky()]
