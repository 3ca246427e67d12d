"""Session files in the graph: the same whatever the order they are told in, nothing twice, nothing lost, each link where the tree says."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, InvalidError, sessions
from graphstore.sessions import segment_node, session_node
from tests.conftest import Clock, shared_data
from tests.support.session_files import START, at, header, marked, said, write

pytestmark = pytest.mark.in_process("its analysers are functions of the test")

EVER = "9999-12-31"


def plain(content: dict[str, Any]) -> dict[str, Any]:
    """A content without the instants at which it was analysed."""
    kept = json.loads(json.dumps(content))
    if "metadata" in kept:
        analysed = kept["metadata"].pop("analyzedAt")
        for decision in kept["daemonMeta"]["decisions"]:
            if decision["timestamp"] == analysed:
                del decision["timestamp"]
    return kept


def graph(store: GraphStore) -> dict[str, Any]:
    """All that stands, whenever it was told."""
    view = store.as_of(valid=EVER)
    nodes = {
        node.id: (node.kind, plain(node.content), node.text, node.tags, node.valid_from)
        for node in view.nodes()
    }
    links = {
        link.id: (link.source, link.kind, link.target, link.metadata, link.valid_from, link.created_by)
        for id in nodes
        for link in view.links_from(id)
    }
    return {"nodes": nodes, "links": links}


def edges(store: GraphStore, id: str) -> set[tuple[str, str]]:
    """The links into a node: kind and source."""
    return {(link.kind, link.source) for link in store.as_of(valid=EVER).backlinks_to(id)}


def transactions(store: GraphStore) -> int:
    return int(store.stats()["transactions"])


class Analyser:
    """The built-in one under another version, with something of its own done to what it says."""

    def __init__(self, version: str, change: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self.version, self.change = version, change
        self.asked: list[str] = []

    def __call__(self, work: sessions.Work) -> Any:
        self.asked.append(work.segment.start_entry_id)
        node = sessions.builtin(work).json_object()
        return node if self.change is None else self.change(node)


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A session of two segments: a pause of twenty minutes between them."""
    return write(
        tmp_path / "one.jsonl",
        header("one"),
        said("a", None, 1),
        said("b", "a", 2, "assistant"),
        said("c", "b", 22),
        said("d", "c", 23, "assistant"),
    )


def append(file: Path, *lines: dict[str, Any]) -> None:
    with open(file, "ab") as sink:
        sink.writelines(json.dumps(line).encode() + b"\n" for line in lines)


# ---- what comes out ------------------------------------------------------------------------------


def test_a_session_is_a_node_with_a_node_for_each_segment(store: GraphStore, one: Path) -> None:
    done = sessions.ingest(store, one, computer="desk")

    assert (2, 0, 0, ()) == (done.new, done.revised, done.unchanged, done.damaged)
    session = store.node(session_node("one"))
    assert "session" == session.kind
    assert START == session.valid_from
    first, second = session.content["nodes"]
    assert [segment_node("one", "a"), segment_node("one", "c")] == [first, second]
    content = session.content
    assert ("one", str(one), "desk", "/work", "pi") == tuple(
        content[name] for name in ("sessionId", "file", "computer", "project", "format")
    )
    assert (4, 0, False, {}) == tuple(
        content[name] for name in ("entries", "copiedEntries", "missing", "warnings")
    )
    node = store.node(second)
    assert ("segment", "initial", "2026-01-25T10:22:00+00:00", None) == (
        node.kind, node.trigger, node.valid_from.isoformat(), node.valid_to,
    )  # fmt: skip
    assert {"startEntryId": "c", "endEntryId": "d", "entryCount": 2} == node.content["source"]["segment"]
    assert store.versions(second)[0].tx_from.isoformat() == node.content["metadata"]["analyzedAt"].replace(
        "Z", "+00:00"
    )
    assert [("continuation", {}), ("resume", 20.0)] == sorted(
        (link.kind, link.metadata.get("gap_minutes", {})) for link in store.backlinks_to(second)
    )


def test_the_same_file_again_is_no_transaction(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    before = transactions(store)

    done = sessions.ingest(store, one)

    assert (0, 0, 2) == (done.new, done.revised, done.unchanged)
    assert before == transactions(store)


def test_a_session_is_one_transaction(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)

    assert 1 == transactions(store)


def test_a_grown_segment_is_a_new_version_and_what_comes_after_is_new(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    append(one, said("e", "d", 24), said("f", "e", 50), said("g", "f", 51, "assistant"))

    done = sessions.ingest(store, one)

    assert (1, 1, 1) == (done.new, done.revised, done.unchanged)
    grown = store.node(segment_node("one", "c"))
    assert (2, "session_grown", 3) == (
        grown.number,
        grown.trigger,
        grown.content["source"]["segment"]["entryCount"],
    )
    assert 1 == store.node(segment_node("one", "a")).number
    assert [segment_node("one", each) for each in "acf"] == store.node(session_node("one")).content["nodes"]


def test_growing_line_by_line_ends_where_reading_once_does(tmp_path: Path, clock: Clock) -> None:
    whole = (
        shared_data("pi-brain-fixtures/session-with-mixed-boundaries.jsonl")
        .read_bytes()
        .splitlines(keepends=True)
    )
    file = tmp_path / "mixed.jsonl"
    with graphstore.open(":memory:", clock=clock) as grown, graphstore.open(":memory:", clock=clock) as once:
        for line in whole:
            with open(file, "ab") as sink:
                sink.write(line)
            sessions.ingest(grown, file)
        sessions.ingest(once, file)

        assert graph(once) == graph(grown)


def test_an_older_copy_changes_nothing_and_says_so(store: GraphStore, one: Path, tmp_path: Path) -> None:
    older = tmp_path / "older" / "one.jsonl"
    older.parent.mkdir()
    older.write_bytes(b"".join(one.read_bytes().splitlines(keepends=True)[:4]))
    sessions.ingest(store, one)
    before, count = graph(store), transactions(store)

    done = sessions.ingest(store, older)

    assert (before, count) == (graph(store), transactions(store))
    (words,) = done.warnings
    assert "holds less than what is known of its session (3 entries; known are 4" in words


def test_a_copy_that_went_another_way_adds_what_only_it_has_once(
    store: GraphStore, one: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "one.jsonl"
    other.parent.mkdir()
    shutil.copy(one, other)
    append(one, said("e", "d", 60), said("f", "e", 61, "assistant"))
    append(other, said("x", "d", 80))
    sessions.ingest(store, one)
    sessions.ingest(store, other)
    count = transactions(store)

    sessions.ingest(store, one)
    sessions.ingest(store, other)

    nodes = store.node(session_node("one")).content["nodes"]
    assert [segment_node("one", each) for each in "acex"] == nodes
    assert str(one) == store.node(session_node("one")).content["file"]
    assert count == transactions(store)


def test_a_moved_file_is_the_same_session(store: GraphStore, one: Path, tmp_path: Path) -> None:
    sessions.ingest(store, one)
    nodes = {id: store.node(id).number for id in store.node(session_node("one")).content["nodes"]}
    moved = one.rename(tmp_path / "moved.jsonl")

    done = sessions.ingest(store, moved)

    assert (0, 0, 2) == (done.new, done.revised, done.unchanged)
    session = store.node(session_node("one"))
    assert (str(moved), 2) == (session.content["file"], session.number)
    assert nodes == {id: store.node(id).number for id in session.content["nodes"]}


def test_a_clock_that_was_set_back_keeps_the_order(store: GraphStore, tmp_path: Path) -> None:
    file = write(
        tmp_path / "back.jsonl",
        header("back"),
        said("a", None, 60),
        said("b", "a", 61),
        marked("compaction", "c", "b", 5, summary="so far", firstKeptEntryId="b", tokensBefore=9),
    )

    done = sessions.ingest(store, file)

    first, second = store.node(session_node("back")).content["nodes"]
    assert ((), {("continuation", first), ("compaction", first)}) == (done.warnings, edges(store, second))


# ---- the links of a file -------------------------------------------------------------------------

FIXTURES = {
    "simple-session": set(),
    "session-with-compaction": {("continuation", "00000001", "00000005"), ("compaction", "00000001", "00000005")},
    "session-with-branch-summary": {("continuation", "00000001", "00000005"), ("branch", "00000001", "00000005")},
    "session-with-resume": {("continuation", "00000001", "00000005"), ("resume", "00000001", "00000005")},
    "session-with-mixed-boundaries": {
        ("continuation", "00000001", "00000009"), ("compaction", "00000001", "00000009"),
        ("continuation", "00000009", "00000012"), ("resume", "00000009", "00000012"),
        ("continuation", "00000012", "00000014"), ("branch", "00000009", "00000014"),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FIXTURES)
def test_links_of_a_fixture(store: GraphStore, name: str) -> None:
    sessions.ingest(store, shared_data(f"pi-brain-fixtures/{name}.jsonl"))

    starts = {node.id: node.content["source"]["segment"]["startEntryId"] for node in store.nodes("segment")}
    links = {
        (link.kind, starts[link.source], starts[link.target])
        for id in starts
        for link in store.backlinks_to(id)
    }
    assert FIXTURES[name] == links


def test_a_fork_that_shares_nothing_waits_at_its_missing_parent(store: GraphStore) -> None:
    sessions.ingest(store, shared_data("pi-brain-fixtures/session-forked.jsonl"))

    child = store.node(session_node("fork-child-1234-5678-90ab-cdef12345678"))
    parent = store.node(session_node("parent-sess"))
    assert {("fork", parent.id)} == edges(store, child.content["nodes"][0])
    assert {
        "sessionId": "parent-sess",
        "missing": True,
        "nodes": [],
        "file": "2026-01-25T10-00-00-000Z_parent-sess.jsonl",
        "startedBefore": "2026-01-25T10:00:00Z",
    } == parent.content
    assert "2026-01-25T10:00:00+00:00" == parent.valid_from.isoformat()


def tree() -> list[Path]:
    return sorted(shared_data("pi-v3-tree").glob("*.jsonl"))


def entries(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()][1:]


def test_links_of_a_real_tree_are_where_its_writer_says(store: GraphStore) -> None:
    root = tree()[0]
    truth = json.loads((root.parent / "TRUTH.json").read_text())[root.name]
    sessions.ingest(store, root)

    lines = [line for line in entries(root) if line["type"] not in ("label", "session_info")]
    every = {line["id"]: line for line in entries(root)}
    cuts = [lines[0]["id"], *(each["entryId"] for each in truth["boundaries"])]
    assert [segment_node(truth["sessionId"], cut) for cut in cuts] == store.node(
        session_node(truth["sessionId"])
    ).content["nodes"]
    home, held = {}, ""
    for line in lines:
        held = line["id"] if line["id"] in cuts else held
        home[line["id"]] = segment_node(truth["sessionId"], held)
    for before, boundary in zip(cuts, truth["boundaries"], strict=False):
        above = every[boundary["entryId"]]["parentId"]
        while above is not None and above not in home:
            above = every[above]["parentId"]
        source = home[boundary["abandonedLeafId"] if above is None else above]
        target = segment_node(truth["sessionId"], boundary["entryId"])
        expected = {("continuation", segment_node(truth["sessionId"], before)), (boundary["type"], source)}
        assert expected == edges(store, target), boundary
        (link,) = store.backlinks_to(target, boundary["type"])
        told = {
            "abandonedLeafId": "previous_entry",
            "gapMinutes": "gap_minutes",
            "firstKeptEntryId": "first_kept_entry_id",
            "tokensBefore": "tokens_before",
        }
        assert {name: boundary[name] for name in told if name in boundary} == {
            name: link.metadata[ours] for name, ours in told.items() if name in boundary
        }
        assert ("boundary", "explicit") == (link.created_by, link.confidence)


def test_forks_of_a_real_tree_come_from_the_segment_of_the_last_shared_entry(store: GraphStore) -> None:
    files = tree()
    truth = json.loads((files[0].parent / "TRUTH.json").read_text())
    sessions.ingest(store, files[0].parent)

    ids = {file.name: entries_header(file)["id"] for file in files}
    root = {line["id"] for line in entries(files[0])}
    for file in files[1:]:
        nodes = store.node(session_node(ids[file.name])).content["nodes"]
        (link,) = store.backlinks_to(nodes[0])
        shared = truth[file.name].get("lastSharedEntryId", "524c91ba")
        above = store.node(link.source).content["source"]
        assert ("fork", shared, truth[file.name].get("sharedEntries", 472)) == (
            link.kind, link.metadata["last_shared_entry"], link.metadata["shared_entries"],
        )  # fmt: skip
        assert (ids[files[0].name] if shared in root else ids[files[1].name]) == above["sessionId"]
        assert shared in segment_entries(files, above)


def entries_header(file: Path) -> dict[str, Any]:
    with open(file) as lines:
        return dict(json.loads(next(lines)))


def segment_entries(files: list[Path], source: dict[str, Any]) -> list[str]:
    """The ids between the first and the last entry of a segment, in its file."""
    (file,) = (file for file in files if entries_header(file)["id"] == source["sessionId"])
    names = [line["id"] for line in entries(file)]
    return names[
        names.index(source["segment"]["startEntryId"]) : names.index(source["segment"]["endEntryId"]) + 1
    ]


def test_continuation_has_no_cycle(store: GraphStore) -> None:
    for folder in ("pi-v3-tree", "pi-v1", "claude-code", "pi-brain-fixtures"):
        sessions.ingest(store, shared_data(folder))
    onward = {
        node.id: [link.target for link in store.links_from(node.id, "continuation")]
        for node in store.nodes("segment")
    }

    while ends := [id for id, targets in onward.items() if not any(target in onward for target in targets)]:
        for id in ends:
            del onward[id]
    assert {} == onward


def test_copied_entries_are_not_counted_twice(store: GraphStore) -> None:
    files = tree()
    sessions.ingest(store, files[0].parent)

    paid = {
        line["id"]: line["message"]["usage"]["cost"]["total"]
        for file in files
        for line in entries(file)
        if "usage" in line.get("message", {})
    }
    nodes = store.nodes("segment")
    assert round(sum(paid.values()), 6) == round(sum(node.content["metadata"]["cost"] for node in nodes), 6)
    distinct = {
        line["id"]
        for file in files
        for line in entries(file)
        if line["type"] not in ("label", "session_info")
    }
    assert len(distinct) == sum(node.content["source"]["segment"]["entryCount"] for node in nodes)


# ---- any order -----------------------------------------------------------------------------------


def told_in(order: tuple[Path, ...], folder: Path) -> dict[str, Any]:
    """The graph of files that arrive one by one: those told first lack their parents."""
    with graphstore.open(":memory:") as store:
        for file in order:
            sessions.ingest(store, Path(shutil.copy(file, folder)), computer="desk")
        return graph(store)


@pytest.mark.rest
def test_any_order_of_a_real_family_gives_the_same_graph(tmp_path: Path) -> None:
    orders = list(itertools.permutations(tree()))
    expected = None
    for order in orders:
        shutil.rmtree(tmp_path / "files", ignore_errors=True)
        (tmp_path / "files").mkdir()
        found = told_in(order, tmp_path / "files")
        expected = expected or found
        assert expected == found, [file.name for file in order]


@pytest.fixture
def family(tmp_path: Path) -> list[Path]:
    """A root, a fork of it, a fork of that fork at an entry of the root, one that copies what a branch left, and an older session of the project."""
    folder = tmp_path / "family"
    folder.mkdir()
    trunk = [said("a", None, 1), said("b", "a", 2, "assistant"), said("c", "b", 30), said("d", "c", 31)]
    jumped = [said("e", "b", 32), said("f", "e", 33)]

    def above(name: str) -> dict[str, str]:
        return {"parentSession": f"/elsewhere/{name}.jsonl"}

    return [
        write(folder / "root.jsonl", header("root"), *trunk, *jumped),
        write(folder / "fork.jsonl", header("fork", 40, **above("root")), *trunk[:3], said("g", "c", 41), said("h", "a", 42)),
        write(folder / "again.jsonl", header("again", 50, **above("fork")), *trunk[:2], said("i", "b", 51)),
        write(folder / "deep.jsonl", header("deep", 60, **above("fork")), *trunk[:3], said("g", "c", 41), said("j", "g", 61), said("k", "b", 62)),
        write(folder / "first.jsonl", header("first", -100), said("z", None, -99)),
    ]  # fmt: skip


@pytest.mark.rest
def test_any_order_of_any_of_a_family_gives_the_same_graph(family: list[Path], tmp_path: Path) -> None:
    for count in (2, 3, 5):
        for some in itertools.combinations(family, count):
            expected = None
            for order in itertools.permutations(some):
                shutil.rmtree(tmp_path / "files", ignore_errors=True)
                (tmp_path / "files").mkdir()
                found = told_in(order, tmp_path / "files")
                expected = expected or found
                assert expected == found, [file.name for file in order]


def test_links_lead_up_to_the_session_that_has_the_entry(store: GraphStore, family: list[Path]) -> None:
    sessions.ingest(store, family[0].parent)

    a, c, e = (segment_node("root", each) for each in "ace")
    g, h = segment_node("fork", "g"), segment_node("fork", "h")
    i, j, k = segment_node("again", "i"), segment_node("deep", "j"), segment_node("deep", "k")
    assert {("continuation", c), ("tree_jump", a)} == edges(store, e)
    assert {("fork", c)} == edges(store, g)
    assert {("continuation", g), ("tree_jump", a)} == edges(store, h)
    assert {("fork", a)} == edges(store, i)
    assert {("fork", g)} == edges(store, j)
    assert {("continuation", j), ("tree_jump", a)} == edges(store, k)


def test_what_waits_moves_when_the_parent_arrives(store: GraphStore, family: list[Path]) -> None:
    root, fork, _, deep, _ = family
    others = root.parent.with_name("others")
    others.mkdir()
    sessions.ingest(store, Path(shutil.copy(deep, others)))
    place = session_node("fork")
    assert {("fork", place)} == edges(store, segment_node("deep", "j"))

    sessions.ingest(store, Path(shutil.copy(fork, others)))
    assert {("fork", segment_node("fork", "g"))} == edges(store, segment_node("deep", "j"))
    assert {("continuation", segment_node("deep", "j")), ("tree_jump", session_node("root"))} == edges(
        store, segment_node("deep", "k")
    )
    assert (False, 2) == (store.node(place).content["missing"], store.node(place).number)

    sessions.ingest(store, Path(shutil.copy(root, others)))
    assert ("tree_jump", segment_node("root", "a")) in edges(store, segment_node("deep", "k"))


def test_what_a_fork_copied_is_known_for_certain_when_its_parent_arrives(
    store: GraphStore, tmp_path: Path
) -> None:
    """By its instants alone the last shared entry, written after the fork's header, seemed the fork's own."""
    shared = [said("a", None, 1), said("b", "a", 2), said("c", "b", 30)]
    child = write(
        tmp_path / "child.jsonl",
        header("child", 20, parentSession="/x/root.jsonl"),
        *shared,
        said("d", "c", 31),
    )
    sessions.ingest(store, child)
    wrong = segment_node("child", "c")
    assert [wrong] == store.node(session_node("child")).content["nodes"]
    root = write(tmp_path / "root.jsonl", header("root"), *shared)

    done = sessions.ingest(store, root)

    assert [(2, 0), (1, 1)] == [(each.new, each.retracted) for each in done.sessions]
    assert [segment_node("child", "d")] == store.node(session_node("child")).content["nodes"]
    assert "retracted" == store.inspect(wrong).node.standing
    assert {("fork", segment_node("root", "c"))} == edges(store, segment_node("child", "d"))


def test_what_was_forked_from_a_copy_comes_from_the_original(tmp_path: Path) -> None:
    """By its instants alone the middle one seemed to have written an entry itself; whatever comes first, the last hangs on the root."""
    folder = tmp_path / "misread"
    (folder / "older").mkdir(parents=True)
    shared = [said("a", None, 1), said("b", "a", 2), said("c", "b", 30)]
    middle = {"parentSession": "/x/root.jsonl"}
    files = [
        write(folder / "root.jsonl", header("root"), *shared),
        write(folder / "middle.jsonl", header("middle", 20, **middle), *shared, said("d", "c", 31), said("e", "d", 50)),
        write(folder / "last.jsonl", header("last", 40, parentSession="/x/middle.jsonl"), *shared, said("f", "c", 41)),
        write(folder / "older" / "root.jsonl", header("root"), *shared[:2]),
    ]  # fmt: skip
    found = []
    for order in itertools.permutations(files):
        place = tmp_path / "files"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        with graphstore.open(":memory:") as store:
            for file in order:
                if file.parent == folder or not (place / "root.jsonl").exists():
                    shutil.copy(
                        file, place
                    )  # an older copy of the root, which the whole one takes the place of
                sessions.ingest(store, place / file.name, computer="desk")
            found.append(graph(store))
            assert {("fork", segment_node("root", "c"))} == edges(store, segment_node("last", "f"))

    assert [found[0]] * len(found) == found


def test_an_entry_after_what_is_known_of_its_session_waits_for_it(store: GraphStore, tmp_path: Path) -> None:
    shared = [said("a", None, 1), said("b", "a", 2), said("c", "b", 3)]
    root = write(tmp_path / "root.jsonl", header("root"), *shared[:2])
    child = write(
        tmp_path / "child.jsonl",
        header("child", 20, parentSession="/x/root.jsonl"),
        *shared,
        said("d", "c", 31),
    )
    sessions.ingest(store, root)
    root.unlink()
    sessions.ingest(store, child)
    assert {("fork", session_node("root"))} == edges(store, segment_node("child", "d"))
    write(root, header("root"), *shared)

    sessions.ingest(store, root)

    assert {("fork", segment_node("root", "a"))} == edges(store, segment_node("child", "d"))


def test_what_goes_on_elsewhere_after_a_branch_summary_is_in_its_segment(
    store: GraphStore, tmp_path: Path
) -> None:
    tree = (
        said("a", None, 1), said("b", "a", 2), said("c", "b", 3),
        marked("branch_summary", "s", "a", 4, fromId="c", summary="tried"), said("x", "b", 5), said("y", "x", 6),
    )  # fmt: skip
    path = (tree[0], tree[1], tree[4])
    write(tmp_path / "root.jsonl", header("root"), *tree)
    write(tmp_path / "fork.jsonl", header("fork", 7, parentSession="/x/root.jsonl"), *path, said("z", "x", 8))
    sessions.ingest(store, tmp_path)

    assert {("fork", segment_node("root", "s"))} == edges(store, segment_node("fork", "z"))


@pytest.mark.parametrize("first", ["parent", "fork"])
def test_a_parent_is_known_by_the_name_of_its_file_too(store: GraphStore, tmp_path: Path, first: str) -> None:
    name = "2026-01-25T10-00-00-000Z_named.jsonl"
    parent = write(tmp_path / "a" / name, header("other"), said("a", None, 1))
    fork = write(
        tmp_path / "b" / "fork.jsonl",
        header("fork", 5, parentSession=f"/gone/{name}"),
        said("a", None, 1),
        said("b", "a", 6),
    )
    for file in (parent, fork) if first == "parent" else (fork, parent):
        sessions.ingest(store, file)

    assert {("fork", segment_node("other", "a"))} == edges(store, segment_node("fork", "b"))
    assert ["fork", "other"] == sorted(one.session_id for one in sessions.listed(store))


def test_a_session_comes_where_a_place_for_another_was(store: GraphStore, tmp_path: Path) -> None:
    name = "2026-01-25T10-00-00-000Z_named.jsonl"
    head = header("fork", 5, parentSession=f"/gone/{name}")
    sessions.ingest(store, write(tmp_path / "b" / "fork.jsonl", head, said("a", None, 1), said("b", "a", 6)))
    sessions.ingest(store, write(tmp_path / "a" / name, header("other"), said("a", None, 1)))
    done = sessions.ingest(store, write(tmp_path / "named.jsonl", header("named"), said("n", None, 1)))

    assert (1, ()) == (done.new, done.warnings)
    assert "named" == store.node(session_node("named")).content["sessionId"]


def test_a_parent_that_began_later_than_its_name_says_holds_from_then_on(
    store: GraphStore, tmp_path: Path
) -> None:
    named = "2026-01-25T09-00-00-000Z_root.jsonl"
    sessions.ingest(
        store,
        write(
            tmp_path / "child.jsonl",
            header("child", 20, parentSession=f"C:\\pi\\{named}"),
            said("d", None, 31),
        ),
    )
    assert "2026-01-25T09:00:00+00:00" == store.node(session_node("root")).valid_from.isoformat()

    sessions.ingest(store, write(tmp_path / named, header("root"), said("a", None, 1)))

    assert [START] == [version.valid_from for version in store.history(session_node("root"))]


def test_the_first_session_of_a_project_is_the_earliest_whenever_it_is_told(
    store: GraphStore, family: list[Path]
) -> None:
    def new() -> set[str]:
        return {
            node.content["source"]["sessionId"]
            for node in store.nodes("segment")
            if node.content["classification"]["isNewProject"]
        }

    sessions.ingest(store, family[1])
    assert {"fork"} == new()
    sessions.ingest(store, family[0])
    assert {"root"} == new()
    sessions.ingest(store, family[4])
    assert {"first"} == new()
    sessions.ingest(store, family[3])
    assert {"first"} == new()


# ---- what people said ----------------------------------------------------------------------------


def corrected(store: GraphStore, id: str, **content: Any) -> None:
    now = store.node(id).content
    store.revise(id, {**now, "content": {**now["content"], **content}})


def test_what_a_person_corrected_outlives_growth_and_a_new_analyser(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    id = segment_node("one", "c")
    corrected(store, id, outcome="failed", summary="It went wrong.")
    append(one, said("e", "d", 24))
    sessions.ingest(store, one)
    grown = store.node(id)
    assert ("session_grown", "failed", "It went wrong.", 3) == (
        grown.trigger, grown.content["content"]["outcome"], grown.content["content"]["summary"],
        grown.content["source"]["segment"]["entryCount"],
    )  # fmt: skip

    corrected(store, id, outcome="success")
    sessions.reanalyze(store, analyze=Analyser("newer"))

    again = store.node(id)
    assert ("prompt_update", "success", "It went wrong.", "newer") == (
        again.trigger, again.content["content"]["outcome"], again.content["content"]["summary"],
        again.content["metadata"]["analyzerVersion"],
    )  # fmt: skip
    assert "It went wrong." in (again.text or "")


def test_connections_that_were_found_outlive_a_new_analyser(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    id = segment_node("one", "a")
    now = store.node(id).content
    found = {"timestamp": at(90), "decision": "Linked to another", "reasoning": "both speak of it"}
    connected = {
        **now,
        "daemonMeta": {**now["daemonMeta"], "decisions": [*now["daemonMeta"]["decisions"], found]},
        "semantic": {**now["semantic"], "relatedProjects": ["/other"]},
    }
    store.revise(id, connected, trigger="connection_found")

    sessions.reanalyze(store, analyze=Analyser("newer"))

    content = store.node(id).content
    assert (found, ["/other"]) == (
        content["daemonMeta"]["decisions"][-1],
        content["semantic"]["relatedProjects"],
    )


@pytest.mark.parametrize("fall", ["retracted", "erased"])
def test_what_was_taken_back_or_forgotten_does_not_come_back(store: GraphStore, one: Path, fall: str) -> None:
    sessions.ingest(store, one)
    id = segment_node("one", "c")
    store.retract(id, reason="private") if fall == "retracted" else store.erase(id, reason="private")
    append(one, said("e", "d", 24), said("f", "e", 50))

    done = sessions.ingest(store, one)

    assert fall == store.inspect(id).node.standing
    assert 1 == done.new
    assert any(f"segment {id} is {fall}; it was left so" in words for words in done.warnings)


def test_a_session_that_was_retracted_is_left_so(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    store.retract(session_node("one"), reason="not mine")
    append(one, said("f", "d", 50))
    count = transactions(store)

    done = sessions.ingest(store, one)

    assert (count, 0) == (transactions(store), done.new)
    assert any("is retracted; it was left so" in words for words in done.warnings)


def test_a_link_that_somebody_unlinked_is_not_made_again(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    (link,) = store.backlinks_to(segment_node("one", "c"), "resume")
    store.unlink(link.id, reason="it was no pause")
    append(one, said("e", "d", 24))

    sessions.ingest(store, one)
    sessions.reanalyze(store, analyze=Analyser("newer"))

    assert {("continuation", segment_node("one", "a"))} == edges(store, segment_node("one", "c"))


def test_a_rewritten_file_of_the_same_length_takes_the_place_of_what_was_known(
    store: GraphStore, one: Path, tmp_path: Path
) -> None:
    sessions.ingest(store, one)
    shutil.copy(one, copy := tmp_path / "copy.jsonl")
    copy.write_bytes(copy.read_bytes().replace(b"this is a", b"THIS IS A"))
    assert "differs from what is known" in sessions.ingest(store, copy).warnings[0]
    copy.rename(one)

    done = sessions.ingest(store, one)

    assert (0, 1, 1) == (done.new, done.revised, done.unchanged)
    assert "THIS IS A" in str(store.node(segment_node("one", "a")).text)


def test_other_boundaries_of_a_cut_are_in_the_links_metadata(store: GraphStore, tmp_path: Path) -> None:
    lines = [said("a", None, 1), said("b", "a", 2), said("c", "b", 3), said("d", "a", 40)]
    sessions.ingest(store, write(tmp_path / "cut.jsonl", header("cut"), *lines))

    (link,) = store.backlinks_to(segment_node("cut", "d"), "tree_jump")
    assert {
        "branch_point_id": "a", "from_entry": "a", "previous_entry": "c",
        "boundaries": [{"type": "resume", "gap_minutes": 37.0, "previous_entry": "c"}],
    } == link.metadata  # fmt: skip


def test_a_person_cannot_correct_by_whom_it_was_analysed(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    id = segment_node("one", "a")
    content = store.node(id).content
    store.revise(
        id, {**content, "metadata": {**content["metadata"], "analyzerVersion": "me", "note": "kept"}}
    )
    sessions.ingest(store, one)
    count = transactions(store)

    sessions.ingest(store, one)

    metadata = store.node(id).content["metadata"]
    assert (count, sessions.builtin.version, "kept") == (
        transactions(store),
        metadata["analyzerVersion"],
        metadata["note"],
    )


def test_an_evicted_session_is_left_so(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    store.evict(ids=[session_node("one"), segment_node("one", "a")])
    append(one, said("f", "d", 50))

    done = sessions.ingest(store, one)

    assert any("is evicted; it was left so" in words for words in done.warnings)
    assert 0 == done.new


def test_sessions_that_name_each_other_as_parents_end(store: GraphStore, tmp_path: Path) -> None:
    for one, other in (("x", "y"), ("y", "x")):
        lines = said(one, None, 1), said(f"{one}2", one, 30)
        write(tmp_path / f"{one}.jsonl", header(one, parentSession=f"{other}.jsonl"), *lines)
    write(tmp_path / "self.jsonl", header("self", parentSession="self.jsonl"), said("z", None, 1))

    done = sessions.ingest(store, tmp_path)

    assert ((), 5) == (done.damaged, done.new)
    assert {("continuation", segment_node("x", "x"))} <= edges(store, segment_node("x", "x2"))


# ---- analysers -----------------------------------------------------------------------------------


def test_another_analyser_describes_everything_anew(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    before = store.node(segment_node("one", "a"))

    done = sessions.reanalyze(store, analyze=Analyser("newer"))

    after = store.node(before.id)
    assert (0, 2, "prompt_update", 2) == (done.new, done.revised, after.trigger, after.number)
    assert (before.valid_from, before.valid_to) == (after.valid_from, after.valid_to)
    assert {("continuation", before.id), ("resume", before.id)} == edges(store, segment_node("one", "c"))
    count = transactions(store)
    assert ((), count) == (sessions.reanalyze(store, analyze=Analyser("newer")).sessions, transactions(store))


def test_an_older_schema_is_described_anew(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    id = segment_node("one", "a")
    content = store.node(id).content
    store.revise(id, {**content, "metadata": {**content["metadata"], "schemaVersion": 0}}, trigger="initial")

    done = sessions.reanalyze(store)

    assert (1, "schema_migration", 1) == (
        done.revised, store.node(id).trigger, store.node(id).content["metadata"]["schemaVersion"],
    )  # fmt: skip


def test_a_session_whose_file_is_gone_is_reported_and_left(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    before = graph(store)
    one.unlink()

    (report,) = sessions.reanalyze(store, analyze=Analyser("newer")).sessions

    assert (session_node("one"), before) == (report.session, graph(store))
    assert "its file is gone" in (report.error or "")


def test_a_file_that_is_another_session_now_is_reported(store: GraphStore, one: Path) -> None:
    sessions.ingest(store, one)
    before = store.node(segment_node("one", "a"))
    write(one, header("two"), said("a", None, 1))

    *_, report = sessions.reanalyze(store, analyze=Analyser("newer")).sessions

    assert "another session's now" in (report.error or "")
    assert before == store.node(segment_node("one", "a"))


def _raise(node: dict[str, Any]) -> Any:
    raise RuntimeError("no answer")


BAD: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "raises": (_raise, "RuntimeError: no answer"),
    "no object": (lambda node: "nothing", "is no node"),
    "no outcome": (lambda node: {**node, "content": {}}, "content.summary"),
    "no such outcome": (
        lambda node: {**node, "content": {**node["content"], "outcome": "fine"}},
        "content.outcome",
    ),
    "not JSON": (lambda node: {**node, "extra": {1, 2}}, "is not JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_analyser_that_fails_leaves_nothing_of_its_session(
    store: GraphStore, tmp_path: Path, name: str
) -> None:
    change, words = BAD[name]

    def second(node: dict[str, Any]) -> Any:
        return change(node) if node["source"]["segment"]["startEntryId"] == "c" else node

    write(tmp_path / "bad.jsonl", header("bad"), said("b", None, 1), said("c", "b", 30))
    write(tmp_path / "good.jsonl", header("good"), said("g", None, 1))

    done = sessions.ingest(store, tmp_path, analyze=Analyser("mine", second))

    assert [session_node("good")] == [node.id for node in store.nodes("session")]
    assert [segment_node("good", "g")] == [node.id for node in store.nodes("segment")]
    (told,) = done.damaged
    assert "bad.jsonl" in told and words in told and "Nothing of the session was written." in told


def test_only_what_is_new_is_analysed(store: GraphStore, one: Path) -> None:
    analyser = Analyser("mine")
    sessions.ingest(store, one, analyze=analyser)
    append(one, said("f", "d", 50))
    sessions.ingest(store, one, analyze=analyser)

    assert ["a", "c", "f"] == analyser.asked


def test_an_analyser_without_a_version_is_refused(store: GraphStore, one: Path) -> None:
    with pytest.raises(InvalidError, match="`version` that is text"):
        sessions.ingest(store, one, analyze=lambda work: {})  # type: ignore[arg-type]


# ---- damage --------------------------------------------------------------------------------------


def test_a_damaged_file_does_not_stop_the_others(store: GraphStore, one: Path) -> None:
    folder = one.parent
    (folder / "binary.jsonl").write_bytes(os.urandom(3000))
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "rows.jsonl").write_bytes(b'{"city": "Rome"}\n{"city": "Oslo"}\n')
    lines = one.read_bytes().splitlines(keepends=True)
    (folder / "torn.jsonl").write_bytes(
        lines[0].replace(b'"one"', b'"torn"') + lines[1] + b"{nonsense\n" + lines[2][:40]
    )

    done = sessions.ingest(store, folder)

    assert {session_node("one"), session_node("torn")} == {node.id for node in store.nodes("session")}
    assert ["binary.jsonl", "empty.jsonl", "rows.jsonl"] == [
        Path(told.split(": ")[0]).name for told in done.damaged
    ]
    assert sum(store.node(session_node("torn")).content["warnings"].values()) == 2
    assert any("torn.jsonl" in words for words in done.warnings)


def test_the_journal_of_the_store_is_no_session(disk_store: GraphStore, one: Path) -> None:
    done = sessions.ingest(disk_store, one.parent)

    assert [str(one)] == [each.file for each in done.sessions]


def test_sessions_of_another_format_are_refused(store: GraphStore, one: Path) -> None:
    done = sessions.ingest(store, one, format="claude")

    assert (0, 0) == (transactions(store), done.new)
    assert "it is a session of pi, not of claude" in done.damaged[0]
    with pytest.raises(InvalidError, match="unknown format"):
        sessions.ingest(store, one, format="pie")


def test_nothing_there_is_an_error(store: GraphStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="nothing at"):
        sessions.ingest(store, tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["pi-v1", "claude-code"])
def test_real_sessions_are_taken_whole_and_once(store: GraphStore, name: str) -> None:
    done = sessions.ingest(store, shared_data(name))
    count = transactions(store)

    assert () == done.damaged
    assert done.new == sessions.ingest(store, shared_data(name)).unchanged
    assert count == transactions(store)


# ---- what to look at -----------------------------------------------------------------------------


def test_doubts_are_what_an_analyser_marked_until_it_is_described_anew(store: GraphStore, one: Path) -> None:
    def unsure(node: dict[str, Any]) -> Any:
        decision = {
            "timestamp": node["metadata"]["analyzedAt"],
            "decision": "A guess",
            "reasoning": "no ground",
        }
        return {
            **node,
            "daemonMeta": {**node["daemonMeta"], "decisions": [{**decision, "needsReview": True}, decision]},
        }

    sessions.ingest(store, one, analyze=Analyser("unsure", unsure))

    first, second = sessions.doubts(store)
    assert (segment_node("one", "a"), "A guess", "no ground") == (first.id, first.decision, first.reasoning)
    assert [first] == sessions.doubts(store, limit=1)
    content = store.node(first.id).content
    store.revise(first.id, {**content, "daemonMeta": {**content["daemonMeta"], "decisions": []}})
    assert [second] == sessions.doubts(store)


def test_sessions_are_listed_first_first(store: GraphStore, family: list[Path]) -> None:
    sessions.ingest(store, family[0].parent)

    assert ["first", "root", "fork", "again", "deep"] == [each.session_id for each in sessions.listed(store)]
    assert [session_node("root"), session_node("fork")] == [
        each.parent for each in sessions.listed(store)[2:4]
    ]
    assert [] == sessions.listed(store, project="/nowhere")


def test_alike_segments_do_not_contradict_each_other(store: GraphStore, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / f"{name}.jsonl", header(name), said("a", None, 1), said("b", "a", 2, "assistant"))
    sessions.ingest(store, tmp_path)

    assert [] == store.contradictions()
