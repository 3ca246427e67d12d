"""Session files as tests write them: a line each, instants in minutes after the start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

START = datetime(2026, 1, 25, 10, tzinfo=UTC)
Line = dict[str, Any] | bytes


def at(minutes: float) -> str:
    return (START + timedelta(minutes=minutes)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def header(id: str = "sess", minutes: float = 0, **more: Any) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": id, "timestamp": at(minutes), "cwd": "/work", **more}


def said(id: str, parent: str | None, minutes: float = 1, role: str = "user", **more: Any) -> dict[str, Any]:
    """A message of pi."""
    message = {"role": role, "content": [{"type": "text", "text": f"this is {id}"}]}
    return {
        "type": "message",
        "id": id,
        "parentId": parent,
        "timestamp": at(minutes),
        "message": message,
        **more,
    }


def marked(type: str, id: str, parent: str | None, minutes: float = 1, **more: Any) -> dict[str, Any]:
    """An entry of pi that is no message."""
    return {"type": type, "id": id, "parentId": parent, "timestamp": at(minutes), **more}


def claude(
    id: str, parent: str | None, minutes: float = 1, type: str = "user", **more: Any
) -> dict[str, Any]:
    """An entry of Claude Code."""
    message = more.pop("message", {"role": type, "content": f"this is {id}"})
    return {
        "type": type, "uuid": id, "parentUuid": parent, "timestamp": at(minutes), "sessionId": "claude-1", "isSidechain": False,
        "message": message, **more,
    }  # fmt: skip


def write(path: Path, *lines: Line, end: bytes = b"\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"".join((line if isinstance(line, bytes) else orjson.dumps(line)) + end for line in lines)
    )
    return path
