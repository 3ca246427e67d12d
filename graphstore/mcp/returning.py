"""Records what each agent was answered, and notifies an agent that returns of the answers that no longer hold."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from weakref import WeakSet

from anyio import to_thread

from graphstore.errors import InvalidError
from graphstore.ledger.readings import READER, Agent, AnswerToRecord
from graphstore.mcp import answers
from graphstore.mcp.sdk import Client
from graphstore.store import readers
from graphstore.store.readers import Outdated
from graphstore.store.store import Store
from graphstore.values.period import Instant, instant, moment, when
from graphstore.values.text import clean

_log = logging.getLogger("graphstore")
_SHOWN = 5
_TABLES = frozenset({"cypher", "over"})  # tools whose answers have ids under any name
_NAMES = ("name", "entityName")  # under which the answers of the memory profile have ids


class Reads:
    """Records the answers of one server of agents.

    Args:
        store: the store that is asked, in this process.
        days: how long a reading is kept; None for the default.
        by_request: whether each request names who is answered, and whether that is recorded; else every client is, by the name that it gives.
        in_names: whether the answers have ids under the names of the memory profile.
        author: who signs what the clients write: it is who is answered, too. None for the name that a client gives.
    """

    def __init__(
        self,
        store: Store,
        *,
        days: float | None = None,
        by_request: bool = False,
        in_names: bool = False,
        author: str | None = None,
    ) -> None:
        if getattr(store, "_core", None) is None:
            raise InvalidError(
                "what agents read is recorded by the server that has the store. Give --record-reads to graphstore serve, or to a token there."
            )
        self._store, self._by_request, self._author = store, by_request, author
        self._keys = _NAMES if in_names else ("id",)
        self._recorder = store._record_reads(days)
        self._returned: WeakSet[Any] = WeakSet()  # connections that were looked at
        self._noticed: set[tuple[Agent, str, Instant]] = set()
        self._lock = threading.Lock()

    async def answered(
        self, tool: str, arguments: Mapping[str, Any], result: dict[str, Any], client: Client
    ) -> None:
        """Record an answer. The first one of a connection begins with the notice of what no longer holds. Never fails."""
        try:
            agent = self._agent(client)
            if agent is None:
                return
            if client.session not in self._returned:
                self._returned.add(client.session)
                notice = await to_thread.run_sync(self._notice, agent)
                if notice:
                    result["content"].insert(0, {"type": "text", "text": clean(notice)})
            self._record(agent, tool, arguments, result)
        except Exception as error:  # an answer that was given stays given
            _log.warning("what was answered was not recorded: %r", error)

    def _agent(self, client: Client) -> Agent | None:
        """Return who is answered; None where that is not recorded."""
        if not self._by_request:
            return Agent(self._author or client.name)
        agent: Agent | None = client.scope.get(READER)
        return agent if agent is None or agent.is_token else agent._replace(name=client.name)

    def _record(self, agent: Agent, tool: str, arguments: Mapping[str, Any], result: dict[str, Any]) -> None:
        body = result["structuredContent"]
        valid, tx = _coordinate(body) or self._store.coordinate()
        self._recorder.add(
            AnswerToRecord(
                agent,
                tool,
                self._recorder.now(),
                valid,
                tx,
                body,
                branch=readers.branch_of(self._store),
                keys=self._keys,
                is_past=arguments.get("tx") is not None,
                is_table=tool in _TABLES,
            )
        )

    def _notice(self, agent: Agent) -> str:
        """Return the notice of an agent's answers that no longer hold, empty where there is none, and note that it was given."""
        self._recorder.flush(readers.SECONDS)
        with self._lock:
            tx = self._store.last_tx
            found = [
                each
                for each in readers.no_longer_hold(self._store, agent, tx)
                if (agent, each.reading.id, each.reading.at) not in self._noticed
            ]
            self._noticed |= {(agent, each.reading.id, each.reading.at) for each in found}
        if not found:
            return ""
        branch = readers.branch_of(self._store)
        self._recorder.mark([each.reading.id for each in found], agent, branch, tx)
        lines = [_line(self._store, each) for each in found[:_SHOWN]]
        if len(found) > _SHOWN:
            lines.append(f"{len(found) - _SHOWN} more things in answers to you no longer hold.")
        return "\n".join(lines)


def _coordinate(body: Any) -> tuple[Instant, Instant] | None:
    at = body.get("at") if isinstance(body, dict) else None
    if not isinstance(at, dict):
        return None
    valid, tx = (instant(datetime.fromisoformat(at[name])) for name in ("valid", "tx"))
    return valid, tx


def _line(store: Store, found: Outdated) -> str:
    """Return one line of a notice: when it was answered, what became of the thing, and the call that tells more."""
    at = moment(found.reading.at)
    about = answers.thing(store.as_of(), found.node)
    became = "is shaky: what it rests on was invalidated" if found.became == "shaky" else _fate(found)
    call = "what_superseded" if found.became in ("superseded", "revised") else "why"
    name = "id_or_text" if call == "what_superseded" else "id"
    return (
        f"an answer you received on {at:%A} ({when(at)}) no longer holds: {about.id!r} ({about.statement}) {became}. "
        f'{call}({name}="{about.id}") tells more.'
    )


def _fate(found: Outdated) -> str:
    change = found.change
    by = f" by {change.author}" if change is not None and change.author else ""
    on = f" on {when(change.tx)}" if change is not None else ""
    reason = f": {change.reason}" if change is not None and change.reason else ""
    return f"was {found.became}{on}{by}{reason}"
