"""Opens the bytes of a session: of its file, or of one document made of its many small files.

OpenCode stores a session in a file, each message in a file, and each part of a message in a file. They are read as the document that `opencode
export` makes of them.
"""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from graphstore.values import file_access


def opened(path: Path, buffering: int = -1) -> BinaryIO:
    """Return a session file opened for reading. Raise OSError as opening the file does."""
    place = _messages_of(path)
    if place is None:
        return file_access.opened(path, buffering)
    return BytesIO(_document(path, *place))


def _messages_of(path: Path) -> tuple[Path, Path] | None:
    """Return the folders with a session's messages and their parts; None for any other file."""
    if path.suffix != ".json":
        return None
    above = path.parent.parent
    if above.name == "session" and path.parent.name != "info":
        messages, parts = above.parent / "message" / path.stem, above.parent / "part"
    elif path.parent.name == "info" and above.name == "session":
        messages, parts = above / "message" / path.stem, above / "part" / path.stem
    else:
        return None
    return (messages, parts) if messages.is_dir() else None


def _document(path: Path, messages: Path, parts: Path) -> bytes:
    """Return the document as JSON. Its field `damaged` lists the files that are not JSON objects."""
    damaged: list[str] = []

    def read(file: Path) -> dict[str, Any] | None:
        value = _read(file)
        if value is None:
            damaged.append(f"{file.parent.name}/{file.name}")
        return value

    found = [
        {
            "info": info,
            "parts": [part for piece in _files(parts / file.stem) if (part := read(piece)) is not None],
        }
        for file in _files(messages)
        if (info := read(file)) is not None
    ]
    info = read(path) or {"id": path.stem}
    return json.dumps({"info": info, "damaged": damaged, "messages": found}).encode()


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder by name; names begin with the time."""
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def _read(file: Path) -> dict[str, Any] | None:
    try:
        with file_access.opened(file) as opened:
            value = json.loads(opened.read())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


__all__ = ["opened"]
