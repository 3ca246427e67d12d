"""Any number of processes and threads that write and read one store, and what a fork leaves of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError, GraphStoreError, InvalidError, NotFoundError
from tests.support.disk import no_room

pytestmark = pytest.mark.rest

HOLDER = """
import sys, graphstore
store = graphstore.open(sys.argv[1])
store.add_node("fact", {}, id="of-the-holder")
print("open", flush=True)
sys.stdin.readline()
store.close()
"""

# Does what it is told, a line at a time, on a store it opened for reading.
FOLLOWER = """
import json, sys, graphstore
store = graphstore.open(sys.argv[1], read_only=True)
print(json.dumps("open"), flush=True)
for line in sys.stdin:
    try:
        answer = eval(line)
    except graphstore.GraphStoreError as error:
        answer = [type(error).__name__, str(error)]
    print(json.dumps(answer, default=str), flush=True)
store.close()
"""


class Other:
    """Another process that runs a script on the store."""

    def __init__(self, script: str, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.heard()

    def heard(self):
        line = self.process.stdout.readline()
        assert line, f"the other process ended with {self.process.wait()}"
        return (
            json.loads(line)
            if line.startswith(("[", "{", '"'))
            or line[0].isdigit()
            or line.strip() in ("null", "true", "false")
            else line
        )

    def asked(self, expression: str):
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return self.heard()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(timeout=20)
        self.process.stdout.close()


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "memory.gs"


# ---------------------------------------------------------------- the lock


def test_a_second_process_writes_too(path):
    with Other(HOLDER, path) as holder:
        with graphstore.open(path) as store:
            assert "of-the-holder" == store.node("of-the-holder").id
            store.add_node("fact", {}, id="of-the-second")
            assert ["of-the-holder", "of-the-second"] == ids_in(store)
        assert holder.process.poll() is None
    with graphstore.open(path) as store:
        assert ["of-the-holder", "of-the-second"] == ids_in(store)
        assert store.verify().ok


def test_the_lock_falls_with_its_holder(path):
    with Other(HOLDER, path) as holder:
        holder.process.send_signal(signal.SIGKILL)
        holder.process.wait()
        with graphstore.open(path) as store:
            assert "of-the-holder" == store.node("of-the-holder").id
            assert store.verify().ok


def test_a_lock_file_left_behind_locks_nothing(path):
    graphstore.open(path).close()
    for file in path.rglob("*lock*"):
        file.write_text("99999999")
    graphstore.open(path).close()


def test_two_stores_of_one_process_write_under_any_name_of_the_folder(path):
    with graphstore.open(path) as store:
        names = (path, str(path), path.parent / "." / path.name, path.parent / "x" / ".." / path.name)
        for number, same in enumerate(names):
            with graphstore.open(same) as other:
                other.add_node("fact", {}, id=f"fact-{number}")
                assert f"fact-{number}" == store.node(f"fact-{number}").id
        store.add_node("fact", {}, id="fact-a")
    with graphstore.open(path) as store:
        assert 5 == len(store.nodes())


def test_a_link_to_the_folder_is_the_same_store(path):
    link = path.with_name("alias.gs")
    with graphstore.open(path) as store:
        link.symlink_to(path)
        with graphstore.open(link) as other:
            for number in range(10):
                (store, other)[number % 2].add_node("fact", {}, id=f"fact-{number}")
        assert 10 == len(store.nodes())
        assert store.verify().ok


def test_a_store_that_closes_takes_nothing_from_another(path):
    """Closing any handle of a file may drop the locks of the whole process: who waits for the lock must go on waiting."""
    script = """
    import sys, graphstore
    store = graphstore.open(sys.argv[1], timeout=0.3)
    try:
        store.add_node("fact", {}, id="refused")
    except graphstore.LockedError:
        print('"locked"')
    """
    with graphstore.open(path) as store, store.transaction():
        graphstore.open(path).close()
        told = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert '"locked"' == told.stdout.strip(), told.stderr
        store.add_node("fact", {}, id="kept")
    with graphstore.open(path) as store:
        assert ["kept"] == ids_in(store)


def test_stores_side_by_side(tmp_path):
    with (
        graphstore.open(tmp_path / "a.gs") as a,
        graphstore.open(tmp_path / "b.gs") as b,
        graphstore.open(":memory:") as c,
    ):
        for store, name in ((a, "in-a"), (b, "in-b"), (c, "in-c")):
            store.add_node("fact", {}, id=name)
        assert [["in-a"], ["in-b"], ["in-c"]] == [[node.id for node in store.nodes()] for store in (a, b, c)]
        asked = [store.query("MATCH (n:Node) RETURN n.id AS id").rows() for store in (a, b, c)]
        assert [[{"id": "in-a"}], [{"id": "in-b"}], [{"id": "in-c"}]] == asked


# ---------------------------------------------------------------- readers beside a writer


def test_readers_follow_the_writer(path):
    with graphstore.open(path, author="maria") as store:
        store.add_node("fact", {"n": 1}, id="fact-a")
        with Other(FOLLOWER, path) as one, Other(FOLLOWER, path) as two:
            assert {"n": 1} == one.asked("store.node('fact-a').content")
            store.revise("fact-a", {"n": 2})
            with store.transaction():
                store.add_node("fact", {"n": 3}, id="fact-b", supersedes=["fact-a"], reason="newer")
                store.record_event("deploy", "v1", id="the-deploy", related_to="fact-b")

            for reader in (one, two):
                assert ["fact-b"] == reader.asked("[node.id for node in store.nodes()]")
                assert [1, 2] == sorted(set(reader.asked("[row.number for row in store.versions('fact-a')]")))
                assert ["fact-b", "maria", "newer"] == reader.asked(
                    "[(s.node.id, s.who, s.why) for s in store.what_superseded('fact-a').chain][0]"
                )
                assert ["the-deploy"] == reader.asked("[event.id for event in store.events()]")
                assert [{"new": "fact-b", "old": "fact-a"}] == reader.asked(
                    "store.query('MATCH (a:Node)-[:SUPERSEDES]->(b) RETURN a.id AS new, b.id AS old').rows()"
                )
                assert [{"n": 2}] == reader.asked(
                    "store.query_tables('MATCH (n:Node) RETURN count(*) AS n').rows()"
                )
                assert reader.asked("store.verify().ok")

            store.add_node("fact", {}, id="fact-c")
            for reader in (one, two):
                assert [{"n": 3}] == reader.asked(
                    "store.query_tables('MATCH (n:Node) RETURN count(*) AS n').rows()"
                )
        store.add_node("fact", {}, id="fact-d")


def test_a_readers_view_stays_where_it_is(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 1}, id="fact-a")
        with Other(FOLLOWER, path) as reader:
            reader.asked("globals().update(view=store.as_of())")
            store.revise("fact-a", {"n": 2})
            assert [{"n": 1}, {"n": 2}] == reader.asked(
                "[view.node('fact-a').content, store.node('fact-a').content]"
            )


def test_a_reader_writes_nothing(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="fact-a")
        store.add_node("fact", {}, id="fact-b")
        store.record_event("note", "x", id="the-note")
    before = contents(path)
    with graphstore.open(path, read_only=True) as reader:
        for verb in (
            lambda: reader.add_node("fact", {}),
            lambda: reader.revise("fact-a", {}),
            lambda: reader.supersede("fact-a", by="fact-b"),
            lambda: reader.end("fact-a"),
            lambda: reader.retract("fact-a", reason="x"),
            lambda: reader.link("fact-a", "uses", "fact-b"),
            lambda: reader.unlink("lnk_0123456789abcdef"),
            lambda: reader.record_event("note", "x"),
            lambda: reader.bulk_load(versions=[{"node_id": "bulk-1", "content": {}}]),
            lambda: reader.define_kind("reviews"),
            lambda: reader.promote_kind("uses"),
            lambda: reader.transaction().__enter__(),
        ):
            with pytest.raises(GraphStoreError, match=r"read_only|read-only|reading"):
                verb()
        assert [{"n": 2}] == reader.query_tables("MATCH (n:Node) RETURN count(*) AS n").rows()
        reader.query("MATCH (n:Node) RETURN n.id AS id")
        reader.rebuild()
    assert before == contents(path)


def contents(path: Path) -> dict[Path, bytes]:
    """The bytes of all files of a store that is closed; but SQLite makes an empty WAL, and its index, for who only reads."""
    found = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert not found.pop(path / "ledger.db-wal", b"")
    found.pop(path / "ledger.db-shm", None)
    return found


def test_readers_and_a_writer_in_one_process(path):
    with graphstore.open(path) as store, graphstore.open(path, read_only=True) as reader:
        store.add_node("fact", {}, id="fact-a")
        assert "fact-a" == reader.node("fact-a").id
        assert [{"id": "fact-a"}] == reader.query("MATCH (n:Node) RETURN n.id AS id").rows()
        store.add_node("fact", {}, id="fact-b")


def test_a_reader_opened_first_is_no_lock(path):
    graphstore.open(path).close()
    with graphstore.open(path, read_only=True) as reader, graphstore.open(path) as store:
        store.add_node("fact", {}, id="fact-a")
        assert "fact-a" == reader.node("fact-a").id


def test_a_reader_never_sees_half_a_transaction(path):
    """It refreshes as fast as it can beside a writer whose transactions each add a pair."""
    script = """
    import sys, graphstore
    store = graphstore.open(sys.argv[1], read_only=True)
    print("open", flush=True)
    seen = 0
    while seen < 300:
        store.refresh()
        nodes = store.nodes(kind="pair")
        assert len(nodes) % 2 == 0, len(nodes)
        seen = len(nodes)
    print(store.verify().ok, flush=True)
    """
    with graphstore.open(path) as store, Other(script, path) as reader:
        for number in range(150):
            with store.transaction():
                store.add_node("pair", {"pad": "x" * 3000}, id=f"left-{number:04}")
                store.add_node("pair", {"pad": "x" * 3000}, id=f"right-{number:04}")
        assert "True" == reader.heard().strip()


# ---------------------------------------------------------------- threads


def in_threads(*works) -> None:
    """Run all at once; the first error of any is raised."""
    errors: list[BaseException] = []

    def run(work) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


def test_many_readers_while_one_writes(path):
    """Each transaction moves one unit between two accounts; nobody ever sees a sum other than nothing. Every third one is given up."""
    done = threading.Event()
    with graphstore.open(path) as store:
        with store.transaction():
            store.add_node("account", {"n": 0}, id="account-a", valid_from="2025-01-01")
            store.add_node("account", {"n": 0}, id="account-b", valid_from="2025-01-01")

        def write() -> None:
            try:
                for number in range(1, 61):
                    try:
                        with store.transaction():
                            store.revise("account-a", {"n": -number}, valid_from="2025-02-01")
                            store.add_node(
                                "trace",
                                {},
                                id=f"trace-{number:05}",
                                supersedes=[n.id for n in store.nodes(kind="trace")],
                            )
                            store.record_event("move", "x", id=f"move-{number:05}", related_to="account-a")
                            if number % 3 == 0:
                                raise KeyError
                            store.revise("account-b", {"n": number}, valid_from="2025-02-01")
                    except KeyError:
                        pass
            finally:
                done.set()

        def read() -> None:
            while not done.is_set():
                view = store.as_of()
                first = [view.node(name).content["n"] for name in ("account-a", "account-b")]
                assert sum(first) == 0, first
                assert first == [view.node(name).content["n"] for name in ("account-a", "account-b")]
                assert len(view.nodes(kind="trace")) <= 1
                assert first[1] == 0 or f"trace-{first[1]:05}" == view.nodes(kind="trace")[0].id
                assert all(event.id in {e.id for e in view.events()} for event in view.events()[-3:])
                assert len(view.versions("account-a")) >= 1
                view.links_from("account-a")
                view.what_superseded("account-a")
                assert store.node("account-a").content["n"] <= 0

        def ask() -> None:
            while not done.is_set():
                rows = store.query_tables(
                    "MATCH (n:Node)-[:HAS_VERSION]->(v:Version) WHERE n.kind = 'account' AND v.tx_to > $t "
                    "AND v.valid_to > $t RETURN v.content AS c",
                    t="9000-01-01",
                ).rows()
                assert 0 == sum(json.loads(row["c"])["n"] for row in rows), rows

        in_threads(write, read, read, read, ask)
        assert 40 == len(store.events())
        assert store.verify().ok
    with graphstore.open(path) as store:
        assert 40 == len(store.events())


def test_transactions_of_two_threads_wait_for_each_other(path):
    with graphstore.open(path) as store:
        store.add_node("counter", {"n": 0}, id="counter")

        def count() -> None:
            for _ in range(100):
                with store.transaction():
                    n = store.node("counter").content["n"]
                    time.sleep(0)
                    store.revise("counter", {"n": n + 1})

        in_threads(count, count, count)
        assert {"n": 300} == store.node("counter").content
        instants = [change.tx for change in store.changes()]
        assert sorted(instants) == instants


def test_single_verbs_of_many_threads_are_all_kept(path):
    with graphstore.open(path) as store:

        def add(name: str) -> None:
            for number in range(100):
                store.add_node("fact", {"n": number}, id=f"{name}-{number:04}")

        in_threads(*[lambda name=name: add(name) for name in ("thread-a", "thread-b", "thread-c")])
        nodes = store.nodes()
        assert 300 == len(nodes) == len({node.tx_from for node in nodes})
        assert store.verify().ok


def test_an_open_transaction_is_invisible_to_other_threads(tmp_path, clock):
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        store.add_node("fact", {"n": 1}, id="fact-a")
        seen: dict[str, object] = {}

        def look() -> None:
            clock.move(days=1)  # the block's instant lies in the past of this reader
            seen["content"] = store.node("fact-a").content
            seen["nodes"] = [node.id for node in store.nodes()]
            seen["events"] = store.events()
            seen["view"] = store.as_of()
            seen["versions"] = len(store.versions("fact-a"))
            seen["rows"] = store.query_tables("MATCH (n:Node) RETURN n.id AS id").rows()
            try:
                seen["inspect"] = store.inspect("fact-new")
            except NotFoundError:
                seen["inspect"] = None

        with store.transaction():
            store.revise("fact-a", {"n": 2})
            store.add_node("fact", {}, id="fact-new")
            store.record_event("note", "x")
            thread = threading.Thread(target=look)
            thread.start()
            thread.join(timeout=20)
            assert not thread.is_alive(), "a reader waits for the writer"
            assert {"n": 2} == store.node("fact-a").content

        view = seen.pop("view")
        assert {
            "content": {"n": 1},
            "nodes": ["fact-a"],
            "events": [],
            "versions": 1,
            "rows": [{"id": "fact-a"}],
            "inspect": None,
        } == seen
        # The view that was handed out meanwhile does not change when the block ends.
        assert {"n": 1} == view.node("fact-a").content
        assert ["fact-a"] == [node.id for node in view.nodes()]
        assert {"n": 2} == store.node("fact-a").content


def test_a_writer_waits_for_the_block_of_another_thread(path):
    order: list[str] = []
    with graphstore.open(path) as store:
        inside, may_leave = threading.Event(), threading.Event()

        def hold() -> None:
            with store.transaction():
                store.add_node("fact", {}, id="from-the-block")
                inside.set()
                may_leave.wait(20)
                order.append("block")

        def verb() -> None:
            inside.wait(20)
            store.add_node("fact", {}, id="from-outside")
            order.append("verb")

        def release() -> None:
            inside.wait(20)
            time.sleep(0.1)
            may_leave.set()

        in_threads(hold, verb, release)
        assert ["block", "verb"] == order
        assert store.node("from-the-block").tx_from < store.node("from-outside").tx_from


def test_a_block_may_be_left_by_an_error_in_one_thread_while_another_waits(path):
    with graphstore.open(path) as store:

        def fail() -> None:
            for _ in range(50):
                with pytest.raises(InvalidError), store.transaction():
                    store.add_node("fact", {})
                    raise InvalidError("x")

        def add() -> None:
            for number in range(50):
                store.add_node("fact", {}, id=f"kept-{number:04}")

        in_threads(fail, add)
        assert 50 == len(store.nodes())


# ---------------------------------------------------------------- fork


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_may_not_write_through_the_parents_store(path):
    """Two processes with one lock and one idea of the journal's end would write over each other."""
    script = """
    import os, sys, graphstore
    store = graphstore.open(sys.argv[1])
    store.add_node("fact", {}, id="from-parent")
    child = os.fork()
    if child == 0:
        try:
            store.add_node("fact", {}, id="from-child")
        except graphstore.GraphStoreError as error:
            os.write(1, f"refused: {error}\\n".encode())
        os._exit(0)
    os.waitpid(child, 0)
    store.add_node("fact", {}, id="after-child")
    with graphstore.open(sys.argv[1]) as second:
        print(len(second.nodes()))
    store.close()
    """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 0, told.stderr
    assert "refused:" in told.stdout and "2" == told.stdout.split()[-1], told.stdout
    with graphstore.open(path) as store:
        assert ["after-child", "from-parent"] == sorted(node.id for node in store.nodes())
        assert store.verify().ok


def test_a_store_is_not_pickled(path):
    import pickle

    with graphstore.open(path) as store, pytest.raises((TypeError, EngineError)):
        pickle.dumps(store)


# ---------------------------------------------------------------- group commit


def test_all_the_threads_that_write_at_once_are_kept(path):
    with graphstore.open(path) as store:

        def write(worker):
            for number in range(10):
                store.add_node("fact", {"n": number}, id=f"fact-{worker}-{number}")
                assert {"n": number} == store.node(f"fact-{worker}-{number}").content

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(write, range(8)))
        assert 80 == len(store.nodes())
        assert store.verify().ok


def test_what_is_refused_of_many_threads_is_taken_back(path):
    refusals = []

    def write(worker):
        try:
            store.add_node("fact", {}, id=f"fact-{worker}")
        except EngineError as error:
            assert "not kept" == error.outcome
            refusals.append(str(error))

    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="before")
        with no_room(), ThreadPoolExecutor(6) as threads:
            list(threads.map(write, range(6)))
        assert 6 == len(refusals)
        assert ["before"] == ids_in(store)
        store.add_node("fact", {}, id="after")
        assert store.verify().ok
    with graphstore.open(path) as store:
        assert ["after", "before"] == sorted(ids_in(store))


def ids_in(store):
    return [node.id for node in store.nodes()]


def test_a_group_shows_to_nobody_else_before_its_end(path):
    own, told, look_on = [], threading.Event(), threading.Event()

    def write():
        with store.together():
            for name in ("one", "two"):
                store.add_node("fact", {}, id=name)
                own.append(ids_in(store))
            branch.add_node("fact", {}, id="on-branch")
            told.set()
            assert look_on.wait(10)

    with graphstore.open(path) as store, graphstore.open(path) as other:
        branch = store.branch("draft")
        store.add_node("fact", {}, id="before")
        writer = threading.Thread(target=write)
        writer.start()
        assert told.wait(10)
        seen = [ids_in(each) for each in (store, other, store.as_of(), branch)]
        view, changes = store.as_of(), store.changes()
        look_on.set()
        writer.join()
        assert [["before", "one"], ["before", "one", "two"]] == own
        assert [["before"], ["before"], ["before"], []] == seen
        assert "before" == changes[-1].subject
        assert ["before", "one", "two"] == ids_in(store) == ids_in(other)
        assert (["before"], ["on-branch"]) == (ids_in(view), ids_in(branch))


def test_a_group_within_a_group_is_part_of_it(path):
    with graphstore.open(path) as store, graphstore.open(path) as other:
        with store.together():
            store.add_node("fact", {}, id="one")
            store.bulk_load(versions=[{"node_id": "two", "content": {}}])
            store.add_node("fact", {}, id="three")
            assert [] == ids_in(other)
        assert ["one", "three", "two"] == sorted(ids_in(store)) == sorted(ids_in(other))


def test_erasing_within_a_group_is_refused_before_anything_is_lost(path):
    with graphstore.open(path) as store:
        secret = store.record_event("deploy", "of a secret").event.id
        with pytest.raises(EngineError), store.together():
            store.add_node("fact", {}, id="first")
            with no_room():
                store.erase(secret, reason="a secret")
        assert "of a secret" == store.event(secret).description
        with store.together():
            store.erase(secret, reason="a secret")
            store.add_node("fact", {}, id="after")
        assert "erased" == store.inspect(secret).node.standing
        assert store.verify().ok
    with graphstore.open(path) as store:
        assert "erased" == store.inspect(secret).node.standing
        assert store.verify().ok


def test_a_group_that_the_disk_refuses_is_taken_back(path):
    with graphstore.open(path) as store:
        branch = store.branch("draft")
        with (
            pytest.raises(EngineError, match="Nothing of this transaction was kept") as refused,
            no_room(),
            store.together(),
        ):
            store.add_node("fact", {}, id="on-trunk")
            branch.add_node("fact", {}, id="on-branch")
        assert "not kept" == refused.value.outcome
        assert ([], []) == (ids_in(store), ids_in(branch))
        store.add_node("fact", {}, id="after")
        assert ["after"] == ids_in(store)
        assert store.verify().ok


def test_a_reader_never_sees_what_a_writer_took_back(path):
    with graphstore.open(path) as store, graphstore.open(path, read_only=True) as reader:
        store.add_node("fact", {"text": "kept"}, id="kept")
        with pytest.raises(EngineError, match="Nothing of this transaction was kept"), no_room():
            store.add_node("fact", {"text": "gone"}, id="gone")
        with pytest.raises(NotFoundError):
            reader.node("gone")
        store.add_node("fact", {"text": "more"}, id="more")
        assert ["kept", "more"] == sorted(ids_in(reader))


def test_a_group_that_raises_keeps_what_was_committed_before(path):
    with graphstore.open(path) as store, pytest.raises(ZeroDivisionError), store.together():
        store.add_node("fact", {}, id="one")
        raise ZeroDivisionError
    with graphstore.open(path) as store:
        assert ["one"] == ids_in(store)
