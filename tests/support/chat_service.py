"""A service that has OpenAI's chat completions, on this machine: a real server, whose answers a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], str]


class ChatService(ThreadingHTTPServer):
    """Answers what `answer` makes of a request. `statuses`: what it answers first instead, one a request; `waits`: its `Retry-After` then."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.statuses: list[int] = []
        self.waits = "0"
        self.document: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ChatService

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({**asked, "path": self.path})
        self.server.keys.append(self.headers["Authorization"])
        if self.server.statuses:
            self.reply(self.server.statuses.pop(0), {"error": {"message": "not now"}})
            return
        words = self.server.answer(asked)
        document = {
            "object": "chat.completion",
            "model": asked["model"],
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": words}}
            ],
            "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        }
        self.reply(200, document if self.server.document is None else self.server.document)

    def reply(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", self.server.waits)
        if 300 <= status < 400:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def chat_service(answer: Answer) -> Iterator[ChatService]:
    """A service that listens until the block ends."""
    with ChatService(answer) as service:
        thread = threading.Thread(target=service.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()
