"""A proxy on loopback that cuts a connection in the middle of a commit: before the server has it, when it has half of it, or before its answer is back."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

from tests.support.postgres import free_port


class CuttingProxy:
    """Passes bytes on to a port. `cut(mark, when)`: the next client that sends these bytes is cut off, `before` or `after` the server got them, or
    in the `middle`, when it has half of them."""

    def __init__(self, to: int, port: int | None = None) -> None:
        self.port, self._to = port or free_port(), to
        self.cuts = 0
        self.close_after_cut = False
        self._wanted: tuple[bytes, str] | None = None
        self._held: bytes | None = None
        self._go_on = threading.Event()
        self.holds = False
        self._closed = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, mark: bytes, when: str) -> None:
        """Cut the next connection that sends `mark`."""
        self._wanted = mark, when

    def hold(self, mark: bytes) -> None:
        """Hold up what the next client sends with `mark`, until `release`."""
        self._go_on.clear()
        self._held, self.holds = mark, False

    def release(self) -> None:
        """Pass on what was held up."""
        self._go_on.set()

    def close(self) -> None:
        """End every connection, and take no more."""
        self._closed.set()
        self._listen_no_more()

    def _listen_no_more(self) -> None:
        with contextlib.suppress(OSError):  # it wakes who waits for a connection
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._to)) as server:
            drop_answer = False
            while not self._closed.is_set():
                for side in select.select([client, server], [], [], 0.02)[0]:
                    try:
                        data = side.recv(1 << 16)
                    except OSError:
                        return
                    if not data or (side is server and drop_answer):
                        return
                    if side is client and self._held is not None and self._held in data:
                        self._held, self.holds = None, True
                        self._go_on.wait(20)
                    if side is client and self._wanted is not None and self._wanted[0] in data:
                        (_, when), self._wanted = self._wanted, None
                        self.cuts += 1
                        if self.close_after_cut:
                            self._listen_no_more()
                        if when == "middle":
                            server.sendall(data[: len(data) // 2])
                        if when != "after":
                            return
                        drop_answer = True
                    (server if side is client else client).sendall(data)
