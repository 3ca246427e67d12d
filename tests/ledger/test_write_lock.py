"""One writer at a time: among threads in order of arrival, among processes by a lock that ends with its process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from graphstore import EngineError, LockedError
from graphstore.ledger.write_lock import WriteLock

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")


@pytest.fixture
def file(tmp_path):
    (tmp_path / "memory.gs").mkdir()
    return tmp_path / "memory.gs" / "write.lock"


@pytest.fixture
def lock(file):
    lock = WriteLock(file)
    yield lock
    lock.close()


@pytest.fixture
def start(file):
    """Start a worker; those that still run are killed at the end."""
    started = []

    def start(what, *more):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.ledger.lock_worker", what, str(file), *map(str, more)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def held_elsewhere(start, seconds=0):
    process = start("hold", seconds)
    assert "held\n" == process.stdout.readline()
    return process


def until(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.001)


def is_free(file):
    """Return True if a process of its own gets the lock at once."""
    code = "import sys; from pathlib import Path; from graphstore.ledger.write_lock import WriteLock; WriteLock(Path(sys.argv[1])).acquire(0)"
    return (
        0 == subprocess.run([sys.executable, "-c", code, str(file)], cwd=ROOT, capture_output=True).returncode
    )


def child(do):
    """Run a function in a forked child; return its exit code: 0 if it returned True."""
    pid = os.fork()
    if not pid:
        code = 2
        try:
            code = 0 if do() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def descriptors(file):
    """Return how many descriptors of this file the process has open."""
    real = file.stat()
    found = 0
    for fd in Path("/dev/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor that lists the folder is closed again
            found += os.path.samestat(os.fstat(int(fd.name)), real)
    return found


# ---------------------------------------------------------------- in one process


def test_a_lock_is_held_between_acquire_and_release(lock):
    assert not lock.held
    lock.acquire(0)
    assert lock.held
    lock.release()
    assert not lock.held


def test_the_file_names_the_holder_and_is_private(lock, file):
    file.write_text("pid 123456789 on a host with a long name\n")
    lock.acquire(0)

    assert f"pid {os.getpid()} on {socket.gethostname()}\n" == file.read_text()
    assert 0 == stat.S_IMODE(file.stat().st_mode) & 0o077


def test_a_thread_that_acquires_twice_is_refused_and_still_holds_the_lock(lock, file):
    lock.acquire(0)
    with pytest.raises(RuntimeError, match="already"):
        lock.acquire(0)
    with pytest.raises(RuntimeError, match="already"):
        WriteLock(file).acquire(0)
    assert lock.held


def test_threads_take_turns_in_the_order_of_arrival(lock, file):
    turns = []

    def write(number):
        own = WriteLock(file)
        own.acquire(30)
        turns.append(number)
        own.release()
        own.close()

    lock.acquire(0)
    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        until(lambda wanted=number: len(lock._queue.waiting) == wanted)
    lock.release()
    for thread in threads:
        thread.join()

    assert list(range(8)) == turns


def test_a_thread_that_waits_too_long_for_another_is_refused(lock):
    lock.acquire(0)
    errors = []

    def wait():
        try:
            lock.acquire(0.02)
        except LockedError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()

    assert f"another thread of this process (pid {os.getpid()})" in str(errors[0])
    assert "not kept" == errors[0].outcome
    lock.release()
    lock.acquire(0)


def test_release_by_a_thread_that_does_not_hold_the_lock_does_nothing(lock):
    lock.acquire(0)
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()

    assert lock.held


def test_a_closed_lock_has_no_file_open_and_is_refused(lock, file):
    lock.acquire(0)
    lock.close()

    assert not lock.held
    assert 0 == descriptors(file)
    with pytest.raises(EngineError, match="closed"):
        lock.acquire(0)


def test_a_lock_closed_by_another_thread_is_held_until_its_release(lock, file):
    lock.acquire(0)
    thread = threading.Thread(target=lock.close)
    thread.start()
    thread.join()

    assert lock.held
    assert not is_free(file)
    lock.release()
    assert 0 == descriptors(file)
    assert is_free(file)


# ---------------------------------------------------------------- a folder that is not what it was


def test_a_removed_folder_is_refused(lock, file):
    lock.acquire(0)
    lock.release()
    shutil.rmtree(file.parent)

    with pytest.raises(EngineError, match=r"write\.lock was moved, removed or replaced") as refused:
        lock.acquire(0)
    assert "not kept" == refused.value.outcome
    assert not lock.held


def test_a_replaced_folder_is_refused_and_the_new_one_can_be_locked(lock, file):
    file.parent.rename(file.parent.with_name("moved.gs"))
    file.parent.mkdir()
    new = WriteLock(file)

    with pytest.raises(EngineError, match="replaced"):
        lock.acquire(0)
    new.acquire(0)
    new.close()


def test_a_folder_that_is_moved_back_can_be_locked_again(lock, file):
    moved = file.parent.rename(file.parent.with_name("moved.gs"))
    with pytest.raises(EngineError):
        lock.acquire(0)
    moved.rename(file.parent)

    lock.acquire(0)


def test_a_folder_removed_before_the_file_is_opened_again_is_refused_and_not_made(lock, file):
    child(lambda: True)  # closes the idle file
    file.unlink()

    with pytest.raises(EngineError, match="removed"):
        lock.acquire(0)
    assert not file.exists()


def test_a_link_in_the_place_of_the_file_is_not_opened(file, tmp_path):
    (tmp_path / "mine").write_text("mine")
    file.symlink_to(tmp_path / "mine")
    with pytest.raises(EngineError, match="symbolic link"):
        WriteLock(file)
    file.unlink()
    file.hardlink_to(tmp_path / "mine")
    with pytest.raises(EngineError, match="hard link"):
        WriteLock(file)

    assert "mine" == (tmp_path / "mine").read_text()


def test_a_missing_folder_is_an_engine_error(tmp_path):
    with pytest.raises(EngineError, match="cannot open"):
        WriteLock(tmp_path / "none" / "write.lock")


# ---------------------------------------------------------------- fork


def test_an_idle_lock_is_closed_in_a_child_and_opened_again_in_both(lock, file):
    assert 1 == descriptors(file)

    def use():
        first = descriptors(file)
        lock.acquire(0)
        return 0 == first and lock.held

    assert 0 == child(use)
    assert 0 == descriptors(file)
    lock.acquire(0)
    assert lock.held


def test_a_child_does_not_hold_what_its_parent_holds(lock, file):
    lock.acquire(0)

    def use():
        own = not lock.held and 0 == descriptors(file)
        lock.release()  # as the end of a with block does
        try:
            lock.acquire(0.02)
        except LockedError as error:
            return own and f"pid {os.getppid()}" in str(error)
        return False

    assert 0 == child(use)
    assert lock.held
    assert not is_free(file)


def test_a_child_of_a_killed_parent_does_not_keep_the_lock(file):
    code = """if True:
        import os, signal, sys, time
        from pathlib import Path
        from graphstore.ledger.write_lock import WriteLock
        lock = WriteLock(Path(sys.argv[1]))
        lock.acquire(0)
        if os.fork() == 0:
            print(os.getpid(), flush=True)
            time.sleep(60)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    pid = int(parent.stdout.readline())
    try:
        assert -signal.SIGKILL == parent.wait()
        lock = WriteLock(file)
        lock.acquire(5)
        lock.close()
    finally:
        os.kill(pid, signal.SIGKILL)
        parent.stdout.close()


def test_a_child_forked_by_a_process_that_waits_waits_for_itself(lock, file, start):
    process = held_elsewhere(start)
    with pytest.raises(LockedError):
        lock.acquire(0.02)  # its helper still waits

    def use():
        process.stdin.write("\n")
        process.stdin.flush()
        lock.acquire(20)
        return lock.held

    assert 0 == child(use)
    lock.acquire(20)


# ---------------------------------------------------------------- among processes


def test_a_holder_in_another_process_is_named(lock, start):
    process = held_elsewhere(start)
    begun = time.monotonic()
    with pytest.raises(LockedError) as refused:
        lock.acquire(0.05)

    assert 0.05 <= time.monotonic() - begun < 10
    assert f"pid {process.pid} on {socket.gethostname()}" in str(refused.value)
    if sys.platform == "linux":
        assert "-m tests.ledger.lock_worker" in str(refused.value)
    assert "not kept" == refused.value.outcome
    assert not lock.held


def test_a_lock_that_arrives_late_is_given_back(lock, file, start):
    process = held_elsewhere(start)
    with pytest.raises(LockedError):
        lock.acquire(0.02)
    process.communicate("\n")

    until(lambda: is_free(file))
    assert not lock.held
    lock.acquire(20)


def test_one_helper_waits_however_often_a_process_tries(lock, start):
    process = held_elsewhere(start)
    before = threading.active_count()
    for _ in range(20):
        with pytest.raises(LockedError):
            lock.acquire(0.001)
    assert threading.active_count() <= before + 1

    process.stdin.write("\n")
    process.stdin.flush()
    lock.acquire(20)
    assert lock.held


def test_a_lock_closed_while_its_helper_waits_closes_the_file_later(lock, file, start):
    process = held_elsewhere(start)
    with pytest.raises(LockedError):
        lock.acquire(0)
    lock.close()
    process.communicate("\n")

    until(lambda: 0 == descriptors(file))


def test_a_killed_holder_lets_the_next_one_in(lock, start):
    process = held_elsewhere(start)
    threading.Timer(0.05, process.kill).start()
    lock.acquire(20)

    assert lock.held


def test_ctrl_c_while_waiting_leaves_the_lock_free(lock, file, start):
    process = held_elsewhere(start)
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        lock.acquire(20)
    assert not lock.held
    process.communicate("\n")

    until(lambda: is_free(file))
    lock.acquire(20)


def test_ctrl_c_while_waiting_for_a_thread_leaves_the_queue(lock, file):
    taken, over = threading.Event(), threading.Event()

    def hold():
        own = WriteLock(file)
        own.acquire(20)
        taken.set()
        over.wait(20)
        own.close()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(20)
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        lock.acquire(20)
    over.set()
    thread.join()

    assert not lock.held
    assert is_free(file)


@pytest.mark.rest
def test_processes_and_threads_exclude_each_other(file, start):
    (file.parent / "counter").write_text("0")
    for process in [start("count", 3, 50) for _ in range(4)]:
        assert 0 == process.wait(60)

    assert "600" == (file.parent / "counter").read_text()


@pytest.mark.rest
def test_no_process_starves(file, start):
    processes = [start("race", 2) for _ in range(4)]
    for process in processes:
        assert "ready\n" == process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    shares = [int(process.stdout.readline()) for process in processes]

    assert min(shares) >= sum(shares) / len(shares) / 10, shares


@pytest.mark.rest
def test_threads_take_turns_where_the_system_has_no_file_locks(file):
    (file.parent / "counter").write_text("0")
    code = "import sys; sys.modules['fcntl'] = None; from tests.ledger.lock_worker import count; count(sys.argv[1], '4', '50')"
    subprocess.run([sys.executable, "-c", code, str(file)], cwd=ROOT, check=True)

    assert "200" == (file.parent / "counter").read_text()
