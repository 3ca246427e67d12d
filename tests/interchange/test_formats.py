"""Files for other tools, each read back by the library that owns its format: the same values, whatever is in them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import ConflictError, EngineError, GraphStore, InvalidError, interchange
from graphstore.interchange.flat_graph import flat_graph
from graphstore.interchange.xml_text import escaped, name_of, unescaped
from tests.cli.test_command_line import answer, refused, run
from tests.conftest import Clock, day
from tests.support.interchange_story import BEFORE, CONTENT, HOSTILE, known, told
from tests.support.seeds import examples

pytestmark = [
    pytest.mark.in_process("writes files where the test looks"),
    pytest.mark.filterwarnings("ignore:Dataset.default_context:DeprecationWarning"),  # rdflib, of itself
]

VIEWS = [name for name, form in interchange.FORMATS.items() if not form.history]
HISTORIES = [name for name, form in interchange.FORMATS.items() if form.history]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text(
    "_x0041'\\\"`{};\n\r\x00😀", max_size=40
)
patient = settings(deadline=None, max_examples=examples(50))


@pytest.fixture(scope="module")
def story() -> Iterator[GraphStore]:
    """The story, told once; nothing is written to it."""
    with told(Clock()) as store:
        yield store


def exported(source: Any, path: Path, form: str, **options: Any) -> Path:
    assert interchange.export(source, path, format=form, **options) > 0
    return path


# ---------------------------------------------------------------------------------------------- all formats


@pytest.mark.parametrize("form", interchange.FORMATS)
def test_what_is_there_is_never_written_over(story, tmp_path, form):
    path = tmp_path / "there"
    path.mkdir()
    (path / "mine").write_text("kept")
    with pytest.raises(ConflictError, match="exists"):
        interchange.export(story, path, format=form)

    assert ["there"] == [each.name for each in tmp_path.iterdir()]
    assert "kept" == (path / "mine").read_text()


@pytest.mark.parametrize("form", interchange.FORMATS)
def test_what_fails_leaves_nothing(story, tmp_path, monkeypatch, form):
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(EngineError, match=r"cannot write .*: No space left on device"):
        interchange.export(story, tmp_path / "out", format=form)

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("form", interchange.FORMATS)
def test_an_empty_store_is_a_file_that_can_be_read(store, tmp_path, form):
    assert interchange.export(store, tmp_path / "out", format=form) in (0, 1)
    assert (tmp_path / "out").exists()


def test_an_unknown_format_is_refused_with_the_nearest(story, tmp_path):
    with pytest.raises(InvalidError, match=r"unknown format 'graphlm'.*Did you mean 'graphml'"):
        interchange.export(story, tmp_path / "out", format="graphlm")


@pytest.mark.parametrize("form", HISTORIES)
def test_a_view_has_no_history_to_write(story, tmp_path, form):
    with pytest.raises(InvalidError, match=r"is of one coordinate. Give the store, and tx="):
        interchange.export(story.as_of(), tmp_path / "out", format=form)


@pytest.mark.parametrize("form", VIEWS)
def test_a_tx_alone_is_of_no_view(story, tmp_path, form):
    with pytest.raises(InvalidError, match=r"is of one view. Give store.as_of"):
        interchange.export(story, tmp_path / "out", format=form, tx=BEFORE)


# -------------------------------------------------------------------------------------------------- Parquet


def tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    import pyarrow.parquet

    return {path.stem: pyarrow.parquet.read_table(path).to_pylist() for path in sorted(folder.iterdir())}


NODES = ["it's:a;b", "plain", "new", "secret-thing", "wrong"]


@pytest.mark.parametrize("tx", [None, BEFORE], ids=["now", "before"])
def test_parquet_has_every_row_of_every_version(story, tmp_path, tx):
    found = tables(exported(story, tmp_path / "out", "parquet", tx=tx))
    at = tx or story.as_of().at.tx
    view = story.as_of(tx=at)
    expected = {
        (row.id, row.ref, row.number, row.trigger, row.source, row.text, row.tags, row.valid_from, row.valid_to,
         row.tx_from, known(at, row.tx_to)): row.content
        for id in NODES if tx is None or id in ("it's:a;b", "plain")
        for row in view.versions(id)
    }  # fmt: skip

    assert expected == {
        (row["node_id"], row["ref"], row["number"], row["trigger"], row["source"], row["text"], tuple(row["tags"]),
         row["valid_from"], row["valid_to"], row["tx_from"], row["tx_to"]): json.loads(row["content"])
        for row in found["versions"]
    }  # fmt: skip


def test_parquet_has_every_link_as_it_was_known(story, tmp_path):
    now = tables(exported(story, tmp_path / "now", "parquet"))["links"]
    then = tables(exported(story, tmp_path / "then", "parquet", tx=BEFORE))["links"]
    lost = [(row["valid_from"], row["valid_to"], row["tx_to"]) for row in now if row["id"] == "lost"]

    assert [(day("2026-01-01"), day("2026-03-01"), None)] == [
        (row["valid_from"], row["valid_to"], row["tx_to"]) for row in then if row["id"] == "lost"
    ]
    assert 2 == len(lost)
    assert (day("2026-01-01"), day("2026-02-01"), None) in lost
    assert {"caused_by", "related_to"} == {row["kind"] for row in then}
    assert [(4, HOSTILE, {"m": HOSTILE})] == [
        (row["strength"], row["reason"], json.loads(row["metadata"]))
        for row in now
        if row["kind"] == "caused_by"
    ]


def test_parquet_has_events_their_occurrences_and_who_did_what(story, tmp_path):
    now = tables(exported(story, tmp_path / "now", "parquet"))
    then = tables(exported(story, tmp_path / "then", "parquet", tx=BEFORE))
    events = {row["id"]: row for row in now["events"]}
    operations = {row["id"]: row for row in now["operations"]}
    mail = events["mail"]

    assert datetime(1960, 2, 3, 4, 5, 6, 789000, UTC) == events["boom"]["occurred_at"]
    assert [day("1961-01-01"), day("2026-02-03")] == [row["occurred_at"] for row in now["occurrences"]]
    assert [day("1961-01-01")] == [row["occurred_at"] for row in then["occurrences"]]
    assert (HOSTILE, "ana", False) == (mail["description"], mail["sender"], mail["authorized"])
    assert ("retract", "not sent", HOSTILE) == tuple(
        operations[mail["closed_by"]][name] for name in ("verb", "reason", "author")
    )
    assert None is {row["id"]: row for row in then["events"]}["mail"]["closed_by"]
    assert [
        (change.tx, change.verb, change.subject, change.author, change.reason) for change in story.changes()
    ] == [
        tuple(row[name] for name in ("tx", "verb", "subject", "author", "reason"))
        for row in now["operations"]
    ]


def test_parquet_is_read_by_duckdb_pandas_and_polars(story, tmp_path):
    duckdb, pandas, polars = map(pytest.importorskip, ("duckdb", "pandas", "polars"))
    file = str(exported(story, tmp_path / "out", "parquet") / "versions.parquet")
    query = f"SELECT content->>'$.says' FROM '{file}' WHERE node_id = 'new'"
    mine = {"duckdb": duckdb.sql(query).fetchall()[0][0]}
    frames = pandas.read_parquet(file), polars.read_parquet(file)
    texts = sorted(row.text for id in NODES for row in story.versions(id) if row.text is not None)
    assert HOSTILE in texts

    assert {"duckdb": "new"} == mine
    assert texts == sorted(text for text in frames[0]["text"] if isinstance(text, str))
    assert texts == sorted(text for text in frames[1]["text"] if text is not None)
    assert str(frames[0]["tx_from"].dtype) == "datetime64[us, UTC]"


def test_parquet_in_many_parts_is_the_same(story, tmp_path, monkeypatch):
    whole = tables(exported(story, tmp_path / "whole", "parquet"))
    monkeypatch.setattr("graphstore.interchange.history_tables.PART", 3)

    assert whole == tables(exported(story, tmp_path / "parts", "parquet"))


@pytest.mark.parametrize("form", ["parquet", "prov-json", "gexf-timeline"])
def test_a_history_of_then_is_the_same_whenever_it_is_written(tmp_path, form):
    clock = Clock()
    with graphstore.open(":memory:", clock=clock) as store:
        store.record_event("error", "boom", id="boom")
        store.add_node("fact", {"x": 1}, id="one")
        store.link("one", "caused_by", "boom", id="why")
        tx = store.as_of().at.tx
        before = exported(store, tmp_path / "before", form, tx=tx)
        clock.move(days=1)
        store.revise("one", {"x": 2})
        store.record_event("error", "boom")
        store.unlink("why")
        store.retract("boom", reason="it never was")
        after = exported(store, tmp_path / "after", form, tx=tx)

    if form == "parquet":
        assert tables(before) == tables(after)
    else:
        assert before.read_bytes() == after.read_bytes()


def test_parquet_of_a_branch_is_what_the_branch_was_told(tmp_path):
    clock = Clock()
    with graphstore.open(":memory:", clock=clock) as store:
        store.add_node("fact", {"x": 1}, id="both")
        branch = store.branch("idea")
        clock.move(days=1)
        branch.revise("both", {"x": 2})
        store.add_node("fact", {}, id="trunk")
        found = tables(exported(branch, tmp_path / "out", "parquet"))

    assert ["both"] == [row["id"] for row in found["nodes"]]
    assert ["both-v1", "both-v2"] == sorted({row["ref"] for row in found["versions"]})


# -------------------------------------------------------------------------------- GraphML, GEXF, node-link


def plain(value: Any) -> Any:
    return unescaped(value) if isinstance(value, str) else value


def read(properties: dict[str, Any]) -> dict[str, Any]:
    return {unescaped(name): plain(value) for name, value in properties.items()}


def shown(properties: dict[str, Any], **names: str) -> dict[str, Any]:
    """Properties as GraphML and GEXF have them: instants and lists as text."""
    found = {}
    for name, value in properties.items():
        if isinstance(value, datetime):
            value = value.isoformat().replace("+00:00", "Z")
        found[names.get(name, name)] = json.dumps(value) if isinstance(value, list) else value
    return {name: json.loads(value) if name in JSON else value for name, value in found.items()}


JSON = ("tags", "content", "metadata", "nested")


def without_id(properties: dict[str, Any]) -> dict[str, Any]:
    """It is where the format has it."""
    return {name: value for name, value in properties.items() if name != "id"}


def decoded(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: json.loads(value) if name in JSON else value for name, value in properties.items()}


OWN = ("label", "type", "weight", "start", "end", "spells", "slices", "viz", "pid", "parents", "slot")


def test_graphml_read_by_networkx_has_every_property(story, tmp_path):
    view = story.as_of()
    graph = networkx.read_graphml(exported(view, tmp_path / "out.graphml", "graphml"), force_multigraph=True)
    flat = flat_graph(view, OWN)
    nodes = {unescaped(id): decoded(read(said)) for id, said in graph.nodes(data=True)}
    edges = {key: decoded(read(said)) for _, _, key, said in graph.edges(keys=True, data=True)}
    for said in nodes.values():
        said.pop("label")

    assert {key: said.pop("link_id") for key, said in edges.items()} == {key: key for key in edges}
    assert {thing.id: without_id(shown(thing.properties)) for thing in flat.things} == nodes
    assert {tie.properties["id"]: without_id(shown(tie.properties)) for tie in flat.ties} == edges
    assert {(tie.source.id, tie.target.id) for tie in flat.ties} == {
        (unescaped(source), unescaped(target)) for source, target in graph.edges()
    }


def test_graphml_read_by_igraph_has_every_thing_link_and_text(story, tmp_path):
    igraph = pytest.importorskip("igraph")
    view = story.as_of()
    graph = igraph.Graph.Read_GraphML(str(exported(view, tmp_path / "out.graphml", "graphml")))
    flat = flat_graph(view, OWN)
    ids = {vertex.index: unescaped(vertex["id"]) for vertex in graph.vs}
    said = {unescaped(vertex["id"]): vertex.attributes() for vertex in graph.vs}

    assert graph.is_directed()
    assert {thing.id for thing in flat.things} == set(ids.values())
    assert {(tie.properties["id"], tie.source.id, tie.target.id) for tie in flat.ties} == {
        (unescaped(edge["link_id"]), ids[edge.source], ids[edge.target]) for edge in graph.es
    }
    for thing in flat.things:
        for name, value in shown(thing.properties).items():
            if isinstance(value, str) and name not in ("id", *JSON):
                assert value.replace("\r\n", "\n") == unescaped(said[thing.id][escaped(name)]).replace(
                    "\r\n", "\n"
                )


GEXF = "{http://gexf.net/1.3}"
HOLDS = {
    "gexf": ("meta graph", "version"),
    "meta": ("creator description", "lastmodifieddate"),
    "creator": ("", ""),
    "description": ("", ""),
    "graph": ("attributes nodes edges", "defaultedgetype mode timeformat"),
    "attributes": ("attribute", "class mode"),
    "attribute": ("", "id title type"),
    "nodes": ("node", ""),
    "node": ("spells attvalues", "id label"),
    "edges": ("edge", ""),
    "edge": ("spells attvalues", "id source target"),
    "spells": ("spell", ""),
    "spell": ("", "start end"),
    "attvalues": ("attvalue", ""),
    "attvalue": ("", "for value start end"),
}
"""What GEXF 1.3 lets each element hold, of that which is written: elements, attributes."""


@pytest.mark.parametrize("form", ["gexf", "gexf-timeline"])
@pytest.mark.parametrize("empty", [False, True])
def test_gexf_holds_what_its_version_1_3_lets_it(story, tmp_path, form, empty):
    from xml.etree import ElementTree

    with graphstore.open(":memory:") as none:
        path = tmp_path / "out.gexf"
        interchange.export(none if empty else story, path, format=form)
    root = ElementTree.parse(path).getroot()
    attributes = {each.get("id"): each for each in root.iter(f"{GEXF}attribute")}
    assert (f"{GEXF}gexf", "1.3") == (root.tag, root.get("version"))
    assert "as known at" in root.findtext(f"{GEXF}meta/{GEXF}description")
    assert {each.get("type") for each in attributes.values()} <= {"string", "long", "double", "boolean"}
    for each in root.iter():
        inner, named = HOLDS[each.tag.removeprefix(GEXF)]
        assert {below.tag for below in each} <= {GEXF + name for name in inner.split()}
        assert set(each.attrib) <= set(named.split()), each.tag
        for end in ("start", "end"):
            assert each.get(end) is None or datetime.fromisoformat(each.get(end)).tzinfo is UTC
        if "for" in each.attrib:
            assert each.get("for") in attributes
    nodes = [each.get("id") for each in root.iter(f"{GEXF}node")]
    assert len(nodes) == len(set(nodes)) and bool(nodes) is not empty
    assert {each.get(end) for each in root.iter(f"{GEXF}edge") for end in ("source", "target")} <= set(nodes)


def test_gexf_read_by_networkx_has_every_property_and_periods_as_spells(story, tmp_path):
    view = story.as_of(valid="2026-02-04")
    graph = networkx.read_gexf(exported(view, tmp_path / "out.gexf", "gexf"))
    flat = flat_graph(view, OWN)
    nodes = {unescaped(id): decoded(read(said)) for id, said in graph.nodes(data=True)}
    edges = {said["id"]: decoded(read(said)) for _, _, said in graph.edges(data=True)}
    spells = {id: said.pop("spells", []) for id, said in {**nodes, **edges}.items()}
    for said in nodes.values():
        said.pop("label")
    for said in edges.values():
        said.pop("networkx_key", None)

    assert {thing.id: without_id(shown(thing.properties, key="slot")) for thing in flat.things} == nodes
    assert {tie.properties["id"]: shown(tie.properties) for tie in flat.ties} == edges
    # the reader of networkx says None of an open end in words
    assert [("0001-01-01T00:00:00Z", "2026-02-03T00:00:00Z")] == spells["it's:a;b"]
    assert [
        ("2026-01-15T00:00:00Z", "2026-01-20T00:00:00Z"),
        ("2026-02-01T00:00:00.000001Z", "None"),
    ] == spells["plain"]
    assert [("1960-02-03T04:05:06.789000Z", "None")] == spells["boom"]
    assert [] == spells["secret-thing"]
    assert "dynamic" == graph.graph["mode"]


def test_gexf_timeline_read_by_networkx_has_what_is_believed_over_all_valid_time(story, tmp_path):
    graph = networkx.read_gexf(exported(story, tmp_path / "out.gexf", "gexf-timeline"))
    nodes = {unescaped(id): read(said) for id, said in graph.nodes(data=True)}
    numbers = [(value, start[:10], end[:10]) for value, start, end in nodes["plain"]["number"]]
    (content,) = nodes["it's:a;b"]["content"]
    links = {said["kind"]: said["spells"] for _, _, said in graph.edges(data=True)}
    # the reader of networkx says None of an open end in words
    moved = ("2026-02-03T00:00:00Z", "None")

    assert {"it's:a;b", "plain", "new", "boom", "secret-thing"} == nodes.keys()
    assert [(2, "2026-01-15", "2026-01-20"), (1, "2026-02-01", "None")] == numbers
    assert (CONTENT, "0001-01-01T00:00:00Z", moved[0]) == (json.loads(unescaped(content[0])), *content[1:])
    assert [("0001-01-01T00:00:00Z", moved[0])] == nodes["it's:a;b"]["spells"]
    assert ("deploy_day", "a;b", "fact") == tuple(nodes["plain"][name] for name in ("slot", "scope", "kind"))
    assert [("1960-02-03T04:05:06.789000Z", "None")] == nodes["boom"]["spells"]
    assert ({"label": "secret-thing"}, [moved]) == (nodes["secret-thing"], links["supersedes"])
    assert [("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")] == links["related_to"]


def test_gexf_timeline_is_that_of_the_tx(story, tmp_path):
    graph = networkx.read_gexf(exported(story, tmp_path / "out.gexf", "gexf-timeline", tx=BEFORE))

    assert {"it's:a;b", "plain", "boom", "mail"} == set(map(unescaped, graph.nodes))
    assert [("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999998Z")] == graph.nodes[escaped("it's:a;b")][
        "spells"
    ]


def test_node_link_read_by_networkx_is_the_graph_of_the_view(story, tmp_path):
    view = story.as_of(valid="2026-02-04")
    with open(exported(view, tmp_path / "out.json", "node-link"), encoding="utf-8") as file:
        graph = networkx.node_link_graph(json.load(file), edges="edges")
    expected = view.to_networkx()

    def plainly(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat().replace("+00:00", "Z")
        return list(value) if isinstance(value, tuple) else value

    def fields(said: dict[str, Any], *structure: str) -> dict[str, Any]:
        return {name: plainly(value) for name, value in said.items() if name not in structure}

    assert {id: fields(said, "id") for id, said in expected.nodes(data=True)} == dict(graph.nodes(data=True))
    assert {
        key: fields(said, "source", "target") for _, _, key, said in expected.edges(data=True, keys=True)
    } == {key: fields(said) for _, _, key, said in graph.edges(data=True, keys=True)}
    assert {"valid": plainly(view.at.valid), "tx": plainly(view.at.tx)} == graph.graph


def test_a_view_of_then_is_the_graph_of_then(story, tmp_path):
    then = story.as_of(valid="2026-02-01", tx=BEFORE)
    path = exported(then, tmp_path / "then.graphml", "graphml")
    graph = networkx.read_graphml(path)

    assert {"it's:a;b", "plain", "boom", "mail"} == set(map(unescaped, graph.nodes))
    assert CONTENT == json.loads(unescaped(graph.nodes["it's:a;b"]["content"]))
    assert "stands" == graph.nodes["it's:a;b"]["standing"]
    assert (
        path.read_bytes()
        == exported(
            story.as_of(valid="2026-02-01", tx=BEFORE), tmp_path / "again.graphml", "graphml"
        ).read_bytes()
    )


@patient
@given(texts)
def test_escaped_text_is_text_for_xml_and_comes_back(text):
    from xml.etree import ElementTree

    element = ElementTree.Element("a")
    element.text = escaped(text)

    assert text == unescaped(ElementTree.fromstring(ElementTree.tostring(element, "utf-8")).text or "")
    assert text == unescaped(name_of(text))
    assert re.fullmatch(r"[A-Za-z0-9_.-]*", name_of(text))


# ----------------------------------------------------------------------------------------------------- PROV


SYNTAXES = {
    "prov-json": {"format": "json"},
    "prov-xml": {"format": "xml"},
    "prov-o": {"format": "rdf", "rdf_format": "turtle"},
}


QUALIFIED = {
    "wasGeneratedBy": "qualifiedGeneration",
    "wasInvalidatedBy": "qualifiedInvalidation",
    "wasDerivedFrom": "qualifiedDerivation|qualifiedRevision",
    "wasRevisionOf": "qualifiedRevision",
}


def without_plain_relations(path: Path) -> None:
    """Leave of PROV-O what its library knows: it takes a relation that is both plain and qualified for two."""
    from rdflib import Graph
    from rdflib.namespace import PROV

    graph = Graph().parse(path)
    for plain, qualified in QUALIFIED.items():
        for subject, end in list(graph.subject_objects(PROV[plain])):
            of = [one for name in qualified.split("|") for one in graph.objects(subject, PROV[name])]
            assert any((one, None, end) in graph for one in of), (subject, plain)
            graph.remove((subject, PROV[plain], end))
    graph.serialize(path, format="turtle")


@pytest.mark.parametrize("form", SYNTAXES)
@pytest.mark.parametrize("tx", [None, BEFORE], ids=["now", "before"])
def test_prov_read_by_its_library_is_the_document(story, tmp_path, form, tx):
    model = pytest.importorskip("prov.model")
    from graphstore.interchange.prov_document import prov_document

    path = exported(story, tmp_path / "out", form, tx=tx)
    if form == "prov-o":
        without_plain_relations(path)
    read = model.ProvDocument.deserialize(path, **SYNTAXES[form])
    text = str if form == "prov-json" else escaped

    assert prov_document(story, tx, text) == read


SPARQL = """PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?label ?before ?who WHERE {
  ?new prov:wasRevisionOf ?old ; prov:wasDerivedFrom ?old ; prov:wasGeneratedBy/prov:wasAssociatedWith/rdfs:label ?who ; rdfs:label ?label .
  ?old rdfs:label ?before ; prov:wasAttributedTo/rdfs:label ?who
}"""


def test_prov_o_is_asked_in_its_plain_terms_by_two_stores(tmp_path):
    rdflib, oxigraph = map(pytest.importorskip, ("rdflib", "pyoxigraph"))
    with graphstore.open(":memory:", author="ana", clock=Clock()) as store:
        store.add_node("fact", {"ships": "on Tuesday"}, id="day")
        store.revise("day", {"ships": "on Friday"}, reason="so it was decided")
        store.add_node("open_question", {"asks": "who ships?"}, id="new", supersedes=["day"], reason="asked")
        path = exported(store, tmp_path / "out.ttl", "prov-o")
    first = rdflib.Graph().parse(path)
    second = oxigraph.Store()
    second.load(path=str(path), format=oxigraph.RdfFormat.TURTLE)
    expected = {("on Friday", "on Tuesday", "ana")}
    labels = (
        "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> SELECT ?label WHERE { ?any rdfs:label ?label }"
    )
    sentences = {
        "new supersedes day, because asked",
        "revise day by ana, because so it was decided",
        "new is of the kind open question",
    }
    revisions = "PREFIX prov: <http://www.w3.org/ns/prov#> SELECT ?a ?b WHERE { ?a prov:wasRevisionOf ?b }"
    pairs = {("version.day-v2", "version.day-v1"), ("node.new", "node.day")}

    assert expected == {tuple(map(str, row)) for row in first.query(SPARQL)}
    assert expected == {tuple(each.value for each in row) for row in second.query(SPARQL)}
    assert pairs == {
        tuple(str(each).removeprefix("urn:graphstore:") for each in row) for row in first.query(revisions)
    }
    assert pairs == {
        tuple(each.value.removeprefix("urn:graphstore:") for each in row) for row in second.query(revisions)
    }
    assert sentences <= {str(row[0]) for row in first.query(labels)}
    assert sentences <= {row[0].value for row in second.query(labels)}


def test_prov_says_who_generated_revised_and_invalidated_what_and_when(story):
    pytest.importorskip("prov.model")
    from graphstore.interchange.prov_document import prov_document

    said = prov_document(story).get_provn()
    thing = "node.it_x0027_s_x003A_a_x003B_b"
    changes = {change.reason: number for number, change in enumerate(story.changes())}
    moved, better, not_sent = (
        f"gs:operation.{changes[why]}" for why in ("it moved on", "better", "not sent")
    )
    version = thing.replace("node", "gs:version")

    assert f"wasDerivedFrom(gs:node.new, gs:{thing}, {moved}, -, -, [prov:type='prov:Revision'])" in said
    assert f"wasInvalidatedBy({version}-v1, {moved}, 2026-02-03T00:00:00+00:00)" in said
    assert f"wasDerivedFrom({version}-v1.2, {version}-v1, {moved}, -, -)" in said
    assert f"wasGeneratedBy(gs:version.plain-v2, {better}, 2026-02-03T00:00:00.000001+00:00)" in said
    assert "specializationOf(gs:version.plain-v2, gs:node.plain)" in said
    assert "hadMember(gs:node.plain, gs:node.new)" in said
    assert "wasInfluencedBy(gs:node.plain, gs:event.boom)" in said
    assert f"wasInvalidatedBy(gs:event.mail, {not_sent}" in said
    assert "wasAttributedTo(gs:event.mail, gs:agent.a_x0020_b)" in said
    assert f"wasAttributedTo(gs:version.new-v1, gs:agent.{name_of(HOSTILE)})" in said
    assert (
        'secret-thing-v1, [prov:type=\'gs:Version\', gs:ref="secret-thing-v1", gs:number=1, gs:content="{}"'
        in said
    )


# ---------------------------------------------------------------------------------------------------- Neo4j


@patient
@given(st.lists(texts | st.none(), min_size=2, max_size=5))
def test_a_csv_field_is_any_text_or_absent(tmp_path_factory, fields):
    from graphstore.interchange.neo4j_files import _cell, _row

    path = tmp_path_factory.mktemp("csv") / "out.csv"
    path.write_bytes(_row(_cell(field, ";") for field in fields).encode())

    assert [fields] == records_of(path)


# the header of neo4j-admin: <name>:<type>, where the last colon parts them and a brace would begin options
HEAD = re.compile(
    r"(?P<name>[^{}]*):(?P<type>ID|LABEL|START_ID|END_ID|TYPE|(?:string|long|double|boolean|datetime)(?:\[\])?)\Z"
)


FIELD = re.compile(r'(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<bare>[^,"\n]*))(?P<end>[,\n])')


def records_of(path: Path) -> list[list[str | None]]:
    """The records of a file, as the csv module reads them, and an unquoted empty field as None, which that module does not tell."""
    records: list[list[str | None]] = [[]]
    for field in FIELD.finditer(path.read_bytes().decode()):
        quoted = field["quoted"]
        records[-1].append((field["bare"] or None) if quoted is None else quoted.replace('""', '"'))
        if field["end"] == "\n":
            records.append([])
    assert [] == records.pop()
    with open(path, encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [[field or "" for field in record] for record in records]
    return records


def neo4j_rows(path: Path, delimiter: str) -> list[dict[str, Any]]:
    """A file as neo4j-admin reads it: properties by name, of their type; what is structure under its own word."""
    records = records_of(path)
    heads = [match for head in records[0] if head and (match := HEAD.match(head))]
    assert len(records[0]) == len({head[0] for head in heads})
    convert = {
        "long": int,
        "double": float,
        "boolean": {"true": True, "false": False}.__getitem__,
        "datetime": datetime.fromisoformat,
        "string[]": lambda text: text.split(delimiter),
    }
    return [
        {
            head["name"] or head["type"]: convert.get(head["type"], str)(field)
            for head, field in zip(heads, record, strict=True)
            if field is not None
        }
        for record in records[1:]
    ]


def test_neo4j_csv_has_every_property_with_its_type(story, tmp_path):
    view = story.as_of(valid="2026-02-04")
    folder = exported(view, tmp_path / "out", "neo4j-csv")
    arguments = (folder / "import.args").read_text().split("\n")
    delimiter = next(each.partition("=")[2] for each in arguments if "array-delimiter" in each)
    delimiter = chr(int(delimiter[2:], 16)) if delimiter.startswith("U+") else delimiter
    flat = flat_graph(view)
    rows = [
        row for label in ("Node", "Event", "Absent") for row in neo4j_rows(folder / f"{label}.csv", delimiter)
    ]
    links = neo4j_rows(folder / "links.csv", delimiter)

    def heads(properties: dict[str, Any]) -> dict[str, Any]:
        return {
            name if "{" not in name else "c_" + re.sub("[{}]", "_", name): value
            for name, value in properties.items()
            if value != []
        }

    assert "\x1e" == delimiter  # ; | and the unit separator are in tags
    assert ["it's:a;b", "secret-thing"] == [row["id"] for row in rows if row["LABEL"] == "Absent"]
    assert {thing.id: {**heads(thing.properties), "LABEL": thing.label} for thing in flat.things} == {
        row["id"]: row for row in rows
    }
    assert {
        tie.properties["id"]: {
            **tie.properties, "START_ID": tie.source.id, "END_ID": tie.target.id, "TYPE": tie.kind.upper(),
        }
        for tie in flat.ties
    } == {row["id"]: row for row in links}  # fmt: skip
    assert [
        "--multiline-fields=true",
        *("--nodes=Node.csv", "--nodes=Event.csv", "--nodes=Absent.csv", "--relationships=links.csv"),
        "--array-delimiter=U+001E",
        "--id-type=string",
        "",
    ] == arguments


def test_tags_that_hold_every_delimiter_are_refused(store, tmp_path):
    store.add_node("fact", {}, tags=[";|\x1f\x1e\x1d\x1c"])
    with pytest.raises(InvalidError, match="Export as neo4j-cypher"):
        interchange.export(store, tmp_path / "out", format="neo4j-csv")

    assert [] == list(tmp_path.iterdir())


def test_neo4j_script_run_statement_by_statement_makes_the_graph(story, tmp_path):
    ocg = pytest.importorskip("ocg", reason="no engine here that takes Cypher without tables")
    view = story.as_of(valid="2026-02-04")
    lines = exported(view, tmp_path / "out", "neo4j-cypher").read_bytes().decode().split("\n")
    engine, flat = ocg.Graph(), flat_graph(view)
    assert lines[0].startswith("// valid 2026-02-04 01:00Z, as known at ")
    assert "" == lines.pop()
    for line in lines[1:]:
        assert line.endswith(";")
        if not line.startswith("CREATE CONSTRAINT"):  # this engine has its words of an older Neo4j
            engine.execute(line[:-1])
    nodes = [row["n"] for row in engine.execute("MATCH (n) RETURN n")]
    links = engine.execute("MATCH (a)-[r]->(b) RETURN a.id AS source, r, b.id AS target")

    assert {thing.id: ([thing.label], thing.properties) for thing in flat.things} == {
        node["properties"]["id"]: (node["labels"], node["properties"]) for node in nodes
    }
    assert {
        tie.properties["id"]: (tie.source.id, tie.kind.upper(), tie.target.id, tie.properties)
        for tie in flat.ties
    } == {
        row["r"]["properties"]["id"]: (row["source"], row["r"]["type"], row["target"], row["r"]["properties"])
        for row in links
    }


@patient
@given(
    texts,
    texts.filter(bool),
    st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
)
def test_neo4j_script_says_any_text_name_and_number(text, name, number):
    ocg = pytest.importorskip("ocg", reason="no engine here that takes Cypher without tables")
    from graphstore.interchange.neo4j_files import _literal, _map

    found = ocg.Graph().execute(
        f"RETURN {_literal(text)} AS text, {_literal(number)} AS number, {_map({'a': [text]})} AS map"
    )

    assert [{"text": text, "number": number, "map": {"a": [text]}}] == found
    assert type(number) is type(found[0]["number"])


# --------------------------------------------------------------------------------------------- command line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a fact that was replaced."""
    path = tmp_path / "team.gs"
    with graphstore.open(path, author="ana", clock=Clock("2026-02-01")) as store:
        store.add_node("fact", {"auth": "sessions"}, id="sessions", valid_from="2026-01-01")
        store.add_node("fact", {"auth": "JWT"}, id="tokens", valid_from="2026-01-30", supersedes=["sessions"])
    return path


@pytest.mark.parametrize("form", interchange.FORMATS)
def test_each_format_is_written_by_the_command(folder, tmp_path, form):
    with graphstore.open(folder, read_only=True) as store:
        count = interchange.export(store, tmp_path / "mine", format=form)
    said = answer("export", folder, tmp_path / "out", "--format", form)
    again = refused("export", folder, tmp_path / "out", "--format", form)

    assert {
        "exported": str(tmp_path / "out"),
        interchange.FORMATS[form].counted.replace(" ", "_"): count,
    } == said
    assert "exists" in again


def test_the_command_takes_a_coordinate_where_a_format_is_of_one(folder, tmp_path):
    run("export", folder, tmp_path / "out.json", "--format", "node-link", "--valid", "2026-01-10")
    nodes = json.loads((tmp_path / "out.json").read_text())["nodes"]
    said = refused("export", folder, tmp_path / "out", "--format", "parquet", "--valid", "2026-01-10", code=2)

    assert ["sessions"] == [node["id"] for node in nodes]
    assert "parquet is the whole history up to --tx; it takes no --valid and no --as-of." in said


def test_the_command_takes_a_tx_for_a_history(folder, tmp_path):
    with graphstore.open(folder, clock=Clock("2026-02-10")) as store:
        store.add_node("fact", {}, id="later")
    run("export", folder, tmp_path / "then", "--format", "parquet", "--tx", "2026-02-02")
    run("export", folder, tmp_path / "now", "--format", "parquet")

    assert ["sessions", "tokens"] == [row["id"] for row in tables(tmp_path / "then")["nodes"]]
    assert ["sessions", "tokens", "later"] == [row["id"] for row in tables(tmp_path / "now")["nodes"]]
