"""LlamaIndex's `PropertyGraphStore`, kept in a store: its entities and chunks are nodes, its relations links, its structured query is Cypher at a coordinate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.graph_stores.types import (
    ChunkNode,
    EntityNode,
    LabelledNode,
    PropertyGraphStore,
    Relation,
)
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import VectorStoreQuery

from graphstore.adapters import places
from graphstore.errors import InvalidError
from graphstore.store.store import Store
from graphstore.values.models import Link, Node
from graphstore.view.view import Reader

__all__ = ["LlamaGraphStore"]

KIND = "entity"
_SOURCE = "llama-index:"
_LABEL = "relation"  # the label of a relation, in the metadata of its link
_ALSO = "properties"  # the field of those properties that have a name of these fields
_OWN = ("name", "text", "label", "chunk", _ALSO)

Triplet = tuple[LabelledNode, Relation, LabelledNode]


class LlamaGraphStore(places.AtCoordinate, PropertyGraphStore):
    """A graph for `PropertyGraphIndex(property_graph_store=…)`.

    An entity, or a chunk of text, is a node of kind `entity` with its name (or its text), its label and its properties as fields. A relation `WORKS_AT` is a
    link of kind `works_at`, which is defined when it is first used. What is upserted again is a version, what is deleted has ended. A relation of a node
    to itself raises InvalidError, as any link to itself.

    Embeddings are not kept. With `embed_model`, the model of the index, entities are embedded when a retriever first asks for the nearest, so an index of
    what was recorded before finds it too. Without it, the index keeps what it embeds in a vector store of its own.
    """

    supports_structured_queries = True
    _read_only = "a graph at a coordinate is read only. Ask the store's own adapter."

    def __init__(self, store: Store, *, scope: str = "", embed_model: BaseEmbedding | None = None) -> None:
        self._use(store)
        self._scope = scope
        self._embed_model = embed_model
        self._vectors: dict[str, list[float]] = {}  # by the text of an entity

    @property
    def supports_vector_queries(self) -> bool:
        """Return True if there is a model that embeds the entities."""
        return self._embed_model is not None

    @property
    def client(self) -> Reader:
        """The store, or the view of it that is read."""
        return self._reader

    # ------------------------------------------------------------------ reading

    def get(
        self, properties: Mapping[str, Any] | None = None, ids: Sequence[str] | None = None
    ) -> list[LabelledNode]:
        """The nodes with one of these ids, if any are given, and with one of these properties."""
        nodes = map(_labelled, self._nodes(ids))
        return [node for node in nodes if not properties or _has(node, properties)]

    def get_triplets(
        self,
        entity_names: Sequence[str] | None = None,
        relation_names: Sequence[str] | None = None,
        properties: Mapping[str, Any] | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Triplet]:
        """The triplets that fit each filter: an end with one of these names, and ids; a relation; a property of any of the three. None without a filter."""
        if not (entity_names or relation_names or properties or ids):
            return []
        return [
            triplet
            for triplet, _ in self._triplets(ids or entity_names)
            if (not entity_names or triplet[0].id in entity_names or triplet[2].id in entity_names)
            and (not ids or triplet[0].id in ids or triplet[2].id in ids)
            and (not relation_names or triplet[1].label in relation_names)
            and (not properties or any(_has(each, properties) for each in triplet))
        ]

    def get_rel_map(
        self,
        graph_nodes: Sequence[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: Sequence[str] | None = None,
    ) -> list[Triplet]:
        """The triplets of these nodes, and up to `depth` relations further along: each once, nearest first."""
        found: dict[tuple[str, str, str], Triplet] = {}
        ids = [node.id for node in graph_nodes]
        for _ in range(depth):
            ahead = {_named(each): each for each in self.get_triplets(ids=ids)}
            fresh = {name: each for name, each in ahead.items() if name not in found}
            found |= fresh
            ids = [each[2].id for each in fresh.values()]
        return [each for each in found.values() if each[1].label not in (ignore_rels or ())][:limit]

    def structured_query(
        self, query: str, param_map: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """The rows of a Cypher question at the coordinate, as `view.query`. Raises QueryError."""
        return self._reader.query(query, **(param_map or {})).rows()

    def get_schema(self, refresh: bool = False) -> dict[str, Any]:
        """The fields of each kind of node, and the relationships with the kinds of their ends, as Cypher sees them."""
        fields: dict[str, set[str]] = {}
        for node in self._nodes():
            fields.setdefault(str(node.content["label"]), set()).update(node.content)
        links = {(one.label, link.kind.upper(), other.label) for (one, _, other), link in self._triplets()}
        return {
            "nodes": {label: sorted(names) for label, names in sorted(fields.items())},
            "relationships": sorted(links),
        }

    def get_schema_str(self, refresh: bool = False) -> str:
        """The schema in words, for a model that writes Cypher."""
        schema = self.get_schema()
        lines = ["All nodes are (:Node {label: …}), with these properties by the value of `label`:"]
        lines += [f"{label} {{{', '.join(names)}}}" for label, names in schema["nodes"].items()]
        lines.append("The relationships are:")
        lines += [
            f"(:Node {{label: '{one}'}})-[:{name}]->(:Node {{label: '{other}'}})"
            for one, name, other in schema["relationships"]
        ]
        return "\n".join(lines)

    def vector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:
        """Return the entities nearest to a query, with their similarities. The first call embeds all entities.

        Raises NotImplementedError without an `embed_model`.
        """
        if self._embed_model is None:
            raise NotImplementedError(
                "a LlamaGraphStore keeps no embeddings. Give it embed_model=, or the index a vector_store."
            )
        entities = {node.id: node for node in map(_labelled, self._nodes()) if isinstance(node, EntityNode)}
        new = [text for text in dict.fromkeys(map(str, entities.values())) if text not in self._vectors]
        self._vectors |= zip(new, self._embed_model.get_text_embedding_batch(new), strict=True)
        nearest = SimpleVectorStore()
        nearest.add(
            [
                TextNode(id_=id, embedding=self._vectors[str(node)], metadata=node.properties)
                for id, node in entities.items()
            ]
        )
        found = nearest.query(query, **kwargs)
        return [entities[id] for id in found.ids or ()], list(found.similarities or ())

    # ------------------------------------------------------------------ writing

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Say this of these nodes from now on, as one transaction."""
        store = self._writable
        with store.transaction(reason="llama-index"):
            for node in nodes:
                self._put(store, node)

    def upsert_relations(self, relations: Sequence[Relation]) -> None:
        """Say these relations from now on, as one transaction. An end that is not known becomes an entity of that name."""
        store = self._writable
        kinds = {each.label: _kind(store, each.label) for each in relations}
        with store.transaction(reason="llama-index"):
            for relation in relations:
                ends = [self._id(name) for name in (relation.source_id, relation.target_id)]
                for id, name in zip(ends, (relation.source_id, relation.target_id), strict=True):
                    if places.found(store, id, KIND) is None:
                        self._put(store, EntityNode(name=name))
                kind, metadata = kinds[relation.label], {**relation.properties, _LABEL: relation.label}
                for link in store.links_from(ends[0], kind):
                    if link.target == ends[1] and link.metadata != metadata:
                        store.unlink(link.id, valid_from=store.at.valid)
                store.link(ends[0], kind, ends[1], metadata=metadata)

    def delete(
        self,
        entity_names: Sequence[str] | None = None,
        relation_names: Sequence[str] | None = None,
        properties: Mapping[str, Any] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        """End the nodes of these names and ids and those with one of these properties, with their relations; and the relations of these names."""
        store = self._writable
        wanted = {*(entity_names or ()), *(ids or ())}
        with store.transaction(reason="deleted"):
            nodes = self._nodes(list(wanted)) if wanted else []
            if properties:
                nodes += [each for each in self._nodes() if _has(_labelled(each), properties)]
            gone = {node.id: node for node in nodes}
            for triplet, link in list(self._triplets()) if gone or relation_names else ():
                if link.source in gone or link.target in gone or triplet[1].label in (relation_names or ()):
                    store.unlink(link.id, valid_from=store.at.valid)
            for node in gone.values():
                places.remove(store, node, "deleted")

    def _put(self, store: Store, node: LabelledNode) -> None:
        also = {name: value for name, value in node.properties.items() if name in _OWN}
        content = {name: value for name, value in node.properties.items() if name not in _OWN}
        if also:
            content[_ALSO] = also
        content["label"] = node.label
        content |= (
            {"text": node.text, "chunk": node.id} if isinstance(node, ChunkNode) else {"name": node.name}
        )
        places.put(store, self._id(node.id), KIND, content, scope=self._scope, source=_SOURCE)

    # ------------------------------------------------------------------ what is there

    def _id(self, id: str) -> str:
        return _SOURCE + (f"{self._scope}/" if self._scope else "") + places.joined((id,))

    def _nodes(self, ids: Sequence[str] | None = None) -> list[Node]:
        """The nodes of this graph, or of these ids."""
        if ids:
            found = (places.found(self._reader, self._id(id), KIND) for id in dict.fromkeys(ids))
            return [node for node in found if node is not None]
        return [node for node in self._reader.nodes(KIND, scope=self._scope) if node.id.startswith(_SOURCE)]

    def _triplets(self, ids: Sequence[str] | None = None) -> Iterator[tuple[Triplet, Link]]:
        """The triplets whose two ends stand, or those that begin or end at these ids, each with its link."""
        known = {node.id: node for node in self._nodes()}
        links: dict[str, Link] = {}
        for node in self._nodes(ids):
            for link in (
                *self._reader.links_from(node.id),
                *(self._reader.backlinks_to(node.id) if ids else ()),
            ):
                if _LABEL in link.metadata and link.source in known and link.target in known:
                    links[link.id] = link
        for link in links.values():
            one, other = _labelled(known[link.source]), _labelled(known[link.target])
            properties = {name: value for name, value in link.metadata.items() if name != _LABEL}
            relation = Relation(
                label=str(link.metadata[_LABEL]), source_id=one.id, target_id=other.id, properties=properties
            )
            yield (one, relation, other), link


def _labelled(node: Node) -> LabelledNode:
    said = dict(node.content)
    properties = {name: value for name, value in said.items() if name not in _OWN} | said.get(_ALSO, {})
    if "chunk" in said:
        return ChunkNode(text=said["text"], id_=said["chunk"], label=said["label"], properties=properties)
    return EntityNode(name=said["name"], label=said["label"], properties=properties)


def _has(thing: LabelledNode | Relation, properties: Mapping[str, Any]) -> bool:
    return any(thing.properties.get(name) == value for name, value in properties.items())


def _named(triplet: Triplet) -> tuple[str, str, str]:
    return triplet[0].id, triplet[1].label, triplet[2].id


def _kind(store: Store, label: str) -> str:
    """The kind of link of a relation's label, defined if it is new: `WORKS_AT` is `works_at`; any other spelling, and what the vocabulary has, gets a kind of its own."""
    name = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")[:40]
    own = f"rel_{name}_{blake2b(label.encode(), digest_size=4).hexdigest()}"
    if name.upper() == label and name[:1].isalpha():
        try:
            store.define_kind(name)
        except InvalidError:  # it is another's
            pass
        else:
            return name
    store.define_kind(own)
    return own
