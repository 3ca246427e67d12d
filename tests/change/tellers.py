"""The doors through which an episode can be told and asked. Each is one class: `tell` does one transaction, `ask` one read.

`by_tools.py` has the door of agents.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import graphstore
from graphstore import GraphStoreError, NotFoundError
from tests.change.episodes import Question, Step, Telling
from tests.change.oracle import END, RESTED, RESTING, Oracle, Refused

TIMES = ("valid_from", "valid_to", "at", "occurred_at", "tx")


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def date(instant: datetime | None) -> str | None:
    return None if instant is None or instant == END else instant.date().isoformat()


class Teller(Protocol):
    """What a door is to a story. `beyond` says whether it knows what the oracle does not."""

    beyond: bool

    def tell(self, telling: Telling) -> None: ...
    def ask(self, question: Question) -> Any: ...
    def close(self) -> None: ...


class Refusal(Exception):
    """A step was refused: with this error, and this message."""

    def __init__(self, kinds: tuple[type[BaseException], ...], message: str | None) -> None:
        super().__init__(f"{kinds}: {message}")
        self.kinds = kinds
        self.message = message


def expected(step: Step, run: Callable[[], None]) -> None:
    """Run a step that may have to be refused."""
    if not step.refused:
        run()
        return
    name, *mentions = step.refused
    try:
        run()
    except Refusal as refusal:
        kind = getattr(graphstore.errors, name)
        assert any(issubclass(one, kind) for one in refusal.kinds), (step, refusal)
        for mention in mentions:
            assert refusal.message is None or mention in refusal.message, (step, refusal.message)
    else:
        raise AssertionError(f"it should have been refused: {step}")


# ---------------------------------------------------------------------- Python


class ByStore:
    """Through a `GraphStore` in this process."""

    beyond = True
    # these are transactions of their own
    alone = frozenset({"branch", "merge", "erase", "undo", "set_trust"})

    def __init__(self) -> None:
        self.today = day("2026-01-01")
        self.store = graphstore.open(":memory:", clock=lambda: self.today)
        self.known_at: dict[str, datetime] = {}

    def tell(self, telling: Telling) -> None:
        self.today = day(telling.day)
        if any(step.verb in self.alone or "branch" in step.arguments for step in telling.steps):
            for step in telling.steps:
                self._tell_alone(step, telling.by)
        else:
            with self.store.transaction(author=telling.by):
                for step in telling.steps:
                    expected(step, lambda step=step: self._do(step))
        self.known_at[telling.day] = self.store.changes()[-1].tx

    def _tell_alone(self, step: Step, by: str | None) -> None:
        """One step, in a transaction of its own where it can be in one."""
        more = dict(step.arguments)
        store = self.store.on(more.pop("branch")) if "branch" in more else self.store
        block = contextlib.nullcontext() if step.verb in self.alone else store.transaction(author=by)
        with block:
            expected(step, lambda: self._do(step))

    def _do(self, step: Step) -> None:
        more = dict(step.arguments)
        store = self.store.on(more.pop("branch")) if "branch" in more else self.store
        if step.verb == "undo":
            more["tx"] = self.known_at[more["tx"]]
        if more.get("valid_to") == "open":
            more["valid_to"] = graphstore.OPEN
        names = {
            "add_node": ("kind", "content"), "supersede": ("old",), "record_event": ("type", "description"),
            "link": ("source", "kind", "target"), "branch": ("name",), "merge": ("name",), "set_trust": ("ranks",),
            "undo": ("tx",), "amend": ("id", "patch"), "revise": ("id", "content"),
        }  # fmt: skip
        names_first = () if step.verb == "unlink" else names.get(step.verb, ("id",))
        given = [more.pop(name) for name in names_first]
        try:
            getattr(store, step.verb)(*given, **more)
        except GraphStoreError as error:
            raise Refusal((type(error),), str(error)) from error

    def ask(self, question: Question) -> Any:
        tx = self._tx(question.tx)
        view = self.store.as_of(valid=question.valid, tx=tx) if question.valid or tx else self.store.as_of()
        if question.valid is None and tx is not None:
            view = self.store.as_of(valid=self.today, tx=tx)
        return getattr(self, "_" + question.read)(view, question.of)

    def _tx(self, told: str | None) -> datetime | None:
        return None if told is None else self.known_at.get(told, day(told))

    def _standing(self, view: Any, id: str) -> str | None:
        try:
            return str(view.inspect(id).node.standing)
        except NotFoundError:
            return None

    def _node(self, view: Any, id: str) -> Any:
        try:
            return view.node(id)
        except NotFoundError:
            return None

    def _content(self, view: Any, id: str) -> Any:
        node = self._node(view, id)
        return node and node.content

    def _says(self, view: Any, id: str) -> Any:
        return (self._content(view, id) or {}).get("says")

    def _number(self, view: Any, id: str) -> Any:
        node = self._node(view, id)
        return node and node.number

    def _source(self, view: Any, id: str) -> Any:
        node = self._node(view, id)
        return node and node.source

    def _told(self, view: Any, id: str) -> Any:
        node = self._node(view, id)
        return node and (node.author, date(node.recorded_at))

    def _slot(self, view: Any, key: str) -> Any:
        return tuple(sorted(node.id for node in view.nodes(key=key)))

    def _nodes(self, view: Any, _: None) -> Any:
        return tuple(sorted(node.id for node in view.nodes()))

    def _shaken_by(self, view: Any, id: str) -> Any:
        found = [one for one in view.shaky() if one.node.id == id]
        if not found:
            return None
        way = [id]
        for link in found[0].links:
            way.append(link.target if link.source == way[-1] else link.source)
        assert way[-1] == found[0].root.id
        return tuple(way)

    def _steps(self, view: Any, id: str) -> Any:
        chain = view.what_superseded(id).chain
        return tuple((step.how, step.node.id, step.why) for step in chain if step.node is not None)

    def _closing(self, view: Any, id: str) -> Any:
        chain = view.what_superseded(id).chain
        return tuple((step.how, step.why) for step in chain if step.node is None)

    def _current(self, view: Any, id: str) -> Any:
        return tuple(sorted(one.id for one in view.what_superseded(id).current))

    def _periods(self, view: Any, id: str) -> Any:
        return tuple(
            (date(row.valid_from), date(row.valid_to), row.content["says"]) for row in view.history(id)
        )

    def _link(self, view: Any, sentence: tuple[str, str, str]) -> Any:
        return tuple((date(row.valid_from), date(row.valid_to)) for row in view.link_history(*sentence))

    def _links(self, view: Any, sentence: tuple[str, str, str]) -> Any:
        return len({row.id for row in view.link_history(*sentence)})

    def _causes(self, view: Any, id: str) -> Any:
        return tuple(one.id for one in view.causes(id).nodes)

    def _status(self, view: Any, id: str) -> Any:
        found = view.inspect(id).node
        return found.status

    def close(self) -> None:
        self.store.close()


# ---------------------------------------------------------------------- the oracle


class ByOracle:
    """Through the oracle, so that the table and the rules say the same."""

    beyond = False

    def __init__(self) -> None:
        self.today = day("2026-01-01")
        self.oracle = Oracle(lambda: self.today)
        self.known_at: dict[str, datetime] = {}

    def tell(self, telling: Telling) -> None:
        self.today = day(telling.day)
        with self.oracle.transaction(author=telling.by):
            for step in telling.steps:
                expected(step, lambda step=step: self._do(step))
        self.known_at[telling.day] = self.oracle.last

    def _do(self, step: Step) -> None:
        o, verb = self.oracle, step.verb
        more = {name: value for name, value in step.arguments.items() if name != "reason" or verb in SAYS_WHY}
        if verb == "undo":
            more["tx"] = self.known_at[more["tx"]]
        for name in TIMES:
            if isinstance(more.get(name), str):
                more[name] = END if more[name] == "open" else day(more[name])
        for name, value in more.items():
            if isinstance(value, list):
                more[name] = tuple(value)
        first = (more.pop("old"),) if verb == "supersede" else ()
        try:
            getattr(o, {"unlink": "unlink_said"}.get(verb, verb))(*first, **more)
        except Refused as refused:
            raise Refusal(refused.classes, None) from refused

    def ask(self, question: Question) -> Any:
        o = self.oracle
        v = day(question.valid) if question.valid else self.today
        t = o.now if question.tx is None else self.known_at.get(question.tx, day(question.tx))
        read, of = question.read, question.of
        node = o.node(of, v, t) if of in o.nodes else None
        if read == "standing":
            return o.standing(of, v, t) if (of in o.nodes or of in o.events) and o.known(of, t) else None
        if read in ("says", "content", "number", "source", "told"):
            if node is None:
                return None
            told = (node["author"], date(node["recorded_at"]))
            return told if read == "told" else node["content"].get("says") if read == "says" else node[read]
        if read in ("slot", "nodes"):
            return tuple(one["id"] for one in o.nodes_at(v, t, **({"key": of} if read == "slot" else {})))
        if read == "shaken_by":
            return self._way(of, v, t)
        if read in ("steps", "current"):
            found = o.what_superseded(of, v, t)
            steps = zip(found["steps"], found["told"], strict=True)
            return (
                tuple(found["current"])
                if read == "current"
                else tuple((how, id, why) for (how, _, id), (_, why, _) in steps)
            )
        if read == "periods":
            rows = o.history(of, t)
            return tuple(
                (date(row["valid_from"]), date(row["valid_to"]), row["content"]["says"]) for row in rows
            )
        if read == "link":
            return tuple((date(row["valid_from"]), date(row["valid_to"])) for row in o.link_history(*of, t))
        if read == "links":
            return len({row["id"] for row in o.link_history(*of, t)})
        if read == "causes":
            return tuple(id for level in o.chain(of, v, t, 5)["levels"] for id in level)
        assert read == "status", read
        event = o.event(of, v, t)
        return event and event["status"]

    def _way(self, id: str, v: datetime, t: datetime) -> tuple[str, ...] | None:
        """The way to the latest fall that shakes it, the shortest of these."""
        o = self.oracle
        if o.standing(id, v, t) != "shaky":
            return None
        latest, root, links = min(o.shaken(id, v, t), key=lambda found: (-found[0].timestamp(), found[2]))
        ways = [
            way
            for way, fall in o._ways((id,), False, v, t)
            if (fall["told"], way[-1], len(way) - 1) == (latest, root, links)
        ]
        return min(ways)

    def close(self) -> None:
        assert RESTING and RESTED


SAYS_WHY = ("add_node", "link", "supersede")
TELLERS: dict[str, Callable[[], Teller]] = {"oracle": ByOracle, "python": ByStore}
