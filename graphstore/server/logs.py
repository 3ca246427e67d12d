"""Writes the log of a server to standard error: lines of text for people, or of JSON for a log collector."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

_log = logging.getLogger("graphstore")
_access = logging.getLogger("graphstore.access")
_OTHERS = ("uvicorn", "uvicorn.error")


def set_up(level: str = "warning", form: str = "text") -> None:
    """Write log lines of at least this level, in this form. From `info` on each request has a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    for name in ("graphstore", *_OTHERS):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
    _log.setLevel(level.upper())


def say(level: int, what: str, **fields: Any) -> None:
    """Log an event of the server, with named fields."""
    _log.log(level, what, extra={"fields": fields})


def answered(method: str, path: str, status: int, seconds: float, *, client: Any, rights: str) -> None:
    """Log a request, if such lines are enabled. Its arguments are not logged."""
    if _access.isEnabledFor(logging.INFO):
        if path.startswith("/transaction/"):  # the transaction's token must stay secret
            path = f"/transaction/…/{path.rpartition('/')[2]}"
        fields = {
            "method": method, "path": path, "status": status, "seconds": round(seconds, 6), "client": _address(client), "rights": rights or None,
        }  # fmt: skip
        _access.info("request", extra={"fields": fields})


def refused(path: str, client: Any, why: str) -> None:
    """Log a refused login. The token shown is not logged."""
    say(logging.WARNING, "login refused", path=path, client=_address(client), why=why)


def _address(client: Any) -> str | None:
    return f"{client[0]}:{client[1]}" if isinstance(client, tuple | list) and len(client) == 2 else None


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: value for name, value in getattr(record, "fields", {}).items() if value is not None
    }
    if record.exc_info:
        found["error"] = logging.Formatter().formatException(record.exc_info)
    return found


def _at(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


class _Json(logging.Formatter):
    """Formats a record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "what": record.getMessage(),
            **_fields(record),
        }
        return orjson.dumps(line, default=str).decode()


class _Text(logging.Formatter):
    """Formats a record as a line of text. Values from clients are quoted, so that none can forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        error = fields.pop("error", None)
        shown = [f"{name}={orjson.dumps(value, default=str).decode()}" for name, value in fields.items()]
        line = " ".join(
            (_at(record), record.levelname.lower(), " ".join(record.getMessage().split()), *shown)
        )
        return line if error is None else f"{line}\n{error}"
