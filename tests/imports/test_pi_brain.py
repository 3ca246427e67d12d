"""What is known of sessions as a folder of JSON files: given out, taken in, and given out again as it was."""

from __future__ import annotations

import json
import tempfile
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from typer.testing import CliRunner

import graphstore
from graphstore import ConflictError, GraphStore, GraphStoreError, InvalidError
from graphstore.cli.command_line import app
from graphstore.imports.pi_brain import Exported, export_pi_brain, import_pi_brain
from graphstore.sessions.segments.nodes import SEGMENT, SESSION, SessionNode, loaded, stored
from tests.conftest import Clock, day
from tests.support.seeds import examples
from tests.support.session_example import NODE, node

pytestmark = pytest.mark.served

FIRST, SECOND, THIRD = NODE["id"], "1111111111111111", "2222222222222222"


def tell(store: GraphStore, given: dict, trigger: str = "initial") -> None:
    """A node as an ingest tells it: analysed at the instant of the transaction."""
    checked = SessionNode.from_content(given)
    said = {"text": checked.text, "tags": checked.tags, "trigger": trigger}
    with store.transaction() as work:
        content = stored(given, analyzed_at=work.as_of().at.tx)
        if given["id"] in {each.id for each in store.nodes(SEGMENT)}:
            store.revise(given["id"], content, **said)
        else:
            store.add_node(SEGMENT, content, id=given["id"], valid_from=checked.metadata.timestamp, **said)


@pytest.fixture
def told(store: GraphStore, clock: Clock) -> GraphStore:
    """Three nodes, one of them in three versions, a session, and links between them."""
    tell(store, node())
    tell(store, node(id=SECOND, metadata__timestamp="2026-01-31T23:30:00-02:00"))
    tell(store, node(id=THIRD, metadata__timestamp="2026-01-25T10:00:00Z"))
    clock.move(hours=1)
    tell(store, node(content__summary="Better."), "prompt_update")
    clock.move(hours=1)
    tell(store, node(content__summary="Best.", mood="good"), "user_feedback")
    began = day("2026-01-24")
    store.add_node(
        SESSION, {"sessionId": "s0", "id": "own", "missing": True}, id="aaaaaaaaaaaaaaaa", valid_from=began
    )
    store.link("aaaaaaaaaaaaaaaa", "fork", FIRST, created_by="boundary", valid_from=began)
    store.link(FIRST, "continuation", THIRD, created_by="boundary", metadata={"gap_minutes": 10.5})
    store.link(THIRD, "semantic", FIRST, created_by="daemon", confidence="inferred", strength=2, reason="alike", metadata={"similarity": 0.4})  # fmt: skip
    return store


@pytest.fixture
def empty(clock: Clock) -> GraphStore:
    """An empty store on the same clock."""
    with graphstore.open(":memory:", clock=clock) as opened:
        yield opened


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put(folder: Path, *nodes: dict, edges: list | None = None) -> Path:
    """A folder as another program writes it."""
    for each in nodes:
        path = folder / "2026" / "01" / f"{each['id']}-v{each['version']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(each, indent=2) + "\n")
    if edges is not None:
        (folder / "edges.json").write_text(json.dumps(edges))
    return folder


def edge(**more: object) -> dict:
    return {
        "id": "e-1",
        "sourceNodeId": FIRST,
        "targetNodeId": SECOND,
        "type": "continuation",
        "metadata": {},
        "createdAt": "2026-01-26T00:00:00Z",
        "createdBy": "boundary",
        **more,
    }


# ---------------------------------------------------------------- given out


def test_each_version_is_a_file_by_the_month_the_work_began_in_utc(told, tmp_path):
    done = export_pi_brain(told, tmp_path / "out")

    assert Exported(nodes=4, versions=6, edges=3) == done
    assert sorted(
        [
            "2026/01/0123456789abcdef-v1.json",
            "2026/01/0123456789abcdef-v2.json",
            "2026/01/0123456789abcdef-v3.json",
            f"2026/01/{THIRD}-v1.json",
            f"2026/02/{SECOND}-v1.json",
            "sessions/aaaaaaaaaaaaaaaa-v1.json",
            "edges.json",
        ]
    ) == sorted(tree(tmp_path / "out"))


def test_a_file_names_the_versions_before_it(told, tmp_path):
    export_pi_brain(told, tmp_path / "out")

    last = json.loads((tmp_path / "out" / "2026/01/0123456789abcdef-v3.json").read_bytes())

    assert (FIRST, 3, [f"{FIRST}-v1", f"{FIRST}-v2"]) == (
        last["id"],
        last["version"],
        last["previousVersions"],
    )
    assert ("Best.", "good") == (last["content"]["summary"], last["mood"])
    assert {"triggerReason": "user_feedback"} == last["graphstore"]


def test_fields_stand_in_the_order_of_the_model(told, tmp_path):
    export_pi_brain(told, tmp_path / "out")

    first = json.loads((tmp_path / "out" / "2026/01/0123456789abcdef-v1.json").read_bytes())

    assert list(NODE) == list(first)
    assert list(NODE["content"]) == list(first["content"])


def test_an_edge_has_the_shape_of_an_edge(told, tmp_path):
    export_pi_brain(told, tmp_path / "out")

    edges = {each["type"]: each for each in json.loads((tmp_path / "out" / "edges.json").read_bytes())}

    link = told.links_from(FIRST, "continuation")[0]
    assert {
        "id": link.id,
        "sourceNodeId": FIRST,
        "targetNodeId": THIRD,
        "type": "continuation",
        "metadata": {"gapMinutes": 10.5},
        "createdAt": edges["continuation"]["createdAt"],
        "createdBy": "boundary",
    } == {name: value for name, value in edges["continuation"].items() if name != "graphstore"}
    assert ("alike", 2) == tuple(edges["semantic"]["graphstore"][name] for name in ("reason", "strength"))
    assert {"fork", "continuation", "semantic"} == edges.keys()


def test_what_is_no_node_of_a_session_is_left_out_and_said(told, tmp_path):
    told.add_node(SEGMENT, {"free": "form"}, id="free-form")
    fact = told.add_node("fact", {"a": 1})
    told.link(fact.id, "supports", FIRST)

    done = export_pi_brain(told, tmp_path / "out")

    assert (4, 3) == (done.nodes, done.edges)
    assert ["free-form-v1: source is missing", "1 link with what is no node of a session"] == [
        warning.partition(". ")[0] for warning in done.warnings
    ]


def test_links_that_do_not_hold_are_left_out_and_counted(told, tmp_path):
    gone = next(link for link in told.links_from(FIRST) if link.kind == "continuation")
    before = told.as_of()
    told.unlink(gone.id, reason="wrong")

    done = export_pi_brain(told, tmp_path / "out")

    assert (2, ("1 link not held here: unlinked, ended, or to begin later",)) == (done.edges, done.warnings)
    assert (3, ()) == (export_pi_brain(before, tmp_path / "before").edges, done.warnings[1:])


def test_erased_versions_are_left_out_and_said(told, tmp_path):
    told.erase(SECOND, reason="private")

    assert (f"{SECOND}-v1: no content",) == export_pi_brain(told, tmp_path / "out").warnings


def test_a_view_of_the_past_gives_out_what_was_known_then(told, clock, tmp_path):
    export_pi_brain(told.as_of(tx="2026-02-01T00:30:00Z"), tmp_path / "out")

    assert 3 + 1 == len(tree(tmp_path / "out"))


def test_a_folder_that_holds_anything_is_left_alone(told, tmp_path):
    (folder := tmp_path / "out").mkdir()
    (folder / "note").write_text("mine")

    with pytest.raises(ConflictError, match=r"is not empty\. Choose another folder"):
        export_pi_brain(told, folder)

    assert {"note": b"mine"} == tree(folder)


def test_an_id_that_is_no_file_name_is_written_so_that_it_is_one(store, tmp_path):
    tell(store, node(id="a/../b"))

    export_pi_brain(store, tmp_path / "out")

    assert {"2026/01/a%2F..%2Fb-v1.json", "edges.json"} == tree(tmp_path / "out").keys()


# ---------------------------------------------------------------- and back


def test_out_in_and_out_again_is_the_same(told, empty, clock, tmp_path):
    export_pi_brain(told, tmp_path / "one")
    clock.move(days=1)

    done = import_pi_brain(empty, tmp_path / "one")
    export_pi_brain(empty, tmp_path / "two")

    assert (4, 6, 3, 0, (), ()) == (
        done.nodes,
        done.versions,
        done.links,
        done.known,
        done.damaged,
        done.warnings,
    )
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def believed(store: GraphStore) -> dict:
    return {
        id: [
            (
                row.number,
                row.valid_from,
                row.valid_to,
                row.tx_from,
                row.tx_to,
                row.content,
                row.text,
                row.tags,
                row.trigger,
            )
            for row in store.versions(id)
        ]
        for id in (FIRST, SECOND, THIRD)
    }


def test_what_was_believed_when_comes_back(told, empty, clock, tmp_path):
    clock.move(hours=1)
    told.end(SECOND, at="2026-02-03", reason="over")
    clock.move(hours=1)
    told.retract(THIRD, reason="wrong")
    clock.move(hours=1)
    tell(told, node(id=SECOND, content__summary="Later."))
    told.revise(SECOND, told.node(SECOND).content, valid_from="2026-02-01T12:00:00Z", valid_to="2026-02-02")
    export_pi_brain(told, tmp_path / "one")
    clock.move(hours=1)

    import_pi_brain(empty, tmp_path / "one")
    export_pi_brain(empty, tmp_path / "two")

    assert believed(told) == believed(empty)
    assert told.inspect(THIRD).node.standing == empty.inspect(THIRD).node.standing == "retracted"
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_a_supersession_comes_back_with_what_it_took(told, empty, clock, tmp_path):
    clock.move(hours=1)
    told.supersede(FIRST, by=THIRD, reason="done again")
    export_pi_brain(told, tmp_path / "one")
    clock.move(hours=1)

    import_pi_brain(empty, tmp_path / "one")
    export_pi_brain(empty, tmp_path / "two")

    assert believed(told) == believed(empty)
    assert [THIRD] == [each.id for each in empty.what_superseded(FIRST).current]
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_what_was_taken_and_given_back_is_held_throughout_and_said(told, empty, clock, tmp_path):
    clock.move(hours=1)
    [link] = told.supersede(FIRST, by=THIRD, reason="done again")
    clock.move(hours=1)
    told.unlink(link.id, reason="it was not")
    export_pi_brain(told, tmp_path / "one")
    clock.move(hours=1)

    done = import_pi_brain(empty, tmp_path / "one")

    assert (
        f"{FIRST}: what was taken at 2026-02-01T03:00:00Z and given back later is held throughout.",
    ) == done.warnings
    assert (told.node(FIRST).valid_from, None) == (empty.node(FIRST).valid_from, empty.node(FIRST).valid_to)


def test_taken_in_again_nothing_changes(told, empty, tmp_path):
    export_pi_brain(told, tmp_path / "out")
    import_pi_brain(empty, tmp_path / "out")
    before = empty.stats()["transactions"]

    done = import_pi_brain(empty, tmp_path / "out")

    assert (0, 0, 0, 9) == (done.nodes, done.versions, done.links, done.known)
    assert before == empty.stats()["transactions"]


def test_a_store_that_was_told_later_things_keeps_when_it_was_analysed_in_the_content(
    told, empty, clock, tmp_path
):
    export_pi_brain(told, tmp_path / "out")
    clock.move(days=1)
    empty.add_node("fact", {"a": 1})

    done = import_pi_brain(empty, tmp_path / "out")

    assert (4, 6, 3) == (done.nodes, done.versions, done.links)
    numbers = [row.number for row in empty.versions(FIRST)]
    assert ([1, 2, 3], True) == (
        numbers,
        all(row.tx_from > day("2026-02-02") for row in empty.versions(FIRST)),
    )
    assert told.node(FIRST).content == empty.node(FIRST).content


def test_files_of_another_program_are_taken_and_given_out_as_they_were(store, tmp_path):
    second = node(version=2, previousVersions=[f"{FIRST}-v1"], metadata__analyzedAt="2026-01-25T00:00:00Z")
    folder = put(
        tmp_path / "in",
        node(),
        second,
        node(id=SECOND),
        edges=[edge(), edge(id="e-2", type="made_up", note=1)],
    )

    done = import_pi_brain(store, folder)
    export_pi_brain(store, tmp_path / "out")

    assert (2, 3, 2, ()) == (done.nodes, done.versions, done.links, done.damaged)
    out = tree(tmp_path / "out")
    assert {name: data for name, data in tree(folder).items() if name != "edges.json"} == {
        name: data for name, data in out.items() if name != "edges.json"
    }
    assert json.loads(tree(folder)["edges.json"]) == json.loads(out["edges.json"])


def test_a_version_is_known_from_when_it_was_analysed(store, tmp_path):
    import_pi_brain(store, put(tmp_path, node()))

    [row] = store.versions(FIRST)

    assert ("2026-01-24T10:55:00+00:00", "2026-01-24T10:00:00+00:00", None) == (
        row.tx_from.isoformat(),
        row.valid_from.isoformat(),
        row.valid_to,
    )
    assert node() == loaded(store.node(FIRST)).json_object()


def test_a_later_version_of_a_known_node_is_added(store, tmp_path):
    import_pi_brain(store, put(tmp_path, node()))
    second = node(version=2, content__summary="Better.", metadata__analyzedAt="2026-01-25T00:00:00Z")

    done = import_pi_brain(store, put(tmp_path, second))

    assert (0, 1, 1) == (done.nodes, done.versions, done.known)
    assert "Better." == loaded(store.node(FIRST)).content.summary


def test_versions_of_one_instant_keep_their_order(store, tmp_path):
    third = node(version=3, content__summary="Third.", metadata__analyzedAt="2026-01-23T00:00:00Z")
    import_pi_brain(store, put(tmp_path, node(), node(version=2, content__summary="Second."), third))

    assert [(1, "Wove the pattern store."), (2, "Second."), (3, "Third.")] == [
        (row.number, row.content["content"]["summary"]) for row in store.versions(FIRST)
    ]


def test_a_missing_version_is_said(store, tmp_path):
    done = import_pi_brain(store, put(tmp_path, node(version=3)))

    assert (f"{FIRST}: v1, v2 is missing; the versions after it get lower numbers.",) == done.warnings
    assert 1 == import_pi_brain(store, tmp_path).known


days = st.integers(1, 8)
acts = st.lists(
    st.tuples(
        st.sampled_from(
            ["describe", "describe a part", "end", "retract", "retract a part", "supersede", "unlink", "link"]
        ),
        st.integers(0, 2),
        days,
        days,
    ),
    max_size=10,
)


def do(store: GraphStore, number: int, act: str, which: int, first: int, last: int) -> None:
    """One act on one of three nodes; what the store refuses changes nothing."""
    id, other = (FIRST, SECOND, THIRD)[which], (FIRST, SECOND, THIRD)[first % 3]
    begin, end = (
        day(f"2026-01-{20 + each:02}") for each in sorted((first, last + 1 if first == last else last))
    )
    content = stored(node(content__summary=f"Act {number}."))
    links = store.links_from(id)
    try:
        match act:
            case "describe":
                store.revise(id, content, trigger="prompt_update")
            case "describe a part":
                store.revise(id, content, valid_from=begin, valid_to=end)
            case "end":
                store.end(id, at=begin)
            case "retract":
                store.retract(id, reason="wrong")
            case "retract a part":
                store.retract(id, valid_from=begin, valid_to=end, reason="wrong")
            case "supersede":
                store.supersede(id, by=other, reason="anew")
            case "link":
                store.link(id, "continuation" if first % 2 else "semantic", other, strength=first % 5 + 1)
            case "unlink" if links:
                store.unlink(links[0].id)
    except GraphStoreError:
        pass


@settings(
    max_examples=examples(60), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@drawn(acts)
def test_whatever_happened_to_nodes_comes_back(history):
    clock = Clock()
    with (
        tempfile.TemporaryDirectory() as folder,
        graphstore.open(":memory:", clock=clock) as one,
        graphstore.open(":memory:", clock=clock) as two,
    ):
        for id in (FIRST, SECOND, THIRD):
            clock.move(hours=1)
            tell(one, node(id=id))
        for number, act in enumerate(history):
            clock.move(hours=1)
            do(one, number, *act)
        clock.move(hours=1)

        export_pi_brain(one, Path(folder) / "one")
        done = import_pi_brain(two, Path(folder) / "one")
        export_pi_brain(two, Path(folder) / "two")

        assert () == done.damaged
        for id in (FIRST, SECOND, THIRD):
            assert one.history(id) == two.history(id) or done.warnings
        if not done.warnings:
            assert believed(one) == believed(two)
            assert tree(Path(folder) / "one") == tree(Path(folder) / "two")


# ---------------------------------------------------------------- damage


def test_damaged_files_are_told_with_their_place_and_the_rest_is_kept(store, tmp_path):
    folder = put(tmp_path, node(), node(id=SECOND, content__outcome="great"), edges=[edge(), {"id": "e-3"}])
    (folder / "torn.json").write_text('{\n "id": "x",\n "ver')
    (folder / "list.json").write_text("[]")
    (folder / "nan.json").write_text('{"id": NaN}')
    again = deepcopy(NODE)
    (folder / "z-copy.json").write_text(json.dumps(again))

    done = import_pi_brain(store, folder)

    assert (1, 0) == (done.nodes, done.links)
    told = {Path(damage.file).name + f":{damage.line}": damage.reason for damage in done.damaged}
    assert "content.outcome: unknown value 'great'." in told[f"{SECOND}-v1.json:1"]
    assert told["torn.json:3"].startswith("no JSON")
    assert "no JSON object but list" == told["list.json:1"]
    assert told["nan.json:1"].startswith("no JSON")
    assert f"{FIRST}-v1 stands in {FIRST}-v1.json already" == told["z-copy.json:1"]
    edges = [damage.reason for damage in done.damaged if damage.file.endswith("edges.json")]
    assert 2 == len(edges)
    assert any(reason.startswith("edge 1: sourceNodeId is missing") for reason in edges)
    assert any(reason.startswith(f"no node or event '{SECOND}'") for reason in edges)


@pytest.mark.parametrize(
    ("ours", "reason"),
    [
        ({"periods": 7}, "graphstore.periods 7 is no list"),
        ({"periods": [{}]}, "graphstore.periods: {} has no validFrom, or no txFrom"),
        ({"periods": [{"validFrom": "x", "txFrom": "y"}]}, "validFrom 'x' is no ISO 8601 time"),
        ({"tags": 7}, "tags 7 is no list"),
        ({"text": 7}, "text 7 is no text"),
    ],
)
def test_what_stands_beside_a_node_is_checked_too(store, tmp_path, ours, reason):
    done = import_pi_brain(store, put(tmp_path, {**node(), "graphstore": ours}))

    assert [reason] == [damage.reason[: len(reason)] for damage in done.damaged]
    assert 0 == store.stats()["transactions"]


def test_another_content_under_a_known_version_is_told_and_the_first_stays(store, tmp_path):
    import_pi_brain(store, put(tmp_path / "a", node()))

    done = import_pi_brain(store, put(tmp_path / "b", node(content__summary="Other.")))

    assert [f"{FIRST}-v1 is known with another content, which stays"] == [
        each.reason for each in done.damaged
    ]
    assert "Wove the pattern store." == loaded(store.node(FIRST)).content.summary


def test_what_a_boundary_says_has_the_names_of_each_side(store, tmp_path):
    said = {"gapMinutes": 12.5, "also": [{"tokensBefore": 3}], "URL": 1, "free text": 2}
    given = edge(type="resume", metadata=said)
    import_pi_brain(store, put(tmp_path / "in", node(), node(id=SECOND), edges=[given]))
    export_pi_brain(store, tmp_path / "out")

    [link] = store.links_from(FIRST)

    assert {"gap_minutes": 12.5, "also": [{"tokens_before": 3}], "URL": 1, "free text": 2} == link.metadata
    assert [given] == json.loads((tmp_path / "out" / "edges.json").read_bytes())


def test_no_folder_is_refused(store, tmp_path):
    with pytest.raises(InvalidError, match=r"there is no (file or )?folder"):
        import_pi_brain(store, tmp_path / "none")


# ---------------------------------------------------------------- the command line


def test_the_commands_give_out_and_take_in(tmp_path):
    run = CliRunner().invoke
    folder = put(tmp_path / "in", node(), node(id=SECOND), edges=[edge()])
    (folder / "torn.json").write_text("{")

    taken = run(app, ["import", "pi-brain", str(tmp_path / "m.gs"), str(folder)])
    given = run(app, ["export", str(tmp_path / "m.gs"), "--format", "pi-brain", str(tmp_path / "out")])

    assert (0, 0) == (taken.exit_code, given.exit_code), (taken.output, given.output)
    assert "4 files: 2 new nodes, 2 new versions, 1 new links; 1 damaged" in taken.output
    assert f"left out: {folder / 'torn.json'}:1: no JSON" in taken.output
    assert "2 nodes in 2 versions, 1 edge" in given.output
    assert 3 == len(tree(tmp_path / "out"))


def test_as_json_both_say_what_was_done(tmp_path):
    run = CliRunner().invoke
    folder = put(tmp_path / "in", node())

    taken = run(app, ["import", "pi-brain", str(tmp_path / "m.gs"), str(folder), "--json"])
    given = run(
        app, ["export", str(tmp_path / "m.gs"), str(tmp_path / "out"), "--format", "pi-brain", "--json"]
    )

    assert (1, 1) == (json.loads(taken.stdout)["nodes"], json.loads(given.stdout)["versions"])
