"""A store over HTTP: what it answers, what it refuses, and what becomes of a call when the connection breaks or somebody dies."""

from __future__ import annotations

import copy
import os
import pickle
import re
import socket
import threading
import time
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial

import pandas
import pyarrow
import pytest

import graphstore
from graphstore import (
    Branch,
    ConflictError,
    EngineError,
    GraphStore,
    InvalidError,
    NotFoundError,
    View,
    consolidation,
    memory,
    observer,
    recall,
    sessions,
    topics,
)
from graphstore.events.recorder import Recorder
from graphstore.events.timeline import record_message
from graphstore.remote import remote
from graphstore.remote.calls import CALLS
from tests.conftest import Clock
from tests.remote.test_calls import as_told
from tests.support.served import TOKENS, serve_in_process, serve_in_thread
from tests.support.world import QUESTIONS, fill


@pytest.fixture(scope="module")
def pair():
    """A store, and the same one over HTTP."""
    clock = Clock()
    with graphstore.open(":memory:", clock=clock) as store:
        fill(store, clock)
        with serve_in_thread(store) as url, graphstore.open(url, token=TOKENS.write, author="ana") as there:
            yield store, there


@pytest.fixture(scope="module")
def there(pair):
    return pair[1]


def whole_answer(server: socket.socket) -> bytes:
    """The bytes of an answer, to its end."""
    data = b""
    while True:
        data += server.recv(1 << 20)
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if end and length is not None and len(body) >= int(length[1]):
            return data


class Proxy:
    """Passes bytes between a client and a server, until it is told to cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.cuts = 0
        """So many connections more are cut: before the request gets through, or, with `after`, before its answer does."""
        self.after = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._to)) as server:
            while request := client.recv(1 << 20):
                if self.cuts and not self.after:
                    self.cuts -= 1
                    return
                server.sendall(request)
                answer = whole_answer(server)
                if self.cuts:
                    self.cuts -= 1
                    return
                client.sendall(answer)

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def cutting(store_itself):
    store, url = store_itself
    proxy = Proxy(int(url.rpartition(":")[2]))
    there = remote.connect(proxy.url, TOKENS.write)
    yield store, there, proxy
    there.close()
    proxy.close()


@pytest.fixture(scope="module")
def store_itself():
    with graphstore.open(":memory:") as store, serve_in_thread(store) as url:
        yield store, url


# ---------------------------------------------------------------- the same answers


@pytest.mark.parametrize(
    "name, args", QUESTIONS, ids=[f"{name}-{n}" for n, (name, _) in enumerate(QUESTIONS)]
)
def test_every_read_answers_as_in_process(pair, name, args):
    from graphstore.remote import calls, received

    store, there = pair
    expected = calls.run(CALLS[name], store, received.prepare(CALLS[name], args))

    assert as_told(expected) == as_told(there._ask(name, (), args))


def test_it_is_a_store_with_views_and_branches(there):
    assert isinstance(there, GraphStore)
    assert isinstance(there.as_of(), View)
    assert isinstance(there.on("plan"), Branch)
    assert there.on("plan") is there.on("plan")
    assert GraphStore.add_node.__doc__ == type(there).add_node.__doc__
    assert there.url in repr(there)


def test_a_view_reads_at_its_coordinate(pair):
    store, there = pair
    for at in (
        there.as_of(valid="2026-01-10"),
        there.as_of("release"),
        there.knowledge_at("2026-01-20"),
        there.on("plan").as_of(),
    ):
        assert isinstance(at.at.tx, datetime)
    assert store.as_of(valid="2026-01-10").node("sessions") == there.as_of(valid="2026-01-10").node(
        "sessions"
    )
    assert store.as_of("release").path("jwt", "sessions", "supersedes") == there.as_of("release").path(
        "jwt", "sessions", "supersedes"
    )
    assert there.as_of("release") == there.as_of("release")
    assert store.as_of("release").at == there.as_of("release").at


def test_rooms_are_answered_where_the_store_is(pair):
    store, there = pair
    view, far = store.as_of(), there.as_of()
    assert topics.latest_on(view, "auth") == topics.latest_on(far, "auth")
    assert recall.recall(store, "auth", kinds=iter(["fact"])) == recall.recall(
        there, "auth", kinds=iter(["fact"])
    )
    assert consolidation.consolidate(view, topic="auth") == consolidation.consolidate(far, topic="auth")
    assert sessions.listed(view) == sessions.listed(far)
    assert memory.Memory(store).stats(view) == memory.Memory(there).stats(far)
    assert memory.Memory(store).recall("tea") == memory.Memory(there).recall("tea")
    assert memory.Memory(store).layers == memory.Memory(there).layers


def test_parameters_of_a_query_keep_their_kind(pair):
    store, there = pair
    text = "RETURN $at AS at, $day AS day, $list AS list, $yes AS yes"
    given = {"at": datetime(2026, 1, 1, tzinfo=UTC), "day": date(2026, 1, 2), "list": [1.5, 2], "yes": True}

    assert as_told(store.query(text, **given)) == as_told(there.query(text, **given))
    assert given["at"] == there.query(text, **given).single()["at"]


def test_views_of_two_lines_are_compared(pair):
    store, there = pair
    assert store.compare("plan") == there.compare(there.on("plan"))
    assert store.as_of("release").compare(store.as_of()) == there.as_of("release").compare(there.as_of())
    with (
        graphstore.open(":memory:") as other,
        pytest.raises(InvalidError, match="another view of the same store"),
    ):
        there.compare(other)


# ---------------------------------------------------------------- verbs


def test_who_writes_is_told(pair):
    store, there = pair
    there.add_node("fact", {"a": 1}, id="written")
    assert "ana" == store.changes()[-1].author


@pytest.mark.parametrize("form", ["rows", "arrow", "pandas"])
def test_tables_are_loaded(pair, form):
    store, there = pair
    nodes = [{"id": f"{form}{n}", "kind": "fact"} for n in range(3)]
    versions = [
        {"node_id": f"{form}{n}", "valid_from": datetime(2026, 1, 1, tzinfo=UTC), "content": '{"n": 1}'}
        for n in range(3)
    ]
    made = {
        "rows": lambda rows: [{**row, **({"content": {"n": 1}} if "content" in row else {})} for row in rows],
        "arrow": pyarrow.Table.from_pylist,
        "pandas": pandas.DataFrame,
    }[form]
    told = []

    assert {"nodes": 3, "versions": 3, "events": 0, "links": 0} == there.bulk_load(
        nodes=made(nodes), versions=made(versions), progress=lambda *done: told.append(done)
    )
    assert {"n": 1} == store.node(f"{form}2").content
    assert [(6, 6)] == told


def test_a_transaction_sees_what_it_wrote_and_others_do_not(pair):
    store, there = pair
    with there.transaction(reason="both or none") as within:
        assert within is there
        within.add_node("fact", {}, id="first of two")
        assert "first of two" == there.node("first of two").id
        with pytest.raises(NotFoundError):
            store.node("first of two")
        there.add_node("fact", {}, id="second of two")
    assert store.node("first of two").tx_from == store.node("second of two").tx_from


def test_a_transaction_left_by_an_exception_leaves_nothing(pair):
    store, there = pair
    with pytest.raises(ZeroDivisionError), there.transaction():
        there.add_node("fact", {}, id="never")
        1 / 0  # noqa: B018
    with pytest.raises(NotFoundError):
        store.node("never")
    there.add_node("fact", {}, id="afterwards")


def test_there_is_one_transaction_in_a_thread(there):
    with (
        there.transaction(),
        pytest.raises(InvalidError, match="open in this thread already"),
        there.transaction(),
    ):
        pass


def test_a_merge_is_decided_by_a_function_here(pair):
    store, there = pair
    there.add_node("rule", {"says": "one"}, id="rule", valid_from="2026-01-01")
    branch = there.branch("decided")
    branch.revise("rule", {"says": "two"})
    there.revise("rule", {"says": "three"})
    asked = []

    def decide(conflict):
        asked.append(conflict.id)
        return "branch"

    assert there.merge(branch, decide=decide).merged
    assert ["rule"] == list(dict.fromkeys(asked))
    assert {"says": "two"} == store.node("rule").content


def test_memory_is_kept_where_the_store_is(pair):
    store, there = pair
    far = memory.Memory(there, layers=[memory.Layer("notes", "notes:")])
    node = far.remember("Ana sings", layer="notes", user="ana", tags={"hobby"})
    assert store.node(node.id) == node
    assert 2 == len(far.remember_many({"text": text, "layer": "notes"} for text in ("one", "two")))


def test_a_medium_is_hashed_where_it_lies(pair, tmp_path):
    _, there = pair
    (tmp_path / "voice.ogg").write_bytes(b"\x00\x01")
    told = record_message(there, "AUDIO", sender="ana", media_path=tmp_path / "voice.ogg")
    assert 64 == len(told.event.media_hash)


def test_an_export_comes_over_the_connection(pair, tmp_path):
    store, there = pair
    assert there.export(tmp_path / "dump") == store.export(tmp_path / "other")
    assert (tmp_path / "dump").read_bytes() == (tmp_path / "other").read_bytes()
    with pytest.raises(ConflictError, match="exists"):
        there.export(tmp_path / "dump")


def test_progress_is_told_at_the_end(there, tmp_path):
    (tmp_path / "rows.csv").write_text("id\none row\n")
    told = []
    from graphstore.imports import import_csv

    import_csv(
        there, tmp_path / "rows.csv", {"id": "id", "kind": "row"}, progress=lambda *done: told.append(done)
    )
    assert told


def test_an_observer_and_a_recorder_work_where_the_store_is(pair):
    store, there = pair
    watching = Recorder(there, agent="probe", correlation=timedelta(seconds=10))
    seen = [watching.observe_error("it broke badly", at="2026-02-01T01:00:00Z") for _ in range(2)]
    assert [True, False] == [each.is_new for each in seen]
    assert "probe" == store.changes()[-1].author
    assert watching.tick("2026-02-01T02:00:00Z")[0].event.type == "resolution"

    noticing = observer.Observer(there, threshold=2)
    first = record_message(there, "TEXT", "tea is fine", sender="zoe")
    assert noticing.enqueue(first, user="zoe") is None
    assert noticing.enqueue("coffee is not", user="zoe") is None
    assert [] == observer.observations(store, "zoe")
    assert "there is no compressor" in noticing.observe("zoe").warnings[0]
    watching = observer.Observer(store, lambda messages: f"- [LOW] {len(messages)} drinks", threshold=9)
    watching.lend()
    assert "the next tick compresses them" in noticing.observe("zoe", author="zoe's agent").warnings[0]
    assert "zoe's agent" == store.changes()[-1].author
    assert [2] == [done.messages for done in watching.tick()]
    assert ["2 drinks"] == [node.text for node in observer.observations(there, "zoe")]
    with pytest.raises(InvalidError, match="needs the store in its own process"):
        observer.Observer(there, compress=lambda *_: "text")


# ---------------------------------------------------------------- refusals


WRONG = [
    lambda store: store.node("nobody"),
    lambda store: store.node(7),
    lambda store: store.node("boom"),
    lambda store: store.add_node(" ", {}),
    lambda store: store.add_node("fact", {"a": {1, 2}}),
    lambda store: store.add_node("fact", {"a": float("nan")}),
    lambda store: store.add_node("fact", {}, id="jwt"),
    lambda store: store.add_node("fact", {}, text="\ud800"),
    lambda store: store.add_node("fact", {}, valid_from=datetime(2026, 1, 1)),
    lambda store: store.add_node("fact", {}, valid_from="soon"),
    lambda store: store.link("jwt", "likes", "sessions"),
    lambda store: store.query("CREATE (n:Node)"),
    lambda store: store.query("MATCH (n) RETURN $missing"),
    lambda store: store.as_of(tx="2099-01-01"),
    lambda store: store.as_of("no such snapshot"),
    lambda store: store.record_event("error", "x", severity=3),
    lambda store: store.retract("jwt", reason=" "),
    lambda store: store.on("nowhere"),
    lambda store: store.on("plan").merge("plan"),
    lambda store: store.evict(),
    lambda store: store.resolve("these two", keep="jwt", reason="x"),
    lambda store: store.bulk_load(nodes="rows"),
    lambda store: topics.latest_on(store, "auth", strategy="best"),
    lambda store: memory.Memory(store).remember("x", layer="nothing"),
    lambda store: store.walk([], hops=2),
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_an_error_is_the_same_as_in_process(pair, wrong):
    store, there = pair
    with pytest.raises(graphstore.GraphStoreError) as here:
        wrong(store)
    with pytest.raises(graphstore.GraphStoreError) as far:
        wrong(there)

    assert (type(here.value), str(here.value)) == (type(far.value), str(far.value))


def test_what_is_inside_a_store_is_not_there(there):
    with pytest.raises(InvalidError, match="_core is inside the store, and this one is at http://"):
        there._core  # noqa: B018
    assert not hasattr(there, "_sight_of")
    with pytest.raises(InvalidError, match="the server embeds"):
        memory.Memory(there, lambda texts: None)


def test_a_function_of_the_caller_is_refused_with_the_reason(there):
    with pytest.raises(InvalidError, match="cannot be sent to a server"):
        there.sweep(lambda view, ids: [])
    with pytest.raises(InvalidError, match="cannot be sent to a server"):
        topics.latest_on(there, "auth", strategy=lambda *_: None)


def test_what_was_opened_to_read_does_not_write(store_itself):
    _, url = store_itself
    with remote.connect(url, TOKENS.write, read_only=True) as reader:
        for verb in (
            lambda: reader.add_node("fact", {}),
            lambda: reader.bulk_load(),
            lambda: reader.transaction().__enter__(),
        ):
            with pytest.raises(InvalidError, match="read only"):
                verb()
        with pytest.raises(NotFoundError, match=r"no branch 'new'\. This store is open read only"):
            reader.branch("new")
    with (
        remote.connect(url, TOKENS.read) as reader,
        pytest.raises(InvalidError, match="wants the token for writing"),
    ):
        reader.add_node("fact", {})


def test_an_unknown_token_is_refused(store_itself, monkeypatch):
    _, url = store_itself
    for token in (None, "not this one, certainly"):
        with pytest.raises(InvalidError, match="token"):
            remote.connect(url, token)
    monkeypatch.setenv("GRAPHSTORE_TOKEN", TOKENS.read)
    remote.connect(url).close()


@pytest.mark.parametrize("url", ["http://", "http://host:port", "http://127.0.0.1/path", "ftp://127.0.0.1"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InvalidError, match="is no address"):
        remote.connect(url)


def test_nobody_answers():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(EngineError, match=r"no server answers at .*graphstore serve"):
        remote.connect(url)


def test_something_else_answers():
    def answer():
        client, _ = listening.accept()
        client.recv(1 << 16)
        client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnope!")
        client.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(EngineError, match="not as graphstore does"):
            remote.connect(f"http://127.0.0.1:{listening.getsockname()[1]}")


@pytest.mark.parametrize("option", [{"clock": Clock()}, {"durability": "interval"}])
def test_what_is_the_servers_is_refused(store_itself, option):
    with pytest.raises(InvalidError, match="its server"):
        graphstore.open(store_itself[1], token=TOKENS.write, **option)


def test_a_closed_store_says_so(store_itself):
    there = remote.connect(store_itself[1], TOKENS.write)
    view, branch = there.as_of(), there.branch("of a closed one")
    there.close()
    for asked in (
        there.nodes,
        view.nodes,
        branch.nodes,
        lambda: there.add_node("fact", {}),
        lambda: there.export("x"),
        lambda: there.bulk_load(),
    ):
        with pytest.raises(InvalidError, match=r"the store is closed\. Open it again"):
            asked()
    there.close()
    assert "closed" in repr(there)


def test_a_connection_is_not_pickled(there):
    for each in (there, there.as_of(), there.on("plan")):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(each)
    assert copy.copy(there) is there


# ---------------------------------------------------------------- what breaks


def test_a_read_is_sent_again(cutting):
    _, there, proxy = cutting
    proxy.cuts, proxy.after = 1, False
    assert [] == there.nodes("nothing of the kind")
    proxy.cuts, proxy.after = 1, True
    assert [] == there.nodes("nothing of the kind")


@pytest.mark.parametrize("after", [False, True], ids=["before it came", "before its answer came"])
def test_a_write_is_sent_again_and_done_once(cutting, after):
    store, there, proxy = cutting
    before = store.stats()["transactions"]
    proxy.cuts, proxy.after = 1, after

    node = there.add_node("fact", {"once": True})

    assert node == store.node(node.id)
    assert before + 1 == store.stats()["transactions"]


def test_when_the_outcome_is_not_known_the_error_says_so(cutting):
    _, there, proxy = cutting
    proxy.cuts, proxy.after = 2, True
    with pytest.raises(EngineError, match="Whether it was written is not known: look"):
        there.add_node("fact", {})
    proxy.cuts = 2
    with pytest.raises(EngineError, match=r"broke: it was closed\.$"):
        there.nodes()
    assert there.add_node("fact", {}).id


def test_an_answer_that_takes_too_long(store_itself):
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(EngineError, match=r"did not answer within 0\.1 s"),
    ):
        remote.connect(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1)


def test_threads_have_a_connection_each(store_itself):
    store, url = store_itself
    with remote.connect(url, TOKENS.write) as there:
        ids: list[str] = []

        def write():
            ids.extend(there.add_node("fact", {"n": n}).id for n in range(20))

        threads = [threading.Thread(target=write) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert 120 == len(set(ids))
        assert all(store.node(name).id == name for name in ids)


def test_other_threads_wait_for_a_transaction(store_itself):
    _, url = store_itself
    with remote.connect(url, TOKENS.write) as there:
        order = []
        with there.transaction():
            other = threading.Thread(target=lambda: order.append(there.add_node("fact", {}).tx_from))
            other.start()
            order.append(there.add_node("fact", {}).tx_from)
            there.add_node("fact", {})
        other.join(30)
        assert order == sorted(order)
        assert 2 == len(set(order))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_fork_has_connections_of_its_own(store_itself):
    store, url = store_itself
    with remote.connect(url, TOKENS.write) as there:
        there.add_node("fact", {}, id="of the parent")
        child = os.fork()
        if child == 0:
            try:
                there.add_node("fact", {}, id="of the child")
            finally:
                os._exit(0)
        there.add_node("fact", {}, id="of the parent, meanwhile")
        os.waitpid(child, 0)
        assert {"of the parent", "of the child", "of the parent, meanwhile"} <= {
            node.id for node in store.nodes()
        }


def test_two_clients_see_each_other(store_itself):
    _, url = store_itself
    with (
        remote.connect(url, TOKENS.write, author="one") as one,
        remote.connect(url, TOKENS.write, author="two") as two,
    ):
        node = one.add_node("fact", {"by": "one"})
        assert node == two.node(node.id)
        two.revise(node.id, {"by": "two"})
        assert {"by": "two"} == one.node(node.id).content
        assert ["one", "two"] == [change.author for change in one.changes() if change.subject == node.id]


@contextmanager
def transaction_of_the_dead(url):
    """A client that began a transaction, wrote in it, and was cut off."""
    proxy = Proxy(int(url.rpartition(":")[2]))
    there = remote.connect(proxy.url, TOKENS.write)
    with pytest.raises(EngineError), there.transaction():
        there.add_node("fact", {}, id="of the dead")
        proxy.close()
        proxy.cuts = 9
        there.nodes()
    yield
    there.close()


def test_a_transaction_whose_client_died_is_aborted(store_itself):
    store, url = store_itself
    with transaction_of_the_dead(url), remote.connect(url, TOKENS.write) as other:
        start = time.monotonic()
        other.add_node("fact", {}, id="after the dead")
        assert time.monotonic() - start < 20
    with pytest.raises(NotFoundError):
        store.node("of the dead")


# ---------------------------------------------------------------- what repairs


def test_a_slip_is_taken_back_by_its_change_or_its_tx(store_itself):
    store, url = store_itself
    with graphstore.open(url, token=TOKENS.write, author="ana") as there:
        there.add_node("fact", {"says": "tuesday"}, id="tue", key="undone_day")
        there.add_node("fact", {"says": "friday"}, id="fri", key="undone_day")
        undone = there.undo(there.changes()[-1], reason="another project")
        assert ("undo", "ana", "tue") == (undone.verb, undone.author, store.nodes(key="undone_day")[0].id)
        there.undo(undone.tx, reason="it was this one", author="ben")
        assert ("ben", "fri") == (store.changes()[-1].author, store.nodes(key="undone_day")[0].id)
        there.link("fri", "derived_from", "tue")
        with pytest.raises(ConflictError, match="concerns 'lnk_"):
            there.undo(store.operations("fri")[0], reason="too late")
        with there.transaction(), pytest.raises(InvalidError, match=r"undo\(\) inside transaction\(\)"):
            there.undo(undone, reason="inside")
        with pytest.raises(InvalidError, match="no time zone"):
            there.undo(datetime(2026, 1, 1), reason="which zone?")


def test_fields_ends_and_expectations_are_those_of_any_store(store_itself):
    store, url = store_itself
    with graphstore.open(url, token=TOKENS.write) as there:
        there.add_node("fact", {"a": 1, "b": 1}, id="fields", valid_from="2026-01-01", valid_to="2026-02-01")
        there.amend("fields", {"a": 2}, if_number=1)
        there.revise("fields", {"a": 2, "b": 3}, valid_to=graphstore.OPEN, minor=True, if_number=2)
        assert ({"a": 2, "b": 3}, None) == (store.node("fields").content, store.node("fields").valid_to)
        with pytest.raises(ConflictError, match="version 3 holds now"):
            there.retract("fields", reason="x", if_number=2)
        there.add_node("fact", {}, id="end of it")
        there.link("fields", "uses", "end of it", valid_from="2026-01-01")
        assert store.link_history("fields", "uses", "end of it") == there.link_history(
            "fields", "uses", "end of it"
        )
        there.unlink(source="fields", kind="uses", target="end of it")
        assert [] == store.links_from("fields")


# ---------------------------------------------------------------- a server that is a process


def test_a_store_that_is_served_is_reached_by_its_address(tmp_path):
    path = tmp_path / "team.gs"
    graphstore.open(path).close()
    with serve_in_process(path, "--no-ticks") as (process, url):
        at = partial(graphstore.open, url, token=(path / "token").read_text().strip())
        with at(author="ana") as one, at() as two:
            assert f"<RemoteStore '{url}' open>" == repr(one)
            assert path == one.path
            assert one.add_node("fact", {"a": 1}, id="one") == two.node("one")
        with graphstore.open(path, read_only=True) as reader:
            assert "one" == reader.node("one").id
        with pytest.raises(InvalidError, match="clock"):
            at(clock=Clock())
        with at() as there:
            process.kill()
            process.wait(30)
            with pytest.raises(EngineError, match=r"Whether it was written is not known|no server answers"):
                there.add_node("fact", {}, id="two")
    with graphstore.open(path) as store:
        assert "one" == store.node("one").id


def test_a_server_killed_while_many_write_loses_nothing_it_acknowledged(tmp_path):
    path = tmp_path / "team.gs"
    graphstore.open(path).close()
    told: list[str] = []
    with serve_in_process(path, "--no-ticks") as (process, url):
        there = graphstore.open(url, token=(path / "token").read_text().strip())

        def write():
            try:
                while True:
                    told.append(there.add_node("fact", {"n": len(told)}).id)
            except EngineError:
                pass

        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        while len(told) < 100:
            time.sleep(0.01)
        process.kill()
        for thread in threads:
            thread.join(30)
    with graphstore.open(path) as store:
        known = {node.id for node in store.nodes()}
        assert [] == [name for name in told if name not in known]
        assert store.verify().ok


@pytest.mark.parametrize(
    "ask", [lambda each: each.scan(), lambda each: each.knows("x"), lambda each: each.reading()]
)
def test_the_numbers_of_a_store_stay_in_its_process(there, ask):
    for each in (there, there.as_of()):
        with pytest.raises(InvalidError, match="in its own process"):
            ask(each)
