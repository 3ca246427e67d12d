"""What the processes of the lab note outside the store: a file of JSON lines each, an intent before it is asked and its outcome after."""

from __future__ import annotations

import hashlib
import json
import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphstore import GraphStoreError

SECRET = "secret"  # kind of the nodes that are erased: no follower's state counts them


class Notes:
    """One process's notes. A line is written by one system call, so that a kill leaves whole lines."""

    def __init__(self, file: Path) -> None:
        self._fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, word: str, **facts: Any) -> None:
        """Append a line."""
        os.write(self._fd, json.dumps({"word": word, **facts}, default=str).encode() + b"\n")


def whence(error: BaseException) -> str:
    """The last places in the package that an error came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "graphstore" in frame.filename]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[:-5:-1])


def lines(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    """The lines of the notes whose file names match, file by file."""
    for file in sorted(folder.glob(pattern)):
        for line in file.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line) | {"of": file.stem}


def outcome(error: GraphStoreError) -> str:
    """What a write that raised says became of it: kept, refused or unknown."""
    said = getattr(error, "outcome", None)
    if said == "kept":
        return "kept"
    told = str(error)
    return "unknown" if said == "unknown" or "is not known" in told or "is unknown" in told else "refused"


def state(store: Any, tx: Any = None) -> str:
    """A digest of what a store tells at a transaction: every node but the erasable ones, every event and link."""
    view = store.as_of(valid="2100-01-01", tx=tx)
    parts: list[Any] = [
        (node.id, node.number, node.standing, node.content, node.tx_from)
        for node in view.nodes()
        if node.kind != SECRET
    ]
    parts += [(event.id, event.description, event.count, event.tx_from) for event in view.events()]
    parts += [link for id in [part[0] for part in parts] for link in _links(view, id)]
    told = json.dumps(sorted(map(repr, parts)), default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:24]


def _links(view: Any, id: str) -> list[Any]:
    return [
        (link.source, link.kind, link.target, link.tx_from)
        for link in view.links_from(id, kinds=("uses", "supersedes"))
    ]
