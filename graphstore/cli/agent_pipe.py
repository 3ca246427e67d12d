"""`graphstore mcp` beside others: this process only passes lines on, between its agent and the store's server.

When the server ends, another is found or started there: it is told who the agent is, and gets again what is not answered yet; what was done of that is
not done twice.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson

from graphstore.errors import GraphStoreError
from graphstore.remote import sharing
from graphstore.remote.http_client import Broken, Connection, Lines, Wire

CONVERSATION = "/mcp/conversation"
_KNOWN = {"--profile": "profile", "--tools": "tools"}
_OWN = ("GRAPHSTORE_BRANCH", "GRAPHSTORE_NO_SHARE")  # what says the same as an option that is not known here
_OPENING = ("initialize", "notifications/initialized")
_TRIES, _PAUSE = 2, 0.1  # to find a server again, and seconds between
_PIECE = 1 << 16
_INTERNAL = -32603
_LOST = "the store's server has ended, and no other could be had: {why} Nothing of this is known to be done. Try again."


def run(words: list[str]) -> int | None:
    """Serve an agent over standard input and output as `graphstore mcp` with these words. The exit code; None where that is to be done without a server."""
    options = _options(words)
    if options is None or any(map(os.environ.get, _OWN)):
        return None
    place = Path(words[0])
    try:
        if not os.path.lexists(place):
            place.mkdir(parents=True)
        elif not (place / "journal").is_dir():
            return None
        found = sharing.joined(place)
        pipe = _Pipe(place, options)
        if found is None or not pipe.connect(found):
            return None
    except (GraphStoreError, OSError):
        return None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        pipe.pass_on()
    except KeyboardInterrupt:
        print("interrupted; what was committed is kept.", file=sys.stderr)
        return 130
    return 0


def _options(words: list[str]) -> dict[str, str] | None:
    """The options of the command; None where it has others, which are not for a server."""
    found: dict[str, str] = {}
    left = iter(words[1:])
    for word in left:
        name, equals, value = word.partition("=")
        if word == "--allow-erase":
            found["allow_erase"] = "yes"
        elif name in _KNOWN:
            given = value if equals else next(left, None)
            if given is None:
                return None
            found[_KNOWN[name]] = given
        else:
            return None
    return found


class _Pipe:
    """The way between an agent and the server. One thread reads what the agent asks, another what it is answered."""

    def __init__(self, place: Path, options: dict[str, str]) -> None:
        self._place, self._options = place, {"id": os.urandom(16).hex(), **options}
        self._turn = threading.Condition()
        self._wire: Wire | None = None
        self._opening: dict[str, bytes] = {}  # how the agent introduced itself
        self._waiting: dict[bytes, bytes] = {}  # what is not answered yet, by the id
        self._introduced: bytes | None = None  # the id of the introduction that is made again,
        self._later: list[bytes] = []  # and what comes after it
        self._is_over = self._has_more = False

    def connect(self, found: tuple[str, str]) -> bool:
        """Begin the conversation with a server, or go on with it. Whether that serves agents."""
        again: list[bytes] = []
        first = self._opening.get("initialize")
        with self._turn:
            if self._opening:
                rest = (line for line in self._waiting.values() if line != first)
                again = [*self._opening.values(), *rest]
            asked = urlencode({**self._options, "again": len(again)})
            wire = Connection(*found).wire()
            head = f"POST {CONVERSATION}?{asked} HTTP/1.1\r\n{wire.head}Transfer-Encoding: chunked\r\n\r\n"
            try:
                wire.send(head.encode("latin-1"))
                if wire.begun()[0] != 200:
                    wire.close()
                    return False
            except (OSError, Broken, ValueError):
                wire.close()
                return False
            self._wire = wire
            if first is not None:
                known = _id(orjson.loads(first))
                self._introduced = None if known in self._waiting else known
                self._later = again[1:]
                again = again[:1]
            _send(wire, *again)
            if self._is_over and not self._later:
                self._end()
        return True

    def pass_on(self) -> None:
        """Pass lines on until the agent has closed its end, and all is answered."""
        threading.Thread(target=self._listen, name="graphstore-asked", daemon=True).start()
        while True:
            answers = Lines()

            def take(piece: bytes, answers: Lines = answers) -> None:
                for line in answers.of(piece):
                    self._answer(line)

            assert self._wire is not None
            try:
                self._wire.chunks(take)
            except (Broken, ValueError):
                pass
            except BrokenPipeError:
                return  # the agent reads no more
            except OSError:
                pass
            with self._turn:
                self._wire.close()
                self._wire = None
                if self._is_over and not self._waiting:
                    return
            self._find_another()
            if self._wire is None:
                return

    def _find_another(self) -> None:
        """Go on with another server. Where there is none, who waits hears why, and it is tried again when more comes."""
        while True:
            why = "it is held by a process that lets nobody in, or no server starts there."
            for _ in range(_TRIES):
                try:
                    found = sharing.again(self._place, start=True)
                    if found is not None and self.connect(found):
                        return
                except (GraphStoreError, OSError) as error:
                    why = str(error)
                time.sleep(_PAUSE)
            with self._turn:
                self._has_more = False
                for line in self._waiting.values():
                    self._refuse(orjson.loads(line), why)
                self._waiting.clear()
                while not (self._has_more or self._is_over):
                    self._turn.wait()
                if self._is_over and not self._waiting:
                    return

    def _listen(self) -> None:
        """Pass on what the agent asks."""
        asked = Lines()
        while piece := os.read(0, _PIECE):
            for line in asked.of(piece):
                self._ask(line)
        if rest := asked.rest():
            self._ask(rest)
        with self._turn:
            self._is_over = True
            if not self._later:
                self._end()
            self._turn.notify()

    def _ask(self, line: bytes) -> None:
        message = _message(line)
        with self._turn:
            if "method" in message:
                if message["method"] in _OPENING:
                    self._opening[message["method"]] = line
                if "id" in message:
                    self._waiting[_id(message)] = line
            self._has_more, wire = True, self._wire
            if wire is None:
                self._turn.notify()  # it is sent with all that waits
                return
            if self._later:
                self._later.append(line)
                return
        _send(wire, line)  # beside who reads answers: a server that waits until it is read takes nothing more

    def _answer(self, line: bytes) -> None:
        """Pass on an answer, but the second one to who introduces himself."""
        message = _message(line)
        if "id" not in message or "method" in message:
            self._write(line)
            return
        known = _id(message)
        with self._turn:
            repeated, first = self._introduced == known, self._opening.get("initialize")
            self._waiting.pop(known, None)
            if repeated:
                self._introduced = None
        if not repeated:
            self._write(line)
        with self._turn:
            if self._later and first is not None and known == _id(orjson.loads(first)):
                _send(self._wire, *self._later)
                self._later = []
                if self._is_over:
                    self._end()

    def _refuse(self, message: dict[str, Any], why: str) -> None:
        error = {"code": _INTERNAL, "message": _LOST.format(why=why)}
        self._write(orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))

    def _end(self) -> None:
        _send_piece(self._wire, b"0\r\n\r\n")

    @staticmethod
    def _write(line: bytes) -> None:
        left = memoryview(line + b"\n")
        while left:
            left = left[os.write(1, left) :]


def _send(wire: Wire | None, *lines: bytes) -> None:
    data = b"".join(line + b"\n" for line in lines)
    if data:
        _send_piece(wire, b"%x\r\n%b\r\n" % (len(data), data))


def _send_piece(wire: Wire | None, piece: bytes) -> None:
    """Send something. That a server is gone is found out by who reads its answers, and all that waits is sent again then."""
    with suppress(OSError):
        if wire is not None:
            wire.send(piece)


def _message(line: bytes) -> dict[str, Any]:
    """A message; an empty one for what is none: the server says so."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _id(message: dict[str, Any]) -> bytes:
    return orjson.dumps(message["id"])
