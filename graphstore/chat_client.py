"""Asks a language model over HTTP: any service that has OpenAI's chat completions, on this machine or elsewhere.

Nothing is asked unless a caller gave the address of a service. Standard library only.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from graphstore.errors import EngineError, InvalidError

__all__ = ["KEYS", "ChatClient", "Completion", "key_in"]

KEYS = ("GRAPHSTORE_LLM_KEY", "OPENAI_API_KEY")
"""The environment variables that may hold the key of a service; the first that is set counts."""
_PATH = "/chat/completions"
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504})  # statuses after which another try may go well
_PAUSE, _MOST_PAUSE = 0.5, 30.0  # seconds before the second try, then twice as long each time
_MOST_BYTES = 16 << 20
_SHOWN = 200  # characters of what a service says of an error


class Completion(NamedTuple):
    """What a model said, and how many tokens it read and wrote, where the service says so (else None). `cut`: it stopped because there was no room."""

    text: str
    tokens_in: int | None
    tokens_out: int | None
    cut: bool


def key_in(environment: Mapping[str, str] | None = None) -> str | None:
    """The key of a service in the environment; None where there is none, as a service on this machine may need none."""
    there = os.environ if environment is None else environment
    return next((there[name] for name in KEYS if there.get(name)), None)


class ChatClient:
    """One model of one service. `url` is the base address, such as `http://127.0.0.1:11434/v1`; `/chat/completions` is added.

    `timeout`: seconds one try may take. `tries`: how often a request is sent that fails in transit or that the service is too busy for, with a pause that
    doubles, or as long as the service asks (30 seconds at most). `options` go into each request, such as `temperature=0`. The key is in no error and no repr.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        timeout: float = 120.0,
        tries: int = 3,
        **options: Any,
    ) -> None:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidError(
                f"{url!r} is no address of a service. Give one such as http://127.0.0.1:11434/v1."
            )
        if not isinstance(model, str) or not model.strip():
            raise InvalidError(f"model {model!r} is no name. Give the name of a model of {url}.")
        if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
            raise InvalidError(f"tries {tries!r} is out of range. Give a whole number of at least 1.")
        base = url.rstrip("/")
        self.url = base if base.endswith(_PATH) else base + _PATH
        self.model, self._key, self._timeout, self._tries = model, key, timeout, tries
        self._options = options

    def __repr__(self) -> str:
        return f"<{self.model} at {self.url}>"

    def complete(self, system: str, user: str, **options: Any) -> Completion:
        """What the model answers to `user`, with `system` as its instructions. `options` are for this request only.

        Raises EngineError when the service cannot be reached, refuses, or gives what is no answer.
        """
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        body = {"model": self.model, "messages": messages, **self._options, **options}
        return _completion(self._sent(json.dumps(body).encode()), repr(self))

    def _sent(self, body: bytes) -> bytes:
        pause = _PAUSE
        for left in reversed(range(self._tries)):
            status, said, wait = self._tried(body)
            if status == 200:
                return said
            if left == 0 or (status and status not in _AGAIN):
                what = f"answered {status}" if status else "cannot be reached"
                raise EngineError(f"{self!r} {what}: {_reason(said)}")
            time.sleep(min(pause if wait is None else wait, _MOST_PAUSE))
            pause *= 2
        raise AssertionError("the last try gives or raises")

    def _tried(self, body: bytes) -> tuple[int, bytes, float | None]:
        """One try: the status (0: no answer), what was said, and how many seconds to wait where the service says so."""
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import HTTPRedirectHandler, Request, build_opener

        class Stay(HTTPRedirectHandler):
            def redirect_request(self, *args: Any) -> None:
                """The key is for this address alone."""

        head = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            head["Authorization"] = f"Bearer {self._key}"
        try:
            with build_opener(Stay).open(Request(self.url, body, head), timeout=self._timeout) as answer:
                return answer.status, answer.read(_MOST_BYTES), None
        except HTTPError as error:
            with error:
                return error.code, error.read(_MOST_BYTES), _seconds(error.headers.get("Retry-After"))
        except (OSError, HTTPException) as error:
            return 0, (str(error) or type(error).__name__).encode(), None


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() else None


def _reason(said: bytes) -> str:
    """What a service says of an error, on one line."""
    try:
        document = json.loads(said)
        error = document.get("error", document)
        text = error["message"] if isinstance(error, dict) else error
    except (ValueError, KeyError, AttributeError):
        text = said.decode(errors="replace")
    line = " ".join(str(text).split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def _completion(said: bytes, who: str) -> Completion:
    try:
        document = json.loads(said)
        choice = document["choices"][0]
        text = choice["message"]["content"]
        if not isinstance(text, str):
            raise TypeError
    except (ValueError, LookupError, TypeError):
        raise EngineError(f"{who} gave no text: {_reason(said)}") from None
    usage = document.get("usage")
    counted = usage if isinstance(usage, dict) else {}
    counts = (counted.get(name) for name in ("prompt_tokens", "completion_tokens"))
    tokens_in, tokens_out = (count if isinstance(count, int) else None for count in counts)
    return Completion(text, tokens_in, tokens_out, choice.get("finish_reason") == "length")
