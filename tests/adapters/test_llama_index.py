"""LlamaIndex's property graph on a store: it answers as LlamaIndex's own in memory does, in Cypher too, and knows the past besides."""

from __future__ import annotations

import json
import random
import re
from zlib import crc32

import pytest

pytest.importorskip("llama_index.core.graph_stores", reason="the package llama-index-core is not installed")

from llama_index.core import Document, PropertyGraphIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, Relation
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery

from graphstore import InvalidError
from graphstore.adapters.llama_index import LlamaGraphStore

pytestmark = pytest.mark.served

ANA, BEN, ACME = (
    EntityNode(name="Ana", label="PERSON"),
    EntityNode(name="Ben", label="PERSON"),
    EntityNode(name="Acme"),
)


def relation(one, label, other, **properties):
    return Relation(label=label, source_id=one, target_id=other, properties=properties)


def plain(things):
    """Nodes or triplets as values that can be compared, in any order."""
    found = [each if isinstance(each, tuple) else (each,) for each in things]
    return sorted(json.dumps([part.model_dump() for part in each], sort_keys=True) for each in found)


def test_it_answers_as_the_graph_in_memory_that_llama_index_ships(store):
    """Random writes to both, among names and labels that are easily mixed up."""
    chance = random.Random(3)
    ours, theirs = LlamaGraphStore(store), SimplePropertyGraphStore()
    names = ["Ana", "ana", "a/b", "notes-v2", 'the "one"', "Zoë"]
    labels = ["KNOWS", "knows", "works at", "SUPERSEDES", "CAUSES", "KNOWS_OF", "愛"]
    for _ in range(60):
        if chance.random() < 0.5:
            name, n = chance.choice(names), chance.randrange(3)
            properties = chance.choice(
                [{}, {"n": n}, {"name": "other", "label": "x", "properties": {"n": n}}]
            )
            node = (
                ChunkNode(text=f"about {name}", id_=name, properties=properties)
                if chance.random() < 0.3
                else EntityNode(name=name.replace('"', " "), label=f"L{n}", properties=properties)
            )
            for graph in (ours, theirs):
                graph.upsert_nodes([node])
        else:
            one, other = chance.sample([name.replace('"', " ") for name in names], 2)
            label = chance.choice(labels)
            if (one, label, other) in theirs.graph.triplets:
                continue  # theirs keeps what it was first told
            said = relation(one, label, other, n=chance.randrange(3))
            for graph in (ours, theirs):
                graph.upsert_relations([said])
        some = chance.sample(names, 2)
        for asked in ({"ids": some}, {"properties": {"n": 1}}, {}):
            assert plain(ours.get(**asked)) == plain(theirs.get(**asked))
        for asked in (
            {"ids": some},
            {"entity_names": some, "relation_names": labels[:2]},
            {"relation_names": labels[2:]},
            {"properties": {"n": 1}},
            {},
        ):
            assert plain(ours.get_triplets(**asked)) == plain(theirs.get_triplets(**asked))


def test_a_relation_said_otherwise_is_a_new_state_and_the_past_stays_readable(store, clock):
    graph = LlamaGraphStore(store)
    graph.upsert_relations([relation("Ana", "WORKS_AT", "Acme", role="dev")])
    before = clock.now
    clock.move(days=1)
    graph.upsert_relations([relation("Ana", "WORKS_AT", "Acme", role="lead")])
    clock.move(days=1)

    role = [triplet[1].properties["role"] for triplet in graph.get_triplets(ids=["Ana"])]
    past = graph.as_of(valid=before)
    then = [triplet[1].properties["role"] for triplet in past.get_triplets(ids=["Ana"])]
    assert (role, then) == (["lead"], ["dev"])
    graph.delete(entity_names=["Ana"])
    assert graph.get_triplets(ids=["Acme"]) == [] and [node.id for node in graph.get()] == ["Acme"]
    graph.upsert_nodes([ANA])
    assert graph.get_triplets(ids=["Ana"]) == []
    assert len(past.get_triplets(relation_names=["WORKS_AT"])) == 1
    with pytest.raises(InvalidError, match="read only"):
        past.upsert_nodes([ANA])


def test_a_map_goes_along_relations_to_its_depth_and_says_each_once(store):
    graph = LlamaGraphStore(store)
    graph.upsert_nodes([ANA, BEN, ACME])
    graph.upsert_relations(
        [relation("Ana", "KNOWS", "Ben"), relation("Ben", "WORKS_AT", "Acme"), relation("Acme", "IN", "Rome")]
    )

    def labels(**asked):
        return [triplet[1].label for triplet in graph.get_rel_map([ANA], **asked)]

    assert labels(depth=1) == ["KNOWS"]
    assert labels(depth=2) == ["KNOWS", "WORKS_AT"]
    assert labels(depth=9, ignore_rels=["KNOWS"]) == ["WORKS_AT", "IN"]
    assert labels(depth=9, limit=1) == ["KNOWS"]


def test_a_structured_query_is_cypher_and_the_schema_says_what_it_sees(store):
    graph = LlamaGraphStore(store)
    graph.upsert_nodes([ANA, ACME])
    graph.upsert_relations([relation("Ana", "WORKS_AT", "Acme")])

    rows = graph.structured_query(
        "MATCH (p:Node {label: $label})-[:WORKS_AT]->(c:Node) RETURN p.name AS who, c.name AS at",
        {"label": "PERSON"},
    )

    assert rows == [{"who": "Ana", "at": "Acme"}]
    assert "(:Node {label: 'PERSON'})-[:WORKS_AT]->(:Node {label: 'entity'})" in graph.get_schema_str()


def test_texts_of_llama_index_come_back_and_are_deleted_by_their_document(store):
    graph = LlamaGraphStore(store)
    texts = [TextNode(text="Ana is in Rome", id_="t1"), TextNode(text="Ben is in Oslo", id_="t2")]
    graph.upsert_llama_nodes(texts)

    assert [node.text for node in graph.get_llama_nodes(["t1"])] == ["Ana is in Rome"]
    graph.delete_llama_nodes(node_ids=["t1"])
    assert [node.id for node in graph.get()] == ["t2"]


def test_scopes_keep_apart_and_a_relation_to_itself_is_refused(store):
    one, other = LlamaGraphStore(store, scope="one"), LlamaGraphStore(store, scope="other")
    one.upsert_nodes([ANA])
    assert other.get() == [] and len(one.get()) == 1
    with pytest.raises(InvalidError, match="itself"):
        one.upsert_relations([relation("Ana", "KNOWS", "Ana")])


class Words(BaseEmbedding):
    """Embeds a text by its words: texts with the same words are near. Counts what it embeds."""

    asked: list[str] = []

    def _get_text_embedding(self, text):
        self.asked.append(text)
        vector = [0.0] * 256
        for word in re.findall(r"\w+", text.lower()):
            vector[crc32(word.encode()) % 256] += 1
        return vector

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


class Extracting(CustomLLM):
    """Finds a triplet in each line `A | is | B` of a text, and knows no synonyms."""

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **_):
        lines = re.findall(r"(\w+) \| (\w+) \| (\w+)", prompt)
        return CompletionResponse(text="\n".join(f"({', '.join(line)})" for line in lines) or "^")

    def stream_complete(self, prompt, formatted=False, **_):
        raise NotImplementedError


def index_of(graph, *texts):
    documents = [Document(text=text, id_=f"document {number}") for number, text in enumerate(texts)]
    return PropertyGraphIndex.from_documents(
        documents, property_graph_store=graph, embed_model=Words(), llm=Extracting()
    )


def existing(graph):
    return PropertyGraphIndex.from_existing(graph, embed_model=Words(), llm=Extracting())


def retrieved(index, question):
    """What the retriever that an index gives by itself finds: the relations, and the texts around them."""
    relations = [each.text for each in index.as_retriever(include_text=False).retrieve(question)]
    texts = [each.text for each in index.as_retriever().retrieve(question)]
    return sorted(relations), [sorted(text.splitlines()) for text in texts]


@pytest.mark.rest
def test_the_default_retriever_finds_what_was_indexed_as_in_the_graph_that_llama_index_ships(store):
    texts = "Ana | leads | Acme\nAcme | makes | Pumps", "Ben | paints | Boats"
    model = Words()
    graphs = [SimplePropertyGraphStore(), LlamaGraphStore(store, scope="a")]
    theirs, alone = (index_of(graph, *texts) for graph in graphs)
    with_model = index_of(LlamaGraphStore(store, scope="b", embed_model=model), *texts)
    opened_again = existing(LlamaGraphStore(store, scope="b", embed_model=Words()))

    for question in ("what does acme make", "boats", "who is ana"):
        wanted = retrieved(theirs, question)
        assert wanted[0], question
        for index in (alone, with_model, opened_again):
            assert retrieved(index, question) == wanted
    assert sorted(text.split()[0] for text in model.asked) == [
        "Acme", "Ana", "Ben", "Boats", "Pumps", "document", "document",
    ]  # each entity once  # fmt: skip
    alone.insert(Document(text="Cleo | sails | Boats"))
    assert "Cleo -> Sails -> Boats" in retrieved(alone, "cleo")[0]


def test_the_nearest_entities_are_found_at_a_coordinate_with_filters(store, clock):
    graph = LlamaGraphStore(store, embed_model=Words())
    rome, oslo = (
        EntityNode(name=name, label="CITY", properties={"n": n}) for n, name in enumerate(("Rome", "Oslo"))
    )
    graph.upsert_nodes([rome, oslo, ChunkNode(text="Oslo", id_="c1")])
    before = clock.now
    clock.move(days=1)
    graph.delete(ids=["Oslo"])

    def near(graph, text, **more):
        query = VectorStoreQuery(
            query_embedding=Words().get_query_embedding(text), similarity_top_k=1, **more
        )
        nodes, scores = graph.vector_query(query)
        assert len(nodes) == len(scores)
        return [node.id for node in nodes]

    assert near(graph, "oslo") == ["Rome"]
    past = graph.as_of(valid=before)
    assert near(past, "oslo n 1") == ["Oslo"]
    only = MetadataFilters(filters=[MetadataFilter(key="n", value=0)])
    assert near(past, "oslo n 1", filters=only) == ["Rome"]
    assert not LlamaGraphStore(store).supports_vector_queries
    with pytest.raises(NotImplementedError, match="embed_model"):
        LlamaGraphStore(store).vector_query(VectorStoreQuery(query_embedding=[1.0]))
