"""What fills memory by itself: pairs of a conversation, the files an agent lives by, services that know more."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

import graphstore
from graphstore import EngineError, InvalidError, NotFoundError, indexers, lifecycle
from graphstore.context.feeders import AutoIndexer, SoulFileIndexer, Sync, sections
from graphstore.memory import Memory
from tests.conftest import day
from tests.support.disk import no_room

pytestmark = pytest.mark.in_process("its sources are objects of the test")

LONG = "the deploy of Tuesday broke the login"
REPLY = "It was the new session cookie, which expires at once."


@pytest.fixture
def memory(store):
    return Memory(store)


@pytest.fixture
def auto(memory, clock):
    return AutoIndexer(memory, clock=clock)


def texts(store, kind="chunk"):
    return [node.text for node in store.nodes(kind)]


# ---------------------------------------------------------------- conversations


def test_a_question_and_its_answer_are_one_chunk(store, auto, clock):
    auto.question(LONG, user="ada", thread="t1")
    asked = clock.now
    clock.move(seconds=20)
    auto.answer(REPLY, user="ada", thread="t1")
    auto.close()

    (node,) = store.nodes("chunk")
    assert f"Q: {LONG}\nA: {REPLY}" == node.text
    assert ("conversation:ada", "conversation:t1", asked) == (node.scope, node.source, node.valid_from)
    assert {"user": "ada", "thread": "t1"} == node.content
    assert 1 == auto.indexed


def test_answers_find_the_question_of_their_thread(store, auto):
    auto.question("what does the parser do with tabs?", thread="t1")
    auto.question("what does the lexer do with tabs?", thread="t2")
    auto.answer("the lexer turns them into four spaces", thread="t2")
    auto.answer("the parser never sees them at all", thread="t1")
    auto.close()

    assert [
        "Q: what does the lexer do with tabs?\nA: the lexer turns them into four spaces",
        "Q: what does the parser do with tabs?\nA: the parser never sees them at all",
    ] == texts(store)


def test_five_are_written_together(store, auto):
    for number in range(4):
        auto.add(f"{LONG} for the {number}. time", REPLY)
    assert (0, 4) == (store.stats()["transactions"], auto.waiting)

    auto.add(f"{LONG} again", REPLY)
    assert (1, 5, 0) == (store.stats()["transactions"], store.stats()["nodes"], auto.waiting)


def test_after_thirty_seconds_what_waits_is_written(store, auto, clock):
    auto.add(LONG, REPLY)
    clock.move(seconds=29)
    assert (0, 0) == (auto.tick(clock.now), store.stats()["nodes"])
    clock.move(seconds=1)
    assert (1, 1) == (auto.tick(), store.stats()["nodes"])
    assert 0 == auto.tick(clock.move(seconds=60))


def test_a_question_waits_for_its_answer_for_ten_minutes(store, auto, clock):
    auto.question(LONG)
    clock.move(minutes=9)
    auto.tick()
    assert 1 == auto.waiting
    clock.move(minutes=1)
    auto.tick()
    auto.tick(clock.move(seconds=30))

    assert [f"Q: {LONG}"] == texts(store)
    auto.answer(REPLY)
    auto.close()
    assert f"A: {REPLY}" in texts(store)


def test_a_second_question_lets_the_first_stand_alone(store, auto):
    auto.question(LONG)
    auto.question("and what about the mobile app?")
    auto.answer("the app is not touched by it")
    auto.close()

    assert [f"Q: {LONG}", "Q: and what about the mobile app?\nA: the app is not touched by it"] == texts(
        store
    )


def test_what_is_skipped_is_counted_by_reason(store, auto):
    auto.add("Hello!", "Hello! How can I help you today?")
    auto.add("yes please", "ok")
    auto.add("why?", "because.")
    auto.add('{"tool": "bash", "command": "ls"}', "Error: cannot open the file")
    auto.close()

    assert [] == texts(store)
    assert {"greeting": 2, "yes_no": 2, "short": 2, "tool_call": 1, "error": 1} == auto.skipped


def test_a_short_part_stays_beside_one_that_is_worth_it_and_a_call_does_not(store, auto):
    auto.add("why?", REPLY)
    auto.add(LONG, '{"tool": "bash", "command": "ls"}')
    auto.close()

    assert [f"Q: why?\nA: {REPLY}", f"Q: {LONG}"] == texts(store)
    assert {"tool_call": 1} == auto.skipped


def test_the_same_again_is_the_same_chunk(store, memory, clock):
    for _ in range(2):
        with AutoIndexer(memory, clock=clock) as auto:
            auto.add(LONG, REPLY, user="ada")
        clock.move(days=1)
    assert 1 == len(store.nodes("chunk"))


def test_nothing_is_lost_when_a_block_is_left_by_an_error(store, memory, clock):
    with pytest.raises(RuntimeError), AutoIndexer(memory, clock=clock) as auto:
        auto.add(LONG, REPLY)
        auto.question("an open question about the parser")
        raise RuntimeError("the agent fell over")

    assert [f"Q: {LONG}\nA: {REPLY}", "Q: an open question about the parser"] == texts(store)


def test_nothing_is_lost_when_writing_fails(tmp_path, clock):
    with graphstore.open(tmp_path / "m.gs", clock=clock) as store:
        auto = AutoIndexer(Memory(store), clock=clock)
        for number in range(4):
            auto.add(f"{LONG} {number}", REPLY)
        with no_room(), pytest.raises(EngineError):
            auto.add(f"{LONG} 4", REPLY)
        assert (5, 0) == (auto.waiting, len(store.nodes("chunk")))
        assert 5 == auto.close()
        assert 5 == len(store.nodes("chunk"))


def test_what_is_said_while_others_are_written_is_not_lost(store):
    def embed(texts):
        if len(texts) == 2:
            auto.add("What did they say meanwhile?", "It was said while the others were embedded.")
        return [[1.0, float(len(text))] for text in texts]

    auto = AutoIndexer(Memory(store, embed))
    auto.add("Where is the staging server?", "It is in the data centre in Bonn.")
    auto.add("Where is the other server?", "It is in the data centre in Cologne.")
    assert 2 == auto.flush()
    assert (1, 1) == (auto.waiting, auto.close())
    assert (3, 3) == (auto.indexed, store.stats()["nodes"])


def test_a_tick_of_another_thread_loses_nothing(store):
    auto, done = AutoIndexer(Memory(store), interval=timedelta(0), patience=timedelta(0)), threading.Event()

    def tick():
        while not done.is_set():
            auto.tick()

    def talk(who):
        for number in range(40):
            auto.question(f"What is question number {number} of {who}?", thread=f"{who}/{number}")
            auto.answer(f"That is answer number {number} of {who}.", thread=f"{who}/{number}")

    with ThreadPoolExecutor(4) as pool:
        ticking = pool.submit(tick)
        list(pool.map(talk, range(3)))
        done.set()
        ticking.result()
    auto.close()
    said = " ".join(node.text for node in store.nodes("chunk"))
    assert all(
        f"{what} number {n} of {who}" in said
        for what in ("question", "answer")
        for n in range(40)
        for who in range(3)
    )


def test_wrong_input_is_refused_at_once(auto):
    with pytest.raises(InvalidError):
        auto.question(None)
    with pytest.raises(InvalidError):
        auto.answer("a\ud800b")
    with pytest.raises(InvalidError):
        auto.add(LONG, REPLY, user=3)
    with pytest.raises(InvalidError):
        AutoIndexer(auto._memory, batch=0)
    with pytest.raises(InvalidError):
        AutoIndexer(auto._memory, interval=30)
    assert 0 == auto.waiting


def test_a_refused_answer_leaves_its_question_open(store, auto):
    auto.question(LONG)
    with pytest.raises(InvalidError):
        auto.answer(None)
    auto.answer(REPLY)
    auto.close()

    assert [f"Q: {LONG}\nA: {REPLY}"] == texts(store)


# ---------------------------------------------------------------- soul files

SOUL = """\
# Who I am

I am Ada's agent.

## Style

I answer briefly.

## Tools
```sh
## this is no header
```
I use the shell.
"""


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "SOUL.md").write_text(SOUL, encoding="utf-8")
    (folder / "AGENTS.md").write_text("## Rules\nNever push.\n", encoding="utf-8")
    return folder


def soul(view):
    return {name: [node.text for node in nodes] for name, nodes in indexers.soul(view).items()}


def test_files_are_cut_at_their_headers(store, home):
    done = SoulFileIndexer(store).index(home)

    assert (4, ("AGENTS.md", "SOUL.md"), ()) == (len(done.new), done.files, done.problems)
    assert {
        "AGENTS.md": ["## Rules\nNever push."],
        "SOUL.md": [
            "# Who I am\n\nI am Ada's agent.",
            "## Style\n\nI answer briefly.",
            "## Tools\n```sh\n## this is no header\n```\nI use the shell.",
        ],
    } == soul(store)
    assert ["soul:AGENTS.md#Rules", "soul:SOUL.md", "soul:SOUL.md#Style", "soul:SOUL.md#Tools"] == [
        node.source for node in store.nodes("chunk")
    ]
    assert ["soul"] == [hit.layer for hit in Memory(store).recall("push")]


def test_what_is_unchanged_writes_nothing(store, home, clock):
    SoulFileIndexer(store).index(home)
    written = store.stats()
    clock.move(days=1)
    done = SoulFileIndexer(store).index(home)

    assert written == store.stats()
    assert (4, (), (), ()) == (len(done.unchanged), done.new, done.revised, done.ended)


def test_a_changed_section_is_described_anew_from_then_on(store, home, clock):
    first = SoulFileIndexer(store).index(home)
    before = clock.now
    clock.move(days=1)
    (home / "SOUL.md").write_text(SOUL.replace("briefly", "at length"), encoding="utf-8")
    done = SoulFileIndexer(store).index(home)

    (style,) = done.revised
    assert style in first.new
    assert 3 == len(done.unchanged)
    assert "## Style\n\nI answer at length." == store.node(style).text
    assert "## Style\n\nI answer briefly." == store.as_of(valid=before).node(style).text
    assert clock.now == store.node(style).valid_from


def test_a_section_that_is_gone_is_ended_and_may_come_back(store, home, clock):
    SoulFileIndexer(store).index(home)
    clock.move(days=1)
    (home / "SOUL.md").write_text(SOUL.replace("## Style\n\nI answer briefly.\n", ""), encoding="utf-8")
    done = SoulFileIndexer(store).index(home)
    (style,) = done.ended
    assert "ended" == store.inspect(style).node.standing
    assert 2 == len(soul(store)["SOUL.md"])

    clock.move(days=1)
    (home / "SOUL.md").write_text(SOUL, encoding="utf-8")
    assert (style,) == SoulFileIndexer(store).index(home).revised
    assert "## Style\n\nI answer briefly." == soul(store)["SOUL.md"][1]


def test_a_file_that_is_gone_is_as_an_empty_one(store, home, clock):
    SoulFileIndexer(store).index(home)
    clock.move(days=1)
    (home / "AGENTS.md").unlink()

    assert 1 == len(SoulFileIndexer(store).index(home).ended)
    assert ["SOUL.md"] == list(soul(store))


def test_the_order_of_sections_is_that_of_the_file(store, home, clock):
    SoulFileIndexer(store).index(home)
    clock.move(days=1)
    (home / "AGENTS.md").write_text("## First\nRead this.\n\n## Rules\nNever push.\n", encoding="utf-8")
    done = SoulFileIndexer(store).index(home)

    assert (1, 4, ()) == (len(done.new), len(done.unchanged), done.revised)
    assert ["## First\nRead this.", "## Rules\nNever push."] == soul(store)["AGENTS.md"]


def test_headers_of_the_same_name_are_apart(store, home, clock):
    (home / "AGENTS.md").write_text("## Rule\none\n## Rule\ntwo\n", encoding="utf-8")
    SoulFileIndexer(store).index(home)

    assert ["## Rule\none", "## Rule\ntwo"] == soul(store)["AGENTS.md"]


def test_a_file_that_cannot_be_read_is_told_and_changes_nothing(store, home, clock):
    SoulFileIndexer(store).index(home)
    clock.move(days=1)
    (home / "AGENTS.md").write_bytes(b"## Rules\n\xff\xfe")
    done = SoulFileIndexer(store).index(home)

    assert (1, 3) == (len(done.problems), len(done.unchanged))
    assert "AGENTS.md was not read" in done.problems[0]
    assert ["## Rules\nNever push."] == soul(store)["AGENTS.md"]


def test_a_folder_without_any_of_the_files_is_an_error(store, home, tmp_path):
    SoulFileIndexer(store).index(home)
    with pytest.raises(NotFoundError, match=r"none of AGENTS\.md"):
        SoulFileIndexer(store).index(tmp_path / "elsewhere")
    assert 2 == len(soul(store))


def test_files_of_a_user_are_told_to_that_user(store, home):
    SoulFileIndexer(store, user="ada").index(home)

    assert {} == indexers.soul(store)
    assert {} == indexers.soul(store, "bob")
    assert ["AGENTS.md", "SOUL.md"] == list(indexers.soul(store, "ada"))


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("", []),
        ("\n \n", []),
        ("plain", [""]),
        ("## A\n## B\n", ["A", "B"]),
        ("##\nx", [""]),
        ("##x is none\n", [""]),
        ("   ## A\n    ## code\n### deeper\n", ["A"]),
        ("~~~\n## x\n```\n## y\n~~~\n## A", ["", "A"]),
        ("````\n```\n## x\n````\n## A", ["", "A"]),
        ("```\n## never closed", [""]),
        ("`` ` ``\n## A", ["", "A"]),
        ("<!--\n## x\n-->\n## A", ["", "A"]),
        ("<!-- one line -->\n## A", ["", "A"]),
        ("\r\n## A ##\r\nb\r\n", ["A"]),
        ("## C#", ["C#"]),
    ],
)
def test_headers(text, titles):
    assert titles == [section.title for section in sections(text)]


def test_sections_lose_no_word():
    assert SOUL.split() == " ".join(section.text for section in sections(SOUL)).split()


# ---------------------------------------------------------------- sync


class Diary:
    """A service in a list: each change has a number, and the cursor is the last one seen. Two to a page."""

    def __init__(self, name="diary"):
        self.name = name
        self.changes = []
        self.fail = 0
        self.asked = []

    def tell(self, id, text=None, **more):
        self.changes.append({"id": id, **({"text": text} if text else {}), **more})

    def fetch(self, cursor):
        self.asked.append(cursor)
        if self.fail:
            self.fail -= 1
            raise TimeoutError("the service does not answer")
        start = cursor or 0
        page = self.changes[start : start + 2]
        return page, start + len(page)


@pytest.fixture
def diary():
    return Diary()


def test_what_is_new_is_fetched_page_by_page(store, diary):
    for number in range(5):
        diary.tell(f"n{number}", f"note {number}", valid_from="2026-01-10")
    done = Sync(store, diary).run()

    assert (5, 5, None) == (len(done.new), done.cursor, done.error)
    assert [0, 2, 4, 5] == [cursor or 0 for cursor in diary.asked]
    (first, *_) = store.nodes("chunk")
    assert ("er1:", "er1:diary/n0", day("2026-01-10")) == (first.scope, first.source, first.valid_from)
    assert ["er1"] == [hit.layer for hit in Memory(store).recall("note 3", k=1)]


def test_it_goes_on_from_where_it_was_in_another_process(tmp_path, clock, diary):
    diary.tell("a", "first")
    with graphstore.open(tmp_path / "m.gs", clock=clock) as store:
        Sync(store, diary).run()
    diary.tell("b", "second")
    with graphstore.open(tmp_path / "m.gs", clock=clock) as store:
        done = Sync(store, diary).run()
        assert (1, ["first", "second"]) == (len(done.new), texts(store))
    assert 0 not in diary.asked[1:]


def test_the_same_again_writes_nothing(store, diary, clock):
    diary.tell("a", "first")
    sync = Sync(store, diary)
    sync.run()
    written = store.stats()
    clock.move(days=1)

    assert ((), (), ()) == ((done := sync.run()).new, done.revised, done.refused)
    diary.tell("a", "first")
    assert 1 == len(sync.run().unchanged)
    assert written["versions"] + 1 == store.stats()["versions"]  # the cursor


def test_changed_and_deleted_items(store, diary, clock):
    diary.tell("a", "tea is best")
    diary.tell("b", "lunch is at noon")
    sync = Sync(store, diary)
    first = sync.run()
    before = clock.now
    clock.move(days=1)
    diary.tell("a", "coffee is best")
    diary.tell("b", deleted=True)
    diary.tell("unknown", deleted=True)
    done = sync.run()

    assert ({*done.revised, *done.ended}, 1, 1) == ({*first.new}, len(done.revised), len(done.ended))
    assert ["coffee is best"] == texts(store)
    assert ["tea is best", "lunch is at noon"] == texts(store.as_of(valid=before + timedelta(hours=1)))
    assert [] == list(done.refused)


def test_it_runs_every_five_minutes(store, diary, clock):
    sync = Sync(store, diary)
    assert sync.tick() is not None
    assert sync.tick(clock.move(minutes=4, seconds=59)) is None
    assert sync.tick(clock.move(seconds=1)) is not None
    assert 2 == len(diary.asked)


def test_a_source_that_fails_is_told_of_and_tried_again(store, diary, clock):
    for number in range(4):
        diary.tell(f"n{number}", f"note {number}")
    diary.fail = 2
    sync = Sync(store, diary)
    assert "TimeoutError: the service does not answer" == sync.tick().error
    sync.tick(clock.move(minutes=5))
    assert (2, None, []) == (sync.failures, sync.cursor, texts(store))

    done = sync.tick(clock.move(minutes=5))
    assert (4, None, 0, 4) == (len(done.new), done.error, sync.failures, sync.cursor)


def test_a_source_that_fails_half_way_keeps_the_pages_before(store, diary):
    for number in range(4):
        diary.tell(f"n{number}", f"note {number}")
    fetch, pages = diary.fetch, iter([True, False])
    diary.fetch = lambda cursor: fetch(cursor) if next(pages) else 1 / 0
    sync = Sync(store, diary)

    assert (2, 2) == (len(sync.run().new), sync.cursor)
    diary.fetch = fetch
    assert (2, 4) == (len(sync.run().new), sync.cursor)


def test_items_that_break_off_move_nothing(store, diary):
    def fetch(cursor):
        def items():
            yield {"id": "a", "text": "one"}
            raise ConnectionError("lost")

        return items(), 1

    diary.fetch = fetch
    done = Sync(store, diary).run()
    assert ("ConnectionError: lost", None, []) == (done.error, done.cursor, texts(store))


def test_the_cursor_moves_only_with_what_is_written(tmp_path, clock, diary):
    diary.tell("a", "first")
    with graphstore.open(tmp_path / "m.gs", clock=clock) as store:
        sync = Sync(store, diary)
        with no_room(), pytest.raises(EngineError):
            sync.run()
        assert (None, []) == (sync.cursor, texts(store))
        assert (1, 1) == (len(sync.run().new), sync.cursor)
        # items and cursor are one transaction
        assert 1 == store.stats()["transactions"]


KILLED = """
import os, signal, sys
import graphstore
from graphstore.context.feeders import Sync

class Counting:
    name = "counting"

    def fetch(self, cursor):
        start = cursor or 0
        return [{"id": str(n % 5), "text": f"text {n}"} for n in range(start, min(start + 3, 12))], min(start + 3, 12)

store = graphstore.open(sys.argv[1])
left, committed = int(sys.argv[2]), False

def dying(statement):
    global left, committed
    if statement == "COMMIT":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        committed = True
    elif committed and left == 1 and "after" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)

database = store._core.journal.database
with database.transaction() as connection:
    pass
connection.set_trace_callback(dying)
Sync(store, Counting()).run()
"""


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.rest)])
@pytest.mark.parametrize("nth", [1, 2, *(pytest.param(nth, marks=pytest.mark.rest) for nth in (3, 4))])
def test_killed_anywhere_items_and_cursor_agree(tmp_path, nth, when):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "m.gs", str(nth), when], timeout=60)
    with graphstore.open(tmp_path / "m.gs") as store:
        cursor = Sync(store, Diary("counting")).cursor or 0
        there = {node.content["metadata"]["id"]: node.text for node in store.nodes("chunk")}

    assert -signal.SIGKILL == done.returncode
    assert {str(n % 5): f"text {n}" for n in range(cursor)} == there


def test_items_that_cannot_be_are_told_and_the_others_kept(store, diary):
    diary.tell("a", "good")
    diary.tell("b")
    diary.tell("c", "wrong", colour="red")
    diary.tell(4, "wrong")
    diary.tell("e", "wrong", valid_from="yesterday")
    diary.changes.append("nothing")
    done = Sync(store, diary).run()

    assert (1, 5, ["good"], 6) == (len(done.new), len(done.refused), texts(store), done.cursor)
    assert "item 2: text None is no text" in done.refused[0]
    assert "unknown field of an item 'colour'" in done.refused[1]


def test_a_source_for_a_user_and_a_layer(store, diary):
    diary.tell("a", "private", thread="t1", tags=["x"], metadata={"page": 3})
    Sync(store, diary, layer="group", user="ada").run()

    (node,) = store.nodes("chunk")
    assert ("group:ada", ("x",)) == (node.scope, node.tags)
    assert {"user": "ada", "thread": "t1", "metadata": {"page": 3, "id": "a"}} == node.content
    with pytest.raises(InvalidError, match="unknown layer 'er2'"):
        Sync(store, diary, layer="er2")


def test_a_cursor_that_is_no_json_is_a_failure_of_the_source(store, diary):
    diary.fetch = lambda cursor: ([{"id": "a", "text": "one"}], object())
    assert "not JSON" in Sync(store, diary).run().error
    assert [] == texts(store)


# ---------------------------------------------------------------- what tools gave


def test_what_a_tool_gave_is_remembered_in_its_layer(store, clock):
    indexer = AutoIndexer(Memory(store))
    indexer.tool(
        "pytest", "3 failed: test_login, test_logout, test_cart", asked="pytest -q", user="ada", thread="t1"
    )
    indexer.tool("http", '{"function": "status", "code": 503, "body": "no upstream"}', user="ada")
    indexer.tool("shell", "Error: permission denied for /srv/app", user="ada")
    indexer.tool("shell", "ok", user="ada")
    indexer.tool("shell", "  ", user="ada")
    indexer.close()

    assert ({"yes_no": 1, "blank": 1}, 3) == (indexer.skipped, indexer.indexed)
    found = Memory(store).recall("login failed", layers="tool", user="ada").hits[0]
    assert ("tool:pytest", "tool:ada", {"tool": "pytest", "asked": "pytest -q"}) == (
        found.source, found.node.scope, found.node.content["metadata"],
    )  # fmt: skip
    assert ["tool"] * 2 == [Memory(store).recall(text).hits[0].layer for text in ("upstream", "permission")]
    clock.move(days=15)
    assert {"tool": 3} == lifecycle.due(store).layers


def test_of_a_very_long_output_the_beginning_and_the_end_are_kept(store):
    indexer = AutoIndexer(Memory(store))
    indexer.tool("build", "began well\n" + "line\n" * 50_000 + "linker said no")
    indexer.flush()
    (node,) = store.nodes("chunk")

    assert len(node.text) < 9_000
    assert node.text.startswith("began well") and node.text.endswith("linker said no")
    assert "characters left out" in node.text
