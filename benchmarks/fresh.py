"""Measure in fresh processes: opening, the first read of a thing, memory, closing, opening after a kill, and writing by several processes.

`python -m benchmarks.fresh` reads a job as a line of JSON and prints its answer as another. It loads no library that the store does not load.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.timing import StopWatch, anonymous_bytes

COMMAND = [sys.executable, "-m", "benchmarks.fresh"]
ROOT = Path(__file__).parents[1]
Job = dict[str, Any]


def run(act: str, twin: ModuleType, folder: Path, **given: Any) -> dict[str, Any]:
    """Run a job in a process of its own and return its answer. The job `crash` kills its process and has none."""
    done = subprocess.run(
        COMMAND, input=_line(act, twin, folder, given), capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == (-signal.SIGKILL if act == "crash" else 0), done.stderr
    answer: dict[str, Any] = {} if act == "crash" else json.loads(done.stdout.splitlines()[-1])
    return answer


def together(twin: ModuleType, place: Path | str, processes: int, seconds: float) -> list[int]:
    """Let several processes add to one store at the same time. Return how many adds of each were acknowledged."""
    adding = [
        subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(processes)
    ]
    counts = []
    for number, process in enumerate(adding):
        assert process.stdin is not None
        process.stdin.write(_line("adds", twin, place, {"name": f"p{number}", "seconds": seconds}))
        process.stdin.flush()
    for process in adding:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in adding:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in adding:
        output, _ = process.communicate()
        assert process.returncode == 0
        counts.append(json.loads(output)["count"])
    return counts


def as_json(value: Any) -> Any:
    """Convert a value as the answer of a process is converted."""
    return json.loads(json.dumps(value))


def _line(act: str, twin: ModuleType, folder: Path | str, given: Job) -> str:
    name = twin.__name__.rpartition(".")[2]
    return json.dumps({"act": act, "twin": name, "folder": str(folder), **given}) + "\n"


def _open(twin: Any, job: Job) -> dict[str, Any]:
    """Open and read one thing, then search, query or write if the job says so. `warm`: open a temporary store before, which loads the libraries."""
    if "warm" in job:
        with tempfile.TemporaryDirectory(dir=Path(job["folder"]).parent) as other:
            twin.close(twin.create(Path(other)))
    watch = StopWatch()
    store = twin.open(Path(job["folder"]))
    opened = watch.seconds()
    id, valid, tx = job["coordinate"]
    answer = twin.plain(twin.node_as_of(store, id, twin.at(valid), twin.at(tx)))
    answered = {"opened": opened, "seconds": watch.seconds(), "answer": answer, "memory": anonymous_bytes()}
    if job["act"] == "crash":
        for number in range(200):
            twin.append_event(store, number)
        os.kill(os.getpid(), signal.SIGKILL)
    if "search" in job:
        watch = StopWatch()
        text, at = job["search"]
        answered["found"] = twin.search(store, text, twin.at(at))
        answered |= {"searched": watch.seconds(), "memory_searched": anonymous_bytes()}
    if "query_at" in job:
        twin.ask(store, twin.at(job["query_at"]))
        answered["memory_queried"] = anonymous_bytes()
    if "add" in job:
        twin.add_node(store, job["add"], {"says": "one write"})
    watch = StopWatch()
    twin.close(store)
    return answered | {"closed": watch.wall()}


def _first(twin: Any, job: Job) -> dict[str, Any]:
    """Read one thing, which loads the libraries that a read needs. Then time the first read of each other thing."""
    store = twin.open(Path(job["folder"]))
    act, times, answers = getattr(twin, job["verb"]), [], []
    for id, valid, tx in [job["warm"], *job["asked"]]:
        question = (id, twin.at(valid), twin.at(tx))
        start = time.perf_counter()
        answer = act(store, *question)
        times.append(time.perf_counter() - start)
        answers.append(twin.plain(answer))
    twin.close(store)
    return {"times": times[1:], "answers": answers[1:]}


def _adds(twin: Any, job: Job) -> dict[str, Any]:
    """Add durably until the time is up. SQLite's twin takes the same file lock as our writers."""
    place = getattr(twin, "place", Path)(job["folder"])
    store, add = twin.open(place), getattr(twin, "add_in_turn", twin.add_node)
    print("ready", flush=True)
    sys.stdin.readline()
    count, until = 0, time.perf_counter() + job["seconds"]
    while time.perf_counter() < until:
        add(store, f"{job['name']}_{count}", {"n": count})
        count += 1
    twin.close(store)
    return {"count": count}


ACTS: dict[str, Callable[[Any, Job], dict[str, Any]]] = {
    "open": _open,
    "crash": _open,
    "first": _first,
    "adds": _adds,
}


def main() -> None:
    """Run the job on standard input."""
    job = json.loads(sys.stdin.readline())
    answered = ACTS[job["act"]](importlib.import_module(f"benchmarks.{job['twin']}"), job)
    print(json.dumps(answered), flush=True)


if __name__ == "__main__":
    main()
