"""Every operation of a server's OpenAPI document against a real server, by schemathesis, with both tokens at once.

    make schema                       # three minutes, the seed is printed
    make schema ARGS="--seconds 600 --seed 42"

No answer may be 500, have a status the document does not name, or differ from what it declares. The server is a process of its own on this machine
alone, and its store is new, with some data. Transactions are left out: one that is held keeps all other writes waiting.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import graphstore

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
TOKENS = {"write": "token", "read": "token-read"}


def filled(place: Path) -> None:
    """Make a store with nodes, versions, links, events and a branch."""
    with graphstore.open(place) as store:
        for number in range(20):
            store.add_node("fact", {"n": number, "says": f"statement {number}"}, id=f"n{number}")
        for number in range(19):
            store.link(f"n{number + 1}", "derived_from", f"n{number}", reason="one after the other")
        store.supersede("n0", by="n5", reason="the world moved on")
        store.revise("n1", {"n": 100}, reason="counted again")
        for number in range(5):
            store.record_event("error", f"it broke {number}", id=f"e{number}")
        store.snapshot("before")
        store.branch("plan")


@contextmanager
def served(place: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of the store in a process of its own, and its URL."""
    command = [sys.executable, "-m", "graphstore", "serve", str(place), "--port", "0", "--no-ticks"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("serving "):
                yield process, line.partition(" on ")[2].split()[0]
                return
        raise SystemExit(f"the server did not start: exit code {process.wait(30)}")
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
        process.stdout.close()


def fuzzed(url: str, token: str, seconds: int, seed: int, out: Path) -> int:
    """Run schemathesis with one token. Gives its exit code; what it says is in `out`."""
    tool = os.environ.get("SCHEMATHESIS") or str(Path(sys.executable).with_name("schemathesis"))
    command = [
        tool, "run", f"{url}/openapi.json", "--header", f"Authorization: Bearer {token}", "--checks", CHECKS,
        "--phases", "coverage,fuzzing", "--max-time", str(seconds), "--seed", str(seed), "--warnings", "off",
        "--suppress-health-check", "all", "--request-timeout", "65", "--no-shrink", "--continue-on-failure",
        "--exclude-path-regex", "^/transaction",
    ]  # fmt: skip
    with open(out, "w") as sink:
        done = subprocess.run(command, stdout=sink, stderr=subprocess.STDOUT, cwd=out.parent, check=False)
    return done.returncode


def main() -> int:
    asking = argparse.ArgumentParser(description=__doc__)
    asking.add_argument("--seconds", type=int, default=180)
    asking.add_argument("--seed", type=int, default=None)
    asked = asking.parse_args()
    seed = random.randrange(1 << 32) if asked.seed is None else asked.seed
    print(f"seed {seed}, {asked.seconds} s with each token", flush=True)
    with tempfile.TemporaryDirectory(prefix="graphstore-schema-") as folder:
        place = Path(folder) / "memory.gs"
        filled(place)
        ended: dict[str, int] = {}
        with served(place) as (process, url):

            def run(name: str) -> None:
                token = (place / TOKENS[name]).read_text().strip()
                out = Path(folder) / name
                out.mkdir()
                ended[name] = fuzzed(url, token, asked.seconds, seed, out / "said")

            threads = [threading.Thread(target=run, args=(name,)) for name in TOKENS]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            died = process.poll()
        for name in TOKENS:
            print(f"==== with the token for {'writing' if name == 'write' else 'reading'}")
            print((Path(folder) / name / "said").read_text(), flush=True)
        if died is not None:
            print(f"the server ended: exit code {died}")
        print(f"seed {seed}")
        return int(died is not None or any(ended.values()))


if __name__ == "__main__":
    sys.exit(main())
