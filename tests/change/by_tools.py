"""The door of agents: every step for which there is a tool is told through it, and every question asked through one, by a client beside the server.

What has no tool (`confirm`, `set_trust`, branches, the history of a link, …) goes through the store the tools work on. Each tool is a
transaction of its own, so what has to come and go in one is told to the store as well.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any

from graphstore import errors
from graphstore.mcp import server
from tests.change.episodes import Question, Step, Telling
from tests.change.oracle import UPRIGHT
from tests.change.tellers import ByStore, Refusal, day, expected
from tests.support.agent import Agent, agent

ANY_ERROR = tuple(
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.GraphStoreError)
)


class ByTools(ByStore):
    """Through the tools of an agent, as far as there are tools."""

    def __init__(self) -> None:
        super().__init__()
        self.open = contextlib.ExitStack()
        self.server = server(self.store)
        self.agents: dict[str, Agent] = {}
        self.ranked = False
        self.arguments = {
            name: set(tool.input_schema["properties"]) for name, tool in self.agent("ana").tools().items()
        }

    def close(self) -> None:
        self.open.close()
        super().close()

    def agent(self, name: str) -> Agent:
        if name not in self.agents:
            signing = self.server if name == "agent" else server(self.store, author=name)
            self.agents[name] = self.open.enter_context(agent(signing, name))
        return self.agents[name]

    # ------------------------------------------------------------------ telling

    def tell(self, telling: Telling) -> None:
        self.today = day(telling.day)
        verbs = {(step.verb, step.arguments.get("id")) for step in telling.steps}
        if any(("add_node", id) in verbs for verb, id in verbs if verb == "retract"):
            super().tell(telling)
            return
        for step in telling.steps:
            self.ranked = self.ranked or step.verb == "set_trust"
            found = self.tool(step)
            if found is None:
                self._tell_alone(step, telling.by)
            else:
                expected(step, lambda by=telling.by, found=found: self._call(by, *found))
        self.known_at[telling.day] = self.store.changes()[-1].tx

    def _call(self, by: str | None, tool: str, arguments: dict[str, Any]) -> None:
        result = self.agent(by or "agent").call(tool, **arguments)
        if result.is_error:
            raise Refusal(ANY_ERROR, str(result.content[0].text))

    def tool(self, step: Step) -> tuple[str, dict[str, Any]] | None:
        """The tool and its arguments. None: there is none that says just this."""
        verb, more = step.verb, dict(step.arguments)
        if verb in ("add_node", "revise"):
            if set(more["content"]) != {"says"} or (self.ranked and "source" not in more):
                return None  # a tool adds a statement, and the agent as its source
            more["statement"] = more.pop("content")["says"]
            if verb == "revise":
                more["revises"] = more.pop("id")
                more.setdefault("source", self._source_of(more["revises"]))  # or the agent would be it
            verb = "remember"
        elif verb == "end":
            verb, more = (
                "retract",
                {**more, "ended_at": more.pop("at"), "reason": more.get("reason", "it ended")},
            )
        elif verb == "unlink":
            more.setdefault("reason", "it does not hold")
        elif verb == "amend":
            more["fields"] = more.pop("patch")
        elif verb == "record_event" and isinstance(more.get("related_to"), str):
            more["related_to"] = [more["related_to"]]
        elif verb == "undo":
            more["tx"] = self.known_at[more["tx"]].isoformat()
        return (verb, more) if set(more) <= self.arguments.get(verb, set()) else None

    def _source_of(self, id: str) -> str | None:
        return self.store.inspect(id).node.source if self.store.knows(id) else None

    # ------------------------------------------------------------------ asking

    def ask(self, question: Question) -> Any:
        tx = self._tx(question.tx)
        valid = day(question.valid) if question.valid else None if tx is None else self.today
        at = {"valid": valid and valid.isoformat(), "tx": tx and tx.isoformat()}
        self.at = {name: value for name, value in at.items() if value}
        if question.read in ("link", "links"):
            return super().ask(question)
        return getattr(self, "_ask_" + question.read)(question.of)

    def _answer(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        result = self.agent("ana").call(tool, **arguments, **self.at)
        if result.is_error:
            text = result.content[0].text
            assert "not known" in text or text.startswith("no node or event"), text
            return None
        found: dict[str, Any] = result.structured_content
        assert "more" not in found, "an episode's answer is one page"
        return found

    def _ask_standing(self, id: str) -> Any:
        found = self._answer("get", id=id)
        return found and found["thing"]["standing"]

    def _standing_one(self, id: str) -> dict[str, Any] | None:
        """What `get` says of a thing that stands."""
        found = self._answer("get", id=id)
        return found if found and found["thing"]["standing"] in UPRIGHT else None

    def _ask_content(self, id: str) -> Any:
        found = self._standing_one(id)
        return found and {name: value for name, value in found["content"].items() if name != "text"}

    def _ask_says(self, id: str) -> Any:
        found = self._standing_one(id)
        return found and found["content"].get("says")

    def _ask_number(self, id: str) -> Any:
        found = self._standing_one(id)
        return found and found["version"]

    def _ask_source(self, id: str) -> Any:
        found = self._standing_one(id)
        return found and found.get("source")

    def _ask_told(self, id: str) -> Any:
        found = self._standing_one(id)
        versions = self._answer("history", id=id)
        if not (found and versions):
            return None
        at = datetime.fromisoformat(found["at"]["valid"])
        (row,) = [
            row
            for row in versions["versions"]
            if "believed_until" not in row
            and datetime.fromisoformat(row["valid_from"]) <= at
            and ("valid_to" not in row or at < datetime.fromisoformat(row["valid_to"]))
        ]
        return row["who"], row["recorded_at"][:10]

    def _ids(self, where: str, **params: Any) -> Any:
        query = f"MATCH (n:Node) {where} RETURN n.id ORDER BY n.id"
        found = self._answer("cypher", query=query, params=params)
        return tuple(row[0] for row in (found or {}).get("rows", ()))

    def _ask_slot(self, key: str) -> Any:
        return self._ids("WHERE n.key = $key", key=key)

    def _ask_nodes(self, _: None) -> Any:
        return self._ids("")

    def _ask_shaken_by(self, id: str) -> Any:
        """The way, from the sentence in which `why` says it."""
        found = self._answer("why", id=id)
        if found is None or "shaky" not in found:
            return None
        way = [id]
        for link in found["shaky"].partition("It rests on it by ")[2].removesuffix(".").split("; "):
            source, _, target, *_ = (word.strip(",") for word in link.split())
            way.append(target if source == way[-1] else source)
        return tuple(way)

    def _chain(self, id: str) -> Any:
        found = self._answer("what_superseded", id_or_text=id)
        return (found or {}).get("chain", ())

    def _ask_steps(self, id: str) -> Any:
        return tuple(
            (step["how"], step["id"], step.get("reason")) for step in self._chain(id) if "id" in step
        )

    def _ask_closing(self, id: str) -> Any:
        return tuple((step["how"], step.get("reason")) for step in self._chain(id) if "id" not in step)

    def _ask_current(self, id: str) -> Any:
        found = self._answer("what_superseded", id_or_text=id)
        return tuple(sorted(one["id"] for one in (found or {}).get("current", ())))

    def _ask_periods(self, id: str) -> Any:
        found = self._answer("get", id=id)
        return tuple(
            (row["valid_from"][:10], row["valid_to"][:10] if "valid_to" in row else None, row["statement"])
            for row in (found or {}).get("history", ())
        )

    def _ask_causes(self, id: str) -> Any:
        found = self._answer("why", id=id)
        return tuple(one["id"] for one in (found or {}).get("causes", ()))

    def _ask_status(self, id: str) -> Any:
        found = self._answer("get", id=id)
        return found and found["content"].get("status")
