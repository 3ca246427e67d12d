"""The profile of nine tools that agents know from the reference memory server: its names, its arguments, its answers, on verbs that lose nothing.

An entity is a node by its name, its type the kind, its observations a list in the content. What is added is a new version from now on; what is
deleted ends now, with a reason. So `graphstore history NAME` shows what an entity was, and every past coordinate shows it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from graphstore.errors import ConflictError, NotFoundError
from graphstore.mcp.desk import LONGEST_KIND, Desk, digest, in_scope
from graphstore.mcp.tooling import Tools, reading, writing
from graphstore.values.models import UPRIGHT, Link, Node
from graphstore.values.text import clean_json
from graphstore.view.view import View

_DELETED = "deleted by an agent"
_OBSERVATIONS = "observations"
_TO_ITSELF = "relations_to_itself"  # no link can be from a thing to itself


class MemoryEntity(BaseModel):
    """An entity of the graph."""

    name: str = Field(description="The name of the entity")
    entityType: str = Field(description="The type of the entity")
    observations: list[str] = Field(description="Observations associated with the entity")


class Relation(BaseModel):
    """A relation between two entities, in active voice."""

    model_config = ConfigDict(populate_by_name=True, frozen=True)

    source: str = Field(alias="from", description="The name of the entity where the relation starts")
    to: str = Field(description="The name of the entity where the relation ends")
    relationType: str = Field(description="The type of the relation")


class Observations(BaseModel):
    """What to add to an entity."""

    entityName: str = Field(description="The name of the entity to add the observations to")
    contents: list[str] = Field(description="Observation contents to add")


class Deletion(BaseModel):
    """What to delete of an entity."""

    entityName: str = Field(description="The name of the entity containing the observations")
    observations: list[str] = Field(description="Observations to delete")


class _Reply(BaseModel):
    def text(self) -> str:
        """Its fields as JSON; of a single field its value."""
        fields: Any = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"skipped"})
        only = next(iter(fields.values())) if len(fields) == 1 else fields
        return clean_json(orjson.dumps(only, option=orjson.OPT_INDENT_2).decode())


class Entities(_Reply):
    """The entities that are new, and the names of those that were there already, of which nothing was written."""

    entities: list[MemoryEntity]
    skipped: list[str] | None = None

    def notes_beside(self) -> list[str]:
        """What an agent would else take for written."""
        if not self.skipped:
            return []
        names = ", ".join(self.skipped)
        return [
            f"Skipped, as they exist already: {names}. To add observations to them call add_observations."
        ]


class Relations(_Reply):
    """The relations that are new."""

    relations: list[Relation]


class Added(BaseModel):
    """What is new of an entity."""

    entityName: str
    addedObservations: list[str]


class Results(_Reply):
    """What was added, entity by entity."""

    results: list[Added]


class KnowledgeGraph(_Reply):
    """Entities, and the relations that begin or end at one of them."""

    entities: list[MemoryEntity]
    relations: list[Relation]


class Outcome(_Reply):
    """What a deletion did."""

    success: bool
    message: str

    def text(self) -> str:
        """What was deleted, in a sentence."""
        return self.message


class MemoryTools(Tools):
    """The nine tools."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._writing = threading.Lock()  # what is there is looked at before it is written

    @writing(idempotent=True)
    def create_entities(self, entities: list[MemoryEntity]) -> Entities:
        """Create multiple new entities in the knowledge graph. One that is there already is left as it is."""
        store = self.desk.store
        with self._writing:
            view = self.desk.view()
            new = {each.name: each for each in reversed(entities) if _node(view, each.name) is None}
            made = [each for name, each in reversed(new.items())]
            known = {each.name: _was(view, each.name) for each in made}
            scope = in_scope(self.desk.defaults().scope)
            with store.transaction(author=self.desk.who()):
                for each in made:
                    content = _content(each.name, dict.fromkeys(each.observations), each.entityType)
                    source = self.desk.origin()
                    if known[each.name]:
                        store.revise(
                            each.name, content, valid_from=view.at.valid, source=source, trigger="agent"
                        )
                    else:
                        store.add_node(
                            each.entityType or "entity", content, id=each.name, source=source, **scope
                        )
        left = list(map(id, made))
        skipped = [each.name for each in entities if id(each) not in left]
        return Entities(entities=made, skipped=skipped or None)

    @writing(idempotent=True)
    def create_relations(self, relations: list[Relation]) -> Relations:
        """Create multiple new relations between entities in the knowledge graph. Relations should be in active voice."""
        store = self.desk.store
        with self._writing:
            view = self.desk.view()
            ends = [end for each in relations for end in (each.source, each.to)]
            nodes = {name: _expected(view, name) for name in ends}
            links = _links(view, [each.source for each in relations])
            there = {*map(_relation, links), *_to_itself(nodes.values())}
            taken = {(link.source, link.kind, link.target) for link in links}
            made = [each for each in dict.fromkeys(relations) if each not in there]
            with store.transaction(author=self.desk.who()):
                for name, kinds in _by_entity(made).items():
                    kept = [each.relationType for each in _to_itself([nodes[name]])]
                    self._revise(view, nodes[name], {_TO_ITSELF: [*kept, *kinds]}, None)
                for each in made:
                    if each.source == each.to:
                        continue
                    kind = self.desk.plain_kind(each.relationType)
                    if (each.source, kind, each.to) in taken:  # of a type that is written otherwise
                        kind = self.desk.plain_kind(
                            f"{kind[: LONGEST_KIND - 13]} {digest(each.relationType)}"
                        )
                    taken.add((each.source, kind, each.to))
                    metadata = {"relationType": each.relationType, "from": each.source}
                    store.link(each.source, kind, each.to, created_by=self.desk.origin(), metadata=metadata)
        return Relations(relations=made)

    @writing(idempotent=True)
    def add_observations(self, observations: list[Observations]) -> Results:
        """Add new observations to existing entities in the knowledge graph."""
        results = []
        with self._writing:
            view = self.desk.view()
            wanted: dict[str, dict[str, None]] = {}
            for each in observations:
                node = _expected(view, each.entityName)
                there = wanted.setdefault(node.id, dict.fromkeys(_observations(node)))
                new = [one for one in dict.fromkeys(each.contents) if one not in there]
                there |= dict.fromkeys(new)
                results.append(Added(entityName=node.id, addedObservations=new))
            changed = {each.entityName for each in results if each.addedObservations}
            self._describe(view, {name: wanted[name] for name in wanted if name in changed}, None)
        return Results(results=results)

    @writing(destructive=True, idempotent=True)
    def delete_entities(
        self,
        *,
        entityNames: Annotated[list[str], Field(description="The names of the entities to delete")],
    ) -> Outcome:
        """Delete multiple entities and their associated relations from the knowledge graph. They end now; their past stays readable."""
        store, names = self.desk.store, list(dict.fromkeys(entityNames))
        with self._writing:
            view = self.desk.view()
            there = [name for name in names if _node(view, name)]
            with store.transaction(author=self.desk.who()):
                for link in _links(view, there):
                    store.unlink(link.id, valid_from=_from_now(link, view), reason=_DELETED)
                for name in there:
                    store.end(name, reason=_DELETED)
        if len(there) == len(names):
            return Outcome(success=True, message="Entities deleted successfully")
        missing = ", ".join(name for name in names if name not in there)
        return Outcome(
            success=True, message=f"Deleted {len(there)} of {len(names)} entities. Not found: {missing}"
        )

    @writing(destructive=True, idempotent=True)
    def delete_observations(self, deletions: list[Deletion]) -> Outcome:
        """Delete specific observations from entities in the knowledge graph. They end now; their past stays readable."""
        asked = sum(len(each.observations) for each in deletions)
        missing, gone = [], 0
        with self._writing:
            view = self.desk.view()
            left: dict[str, dict[str, None]] = {}
            for each in deletions:
                node = _node(view, each.entityName)
                if node is None:
                    missing.append(each.entityName)
                    continue
                there = left.get(node.id) or dict.fromkeys(_observations(node))
                kept = {one: None for one in there if one not in each.observations}
                if len(kept) < len(there):
                    left[node.id] = kept
                    gone += len(there) - len(kept)
            self._describe(view, left, _DELETED)
        if gone == asked:
            return Outcome(success=True, message="Observations deleted successfully")
        unknown = f" Entities not found: {', '.join(missing)}" if missing else ""
        return Outcome(success=True, message=f"Deleted {gone} of {asked} observations.{unknown}")

    @writing(destructive=True, idempotent=True)
    def delete_relations(
        self,
        *,
        relations: Annotated[list[Relation], Field(description="The relations to delete")],
    ) -> Outcome:
        """Delete multiple relations from the knowledge graph. They end now; their past stays readable."""
        store = self.desk.store
        with self._writing:
            view = self.desk.view()
            known = [each.source for each in relations if _was(view, each.source)]
            gone = [link for link in _links(view, known) if _relation(link) in relations]
            nodes = {name: node for name in known if (node := _node(view, name)) is not None}
            own = [each for each in _to_itself(nodes.values()) if each in relations]
            with store.transaction(author=self.desk.who()):
                for link in gone:
                    store.unlink(link.id, valid_from=_from_now(link, view), reason=_DELETED)
                for name, kinds in _by_entity(own).items():
                    left = [
                        each.relationType
                        for each in _to_itself([nodes[name]])
                        if each.relationType not in kinds
                    ]
                    self._revise(view, nodes[name], {_TO_ITSELF: left}, _DELETED)
        done = len(gone) + len(own)
        if done == len(relations):
            return Outcome(success=True, message="Relations deleted successfully")
        return Outcome(
            success=True, message=f"Deleted {done} of {len(relations)} relations. The rest matched nothing."
        )

    @reading()
    def read_graph(self) -> KnowledgeGraph:
        """Read the entire knowledge graph."""
        view = self.desk.view()
        return _graph(view, _entities(view))

    @reading()
    def search_nodes(
        self,
        *,
        query: Annotated[
            str,
            Field(
                max_length=2048,
                json_schema_extra={"maxLength": 2048},
                description="Matched against entity names, types, and observation content",
            ),
        ],
    ) -> KnowledgeGraph:
        """Search for nodes in the knowledge graph based on a query."""
        view, wanted = self.desk.view(), query.lower()
        found = [
            node
            for node in _entities(view)
            if any(wanted in text.lower() for text in (node.id, _type(node), *_observations(node)))
        ]
        return _graph(view, found)

    @reading()
    def open_nodes(
        self, names: Annotated[list[str], Field(description="The names of the entities to retrieve")]
    ) -> KnowledgeGraph:
        """Open specific nodes in the knowledge graph by their names."""
        view = self.desk.view()
        found = [_node(view, name) for name in dict.fromkeys(names)]
        return _graph(view, [node for node in found if node is not None])

    # ------------------------------------------------------------------

    def _describe(self, view: View, wanted: dict[str, dict[str, None]], reason: str | None) -> None:
        """Entities with other observations, from now on."""
        with self.desk.store.transaction(author=self.desk.who()):
            for name, observations in wanted.items():
                node = view.node(name)
                self._revise(view, node, _content(name, observations, _type(node)), reason)

    def _revise(self, view: View, node: Node, changed: dict[str, Any], reason: str | None) -> None:
        self.desk.store.revise(
            node.id, {**node.content, **changed}, valid_from=max(view.at.valid, node.valid_from), reason=reason,
            source=self.desk.origin(), trigger="agent",
        )  # fmt: skip


def _content(name: str, observations: Iterable[str], type: str) -> dict[str, Any]:
    return {"name": name, "type": type, _OBSERVATIONS: list(observations)}


def _observations(node: Node) -> list[str]:
    found = node.content.get(_OBSERVATIONS)
    return [str(each) for each in found] if isinstance(found, list) else []


def _type(node: Node) -> str:
    return str(node.content.get("type", node.kind))


def _node(view: View, name: str) -> Node | None:
    """The entity of that whole name that stands."""
    try:
        node = view.inspect(name).node
    except NotFoundError:
        return None
    ours = isinstance(node, Node) and node.id == name and _is_entity(node)
    return node if ours and isinstance(node, Node) and node.standing in UPRIGHT else None


def _is_entity(node: Node) -> bool:
    return isinstance(node.content.get(_OBSERVATIONS), list)


def _was(view: View, name: str) -> bool:
    """Whether an entity of that whole name was there. Raises ConflictError where the name is the id of something else, which stays as it is."""
    try:
        node = view.inspect(name).node
    except NotFoundError:
        return False
    if node.id == name and not (isinstance(node, Node) and _is_entity(node)):
        raise ConflictError(
            f"{name!r} is the id of something here that is no entity, and stays as it is. Give the entity another name."
        )
    return node.id == name


def _expected(view: View, name: str) -> Node:
    node = _node(view, name)
    if node is None:
        raise NotFoundError(
            f"Entity with name {name} not found. Next: call search_nodes(query={name!r}), or create_entities."
        )
    return node


def _entities(view: View) -> list[Node]:
    return [node for node in view.nodes() if _is_entity(node)]


def _links(view: View, names: Iterable[str]) -> list[Link]:
    """The relations at one of the entities, that agents wrote."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return []
    return [link for link in view.walk(wanted, hops=1).links if "relationType" in link.metadata]


def _relation(link: Link) -> Relation:
    begins = link.metadata.get("from", link.source)
    ends = link.target if begins == link.source else link.source
    return Relation.model_validate(
        {"from": begins, "to": ends, "relationType": link.metadata["relationType"]}
    )


def _to_itself(nodes: Iterable[Node]) -> list[Relation]:
    """The relations of entities to themselves."""
    return [
        Relation.model_validate({"from": node.id, "to": node.id, "relationType": kind})
        for node in nodes
        for kind in node.content.get(_TO_ITSELF, ())
    ]


def _by_entity(relations: Iterable[Relation]) -> dict[str, list[str]]:
    """The types of those that lead from an entity to itself, by the entity."""
    found: dict[str, list[str]] = {}
    for each in relations:
        if each.source == each.to:
            found.setdefault(each.source, []).append(each.relationType)
    return found


def _graph(view: View, nodes: list[Node]) -> KnowledgeGraph:
    entities = [
        MemoryEntity(name=node.id, entityType=_type(node), observations=_observations(node)) for node in nodes
    ]
    relations = [_relation(link) for link in _links(view, [node.id for node in nodes])] + _to_itself(nodes)
    return KnowledgeGraph(entities=entities, relations=relations)


def _from_now(link: Link, view: View) -> datetime:
    return max(view.at.valid, link.valid_from)
