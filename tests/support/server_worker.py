"""A process that writes through a server for some seconds, and notes each write in a file once it was acknowledged."""

from __future__ import annotations

import http.client
import sys
import time
from pathlib import Path

from tests.support.wire import Wire


def main(url: str, token: str, name: str, seconds: float, notes: Path) -> None:
    wire, number, end = Wire(url, token), 0, time.monotonic() + seconds
    with open(notes, "a", buffering=1) as acknowledged:
        while time.monotonic() < end:
            one = {"kind": "fact", "content": {"by": name, "number": number}, "id": f"{name}-{number}"}
            two = [["add_node", one | {"id": f"{name}-{number}-{half}"}] for half in "ab"]
            try:
                if number % 5:
                    wire.post(f"/add_node?author={name}", one)
                else:
                    wire.post("/batch", {"calls": two, "author": name})
            except (http.client.HTTPException, OSError):
                return  # the server has gone
            acknowledged.write(f"{name}-{number}{'' if number % 5 else '-a'}\n")
            number += 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), Path(sys.argv[5]))
