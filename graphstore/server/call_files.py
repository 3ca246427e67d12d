"""Manages the files of calls: paths below the one folder that `serve --files` names, or contents sent and returned in the call itself.

A function reads a private copy, made without following links, and writes into a private folder; its output is then moved into place or returned.
So neither a caller's path nor a link at that path can lead elsewhere, even if it changes meanwhile.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
import tempfile
import zipfile
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from graphstore.errors import ConflictError, EngineError, GraphStoreError, InvalidError, NotFoundError
from graphstore.ledger.files import sync
from graphstore.remote import codec
from graphstore.remote.calls import Call
from graphstore.server.requests import Refused
from graphstore.values import file_access
from graphstore.values.models import Value

IN_PLACE = frozenset({"sessions.ingest", "timeline.record_message"})
"""Calls that keep the given path, and read it through `values/file_access`."""
_NAMES = {"otlp.export_otlp": "traces.json", "gasoline.export_gasoline": "events.jsonl"}
_KINDS = {".json": b"application/json", ".jsonl": b"application/jsonl"}
_ELSEWHERE = ("objects/info/alternates", "objects/info/http-alternates", "commondir")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


class Download(NamedTuple):
    """Holds a file that a call wrote without a named path. `answer`: the value of the function, as JSON."""

    body: bytes
    kind: bytes
    answer: bytes = b"null"


class StagedCall(NamedTuple):
    """Holds the arguments of a call, with private copies for the files it names."""

    args: dict[str, Any]
    folders: tuple[Path, ...]
    """The folders that the call may read while it runs."""
    names: Mapping[Path, str]
    """The caller's name of each copy."""
    known: frozenset[str] | None
    """The texts that a message about a named path may quote; None if every file was sent in the call."""
    finish: Callable[[], Download | None]
    """Moves the output to its path and returns None; returns a Download if no path was named."""


class CallFiles:
    """Holds the folder that paths of calls must be below, if there is one. `root` is absolute."""

    def __init__(self, root: Path | None = None) -> None:
        if root is not None and sys.platform == "win32":
            raise InvalidError(
                f"--files {root}: Windows cannot open files so that no link leads out of that folder. Leave it out: a client sends and gets files in its calls."
            )
        self.root = None if root is None else Path(os.path.realpath(root, strict=True))
        self.folders = () if self.root is None else (self.root,)

    def check(self, call: Call, args: Mapping[str, Any], scoped: str, *, get: bool = False) -> None:
        """Check that the caller may name its paths. Raise Refused (403), or InvalidError for a path that a GET would write."""
        for name in sorted(call.files & args.keys()):
            value = args[name]
            if not isinstance(value, str) or name == "media_path":
                continue
            if call.scope == "read" and get:
                raise InvalidError(
                    f"{name} names a file to write, and GET writes nothing. Ask by POST, or leave it out: the answer is the file."
                )
            if scoped != "write":
                raise Refused(
                    403, f"{call.name} with {name}= wants the token for writing; this one is for reading."
                )
            if self.root is None:
                way = (
                    "leave it out: the answer is the file"
                    if call.scope == "read"
                    else "send the file in the call: "
                )
                way += "" if call.scope == "read" else f'"{name}": {{"name": …, "base64": …}}'
                raise Refused(
                    403,
                    f"{name} names a file of the server's machine, and none is served. Start it with --files DIR, or {way}.",
                )

    @contextmanager
    def staged(self, call: Call, args: dict[str, Any]) -> Iterator[StagedCall]:
        """Yield copies of the files that a call names, kept while it runs. Raise InvalidError for a path that leads elsewhere, or to nothing."""
        with tempfile.TemporaryDirectory(prefix="graphstore-") as made:
            private = Path(os.path.realpath(made))
            taken, names = dict(args), dict[Path, str]()
            known: frozenset[str] | None = None
            written: tuple[Path, str | None] | None = None
            for number, name in enumerate(sorted(call.files - {"media_path"})):
                value, into = args.get(name), private / str(number)
                if call.scope == "read":
                    into.mkdir()
                    file = PurePosixPath(_NAMES.get(call.name, "export") if value is None else value)
                    written = (into / f"export{file.suffix}", value)
                    taken[name], names[written[0]] = str(written[0]), str(file)
                elif isinstance(value, str):
                    known = frozenset(_texts(args))
                    if call.name in IN_PLACE:
                        taken[name] = str(self._there(name, value))
                    else:
                        copy = self._copied(call, name, value, into)
                        taken[name], names[copy] = str(copy), value
                elif isinstance(value, dict) and (sent := _sent(name, value, into)):
                    taken[name], names[sent] = str(sent), value["name"]
            yield StagedCall(
                taken,
                (*self.folders, private),
                names,
                known,
                lambda: None if written is None else self._put(*written),
            )

    # ------------------------------------------------------------------ in

    def _parts(self, what: str, given: str) -> tuple[str, ...]:
        assert self.root is not None
        parts = file_access.parts_below(self.root, Path(given))
        if parts is None:
            raise InvalidError(
                f"{what} {given!r} does not lie below the folder of --files. Name a place there."
            )
        return parts

    def _opened(self, what: str, given: str) -> int:
        """Return a descriptor of a path. A path through a link gives the same error as a missing one, so it reveals nothing."""
        parts = self._parts(what, given)
        assert self.root is not None
        try:
            return file_access.below(self.root, parts)
        except OSError:
            raise InvalidError(
                f"there is no file or folder {given!r} below the folder of --files, or a link is on the way. Name one that is there."
            ) from None

    def _there(self, what: str, given: str) -> Path:
        """Return the absolute path of a regular file or folder. Raise InvalidError if there is none."""
        os.close(self._opened(what, given))
        assert self.root is not None
        return self.root.joinpath(*self._parts(what, given))

    def _copied(self, call: Call, what: str, given: str, into: Path) -> Path:
        fd = self._opened(what, given)
        try:
            into.mkdir()
            copy = into / (PurePosixPath(given).name or "files")
            if call.name == "imports.import_git":
                _copy_repository(fd, given, copy)
            else:
                _copy(fd, copy)
            return copy
        except OSError as error:
            raise EngineError(f"{what} {given!r} cannot be read: {error.strerror or error}.") from None
        finally:
            os.close(fd)

    # ------------------------------------------------------------------ out

    def _put(self, copy: Path, given: str | None) -> Download | None:
        if given is None:
            if copy.is_dir():
                return Download(_zipped(copy), b"application/zip")
            return Download(copy.read_bytes(), _KINDS.get(copy.suffix, b"application/octet-stream"))
        parts = self._parts("the place", given)
        assert self.root is not None
        if not parts:
            raise ConflictError(f"{given!r} is the folder of --files itself. Name a place below it.")
        try:
            above = file_access.below(self.root, parts[:-1])
        except OSError:
            raise NotFoundError(
                f"there is no folder for {given!r} below the folder of --files. Make it first."
            ) from None
        try:
            _place(copy, above, parts[-1])
        except FileExistsError:
            raise ConflictError(f"{given} exists. Choose another name, or remove it first.") from None
        except OSError as error:
            raise EngineError(f"cannot write {given}: {error.strerror}.") from None
        finally:
            os.close(above)
        return None


def _copy(fd: int, into: Path) -> None:
    """Copy a file, or a folder with its contents. Other entries are omitted, since they could lead elsewhere."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        with open(os.dup(fd), "rb") as source, open(into, "xb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
        return
    into.mkdir()
    for name in os.listdir(fd):
        try:
            inner = file_access.below(fd, (name,))
        except PermissionError:
            continue
        try:
            _copy(inner, into / name)
        finally:
            os.close(inner)


def _copy_repository(fd: int, given: str, into: Path) -> None:
    """Copy a repository: its `.git`, or all of a bare one. Raise InvalidError if it leads to other folders."""
    names = set(os.listdir(fd)) if stat.S_ISDIR(os.fstat(fd).st_mode) else set()
    if ".git" in names:
        into.mkdir()
        inner = file_access.below(fd, (".git",))
        try:
            _copy(inner, into / ".git")
        finally:
            os.close(inner)
        git = into / ".git"
    else:
        _copy(fd, into)
        git = into
    config = git / "config"
    leads = [name for name in _ELSEWHERE if (git / name).exists()] + [".git"] * git.is_file()
    if config.is_file() and re.search(
        rb"^\s*\[\s*include|^\s*worktree\s*=", config.read_bytes(), re.I | re.M
    ):
        leads.append("config")
    if leads:
        raise InvalidError(
            f"the repository {given!r} leads to other folders ({leads[0]}). Give a whole clone."
        )


def _place(copy: Path, above: int, name: str) -> None:
    """Write a file or folder under a new name in a folder. If that fails, nothing of it stays."""
    if sys.platform == "win32":
        raise NotImplementedError("there is no --files on Windows")
    if copy.is_dir():
        os.mkdir(name, dir_fd=above)
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        try:
            for inner in sorted(copy.iterdir()):
                _place(inner, fd, inner.name)
        except BaseException:
            shutil.rmtree(name, dir_fd=above)
            raise
        finally:
            os.close(fd)
        return
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=above)
    try:
        with open(fd, "wb") as sink, open(copy, "rb") as source:
            shutil.copyfileobj(source, sink, 1 << 20)
            sink.flush()
            sync(sink.fileno())
    except BaseException:
        os.unlink(name, dir_fd=above)
        raise


def _zipped(folder: Path) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as sink:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                sink.write(file, file.relative_to(folder).as_posix())
    return made.getvalue()


# ---- sent in the call ---------------------------------------------------------------------------


def _sent(what: str, value: Mapping[str, Any], into: Path) -> Path | None:
    """Write a file `{"name", "base64"}` or folder `{"name", "files": {path: base64}}` and return the copy; None for anything else."""
    if value.keys() not in ({"name", "base64"}, {"name", "files"}):
        return None
    into.mkdir()
    copy = into / _plain(what, str(value["name"]).rstrip("/").rpartition("/")[2] or "files")
    if "base64" in value:
        copy.write_bytes(_bytes(what, value["base64"]))
        return copy
    files = value["files"]
    if not isinstance(files, dict):
        raise InvalidError(
            f"the files of {what} are no JSON object. Give their contents in base64 by their paths."
        )
    copy.mkdir()
    for path, data in files.items():
        parts = [_plain(what, part) for part in path.split("/")]
        file = copy.joinpath(*parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_bytes(what, data))
    return copy


def _plain(what: str, name: Any) -> str:
    if (
        not isinstance(name, str)
        or name in ("", ".", "..")
        or len(name.encode()) > 255
        or {"/", "\\", "\0"} & set(name)
    ):
        raise InvalidError(
            f"{what} has a file {name!r}, which is no name. Give a plain name, without a path."
        )
    return name


def _bytes(what: str, text: Any) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, TypeError, ValueError):
        raise InvalidError(f"a file of {what} is not in base64. Give its bytes so.") from None


# ---- answers and messages ----------------------------------------------------------------------------


def _texts(value: Any) -> Iterator[str]:
    """Yield every string in the arguments of a call: the texts that the caller knows."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _shown(text: str, staged: StagedCall) -> str:
    """Return a text with the caller's names in place of the copies' paths."""
    for copy, name in staged.names.items():
        text = text.replace(str(copy), name)
    return text


def _unquoted(text: str, staged: StagedCall) -> str:
    """Return a message without quotations from a named path. Lists of valid values are removed, since they may come from the file."""
    text, known = _shown(text, staged), staged.known
    if known is None:
        return text
    return _QUOTED.sub(
        lambda found: found[0] if found[0][1:-1] in known else "'…'", text.partition(" Valid: ")[0]
    )


_MESSAGES = frozenset({"reason", "error", "warnings", "problems"})
"""The fields of reports that contain messages about files."""


def _in_callers_names(value: Any, staged: StagedCall, field: str = "") -> Any:
    """Return a report with the caller's names, and without quotations from a named path."""
    if isinstance(value, str):
        return _unquoted(value, staged) if field in _MESSAGES else _shown(value, staged)
    if isinstance(value, tuple | list):
        return type(value)([_in_callers_names(each, staged, field) for each in value])
    if isinstance(value, Value):
        return value.model_copy(
            update={name: _in_callers_names(each, staged, name) for name, each in value.__dict__.items()}
        )
    return value


def run(files: CallFiles, run: Callable[[dict[str, Any]], Any], call: Call, args: dict[str, Any]) -> Any:
    """Run a call that names files. Return its value, or a Download. Errors and reports use the caller's names."""
    with files.staged(call, args) as staged:
        try:
            with file_access.held_to(*staged.folders, names=staged.names):
                value = run(staged.args)
            download = staged.finish()
        except GraphStoreError as error:
            raise type(error)(_unquoted(str(error), staged)) from None
        if staged.names or staged.known is not None:
            value = _in_callers_names(value, staged)
    return value if download is None else download._replace(answer=codec.plain(value))
