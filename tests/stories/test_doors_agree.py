"""One store through its five doors: Python, HTTP, the command line, MCP and the shell read the same times and refuse the same texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from urllib.parse import urlencode

import pytest

from graphstore import GraphStore, InvalidError, NotFoundError, mcp, memory, open
from graphstore.cli.shell.output import Output
from graphstore.cli.shell.shell import Shell
from graphstore.values.coordinates import looks_like_time, resolve
from graphstore.values.period import BEGINNING, OPEN, instant, moment
from tests.cli.test_command_line import answer, refused, run
from tests.conftest import Clock, day
from tests.support.agent import Agent, agent
from tests.support.served import Wire, serve_in_thread
from tests.support.wire import WRITE

pytestmark = pytest.mark.in_process("asks every door of one store")


def end_of(at: str) -> datetime:
    """The last microsecond of a day."""
    return day(at) + timedelta(days=1) - timedelta(microseconds=1)


NOW = datetime.fromisoformat("2026-03-18T12:30:00+00:00")
TAKEN = {
    "now": NOW, " Now ": NOW, "today": NOW, "2026-03": NOW, "2026": NOW, "this week": NOW, "yesterday": end_of("2026-03-17"),
    "30m": NOW - timedelta(minutes=30), "2h": NOW - timedelta(hours=2), "7d": NOW - timedelta(days=7), "2w": NOW - timedelta(weeks=2),
    "2026-02": end_of("2026-02-28"), "2026-03-05": end_of("2026-03-05"), "20260305": end_of("2026-03-05"), "2025": end_of("2025-12-31"),
    "2026-03-06T10:00:00Z": day("2026-03-06") + timedelta(hours=10), "2026-03-06T12:00:00+02:00": day("2026-03-06") + timedelta(hours=10),
    "3 months ago": datetime.fromisoformat("2025-12-18T12:30:00+00:00"), "last Friday": end_of("2026-03-13"), "two weeks ago": NOW - timedelta(weeks=2),
    "26 November": end_of("2025-11-26"), "26 November 2025 15:00 Europe/Berlin": day("2025-11-26") + timedelta(hours=14), "since March": NOW,
    "release": day("2026-02-10"),
}  # fmt: skip
REFUSED = {
    "2026-03-05T10:00:00": "has no time zone. Write '2026-03-05T10:00:00Z' for UTC.",
    "2026-02-30": "is no ISO 8601 time",
    "2026-13": "is no ISO 8601 time",
    "0d": "is no age",
    "7D": "there is no snapshot '7D'",
    "7 days": "is no time",
    "soon": "is no time",
    "03/04/2026": "may mean 2026-04-03 (day first) or 2026-03-04 (month first)",
    "yesterday 15:00": "has no time zone. Write 'yesterday 15:00 UTC'",
    "26 November 2025 15:00 CET": "is an abbreviation, which several zones share",
    "relese": "there is no snapshot 'relese'. Nearest: 'release'.",
    "beginning": "only valid_from and since can be beginning",
    "open": "only valid_to and until can be open",
    " ": "is blank",
}
AXES = ("valid", "tx")


class Doors:
    """The doors of one store, each as a function of an axis and a text that gives the coordinate on that axis or raises InvalidError."""

    def __init__(self, store: GraphStore, url: str, asker: Agent) -> None:
        self.store, self.url, self.asker = store, url, asker
        self.shell = Shell(store, "team.gs", Output())

    def python(self, axis: str, text: str) -> datetime:
        at: datetime = getattr(self.store.as_of(**{axis: text}).at, axis)
        return at

    def http(self, axis: str, text: str) -> datetime:
        status, value, _ = Wire(self.url).ask("GET", f"/at?{urlencode({axis: text})}")
        if status != 200:
            assert (422, "InvalidError") == (status, value["error"])
            raise InvalidError(value["message"])
        return datetime.fromisoformat(value[axis])

    def mcp(self, axis: str, text: str) -> datetime:
        said = self.asker.call("get", id="there", **{axis: text})
        if said.is_error:
            raise InvalidError(said.content[0].text.partition(" Next: ")[0])
        return datetime.fromisoformat(said.structured_content["at"][axis])

    def in_shell(self, axis: str, text: str) -> datetime:
        self.shell.move_to(text if axis == "valid" else None, text if axis == "tx" else None)
        at: datetime = getattr(self.shell.view().at, axis)
        return at

    def cli(self, axis: str, text: str) -> str:
        """What the command line refuses."""
        said = refused("show", self.url, "there", f"--{axis}", text)
        return said.removeprefix("error: ").strip()


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    """A store with something known and valid from just then on, and from a microsecond later, for every time of the table."""
    clock = Clock("2025-01-01")
    with open(":memory:", clock=clock) as store, pytest.MonkeyPatch.context() as patch:
        store.add_node("fact", {}, id="there")
        for at in sorted({*TAKEN.values()}):
            for late in (0, 1):
                clock.set(
                    at + timedelta(microseconds=late) if at != NOW else at - timedelta(microseconds=1 - late)
                )
                with store.transaction():
                    store.add_node("fact", {}, id=f"{at:%m%d-%H-%M}-{late}", valid_from=clock.now)
                    if at == TAKEN["release"] and not late:
                        store.snapshot("release")
        clock.set(NOW)
        patch.setenv("GRAPHSTORE_TOKEN", WRITE)
        with serve_in_thread(store) as url, agent(mcp.server(store)) as asker:
            yield Doors(store, url, asker)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("text", TAKEN)
def test_every_door_takes_every_form_on_either_axis(doors: Doors, axis: str, text: str) -> None:
    at = TAKEN[text]

    for door in (doors.python, doors.http, doors.mcp, doors.in_shell):
        assert at == door(axis, text), door.__name__
    known = answer("show", doors.url, f"{at:%m%d-%H-%M}-{int(at == NOW)}", f"--{axis}", text)
    assert "stands" == known["node"]["standing"]
    if at != NOW and axis == "valid":
        later = answer("show", doors.url, f"{at:%m%d-%H-%M}-1", "--valid", text)
        assert "not_yet" == later["node"]["standing"]
    elif at != NOW:
        assert "was not known at" in refused("show", doors.url, f"{at:%m%d-%H-%M}-1", "--tx", text)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("text", REFUSED)
def test_every_door_refuses_the_same_text_with_the_same_words(doors: Doors, axis: str, text: str) -> None:
    with pytest.raises(InvalidError) as error:
        doors.python(axis, text)
    words = str(error.value)

    assert words.startswith(f"{axis} ") and REFUSED[text] in words
    for door in (doors.http, doors.mcp, doors.in_shell):
        with pytest.raises(InvalidError) as error:
            door(axis, text)
        assert words == str(error.value), door.__name__
    assert words == doors.cli(axis, text)


def test_a_naive_datetime_is_refused_with_the_fix(doors: Doors) -> None:
    with pytest.raises(InvalidError, match=r"has no time zone.*2026-01-01T00:00:00\+00:00"):
        doors.store.as_of(tx=datetime(2026, 1, 1))


def test_every_door_refuses_a_span_that_is_turned_round_with_the_same_words(doors: Doors) -> None:
    words = "since 2026-02-10 is after until 2026-01-31. Give the earlier time as since."
    span = {"since": "release", "until": "2026-01-31"}

    with pytest.raises(InvalidError) as error:
        doors.store.events(**span)
    assert words == str(error.value)
    for call in ("events", "changes", "recall/recall", "timeline/messages"):
        asked = span if call != "recall/recall" else {"text": "fact", **span}
        status, value, _ = Wire(doors.url).ask("GET", f"/{call}?{urlencode(asked)}")
        assert (422, "InvalidError", words) == (status, value["error"], value["message"]), call
    for tool, asked in (
        ("search", {"query": "fact"}),
        ("search", {"kind": "fact", "standing": "shaky"}),
        ("timeline", {}),
        ("timeline", {"about": "there"}),
        ("timeline", {"thread": "t"}),
    ):
        assert words in doors.asker.refused(tool, **asked, **span), (tool, asked)
    for command in (["changes"], ["search", "fact"], ["timeline"]):
        name, *places = command
        said = refused(name, doors.url, *places, "--since", "release", "--until", "2026-01-31")
        assert words in " ".join(said.split()), command


WRITTEN: dict[str, Callable[[GraphStore], object]] = {
    "add": lambda store: store.add_node("fact", {}, valid_from="7d").valid_from,
    "add until": lambda store: store.add_node("fact", {}, valid_from="2w", valid_to="7d").valid_to,
    "revise": lambda store: store.revise("there", {"new": 1}, valid_from="7d").valid_from,
    "link": lambda store: store.link("there", "uses", "other", valid_from="7d").valid_from,
    "supersede": lambda store: store.supersede("there", by="other", valid_from="7d")[0].valid_from,
    "event": lambda store: store.record_event("deploy", "v1", occurred_at="7d").event.occurred_at,
    "end": lambda store: store.end("there", at="7d") or store.history("there")[0].valid_to,
    "knowledge": lambda store: store.knowledge_at("7d").at.valid,
    "transaction": lambda store: _written_in(store, "7d"),
}


def _written_in(store: GraphStore, at: str) -> datetime:
    with store.transaction(at=at):
        return store.add_node("fact", {}).tx_from


@pytest.mark.parametrize("case", WRITTEN)
def test_a_write_takes_the_same_forms(case: str) -> None:
    clock = Clock("2026-01-01")
    with open(":memory:", clock=clock) as store:
        store.add_node("fact", {}, id="there")
        store.add_node("fact", {}, id="other")
        clock.set(NOW)

        assert NOW - timedelta(days=7) == WRITTEN[case](store)


def test_a_period_begins_at_a_snapshot_and_its_end_can_be_open(store: GraphStore, clock: Clock) -> None:
    store.snapshot("release")
    clock.move(days=3)

    node = store.add_node("fact", {}, valid_from="release", valid_to="open")
    assert (day("2026-02-01"), None) == (node.valid_from, node.valid_to)
    assert [node.id] == [change.subject for change in store.changes("release")]
    assert store.changes() == store.changes("beginning")


def test_what_reads_as_a_time_is_no_name(store: GraphStore) -> None:
    for text in ("now", "Today", "yesterday", "7d", "30m", "beginning", "open", "2026-03", "2026"):
        assert looks_like_time(text)
        with pytest.raises(InvalidError, match="looks like a time"):
            store.snapshot(text)


def test_a_word_that_is_also_a_name_of_an_older_store_is_never_guessed() -> None:
    from graphstore import Snapshot

    named = [Snapshot(name="today", valid=NOW, tx=day("2026-03-17"), author=None)]

    with pytest.raises(InvalidError, match=r"2026-03-18 12:30Z, and the name of a snapshot, 2026-03-17"):
        resolve("today", "tx", instant(NOW), lambda: named, axis="tx")


def test_ages_stop_at_the_beginning_of_time_and_edges_have_their_places() -> None:
    assert BEGINNING == resolve("999999999w", "valid", instant(NOW))
    assert (BEGINNING, OPEN) == (resolve("beginning", "valid_from", 0), resolve("open", "until", 0))
    assert day("0001-01-01") == moment(resolve("yesterday", "valid", BEGINNING))


# ---- ids ----------------------------------------------------------------------------------------


@pytest.fixture
def known() -> Iterator[Doors]:
    """A store of its own behind the doors, with something of a generated id and something of a chosen one."""
    with open(":memory:", clock=Clock("2026-03-18")) as store, pytest.MonkeyPatch.context() as patch:
        store.add_node("fact", {"says": "chosen"}, id="deadbeef-notes")
        patch.setenv("GRAPHSTORE_TOKEN", WRITE)
        with serve_in_thread(store) as url, agent(mcp.server(store)) as asker:
            yield Doors(store, url, asker)


def test_the_doors_for_people_take_a_beginning_and_answer_with_the_whole_id(known: Doors) -> None:
    store, url, asker = known.store, known.url, known.asker
    id = store.add_node("fact", {"says": "one"}).id
    event = store.record_event("error", "it fell").event.id
    begun = id[:10]

    assert id == answer("get", url, begun)["node"]["id"] == asker.ask("get", id=begun)["thing"]["id"]
    assert f"revised {id}-v2" in run("revise", url, begun, '{"says": "two"}')
    assert f"confirmed {id}" in run("confirm", url, begun, "--reason", "looked")
    link = answer("link", url, event[:-2], "caused_by", begun)
    assert (event, id) == (link["source"], link["target"])
    assert f"unlinked {link['id']}" in run("unlink", url, link["id"][:12])
    assert id == asker.ask("remember", statement="three", revises=begun)["thing"]["id"]
    assert (event, id) == tuple(
        asker.ask("link", source=event[:-1], kind="caused_by", target=begun)["link"][end]
        for end in ("source", "target")
    )
    assert id in str(known.shell.answer(f":get {begun}").result.rows())
    assert f"retracted {id}" in run("retract", url, begun, "--reason", "never")


def test_no_door_takes_a_beginning_of_what_somebody_chose(known: Doors) -> None:
    for text in ("deadbeef", "deadbeef-note"):
        assert "Nearest: 'deadbeef-notes'" in refused("get", known.url, text)
        assert "Nearest: 'deadbeef-notes'" in known.asker.refused("get", id=text)
        with pytest.raises(NotFoundError, match="Nearest: 'deadbeef-notes'"):
            known.shell.answer(f":get {text}")


def test_every_door_takes_the_beginning_of_valid_time_and_says_it_again(known: Doors) -> None:
    store, url, asker = known.store, known.url, known.asker
    began = {"valid_from": "beginning"}
    mem = memory.Memory(store)
    ids = [
        store.add_node("fact", {"says": "python"}, **began).id,
        answer("add-node", url, "fact", '{"says": "command line"}', "--valid-from", "beginning")["id"],
        Wire(url).post("/add_node", {"kind": "fact", "content": {"says": "http"}, **began})["id"],
        asker.ask("remember", statement="mcp", **began)["thing"]["id"],
        mem.remember("memory", layer="soul", **began).id,
    ]
    store.bulk_load(versions=[{"node_id": "loaded", "content": {}, **began, "valid_to": "open"}])
    link = store.link(ids[0], "uses", ids[1], **began)

    assert {day("0001-01-01")} == {store.node(id).valid_from for id in (*ids, "loaded")} | {link.valid_from}
    assert "valid beginning → …" in run("add-node", url, "fact", "{}", "--valid-from", "Beginning")
    assert "beginning" in run("history", url, ids[0])
    assert "beginning" in str(store.query("MATCH (n:Node {id: $id}) RETURN n.valid_from", id=ids[0]))
    store.retract(ids[0], **began, valid_to="2026-01-01", reason="not yet")
    assert day("2026-01-01") == store.node(ids[0]).valid_from


def test_python_and_http_want_whole_ids(known: Doors) -> None:
    id = known.store.add_node("fact", {"says": "one"}).id

    with pytest.raises(NotFoundError, match=f"Nearest: '{id}'"):
        known.store.node(id[:10])
    status, value, _ = Wire(known.url).ask("GET", f"/node?id={id[:10]}")
    assert (404, "NotFoundError") == (status, value["error"])
    assert (200, id) == Wire(known.url).ask("GET", f"/whole_id?text={id[:10]}")[:2]
    with open(known.url) as remote, pytest.raises(NotFoundError):
        remote.node(id[:10])
