"""What was done in a week, from files as Claude Code writes them: titles, sub-agents, start-ups, worktrees, files, words, prices."""

from __future__ import annotations

import json
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from graphstore import GraphStore, sessions
from graphstore.errors import InvalidError, NotFoundError
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

MAIN = "11111111-0000-4000-8000-000000000001"
USED = {
    "input_tokens": 1000,
    "output_tokens": 500,
    "cache_read_input_tokens": 2000,
    "cache_creation_input_tokens": 0,
}
MODEL = "claude-opus-4-5"


class Writer:
    """Writes one session file, line by line; each line a minute later than the one before."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        session: str | None = None,
        cwd: str = "/w/shop",
        on: str = "2026-01-05T10:00",
    ) -> None:
        self.file, self.session, self.cwd = folder / f"{name}.jsonl", session or name, cwd
        self.on, self.lines, self._minute, self._number = on, [], count(), count(1)
        self.last: str | None = None
        self.more: dict[str, Any] = {}

    def _entry(self, type: str, message: dict[str, Any], **more: Any) -> Writer:
        id = f"{self.file.stem[-8:]}-{next(self._number)}"
        hour, minute = divmod(int(self.on[11:13]) * 60 + int(self.on[14:16]) + next(self._minute), 60)
        self.lines.append({
            "type": type, "uuid": id, "parentUuid": self.last, "sessionId": self.session, "cwd": self.cwd,
            "timestamp": f"{self.on[:10]}T{hour:02}:{minute:02}:00Z", "message": message, **self.more, **more,
        })  # fmt: skip
        self.last = id
        return self

    def user(self, text: str) -> Writer:
        return self._entry("user", {"role": "user", "content": text})

    def says(self, text: str) -> Writer:
        part = {"type": "text", "text": text}
        return self._entry(
            "assistant",
            {
                "role": "assistant",
                "model": MODEL,
                "id": f"m{len(self.lines)}",
                "usage": USED,
                "content": [part],
            },
        )

    def calls(self, tool: str, **given: Any) -> Writer:
        id = f"t{len(self.lines)}"
        part = {"type": "tool_use", "id": id, "name": tool, "input": given}
        self._entry(
            "assistant", {"role": "assistant", "model": MODEL, "id": f"m{len(self.lines)}", "content": [part]}
        )
        result = {"type": "tool_result", "tool_use_id": id, "content": "ok"}
        return self._entry("user", {"role": "user", "content": [result]})

    def line(self, **line: Any) -> Writer:
        self.lines.append(line)
        return self

    def agent(self, name: str) -> Writer:
        self.more = {"isSidechain": True, "agentId": name}
        return self

    def write(self) -> Path:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text("".join(json.dumps(each) + "\n" for each in self.lines))
        return self.file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "projects"


@pytest.fixture
def week(store: GraphStore, clock: Clock, folder: Path) -> GraphStore:
    """A session with two sub-agents, one of which only warmed up and began before it; one of commands alone; one in a worktree."""
    clock.set("2026-03-01")
    main = Writer(folder, MAIN).user("continue").user("Add a till to the shop. It takes WorkOS logins.")
    main.calls("Edit", file_path="/w/shop/src/till.py").calls("Bash", command="git commit -m 'Add the till'")
    main.says("Done! The till takes cards and cash.").write()
    Writer(folder, "agent-a1", session=MAIN, on="2026-01-05T10:02").agent("a1").user(
        "Read how tills work"
    ).calls("Read", file_path="/w/shop/docs/tills.md").says("A till has a drawer and a printer.").write()
    Writer(folder, "agent-a2", session=MAIN, on="2026-01-05T09:58").agent("a2").user("Warmup").says(
        "I'm ready to help."
    ).write()
    Writer(folder, "22222222-0000-4000-8000-000000000002", on="2026-01-06T09:00").user(
        "<command-name>/model</command-name><command-args></command-args>"
    ).user("<local-command-stdout>Set model</local-command-stdout>").write()
    other = Writer(
        folder, "33333333-0000-4000-8000-000000000003", cwd="/w/shop/.worktrees/blue", on="2026-01-07T09:00"
    )
    other.user("Paint the door").calls("Edit", file_path="/w/shop/.worktrees/blue/door.py").says(
        "The door is blue now."
    )
    other.line(type="ai-title", aiTitle="Blue door", sessionId=other.session).write()
    assert () == sessions.ingest(store, folder, computer="desk").damaged
    return store


def test_a_title_is_what_was_done(week: GraphStore) -> None:
    found = sessions.work_on(week)

    assert [(each.title, each.summary, each.commits) for each in found] == [
        (
            "The till takes cards and cash.",
            "Add a till to the shop. It takes WorkOS logins.",
            ("Add the till",),
        ),
        ("Blue door", "Paint the door", ()),
    ]


def test_work_is_told_by_day_and_session_with_what_was_committed(week: GraphStore) -> None:
    nodes = [each.node for each in sessions.work_on(week)]

    assert str(sessions.work_on(week, since="2026-01-01")).splitlines()[1:] == [
        "2026-01-05  1 commit, 1 file written",
        f"  shop: Add a till to the shop. It takes WorkOS logins.  [{MAIN}]",
        f"    10:00  coding success: The till takes cards and cash. (+1 sub-agent)  [{nodes[0]}]",
        "           commit: Add the till",
        "           wrote: src/till.py",
        "2026-01-07  1 file written",
        "  shop: Blue door  [33333333-0000-4000-8000-000000000003]",
        f"    09:00  coding success: Blue door  [{nodes[1]}]",
        "           asked: Paint the door",
        "           wrote: door.py",
    ]


def test_sub_agents_fold_and_time_on_the_wall_counts_once(week: GraphStore) -> None:
    found = sessions.work_on(week, "shop", until="2026-01-05")

    [work] = found
    assert (work.agents, work.files, work.tokens) == (1, ("src/till.py", "docs/tills.md"), 3000)
    assert found.minutes == 7  # 9:58 to 9:59 of the one that warmed up, 10:00 to 10:06 of the session
    assert [(each.session_id, each.agents) for each in sessions.listed(week)] == [
        (MAIN, 2),
        ("33333333-0000-4000-8000-000000000003", 0),
    ]
    assert len(sessions.listed(week, every=True)) == 5


def test_a_worktree_is_its_repository_and_a_sub_folder_its_project(week: GraphStore, folder: Path) -> None:
    Writer(folder, "44444444-0000-4000-8000-000000000004", cwd="/w/shop/api", on="2026-01-08T09:00").user(
        "Name the api"
    ).says("The api is named now.").write()
    sessions.ingest(week, folder)

    assert {each.project for each in sessions.work_on(week)} == {"/w/shop"}
    assert len(sessions.work_on(week, "shop")) == 3
    assert [each.title for each in sessions.work_on(week, "shop/api")] == ["The api is named now."]
    assert len(sessions.listed(week, project="shop")) == 3


def test_a_sub_agent_that_began_before_its_session_is_linked_from_its_first_entry(week: GraphStore) -> None:
    links = week.links_from(sessions.session_node(MAIN), "fork")

    assert [link.valid_from for link in sorted(links, key=lambda link: link.valid_from)] == [
        day("2026-01-05T10:00:00Z"),
        day("2026-01-05T10:02:00Z"),
    ]


@pytest.mark.parametrize(
    "order",
    [
        pytest.param((0, 1), marks=pytest.mark.in_process("reads again a file that a server was only sent")),
        (1, 0),
    ],
)
def test_a_title_that_another_file_gives_reaches_the_session_it_is_about(
    store: GraphStore, clock: Clock, folder: Path, order: tuple[int, int]
) -> None:
    clock.set("2026-03-01")
    one = Writer(folder, "a" * 8).user("Weave").says("It is woven.")
    two = (
        Writer(folder, "b" * 8, on="2026-01-06T10:00")
        .line(type="summary", summary="A blue cloth", leafUuid=one.last)
        .user("Sew")
        .says("Sewn it is.")
    )
    for at in order:
        sessions.ingest(store, (one, two)[at].write())

    assert [each.title for each in sessions.work_on(store)] == ["A blue cloth", "Sewn it is."]
    before = len(store.changes())
    sessions.ingest(store, folder)
    assert before == len(store.changes())


def test_a_fork_counts_what_it_copied_once(store: GraphStore, clock: Clock, folder: Path) -> None:
    clock.set("2026-03-01")
    one = Writer(folder, "a" * 8).user("Weave").says("It is woven.")
    one.write()
    two = Writer(folder, "b" * 8)
    for line in one.lines:
        two.lines.append(
            {
                **line,
                "sessionId": two.session,
                "forkedFrom": {"sessionId": one.session, "messageUuid": line["uuid"]},
            }
        )
    two.last, two.on = one.last, "2026-01-06T10:00"
    two.user("Now in blue").says("It is blue now.").write()
    sessions.ingest(store, folder)

    assert [(each.session, each.tokens) for each in sessions.work_on(store)] == [
        ("a" * 8, 1500),
        ("b" * 8, 1500),
    ]
    assert [each.session for each in sessions.lineage(store, "b" * 8).ancestors] == ["a" * 8]


def test_an_agent_file_without_an_agent_id_is_a_session_of_its_own(
    store: GraphStore, clock: Clock, folder: Path
) -> None:
    clock.set("2026-03-01")
    Writer(folder, "a" * 8).user("Weave").says("It is woven.").write()
    agent = Writer(folder, "agent-x", session="a" * 8)
    agent.more = {"isSidechain": True}
    agent.user("Look at the loom").calls("Read", file_path="/w/shop/loom.py").says(
        "The loom is whole."
    ).write()
    sessions.ingest(store, folder)

    assert {each.session_id for each in sessions.listed(store, every=True)} == {"a" * 8, "agent-x"}
    assert [(each.session, each.agents) for each in sessions.work_on(store)] == [("a" * 8, 1)]


def test_files_say_who_touched_them_when_and_why(week: GraphStore) -> None:
    [found] = sessions.files(week, "till.py")

    assert (found.session, found.agent, found.models, found.why) == (
        MAIN,
        None,
        (MODEL,),
        "The till takes cards and cash.",
    )
    assert [each.agent for each in sessions.files(week, "docs/tills.md")] == ["a1"]
    assert [each.path for each in sessions.files(week, "src")] == ["src/till.py"]
    assert str(sessions.files(week, "ill.py")) == "No session that is known here touched ill.py."


def test_words_are_found_in_requests_answers_commits_and_files(week: GraphStore) -> None:
    def where(text: str, **more: Any) -> list[tuple[str, ...]]:
        return [each.where for each in sessions.search(week, text, **more)]

    assert where("workos") == [("title", "requests")]
    assert where("drawer PRINTER") == [("title", "answers")]
    assert where("door.py") == [("title", "requests", "answers", "files")]
    assert where("till", until="2026-01-05T10:01Z") == [("title", "requests", "answers", "commits", "files")]
    assert where("cash drawer") == []
    assert (sessions.search(week, "the", limit=1).left_out, sessions.search(week, "the").sessions) == (1, 2)
    with pytest.raises(InvalidError, match="no word"):
        sessions.search(week, "…")


@pytest.mark.in_process("reads again the file of a session, which a server was only sent")
def test_entries_that_another_file_has_too_count_once(store: GraphStore, clock: Clock, folder: Path) -> None:
    clock.set("2026-03-01")
    one = Writer(folder, "a" * 8).user("Weave").says("It is woven.")
    one.write()
    two = Writer(folder, "b" * 8)
    two.lines += [{**line, "sessionId": two.session} for line in one.lines]
    two.last, two.on = one.last, "2026-01-06T10:00"
    two.user("Dye it blue").says("It is blue.")
    two.write()
    for _ in range(2):
        sessions.ingest(store, folder)

        first, second = sorted(sessions.listed(store, every=True), key=lambda each: each.session_id)
        assert (first.parent, second.parent, second.copied) == (None, first.id, len(one.lines))
        assert ["It is woven.", "It is blue."] == [each.title for each in sessions.work_on(store)]
    before = len(store.changes())
    sessions.ingest(store, folder)
    assert before == len(store.changes())


@pytest.mark.in_process("reads again the file of a session, which a server was only sent")
def test_an_entry_is_found_in_its_segment(week: GraphStore, folder: Path) -> None:
    [first, *_] = sessions.work_on(week)

    assert sessions.find_by_entry(week, MAIN, "00000001-4").id == first.node
    with pytest.raises(NotFoundError, match="has entry 'nowhere'"):
        sessions.find_by_entry(week, MAIN, "nowhere")
    (folder / f"{MAIN}.jsonl").unlink()
    assert sessions.find_by_entry(week, MAIN, "00000001-1").id == first.node
    with pytest.raises(NotFoundError, match="its file is gone"):
        sessions.find_by_entry(week, MAIN, "00000001-4")


def test_prices_that_were_set_make_tokens_money(week: GraphStore) -> None:
    assert sessions.costs(week).unpriced == 4
    sessions.set_prices(
        week, {"claude-*": {"input": 1}, "claude-opus-*": {"input": 5, "output": 25, "cacheRead": 0.5}}
    )

    each = (1000 * 5 + 500 * 25 + 2000 * 0.5) / 1_000_000
    assert (sessions.costs(week).cost, sessions.costs(week).unpriced) == (pytest.approx(4 * each), 0)
    assert sessions.costs(week, "session").rows[0].cost == pytest.approx(3 * each)
    assert sessions.work_on(week, until="2026-01-06").cost == pytest.approx(3 * each)
    with pytest.raises(InvalidError, match="unknown field of a price 'in'"):
        sessions.set_prices(week, {"x": {"in": 1}})


def test_each_question_takes_a_span_of_time(week: GraphStore) -> None:
    span = {"since": "2026-01-06", "until": "2026-01-08"}

    assert [each.title for each in sessions.work_on(week, **span)] == ["Blue door"]
    assert [each.name for each in sessions.listed(week, **span)] == ["Blue door"]
    assert sessions.costs(week, **span).tokens == 1500
    assert [
        len(ask(week, **span)) for ask in (sessions.decisions, sessions.lessons, sessions.recurring_errors)
    ] == [0, 0, 0]


def test_what_is_known_again_costs_little_and_a_change_is_seen(
    store: GraphStore, clock: Clock, folder: Path
) -> None:
    clock.set("2026-03-01")
    writers = [Writer(folder, f"{number:08}") for number in range(40)]
    for writer in writers:
        for _ in range(20):
            writer.user("Weave").calls("Edit", file_path="/w/shop/a.py").says("It is woven.")
        writer.write()
    took = []
    for _ in range(2):
        began = time.process_time()
        found = sessions.ingest(store, folder)
        took.append(time.process_time() - began)

    assert (found.unchanged, found.new) == (40, 0)
    assert took[1] < took[0] / 4
    writers[0].user("And hem it").write()
    assert sessions.ingest(store, folder).revised == 1


def test_a_correction_is_checked_and_names_the_field(week: GraphStore, folder: Path) -> None:
    [first, *_] = sessions.work_on(week)
    before = week.node(first.node)
    for changes, wrong in (
        ({"content": {"outcome": "fine"}}, "content.outcome: unknown value 'fine'"),
        ({"content": {"summary": None}}, "content.summary is missing"),
        ({"lessons": {"tool": [{"level": "tool"}]}}, r"lessons.tool\[0\].summary is missing"),
    ):
        with pytest.raises(InvalidError, match=wrong):
            sessions.correct(week, first.node, changes)
    with pytest.raises(InvalidError, match="no segment"):
        sessions.correct(week, sessions.session_node(MAIN), {})
    assert week.node(first.node) == before

    node = sessions.correct(
        week, first.node, {"content": {"outcome": "failed", "title": "A till that broke"}}, reason="it broke"
    )
    assert (node.trigger, sessions.work_on(week).work[0].title) == ("user_feedback", "A till that broke")
    Writer(folder, MAIN).user("Another beginning").says("It is another now.").write()
    sessions.ingest(week, folder)
    assert week.node(first.node).content["content"]["outcome"] == "failed"
