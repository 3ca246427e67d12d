"""Keeps the graph of a Bolt server, such as Neo4j, equal to a store: its whole history with both periods as properties, or the graph at a coordinate.

A node `Watermark` on the server names the store and the position reached. It moves in the transaction of the rows it stands for. So a killed follower
resumes from there, and of two followers that write the same part one is refused. Rows are matched by number and things by id (MERGE), so nothing is
written twice. Labels, kinds of relationship and properties are those of `query_tables` and of `View.query`.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import orjson
import pyarrow as pa

from graphstore.context.glimpses import next_change
from graphstore.errors import ConflictError, EngineError, InvalidError
from graphstore.graph.texts import expand, macros, text
from graphstore.interchange.flat_graph import LABELS, FlatGraph, flat_graph
from graphstore.interchange.retries import keep_up
from graphstore.store.change_feed import NAMES, ChangeFeed, End, Position
from graphstore.values.period import OPEN, TimeLike, moment

if TYPE_CHECKING:
    from graphstore.store.store import Store

__all__ = ["BoltGraph", "GraphWritten", "Shown", "follow", "written_out"]

PART = 2_000
"""Rows per transaction of the server."""
SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_HISTORY, _COORDINATE = "history", "coordinate"
_TIMESTAMP = re.compile(r"timestamp\('(\S+) (\S+)'\)")
_SEVERAL = re.compile(r"\((\w+):\w+(?::\w+)+\)")  # one of several labels; a node there has all
_KEYS = {"Watermark": "id", "Node": "id", "Event": "id", "Absent": "id", "Version": "row", "Occurrence": "row", "Op": "id"}  # fmt: skip
_OWNED = {"versions": ("Node", "node_id", "HAS_VERSION", "Version"), "occurrences": ("Event", "event_id", "HAS_OCCURRENCE", "Occurrence")}  # fmt: skip

Row = dict[str, Any]
Step = tuple[str, list[Row], bool]  # a query, its rows, and whether it must find each of them
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class GraphWritten(NamedTuple):
    """What was written: things, rows and links made or changed, things and links taken away, and the tx up to which the graph is as the store."""

    changed: int
    removed: int
    tx: str | None


Shown = GraphWritten
"""The name in release 0.1."""


class BoltGraph:
    """The graph of one database of a Bolt server."""

    def __init__(
        self, uri: str, *, user: str | None = None, password: str | None = None, database: str | None = None
    ) -> None:
        """`user` and `password`: default the environment's NEO4J_USERNAME and NEO4J_PASSWORD; `database`: default that of the user.

        Raises InvalidError for an address of another kind, and where the driver is not installed.
        """
        parts = urlsplit(uri)
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise InvalidError(
                f"{uri!r} is no address of a Bolt server. Give bolt://host:7687; or {', '.join(SCHEMES[1:])}."
            )
        if parts.password is not None:
            raise InvalidError(
                "a password in an address is seen by others. Set NEO4J_PASSWORD in the environment instead."
            )
        self.uri = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
        self._database = database
        user = user or parts.username or os.environ.get("NEO4J_USERNAME")
        password = password or os.environ.get("NEO4J_PASSWORD", "")
        driver = _neo4j()
        self._errors = driver.exceptions
        self._driver = driver.GraphDatabase.driver(
            self.uri, auth=(user, password) if user else None, user_agent="graphstore"
        )
        self._shown: tuple[int, dict[Any, str], dict[Any, str]] | None = None  # None: not read yet

    def close(self) -> None:
        """Let go of the server."""
        self._driver.close()

    def __enter__(self) -> BoltGraph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ the whole history

    def write_new(self, feed: ChangeFeed) -> GraphWritten:
        """Write what the graph does not have yet of a store's history. Raises ConflictError for the graph of another store, or of a coordinate."""
        identity = feed.identity()
        if identity is None:
            return GraphWritten(0, 0, None)
        with self._refused():
            found = self._begin(identity, _HISTORY)
            goal, changed = feed.goal(), 0
            for name in NAMES:
                since = _position(found.get(name))
                feed.check(since, self.uri)
                if name == "operations":
                    self._forget(feed, feed.forgotten(since, goal[name]))
                for part, after in feed.parts(name, since, goal[name], PART):
                    steps = list(self._steps(feed, name, part, since, after))
                    after = after._replace(tx=goal[name].tx)
                    self._move(name, since, after, steps)
                    changed += after.rows - since.rows if name == "nodes" else len(part)
                    since = after
            known = moment(goal["operations"].tx)
            if changed:
                self._run(text("bolt_known"), tx=known)
            return GraphWritten(changed, 0, str(known))

    def _steps(
        self, feed: ChangeFeed, name: str, part: pa.Table, since: Position, after: Position
    ) -> Iterator[Step]:
        """Yield the steps that write a part of a table."""
        rows = part.to_pylist()
        closings = part.column_names == ["row", "tx_to", "closed_by"]
        if name == "nodes":
            yield _things("Node", rows)
            yield self._events(feed, feed.things(since.rows, after.rows))
        elif name == "events":
            ids = feed.of_rows([row["row"] for row in rows]) if closings else [row["id"] for row in rows]
            yield self._events(feed, ids)
        elif name == "links":
            yield from _links(rows if closings else map(_open, rows), feed.ends([row["row"] for row in rows]))
        elif name == "operations":
            yield _things("Op", rows)
        else:
            owner, named, kind, label = _OWNED[name]
            yield _things(label, rows if closings or name != "versions" else list(map(_open, rows)))
            if not closings:
                of = [{"owner": row[named], "key": row["row"]} for row in rows]
                yield text("bolt_parts", LABEL=owner, PART=label, KIND=kind), of, False

    def _events(self, feed: ChangeFeed, ids: Iterable[str]) -> Step:
        return _things("Event", feed.events(list(dict.fromkeys(ids))).to_pylist())

    def _forget(self, feed: ChangeFeed, forgotten: Mapping[str, list[str]]) -> None:
        """Remove the contents and reasons that the store has forgotten."""
        if not any(forgotten.values()):
            return
        upto = feed.goal()
        for ids in _parts(forgotten["versions"]):
            rows = feed.of_things("versions", ids, upto["versions"]).to_pylist()
            self._write([_things("Version", rows)])
        for ids in _parts(forgotten["events"]):
            self._write([self._events(feed, ids)])
        for ids in _parts(forgotten["links"]):
            rows = feed.of_things("links", ids, upto["links"]).to_pylist()
            self._write(list(_links(rows, feed.ends([row["row"] for row in rows]))))
        reasons = [row["id"] for row in self._run(text("bolt_reasons"))]
        for ids in _parts(feed.without_reason(reasons)):
            self._write([_things("Op", [{"id": id, "reason": None} for id in ids])])

    # ------------------------------------------------------------------ a coordinate

    def show(
        self, store: Store, *, valid: TimeLike | None = None, tx: TimeLike | None = None
    ) -> GraphWritten:
        """Make the graph what holds at a coordinate (default: now). Writes what differs from what is there: in one transaction where that is little.

        Raises ConflictError for the graph of another store, or of a history, and when somebody else wrote to it meanwhile.
        """
        identity = ChangeFeed(store).identity()
        if identity is None:
            return GraphWritten(0, 0, None)
        view = store.as_of(valid=valid, tx=tx)
        flat = flat_graph(view, reserved=("shown",))
        with self._refused():
            found = self._begin(identity, _COORDINATE)
            if self._shown is None or self._shown[0] != found.get("round", 0):
                self._shown = found.get("round", 0), self._things_there(), self._links_there()
            round, things_there, links_there = self._shown
            self._shown = None  # unknown until everything is written
            things, links = _wanted(flat)
            steps, changed, removed = _differences(things_there, links_there, things, links)
            round = self._rounds(round, steps, {"valid": view.at.valid, "tx": view.at.tx})
            self._shown = round, _digests(things), _digests(links)
            return GraphWritten(changed, removed, str(view.at.tx))

    def _rounds(self, round: int, steps: list[Step], at: Mapping[str, Any]) -> int:
        """Write the steps, each with the watermark. The last step marks the graph as complete."""
        if sum(len(rows) for _, rows, _ in steps) <= PART:
            groups = [steps]
        else:
            groups = [[(query, part, all)] for query, rows, all in steps for part in _parts(rows)]
        for number, group in enumerate(groups, 1):
            token = uuid4().hex
            move = {"before": round, "token": token, "whole": number == len(groups), **at}
            self._write(group, (text("bolt_coordinate"), move))
            round += 1
        return round

    def _things_there(self) -> dict[Any, str]:
        found = {}
        for label in LABELS:
            for row in self._run(text("bolt_there", LABEL=label)):
                found[label, row["id"]] = row["shown"]
        return found

    def _links_there(self) -> dict[Any, str]:
        found = {}
        for label in LABELS:
            for row in self._run(text("bolt_links_there", LABEL=label)):
                end = End(label, row["source"], row["kind"], row["label"], row["target"])
                found[end, row["id"]] = row["shown"]
        return found

    # ------------------------------------------------------------------ the server

    def _begin(self, identity: str, what: str) -> Row:
        """Return the watermark; create it if there is none. Raise ConflictError if the graph belongs to something else."""
        found = self._run(text("bolt_watermark"))
        if not found:
            for label in ("Node", "Version", "Event"):
                if self._run(text("bolt_any", LABEL=label)):
                    raise ConflictError(
                        f"{self.uri} has nodes {label} that are of no store. Name another database, or remove what is there."
                    )
            for label, key in _KEYS.items():
                name = f"graphstore_{label.lower()}_{key}"
                self._run(text("bolt_constraint", NAME=name, LABEL=label, KEY=key))
            self._run(text("bolt_begin"), store=identity, what=what)
            found = self._run(text("bolt_watermark"))
        mark: Row = found[0]["found"]
        if (mark["store"], mark["what"]) != (identity, what):
            of = f"the {mark['what']} of {'this' if mark['store'] == identity else 'another'} store"
            raise ConflictError(
                f"{self.uri} has {of}. Name another database, or remove what is there and its node Watermark."
            )
        return mark

    def _run(self, query: str, **params: Any) -> list[Row]:
        with self._driver.session(database=self._database) as session:
            found: list[Row] = session.run(query, params).data()
            return found

    def _move(self, name: str, before: Position, after: Position, steps: list[Step]) -> None:
        move = {"token": uuid4().hex, "before": _words(before), "after": _words(after)}
        self._write(steps, (text("bolt_move", TABLE=name), move))

    def _write(self, steps: list[Step], move: tuple[str, Row] | None = None) -> None:
        """Run the steps in one transaction that also moves the watermark. It is repeated if the server asks for that, or the answer was lost."""

        def work(transaction: Any) -> None:
            if move is not None and not transaction.run(*move).single()["moved"]:
                mark = transaction.run(text("bolt_watermark")).single()["found"]
                if mark.get("moved_by") == move[1]["token"]:
                    return  # it was committed, but the answer was lost
                raise ConflictError(
                    f"{self.uri} was written by somebody else meanwhile. One process keeps a graph; start it again to go on."
                )
            for query, rows, every in steps:
                if not rows:
                    continue
                result = transaction.run(query, {"rows": rows})
                if every and result.single()["found"] != len(rows):
                    raise EngineError(
                        f"{self.uri} has not all that was written before: ends of links are missing. Remove what is there, its node Watermark too, "
                        "and start again."
                    )
                result.consume()

        with self._driver.session(database=self._database) as session:
            session.execute_write(work)

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """Raise an EngineError that names the server for any error of the driver."""
        try:
            yield
        except self._errors.AuthError as error:
            raise EngineError(
                f"{self.uri} lets nobody in with that name and password ({_line(error)}). Set NEO4J_USERNAME and NEO4J_PASSWORD."
            ) from error
        except (self._errors.Neo4jError, self._errors.DriverError) as error:
            refused = EngineError(
                f"{self.uri} cannot be written: {_line(error)}. What was committed is kept; start again to go on."
            )
            lost = (self._errors.ServiceUnavailable, self._errors.SessionExpired, self._errors.TransientError)
            refused.passes = isinstance(error, lost)
            raise refused from error


def written_out(query: str) -> str:
    """A text of `cypher/cookbook.cypher`, or one that uses the words about time (`AS_OF`, `BELIEVED`, …), as a Bolt server takes it over a history."""
    written = expand(query, macros())
    return _SEVERAL.sub(r"(\1)", _TIMESTAMP.sub(r"datetime('\1T\2Z')", written))


def follow(
    store: Store,
    graph: BoltGraph,
    report: Callable[[GraphWritten], None],
    *,
    history: bool = False,
    valid: TimeLike | None = None,
    tx: TimeLike | None = None,
    every: float = 1.0,
    ended: Callable[[], bool] = lambda: False,
    failed: Callable[[str], None] = lambda why: None,
) -> None:
    """Keep the graph as the store is, looking every so many seconds. `report` is called with what was written, `ended` says after a transaction whether that is all.

    After the first success a server that gives no answer is tried again, after pauses of up to a minute; `failed` hears of it. Anything else is raised.

    Of a coordinate that moves, on either axis, the graph is made anew when something was recorded, or when something begins or ends on the valid axis;
    only what differs is written.
    """
    feed = ChangeFeed(store)
    seen: Position | None = None
    turn = None  # when something begins or ends next

    def write_once() -> GraphWritten:
        nonlocal seen, turn
        known = feed.goal()["operations"]
        if history:
            return graph.write_new(feed)
        if known == seen and (turn is None or store.as_of().at.valid < turn):
            return GraphWritten(0, 0, None)
        at = store.as_of(valid=valid, tx=tx)
        done = graph.show(store, valid=at.at.valid, tx=at.at.tx)
        seen, turn = known, next_change(store, "valid", at.at.valid) if valid is None else None
        return done

    keep_up(write_once, report, every=every, failed=failed, ended=ended)


# ---------------------------------------------------------------------------------------------------- rows


def _position(words: str | None) -> Position:
    return Position(*map(int, words.split())) if words else Position()


def _words(position: Position) -> str:
    return " ".join(map(str, position))


def _parts(rows: list[T]) -> Iterator[list[T]]:
    for at in range(0, len(rows), PART):
        yield rows[at : at + PART]


def _open(row: Row) -> Row:
    """Return a believed row with its open ends as the latest possible instant."""
    end = moment(OPEN)
    return row | {"valid_to": row["valid_to"] or end, "tx_to": end}


def _things(label: str, rows: list[Row]) -> Step:
    key = _KEYS[label]
    keyed = [{"key": row[key], "properties": row} for row in rows]
    return text("bolt_things", LABEL=label, KEY=key), keyed, False


def _links(rows: Iterable[Row], ends: list[End]) -> Iterator[Step]:
    """Yield the steps for rows of links, by kind and the labels of their ends."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row, end in zip(rows, ends, strict=True):
        properties = {name: value for name, value in row.items() if name not in ("source", "target")}
        group = groups[end.source_label, end.kind, end.target_label]
        group.append({"source": end.source, "target": end.target, "key": row["row"], "properties": properties})  # fmt: skip
    for (source, kind, target), found in groups.items():
        yield text("bolt_links", SOURCE=source, KIND=kind.upper(), TARGET=target, KEY="row"), found, True


# ------------------------------------------------------------------------------------------------ a coordinate

Things = dict[tuple[str, str], Row]
Links = dict[tuple[End, str], Row]


def _wanted(flat: FlatGraph) -> tuple[Things, Links]:
    """Return the things and links of a graph, each with a digest of its properties."""
    things: Things = {
        (str(one.label), one.id): {"key": one.id, "properties": _known(one.properties)} for one in flat.things
    }
    links: Links = {}
    for tie in flat.ties:
        end = End(tie.source.label, tie.source.id, tie.kind.upper(), tie.target.label, tie.target.id)
        id = tie.properties["id"]
        links[end, id] = {
            "key": id, "source": end.source, "target": end.target, "properties": _known(tie.properties),
        }  # fmt: skip
    return things, links


def _digests(rows: Mapping[K, Row]) -> dict[K, str]:
    return {key: row["properties"]["shown"] for key, row in rows.items()}


def _known(properties: Mapping[str, Any]) -> Row:
    raw = orjson.dumps(properties, option=orjson.OPT_SORT_KEYS)
    return {**properties, "shown": blake2b(raw, digest_size=12).hexdigest()}


def _differences(
    there: Mapping[Any, str], links_there: Mapping[Any, str], things: Things, links: Links
) -> tuple[list[Step], int, int]:
    """Return the steps that make one graph from the other, the number of things and links written, and of those removed."""
    gone = [key for key in there if key not in things]
    lost = {*gone}
    left = {
        key: shown
        for key, shown in links_there.items()
        if not lost & {(key[0].source_label, key[0].source), (key[0].target_label, key[0].target)}
    }
    cut = [key for key in left if key not in links]
    new = [key for key, row in things.items() if there.get(key) != row["properties"]["shown"]]
    tied = [key for key, row in links.items() if left.get(key) != row["properties"]["shown"]]
    steps: list[Step] = []
    for names, some in _grouped(cut, lambda key: (key[0].source_label, key[0].kind, key[0].target_label)):
        rows = [{"source": end.source, "target": end.target, "key": id} for end, id in some]
        steps.append((_between("bolt_unlink", names), rows, False))
    for label, some in _grouped(gone, lambda key: key[0]):
        steps.append((text("bolt_remove", LABEL=label), [{"key": id} for _, id in some], False))
    for label, some in _grouped(new, lambda key: key[0]):
        steps.append((text("bolt_things_anew", LABEL=label), [things[key] for key in some], False))
    for names, some in _grouped(tied, lambda key: (key[0].source_label, key[0].kind, key[0].target_label)):
        steps.append((_between("bolt_links_anew", names), [links[key] for key in some], True))
    return steps, len(new) + len(tied), len(gone) + len(links_there) - len(left) + len(cut)


def _between(name: str, labels: tuple[str, str, str]) -> str:
    source, kind, target = labels
    return text(name, SOURCE=source, KIND=kind, TARGET=target)


def _grouped(keys: Iterable[T], by: Callable[[T], K]) -> Iterator[tuple[K, list[T]]]:
    found: dict[K, list[T]] = defaultdict(list)
    for key in keys:
        found[by(key)].append(key)
    yield from found.items()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def _neo4j() -> Any:
    try:
        import neo4j
    except ImportError:
        words = "neo4j is not installed. Install it with: pip install 'graphstore[bolt]'"
        raise InvalidError(words) from None
    return neo4j
