"""Anthropic's memory tool, kept in a store: a file is a node, its path the id, each edit a version, what is deleted has ended."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from graphstore.adapters import places
from graphstore.errors import GraphStoreError, NotFoundError
from graphstore.store.store import Store
from graphstore.values.models import Node

__all__ = ["AsyncMemoryTool", "MemoryTool"]

KIND = "memory_file"
ROOT = "/memories"
_MOST_LINES = 999_999
_WIDTH = len(str(_MOST_LINES))
_DEPTH = 2  # levels of a folder that are listed


class MemoryTool(places.AtCoordinate, BetaAbstractMemoryTool):
    """The memory tool for `client.beta.messages.run_tools(tools=[…])`: it answers as the SDK's own does on files.

    With a `scope` it has files of its own: the ids of its nodes begin with that. A folder is there while a file is in it. Each command that writes is one
    transaction. What cannot be done raises the SDK's ToolError, which the model reads.
    """

    _read_only = "this is at a coordinate already. Call as_of on the store's own tool."

    def __init__(self, store: Store, *, scope: str = "", cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._use(store)
        self._scope = scope

    def execute(self, command: Any) -> Any:
        """The answer to a command of the model."""
        try:
            return super().execute(command)
        except GraphStoreError as error:
            raise ToolError(str(error)) from error

    def view(self, command: Any) -> str:
        """A file with numbers of its lines, or what is two levels deep in a folder."""
        path = _path(command.path)
        node = self._file(path)
        if node is None:
            return self._listed(command.path, path)
        lines = _text(node).split("\n")
        if len(lines) > _MOST_LINES:
            raise ToolError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
        first, last = 0, len(lines)
        if command.view_range and len(command.view_range) == 2:
            first = max(1, command.view_range[0]) - 1
            last = len(lines) if command.view_range[1] == -1 else command.view_range[1]
        shown = _numbered(lines[first:last], first + 1)
        return f"Here's the content of {command.path} with line numbers:\n{shown}"

    def create(self, command: Any) -> str:
        """A new file."""
        path = _path(command.path)
        with self._writing("create") as store:
            if self._file(path) is not None or self._is_folder(path):
                raise ToolError(f"File {command.path} already exists")
            self._keep(store, path, command.file_text)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        """A text that is there once, replaced."""
        path, old = _path(command.path), command.old_str
        with self._writing("str_replace") as store:
            text = self._text_at(path, command.path)
            places_of = (
                [at for at in range(len(text)) if text.startswith(old, at)] if text.count(old) > 1 else []
            )
            if old not in text:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
                )
            if places_of:
                lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in places_of)
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            at = text.count("\n", 0, text.index(old))
            changed = text.replace(old, command.new_str or "")
            self._keep(store, path, changed)
        first = max(0, at - 2)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + _numbered(changed.split("\n")[first : at + 3], first + 1)
        )

    def insert(self, command: Any) -> str:
        """A text behind a line; 0 is before the first."""
        path = _path(command.path)
        with self._writing("insert") as store:
            text = self._text_at(path, command.path)
            lines = text.removesuffix("\n").split("\n") if text else []
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            changed = "\n".join(lines)
            self._keep(store, path, changed if changed.endswith("\n") else changed + "\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        """A file, or a folder with all in it. They have ended, and are still there at `as_of`."""
        path = _path(command.path)
        if path == ROOT:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        with self._writing("delete") as store:
            there = self._at_or_below(path)
            if not there:
                raise ToolError(f"The path {command.path} does not exist")
            for node in there.values():
                places.remove(store, node, "deleted")
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        """A file or folder elsewhere. Where nothing ever was at the new path, the file there supersedes the old one."""
        old, new = _path(command.old_path), _path(command.new_path)
        if old == ROOT:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        with self._writing(f"renamed {old} to {new}") as store:
            if self._file(new) is not None or self._is_folder(new):
                raise ToolError(f"The destination {command.new_path} already exists")
            there = self._at_or_below(old)
            if not there:
                raise ToolError(f"The path {command.old_path} does not exist")
            if new.startswith(old + "/"):
                raise ToolError(f"Cannot rename {command.old_path} to a path inside itself")
            for path, node in there.items():
                self._move(store, node, new + path[len(old) :])
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """End every file of this scope."""
        with self._writing("clear_all_memory") as store:
            for node in self._at_or_below(ROOT).values():
                places.remove(store, node, "deleted")
        return "All memory cleared"

    # ------------------------------------------------------------------ files

    @contextmanager
    def _writing(self, reason: str) -> Iterator[Store]:
        """One transaction: what is read in it is still so when it is written."""
        if self._store is None:
            raise ToolError("These are the files of another time: they can be viewed only.")
        with self._store.transaction(reason=reason):
            yield self._store

    def _id(self, path: str) -> str:
        return self._scope + "/" + places.joined(path[1:].split("/"))

    def _file(self, path: str) -> Node | None:
        return places.found(self._reader, self._id(path), KIND)

    def _text_at(self, path: str, said: str) -> str:
        node = self._file(path)
        if node is not None:
            return _text(node)
        if self._is_folder(path):
            raise ToolError(f"The path {said} is not a file.")
        raise ToolError(f"The path {said} does not exist. Please provide a valid path.")

    def _keep(self, store: Store, path: str, text: str) -> None:
        above = path
        while (above := posixpath.dirname(above)) != ROOT:
            if self._file(above) is not None:
                raise ToolError(f"{above} is a file, and no directory.")
        places.put(store, self._id(path), KIND, {"path": path, "text": text}, scope=self._scope)

    def _move(self, store: Store, node: Node, path: str) -> None:
        text, id = _text(node), self._id(path)
        try:
            store.history(id)
        except NotFoundError:
            self._keep(store, path, text)
            store.supersede(node.id, by=id, reason="renamed")
        else:
            places.remove(store, node, "renamed")
            self._keep(store, path, text)

    def _at_or_below(self, path: str) -> dict[str, Node]:
        """The files at a path and in it, by their paths in order."""
        found = {
            str(node.content["path"]): node
            for node in self._reader.nodes(KIND, scope=self._scope)
            if str(node.content["path"]) == path or str(node.content["path"]).startswith(path + "/")
        }
        return dict(sorted(found.items()))

    def _is_folder(self, path: str) -> bool:
        return path == ROOT or any(below != path for below in self._at_or_below(path))

    def _listed(self, said: str, path: str) -> str:
        files = {below[len(path) + 1 :]: node for below, node in self._at_or_below(path).items()}
        if not files and path != ROOT:
            raise ToolError(f"The path {said} does not exist. Please provide a valid path.")
        sizes = {name: len(_text(node).encode()) for name, node in files.items()}
        shown: dict[tuple[str, ...], tuple[int, str]] = {}
        for name, size in sizes.items():
            parts = tuple(name.split("/"))
            if any(part.startswith(".") for part in parts[:_DEPTH]):
                continue
            for depth in range(1, min(_DEPTH, len(parts)) + 1):
                place = parts[:depth]
                slash = "/" if depth < len(parts) else ""
                shown[place] = (shown.get(place, (0, ""))[0] + size, slash)
        lines = [f"{_size(sum(sizes.values()))}\t{said}"]
        lines += [
            f"{_size(size)}\t{said}/{'/'.join(at)}{slash}" for at, (size, slash) in sorted(shown.items())
        ]
        head = f"Here're the files and directories up to 2 levels deep in {said}, excluding hidden items:"
        return "\n".join((head, *lines))


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """As `MemoryTool`, for the asynchronous client: each command runs in a thread."""

    def __init__(self, store: Store, *, scope: str = "", cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(store, scope=scope)

    async def execute(self, command: Any) -> Any:
        """The answer to a command of the model."""
        return await asyncio.to_thread(self._tool.execute, command)

    view = create = str_replace = insert = delete = rename = execute  # a command says which it is

    async def clear_all_memory(self) -> str:
        """End every file of this scope."""
        return await asyncio.to_thread(self._tool.clear_all_memory)


def _path(said: str) -> str:
    """The path that a model means. Raises ToolError outside of the memory's root."""
    if said != ROOT and not said.startswith(ROOT + "/"):
        raise ToolError(f"Path must start with {ROOT}, got: {said}")
    path = posixpath.normpath(said)
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise ToolError(f"Path {said} would escape {ROOT} directory")
    return path


def _text(node: Node) -> str:
    return str(node.content["text"])


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _size(count: int) -> str:
    """A number of bytes as people write it: 512B, 1.5K."""
    power = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / 1024**power
    return f"{int(size)}{'BKMG'[power]}" if size == int(size) else f"{size:.1f}{'BKMG'[power]}"
