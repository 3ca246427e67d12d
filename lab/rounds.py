"""The rounds of the lab: each makes a store of its own, lets real processes loose on it, harms them, and has the outside checker look.

What a round does is drawn from its seed; when exactly a kill falls is up to the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import graphstore
from lab import end_with_parent, faults
from lab.writer import BRANCH

HERE = Path(__file__).parents[1]
ENDING = 60.0  # seconds a process has to end by itself
CHECKING = 300.0  # seconds a check may take


class Round:
    """One store, its notes, and the processes on it."""

    def __init__(self, name: str, seed: str, folder: Path) -> None:
        self.name, self.seed, self.folder = name, seed, folder
        self.chance = random.Random(seed)
        self.store, self.notes = folder / "store" / "memory.gs", folder / "notes"
        self.report = folder / "faults"
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.alive: list[subprocess.Popen[bytes]] = []
        self.number = 0
        self.notes.mkdir(parents=True)
        with graphstore.open(self.store) as store:
            store.branch(BRANCH)

    # ------------------------------------------------------------------ processes

    def start(self, module: str, *args: object, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a process of the lab."""
        self.number += 1
        said = os.environ | {"PYTHONPATH": str(HERE), "PYTHONFAULTHANDLER": "1"} | (env or {})
        with open(self.folder / f"{self.number:03}-{module.rpartition('.')[2]}.err", "wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, args)],
                env=said,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                preexec_fn=end_with_parent,
            )
        self.alive.append(process)
        self.counts["processes"] += 1
        return process

    def writer(
        self, seconds: float, *, where: object = None, threads: int = 1, env: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process that writes."""
        name = f"w{self.number + 1}"
        return self.start(
            "lab.writer", where or self.store, "--name", name, "--seed", self.seed, "--seconds", seconds,
            "--threads", threads, "--notes", self.notes, env=env,
        )  # fmt: skip

    def follower(
        self, seconds: float, *, env: dict[str, str] | None = None, faulty: bool = False
    ) -> subprocess.Popen[bytes]:
        """Start a process that follows."""
        more = ["--faulty"] if faulty else []
        return self.start(
            "lab.follower",
            self.store,
            "--name",
            f"f{self.number + 1}",
            "--seconds",
            seconds,
            "--notes",
            self.notes,
            *more,
            env=env,
        )

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a process at once."""
        if process.poll() is None:
            process.kill()
            self.counts["kills"] += 1
        self.leave(process)

    def stop(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        """Halt a process for a while."""
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            self.counts["stops"] += 1
            time.sleep(seconds)
            process.send_signal(signal.SIGCONT)

    def leave(self, process: subprocess.Popen[bytes]) -> int:
        """Wait until a process has ended. One that does not is a problem."""
        if process in self.alive:
            self.alive.remove(process)
        try:
            code = process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self.problems.append(f"a process did not end within {ENDING:g} s: {process.args!r}")
            process.send_signal(signal.SIGABRT)  # it tells where it is
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2)
            process.kill()
            code = process.wait()
        if code < 0 and code != -signal.SIGKILL and not self.problems:
            self.problems.append(f"a process ended by signal {-code}: {process.args!r}")
        return code

    def pause(self, least: float, most: float) -> None:
        """Let things run for a time drawn from the seed."""
        time.sleep(self.chance.uniform(least, most))

    # ------------------------------------------------------------------ the end

    def run(self, act: Callable[[Round], None]) -> None:
        """Do a round, and have it checked."""
        try:
            act(self)
            while self.alive:
                self.leave(self.alive[0])
        finally:
            for process in self.alive:
                process.kill()
                process.wait()
        self.counts.update({f"failed {call}": times for call, times in faults.injected(self.report).items()})
        self.check()

    def check(self) -> None:
        """Have the outside checker look, in a process of its own."""
        env = os.environ | {
            "PYTHONPATH": str(HERE),
            "PYTHONFAULTHANDLER": "1",
        }
        try:
            done = subprocess.run(
                [sys.executable, "-m", "lab.checker", self.store, self.notes], env=env, capture_output=True, timeout=CHECKING, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.problems.append(f"the check did not end within {CHECKING:g} s")
            return
        if done.returncode:
            self.problems.append(f"the check ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
            return
        found = json.loads(done.stdout)
        self.counts.update(found["counts"])
        self.problems += dict.fromkeys(found["problems"])


# ---------------------------------------------------------------------- what is done to a store


def kill(round: Round) -> None:
    """Writers are killed, one after another, while followers read; some of these are killed too."""
    follower = round.follower(60)
    for _ in range(4):
        writer = round.writer(30, threads=round.chance.choice((1, 1, 4)))
        _await_note(round, writer)
        round.pause(0.05, 1.5)
        round.kill(writer)
        if round.chance.random() < 0.3:
            round.kill(follower)
            follower = round.follower(60)
    round.leave(round.writer(1.0))
    round.kill(follower)


def several(round: Round) -> None:
    """Several processes write at once, some with failing system calls; each is killed or ends, and another begins."""
    follower = round.follower(60)
    writers = [round.writer(30, threads=round.chance.choice((1, 1, 3))) for _ in range(3)]
    for writer in writers:
        _await_note(round, writer)
    for _ in range(6):
        round.pause(0.05, 1.0)
        round.kill(writers.pop(round.chance.randrange(len(writers))))
        plan = faults.plan(round.chance) if round.chance.random() < 0.3 else None
        env = None if plan is None else faults.preload(round.store, round.report, faults=plan)
        writers.append(round.writer(30, env=env))
        _await_note(round, writers[-1])
    for writer in writers:
        round.kill(writer)
    round.leave(round.writer(1.0))
    round.kill(follower)


def stop(round: Round) -> None:
    """A writer and its followers are halted and go on, in any order."""
    processes = [round.writer(6, threads=3), round.follower(8), round.follower(8)]
    _await_note(round, processes[0])
    for _ in range(8):
        round.stop(round.chance.choice(processes), round.chance.choice((0.02, 0.1, 0.5)))
        round.pause(0, 0.3)
    for process in processes:
        round.leave(process)


def fault(round: Round) -> None:
    """System calls of writers and of followers fail."""
    follower = round.follower(40)
    for _ in range(3):
        env = faults.preload(round.store, round.report, faults=faults.plan(round.chance))
        faulty = round.follower(3, env=faults.preload(round.store, round.report, faults=faults.plan(round.chance, ("open", "read", "mmap"))), faulty=True)  # fmt: skip
        writer = round.writer(round.chance.uniform(1, 3), threads=round.chance.choice((1, 3, 8)), env=env)
        if round.chance.random() < 0.3:
            _await_note(round, writer)
            round.pause(0.1, 1.5)
            round.kill(writer)
        round.leave(writer)
        round.leave(faulty)
    round.kill(follower)


def full(round: Round) -> None:
    """The disk is full, and after a while it has room again."""
    room = round.folder / "room"
    follower = round.follower(40)
    for _ in range(2):
        room.unlink(missing_ok=True)
        size = round.chance.randint(1_000, 600_000)
        writer = round.writer(
            5,
            threads=round.chance.choice((1, 3)),
            env=faults.preload(round.store, round.report, bytes=size, room=room),
        )
        _await_note(round, writer)
        round.pause(1.0, 2.5)
        if round.chance.random() < 0.3:
            round.kill(writer)
        room.touch()
        round.leave(writer)
    round.kill(follower)


def clock(round: Round) -> None:
    """The clock jumps ahead and back, by seconds to years, while writers come and go."""
    hands = faults.JumpingClock(round.folder / "clock")
    env = faults.preload(round.store, round.report, clock=hands.file)
    follower = round.follower(40, env=env)
    for _ in range(3):
        writer = round.writer(3, threads=2, env=env)
        _await_note(round, writer)
        for _ in range(3):
            hands.move(round.chance.choice((0, 0, -1, 5, 3_600, -86_400, 10 * 86_400, 3 * 365 * 86_400)))
            round.counts["clock jumps"] += 1
            round.pause(0.1, 0.5)
        if round.chance.random() < 0.5:
            round.kill(writer)
        round.leave(writer)
    round.kill(follower)


def serve(round: Round) -> None:
    """A server is killed and started again under clients in processes of their own; its system calls fail, it is halted."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    follower = round.follower(60)
    server = _served(round, port, None)
    token = {"GRAPHSTORE_TOKEN": (round.store / "token").read_text().strip()}
    clients = [round.writer(8, where=url, threads=3, env=token) for _ in range(2)]
    for client in clients:
        _await_note(round, client)
    for _ in range(3):
        round.pause(0.3, 1.5)
        harm = round.chance.choice(("kill", "kill", "stop", "fault"))
        if harm == "stop":
            round.stop(server, 0.5)
            continue
        round.kill(server)
        env = (
            faults.preload(round.store, round.report, faults=faults.plan(round.chance))
            if harm == "fault"
            else None
        )
        server = _served(round, port, env)
    while server.poll() is None and any(client.poll() is None for client in clients):
        time.sleep(0.05)
    if server.poll() is not None and any(client.poll() is None for client in clients):
        server = _served(round, port, None)  # it ended by a fault that was injected as it began
    for client in clients:
        round.leave(client)
    server.terminate()
    round.leave(server)
    round.kill(follower)


ROUNDS: dict[str, Callable[[Round], None]] = {
    act.__name__: act for act in (kill, several, fault, serve, full, stop, clock)
}


def _await_note(round: Round, process: subprocess.Popen[bytes]) -> None:
    """Until a writing process has been told of its first outcome, or has ended."""
    words = list(map(str, process.args))  # type: ignore[arg-type]
    name = words[words.index("--name") + 1]
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        if any(b"acknowledged" in file.read_bytes() for file in round.notes.glob(f"client-{name}t*.jsonl")):
            return
        time.sleep(0.01)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _served(round: Round, port: int, env: dict[str, str] | None) -> subprocess.Popen[bytes]:
    """A server that answers; one that a fault ended before is started again without faults."""
    for more in (env, None, None):
        server = round.start("graphstore", "serve", round.store, "--port", port, "--no-ticks", env=more)
        end = time.monotonic() + 30
        while time.monotonic() < end and server.poll() is None:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5),
            ):
                return server
            time.sleep(0.02)
        round.kill(server)
    raise RuntimeError("no server could be started")


@contextlib.contextmanager
def room_for(name: str, seed: str, keep: Path | None) -> Iterator[Round]:
    """A round in a folder of its own, which is kept when something was found."""
    folder = Path(tempfile.mkdtemp(prefix=f"lab-{name}-", dir=keep))
    round = Round(name, seed, folder)
    yield round
    if not round.problems:
        shutil.rmtree(folder, ignore_errors=True)
