"""What goes over the wire to a server, by the least that can: also for processes that are to start at once."""

from __future__ import annotations

import http.client
from typing import Any

import orjson

WRITE, READ, METRICS = "write-" + "w" * 30, "read-" + "r" * 30, "metrics-" + "m" * 30
Reply = tuple[int, Any, dict[str, str]]


class Wire:
    """A connection to a server that says what it is told and nothing more: for what a client of ours would not say."""

    def __init__(self, url: str, token: str | None = WRITE) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        self._token = token

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Status, value and headers (in lower case) of an answer; `body` as JSON unless it is bytes."""
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        if self._token is not None:
            told.setdefault("Authorization", f"Bearer {self._token}")
        sent = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        self._connection.request(method, path, sent, told)
        response = self._connection.getresponse()
        data = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
        plain = found.get("content-type") == "application/json" and "content-encoding" not in found
        value = orjson.loads(data) if data and plain else data
        return response.status, value, found

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        """The value of a call that is answered."""
        status, value, _ = self.ask("POST", path, {} if body is None else body, **headers)
        assert status == 200, (status, value)
        return value

    def get(self, path: str, **headers: str) -> Any:
        """The value of a read that is answered."""
        status, value, _ = self.ask("GET", path, **headers)
        assert status == 200, (status, value)
        return value

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
