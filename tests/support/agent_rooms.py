"""A store with agents' sessions and with what is known for users; what a person asks of it, and what several agents do in it.

It stands beside the world of `agent_tasks`. No task looks at what another one writes, so all may be played in one store, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import graphstore
from graphstore import sessions
from graphstore.context import working
from graphstore.memory.memory import Memory
from tests.conftest import Clock
from tests.sessions.test_questions import SHOP, SITE, segment
from tests.support.session_files import START, header, said, write

TODAY = "2024-03-01T12:00:00Z"
Answer = dict[str, Any]


def told_to(path: Path) -> None:
    """The store: four pieces of work in January and February 2024, a session that was forked, and what is known for Ana."""
    clock = Clock(datetime(2024, 1, 10, tzinfo=UTC))
    with graphstore.open(path / "memory.gs", clock=clock) as store:
        for id, on, files, content in (
            ("cart", "2024-01-05", ["src/cart.py"], segment("s1", "Build the cart.", cost=0.1, tokens=1000, minutes=30,
                decisions=(("keep the cart in the session", "no account is needed"),), errors=("no such table",),
                lessons=(("tool", "quote every path", ("shell",)), ("user", "ask for the scope", ("team",))))),
            ("prices", "2024-01-06", ["src/prices.py", "src/cart.py"], segment("s1", "Round the prices.", cost=0.2, tokens=500,
                decisions=(("round half up", "the law says so"),))),
            ("site", "2024-01-08", ["web/index.css"], segment("s2", "A page for the shop.", SITE, cost=0.7, tokens=70)),
        ):  # fmt: skip
            content["content"]["filesTouched"] = files
            with store.transaction(author="importer"):
                store.add_node("segment", content, id=id, valid_from=on)
        clock.set("2024-02-02")
        again = segment("s3", "The cart again.", errors=("no such table", "out of memory"))
        again["content"]["filesTouched"] = ["/home/ana/shop/src/cart.py"]
        store.add_node("segment", again, id="again", valid_from="2024-02-01")
        _forked(path, store)
        clock.set("2024-02-10")
        memory = Memory(store)
        memory.remember("Ana drinks green tea.", layer="er1", user="ana")
        memory.remember("Boris drinks coffee.", layer="er1", user="boris")
        memory.remember("Ana asked for the March invoice.", layer="conversation", user="ana", thread="t1")
        working.set(store, "ana", None, "call the bank")
        for outcome in ("success", "success", "failure"):
            working.record_outcome(store, "sql", outcome, occurred_at="2024-02-09")
        with store.transaction(author="boris"):
            store.add_node("decision", {"says": "Invoices go out on the first."}, id="invoices")


def _forked(path: Path, store: graphstore.GraphStore) -> None:
    start = (datetime(2024, 2, 1, tzinfo=UTC) - START).total_seconds() / 60
    root = path / "files" / "root.jsonl"
    trunk = [said("a", None, start + 1), said("b", "a", start + 2, role="assistant")]
    write(root, header("root", start), *trunk)
    fork = header("fork", start + 40, parentSession=str(root))
    write(path / "files" / "fork.jsonl", fork, *trunk, said("c", "b", start + 41))
    sessions.ingest(store, root.parent)


class Agent(Protocol):
    """Whoever has the tools."""

    name: str

    def ask(self, tool: str, **arguments: Any) -> Answer:
        """The structured answer of a call that must succeed."""

    def refused(self, tool: str, **arguments: Any) -> str:
        """What a call that must fail says."""

    def other(self, name: str) -> AbstractContextManager[Agent]:
        """Another agent at the same store."""


class Task(NamedTuple):
    question: str
    play: Callable[[Agent], None]


TASKS: list[Task] = []


def task(question: str) -> Callable[[Callable[[Agent], None]], Callable[[Agent], None]]:
    def keep(play: Callable[[Agent], None]) -> Callable[[Agent], None]:
        TASKS.append(Task(question, play))
        return play

    return keep


def ids(things: list[Answer]) -> list[str]:
    return [each["id"] for each in things]


def hits(found: Answer) -> list[str]:
    return ids(found["hits"])


def of(field: str, *names: str) -> Callable[[Answer], list[Any]]:
    """These fields of each line of an answer; of one field its value."""
    if len(names) == 1:
        return lambda found: [each.get(names[0]) for each in found[field]]
    return lambda found: [tuple(each.get(name) for name in names) for each in found[field]]


def standing(agent: Agent, id: str, **at: str) -> str:
    return str(agent.ask("get", id=id, **at)["thing"]["standing"])


Row = tuple[str, str, dict[str, Any], Callable[[Answer], Any], Any]
NODES, WHO = of("found", "node"), of("found", "session")
QUESTIONS: list[Row] = [
    ("What was done on the shop?", "sessions", {"ask": "work", "project": "shop"}, NODES, ["cart", "prices", "again"]),
    ("What was done on the shop since February?", "sessions", {"ask": "work", "project": "shop", "since": "2024-02"}, NODES, ["again"]),
    ("What was done by 10 January?", "sessions", {"ask": "work", "until": "2024-01-10"}, NODES, ["cart", "prices", "site"]),
    ("What did we know on 20 January of the shop?", "sessions", {"ask": "work", "project": "shop", "valid": "2024-01-20", "tx": "2024-01-20"}, NODES, ["cart", "prices"]),
    ("What did the work on the shop take?", "sessions", {"ask": "work", "project": "shop"}, lambda found: found["summary"], "/home/ana/shop: 3 pieces of work in 2 sessions, 32 minutes, $0.3000, 1,500 tokens."),
    ("What was decided on the shop?", "sessions", {"ask": "decisions", "project": "shop"}, of("found", "what", "why"), [("round half up", "the law says so"), ("keep the cart in the session", "no account is needed")]),
    ("Was something decided on accounts?", "sessions", {"ask": "decisions", "about": "account"}, of("found", "what"), ["keep the cart in the session"]),
    ("What did we learn of the shell?", "sessions", {"ask": "lessons", "about": "shell"}, of("found", "level", "summary"), [("tool", "quote every path")]),
    ("What did the site teach us?", "sessions", {"ask": "lessons", "project": "site"}, of("found", "summary"), []),
    ("Which error came in two sessions?", "sessions", {"ask": "errors"}, lambda found: [(each["message"], each["sessions"]) for each in found["found"] if len(each["sessions"]) > 1], [("no such table", ["s1", "s3"])]),
    ("Where did we run out of memory?", "sessions", {"ask": "errors", "about": "out of memory"}, of("found", "sessions"), [["s3"]]),
    ("Who touched cart.py, the last one first?", "sessions", {"ask": "files", "about": "cart.py"}, WHO, ["s3", "s1", "s1"]),
    ("Who touched prices.py?", "sessions", {"ask": "files", "about": "src/prices.py"}, WHO, ["s1"]),
    ("What did each project cost?", "sessions", {"ask": "costs"}, lambda found: [(each["key"], each["cost"]) for each in found["found"] if each["cost"]], [(SITE, 0.7), (SHOP, 0.3)]),
    ("What did we spend on 8 January?", "sessions", {"ask": "costs", "about": "day"}, lambda found: [each["cost"] for each in found["found"] if each["key"] == "2024-01-08"], [0.7]),
    ("Where was this session forked from?", "sessions", {"ask": "lineage", "about": "fork"}, of("found", "relation", "session"), [("ancestor", "root"), ("asked", "fork")]),
    ("What was forked from the first session?", "sessions", {"ask": "lineage", "about": "root"}, of("found", "relation", "session"), [("asked", "root"), ("descendant", "fork")]),
    ("What does Ana drink?", "layers", {"query": "drinks", "user": "ana"}, of("hits", "statement", "via"), [("Ana drinks green tea.", "er1")]),
    ("Who drinks what?", "layers", {"query": "drinks", "layer": "er1"}, lambda found: {each["statement"] for each in found["hits"]}, {"Ana drinks green tea.", "Boris drinks coffee."}),
    ("How much is kept in each layer, and for how long?", "layers", {}, lambda found: [(each["layer"], each["chunks"], each.get("days")) for each in found["layers"] if each["chunks"]], [("conversation", 1, 30), ("er1", 2, None)]),
    ("What should I know before I answer Ana?", "context", {"user": "ana", "thread": "t1", "query": "what do I drink?"}, lambda found: ["call the bank" in found["context"], "green tea" in found["context"], "coffee" in found["context"]], [True, True, False]),
    ("How well does SQL go?", "expertise", {"domain": "sql"}, lambda found: [(each["outcomes"], each["score"] > 0.5) for each in found["scores"]], [(3, True)]),
    ("What has Boris decided?", "search", {"kind": "decision", "author": "boris"}, hits, ["invoices"]),
]  # fmt: skip


def _asked(
    question: str, tool: str, given: dict[str, Any], pick: Callable[[Answer], Any], expected: Any
) -> Task:
    def play(agent: Agent) -> None:
        assert expected == pick(agent.ask(tool, **{"valid": TODAY, **given}))

    return Task(question, play)


ASKED = [_asked(*row) for row in QUESTIONS]


# ---------------------------------------------------------------------- finding


@task("What did I note on ferries, and not somebody else?")
def one_s_own(agent: Agent) -> None:
    with agent.other("ferryman") as other:
        other.ask("remember", statement="The ferry leaves at nine.", id="ferry-9", kind="ferry")
    agent.ask("remember", statement="The ferry leaves at ten.", id="ferry-10", kind="ferry")

    assert ["ferry-10"] == hits(agent.ask("search", kind="ferry", author=agent.name))
    assert ["ferry-9"] == hits(agent.ask("search", kind="ferry", author="ferryman"))
    assert {"ferry-9", "ferry-10"} == set(hits(agent.ask("search", kind="ferry")))


@task("Which plans are there that have not begun?")
def what_is_planned(agent: Agent) -> None:
    agent.ask("remember", statement="The museum opens.", id="museum", kind="opening", valid_from="2199-01-01")

    assert [] == hits(agent.ask("search", kind="opening"))
    [found] = agent.ask("search", kind="opening", standing="any")["hits"]
    assert ("museum", "not_yet") == (found["id"], found["standing"])
    assert ["museum"] == hits(agent.ask("search", kind="opening", valid="2199-02"))


@task("What was said to begin in June?")
def what_began_in_a_month(agent: Agent) -> None:
    days = {"may": "2024-05-31", "june": "2024-06-01", "july": "2024-07-01"}
    for month, day in days.items():
        agent.ask("remember", statement=f"Tide of {month}.", id=f"tide-{month}", kind="tide", valid_from=day)

    assert ["tide-june"] == hits(agent.ask("search", kind="tide", since="2024-06", until="2024-06"))
    assert {"tide-june", "tide-july"} == set(hits(agent.ask("search", kind="tide", since="2024-06")))
    assert ["tide-may"] == hits(agent.ask("search", kind="tide", until="2024-05"))


@task("Show me lighthouse-7.")
def an_id_is_found_first(agent: Agent) -> None:
    agent.ask("remember", statement="It blinks twice.", id="lighthouse-7")
    agent.ask("remember", statement="The lighthouse 7 miles off is dark.")

    assert "lighthouse-7" == hits(agent.ask("search", query="lighthouse-7"))[0]


@task("What is on harbours, of all that has this tag?")
def by_tag(agent: Agent) -> None:
    for number in range(3):
        agent.ask(
            "remember",
            statement=f"Harbour number {number}.",
            id=f"port-{number}",
            tags=["port", f"p{number}"],
        )

    assert {"port-0", "port-1", "port-2"} == set(hits(agent.ask("search", tag="port")))
    assert ["port-1"] == hits(agent.ask("search", tag="p1"))


@task("Which value did the slot have in March, and now?")
def a_slot_over_time(agent: Agent) -> None:
    for number, day in enumerate(("2024-01-01", "2024-04-01")):
        agent.ask(
            "remember",
            statement=f"The captain is number {number}.",
            id=f"captain-{number}",
            key="captain",
            valid_from=day,
        )

    assert ["captain-1"] == hits(agent.ask("search", query="key:captain"))
    assert ["captain-0"] == hits(agent.ask("search", query="key:captain", valid="2024-03"))
    assert "superseded" == standing(agent, "captain-0")


# ---------------------------------------------------------------------- undo


@task("Take back those three, they were a slip.")
def several_are_undone_at_once(agent: Agent) -> None:
    done = agent.ask(
        "remember_many",
        statements=[{"statement": f"Whale {n}.", "id": f"whale-{n}", "kind": "whale"} for n in range(3)],
    )
    undone = agent.ask("undo", tx=done["tx"], reason="a slip")

    assert (done["tx"], 3) == (undone["undone"], len(undone["operations"]))
    assert [] == hits(agent.ask("search", kind="whale"))
    assert ["stands"] * 3 == [standing(agent, f"whale-{n}", tx=done["tx"]) for n in range(3)]


@task("The pier was not replaced after all.")
def a_supersession_is_undone(agent: Agent) -> None:
    agent.ask("remember", statement="The old pier is used.", id="pier-old", valid_from="2024-01-01")
    agent.ask("remember", statement="The new pier is used.", id="pier-new", valid_from="2024-02-01")
    done = agent.ask("supersede", old="pier-old", by="pier-new", reason="it burned")
    assert "superseded" == standing(agent, "pier-old")
    agent.ask("undo", tx=done["tx"], reason="another pier burned")

    assert ("stands", "stands") == (standing(agent, "pier-old"), standing(agent, "pier-new"))
    assert [] == agent.ask("what_superseded", id_or_text="pier-old")["chain"]


@task("That link was wrong.")
def a_link_is_undone(agent: Agent) -> None:
    for name in ("rope", "knot"):
        agent.ask("remember", statement=f"There is a {name}.", id=name)
    done = agent.ask("link", source="knot", kind="part_of", target="rope")
    agent.ask("undo", tx=done["tx"], reason="no")

    assert [] == agent.ask("get", id="knot")["links"]
    assert [("knot", "part_of", "rope")] == of("links", "source", "kind", "target")(
        agent.ask("get", id="knot", tx=done["tx"])
    )


@task("It never happened.")
def an_event_is_undone(agent: Agent) -> None:
    done = agent.ask("record_event", type="leakage", description="water in the hull", id="hull")
    agent.ask("undo", tx=done["tx"], reason="it was rain")

    assert "retracted" == standing(agent, "hull")
    assert [] == agent.ask("events", type="leakage", since="1d")["events"]


@task("Put the fields back.")
def an_amendment_is_undone(agent: Agent) -> None:
    agent.ask("remember", statement="The mast is tall.", id="mast", content={"metres": 20, "wood": "oak"})
    done = agent.ask("amend", id="mast", fields={"metres": 25})
    assert 25 == agent.ask("get", id="mast")["content"]["metres"]
    agent.ask("undo", tx=done["tx"], reason="measured again")

    content = agent.ask("get", id="mast")["content"]
    assert (20, "oak") == (content["metres"], content["wood"])


@task("It was right, I should not have taken it back.")
def a_retraction_is_undone(agent: Agent) -> None:
    agent.ask("remember", statement="The anchor holds.", id="anchor")
    agent.ask("remember", statement="We may sleep.", id="sleep", derived_from=["anchor"])
    done = agent.ask("retract", id="anchor", reason="it slipped")
    assert ["sleep"] == ids(done["now_shaky"])
    agent.ask("undo", tx=done["tx"], reason="it did not")

    assert ("stands", "stands") == (standing(agent, "anchor"), standing(agent, "sleep"))


@task("Undo it, though something was built on it.")
def what_was_built_on_is_named(agent: Agent) -> None:
    done = agent.ask("remember", statement="The keel is laid.", id="keel")
    agent.ask("remember", statement="The ship is begun.", id="ship", derived_from=["keel"])
    told = agent.refused("undo", tx=done["tx"], reason="no")

    assert "ship" in told
    assert "stands" == standing(agent, "keel")


@task("No, have it again.")
def an_undo_is_undone_too(agent: Agent) -> None:
    done = agent.ask("remember", statement="The sail is white.", id="sail")
    undone = agent.ask("undo", tx=done["tx"], reason="a slip")
    agent.ask("undo", tx=undone["tx"], reason="no slip")

    assert "stands" == standing(agent, "sail")
    assert [agent.name] * 3 == of("said", "who")(agent.ask("why", id="sail"))


# ---------------------------------------------------------------------- who


@task("Who described the buoy, and who better?")
def two_who_described_it(agent: Agent) -> None:
    agent.ask("remember", statement="The buoy is red.", id="buoy", reason="seen")
    with agent.other("painter") as other:
        other.ask("remember", statement="The buoy is green.", revises="buoy", reason="painted")

    told = of("versions", "who", "reason", "unsaid_by")(agent.ask("history", id="buoy"))
    assert (agent.name, "seen", "painter") == told[0]
    assert ("painter", "painted", None) == told[-1]
    assert [(agent.name, "seen"), ("painter", "painted")] == of("said", "who", "reason")(
        agent.ask("why", id="buoy")
    )


@task("Which ropes are by whom, in Cypher?")
def who_in_cypher(agent: Agent) -> None:
    mine = agent.ask("remember", statement="A thick rope.", id="rope-1", kind="cordage")
    with agent.other("roper") as other:
        other.ask("remember", statement="A thin rope.", id="rope-2", kind="cordage")

    query = "MATCH (n:Node {kind: 'cordage'}) RETURN n.id, n.author, n.tx_from ORDER BY n.id"
    rows = agent.ask("cypher", query=query)["rows"]
    assert [["rope-1", agent.name], ["rope-2", "roper"]] == [row[:2] for row in rows]
    assert datetime.fromisoformat(mine["tx"]) == datetime.fromisoformat(rows[0][2])


@task("Who linked these?")
def who_linked(agent: Agent) -> None:
    for name in ("oar", "boat"):
        agent.ask("remember", statement=f"One {name}.", id=name)
    with agent.other("rower") as other:
        other.ask("link", source="oar", kind="part_of", target="boat", reason="it came with it")

    assert [("agent:rower", "it came with it")] == of("links", "created_by", "reason")(
        agent.ask("get", id="oar")
    )


@task("Who ended the race?")
def who_ended_it(agent: Agent) -> None:
    agent.ask("remember", statement="The race is on.", id="race", valid_from="2024-01-01")
    with agent.other("umpire") as other:
        other.ask("retract", id="race", ended_at="2024-02-01", reason="no wind")

    last = agent.ask("why", id="race")["said"][-1]
    assert ("end", "umpire", "no wind") == (last["verb"], last["who"], last["reason"])
    assert ("ended", "stands") == (standing(agent, "race"), standing(agent, "race", valid="2024-01-31"))


# ---------------------------------------------------------------------- several agents


@task("Two of us say the same.")
def the_same_from_two(agent: Agent) -> None:
    made = agent.ask("remember", statement="Gulls follow the trawler.")
    with agent.other("second") as other:
        again = other.ask("remember", statement="gulls follow the trawler")

    assert ("new", "confirmed") == (made["outcome"], again["outcome"])
    found = agent.ask("get", id=made["thing"]["id"])
    assert (1, [agent.name]) == (found["confirmations"], of("history", "who")(found))


@task("The other one says the world moved on.")
def another_one_supersedes(agent: Agent) -> None:
    agent.ask("remember", statement="We fish cod.", id="cod", valid_from="2024-01-01")
    with agent.other("skipper") as other:
        done = other.ask(
            "remember",
            statement="We fish herring.",
            id="herring",
            supersedes=["cod"],
            valid_from="2024-02-01",
            reason="the quota",
        )
    assert ["cod"] == ids(done["closed"])

    [step] = agent.ask("what_superseded", id_or_text="cod")["chain"]
    assert ("herring", "skipper", "the quota") == (step["id"], step["who"], step["reason"])
    assert "2024-02-01T00:00:00Z" == step["since"]


@task("We both change the same thing.")
def the_later_of_two_is_refused(agent: Agent) -> None:
    agent.ask("remember", statement="The hold is empty.", id="hold", content={"crates": 0})
    with agent.other("loader") as other:
        other.ask("amend", id="hold", fields={"crates": 5}, if_number=1)
    told = agent.refused("amend", id="hold", fields={"crates": 3}, if_number=1)

    assert "version 2 holds now" in told
    assert 5 == agent.ask("get", id="hold")["content"]["crates"]
    agent.ask("amend", id="hold", fields={"crates": 8}, if_number=2)
    assert 8 == agent.ask("get", id="hold")["content"]["crates"]


@task("We do not agree: decide.")
def a_quarrel_is_decided(agent: Agent) -> None:
    agent.ask("remember", statement="The wind is west.", id="west", kind="wind")
    with agent.other("mate") as other:
        other.ask("remember", statement="The wind is east.", id="east", kind="wind")
        other.ask("link", source="east", kind="contradicts", target="west")
    [found] = agent.ask("search", kind="wind", author="mate", standing="contested")["hits"]
    assert ("east", "west") == (found["id"], found["other"])
    done = agent.ask("resolve", id="east", other="west", keep="west", reason="the vane")

    assert [("east", "retracted"), ("west", "stands")] == of("things", "id", "standing")(done)
    assert [] == hits(agent.ask("search", kind="wind", standing="contested"))


@task("Both may be right.")
def a_quarrel_that_is_none(agent: Agent) -> None:
    for side in ("port", "starboard"):
        agent.ask("remember", statement=f"The light is on {side}.", id=f"light-{side}", kind="lamp")
    agent.ask("link", source="light-port", kind="contradicts", target="light-starboard")
    done = agent.ask("resolve", id="light-port", other="light-starboard", keep="both", reason="two lights")

    assert ["stands", "stands"] == of("things", "standing")(done)
    assert [] == hits(agent.ask("search", kind="lamp", standing="contested"))


@task("Take back what the other one wrote.")
def another_one_s_slip_is_undone(agent: Agent) -> None:
    with agent.other("novice") as other:
        done = other.ask("remember", statement="The moon is a lamp.", id="moon")
    agent.ask("undo", tx=done["tx"], reason="it is not")

    assert [("add_node", "novice"), ("undo", agent.name)] == of("said", "verb", "who")(
        agent.ask("why", id="moon")
    )


@task("What did we know before the other one wrote?")
def before_the_other_wrote(agent: Agent) -> None:
    before = agent.ask("remember", statement="The log is open.", id="log")["tx"]
    with agent.other("clerk") as other:
        other.ask("remember", statement="The log is closed.", id="log-2")

    assert "was not known at" in (told := agent.refused("get", id="log-2", tx=before)) and "by clerk" in told
    assert ["log-2"] == [
        each["id"] for each in agent.ask("diff", before_tx=before)["added"] if each["id"].startswith("log")
    ]


@task("All or none, for another one too.")
def all_or_none_is_seen_by_nobody(agent: Agent) -> None:
    told = agent.refused(
        "remember_many", statements=[{"statement": "Crab one.", "kind": "crab"}, {"statement": " "}]
    )
    with agent.other("watcher") as other:
        assert [] == hits(other.ask("search", kind="crab", standing="any"))
    assert "statement 2 is blank" in told


@task("Ask the other one what rests on my word.")
def what_rests_on_another_s_word(agent: Agent) -> None:
    agent.ask("remember", statement="The tide turns at six.", id="tide-6")
    with agent.other("pilot") as other:
        other.ask("remember", statement="We leave at six.", id="leave-6", derived_from=["tide-6"])
    done = agent.ask("retract", id="tide-6", reason="the wrong table")

    assert ["leave-6"] == ids(done["now_shaky"])
    assert ["leave-6"] == hits(agent.ask("search", author="pilot", standing="shaky"))


# ---------------------------------------------------------------------- sessions


@task("That piece of work was read wrongly: it counts no more. Or does it?")
def work_is_taken_back(agent: Agent) -> None:
    mine = {"ask": "work", "project": "site"}
    assert ["site"] == NODES(agent.ask("sessions", **mine))
    done = agent.ask("retract", id="site", reason="another project's")
    assert "no work on project 'site'" in agent.refused("sessions", **mine)
    assert [] == WHO(agent.ask("sessions", ask="files", about="index.css"))
    agent.ask("undo", tx=done["tx"], reason="it was right")

    assert ["site"] == NODES(agent.ask("sessions", **mine))
    assert ["s2"] == WHO(agent.ask("sessions", ask="files", about="index.css"))


@task("Remember a decision of that session, and what it rests on.")
def a_decision_rests_on_work(agent: Agent) -> None:
    [decided] = agent.ask("sessions", ask="decisions", about="half up")["found"]
    agent.ask(
        "remember",
        statement="Prices are rounded half up.",
        id="rounding",
        kind="rule",
        derived_from=[decided["node"]],
    )

    assert ["prices"] == of("rests_on", "target")(agent.ask("why", id="rounding"))
    assert "rounding" in ids(agent.ask("trace", id="prices")["reached"])


@task("Who touched which file is known of then, too.")
def files_as_known_then(agent: Agent) -> None:
    then = {"valid": "2024-01-20", "tx": "2024-01-20"}

    assert ["prices", "cart"] == NODES(agent.ask("sessions", ask="files", about="cart.py", **then))
    assert [] == of("found", "message")(agent.ask("sessions", ask="errors", about="memory", **then))
    assert "which file" in agent.refused("sessions", ask="files")


# ---------------------------------------------------------------------- memory


@task("Keep that Cleo sails, until I say otherwise.")
def a_slot_of_a_user(agent: Agent) -> None:
    old = agent.ask("keep", text="Cleo sails a dinghy.", layer="er1", user="cleo", key="boat")
    new = agent.ask("keep", text="Cleo sails a ketch.", layer="er1", user="cleo", key="boat")

    assert [old["thing"]["id"]] == ids(new["closed"])
    assert ["Cleo sails a ketch."] == of("hits", "statement")(agent.ask("layers", query="sails", user="cleo"))
    assert "superseded" == standing(agent, old["thing"]["id"])


@task("Keep it twice.")
def the_same_chunk_is_one(agent: Agent) -> None:
    made = [agent.ask("keep", text="Dan rows.", layer="tool", user="dan") for _ in range(2)]

    assert ["new", "confirmed"] == [each["outcome"] for each in made]
    assert 1 == len({each["thing"]["id"] for each in made})


@task("What was kept by a slip is taken back.")
def a_chunk_is_undone(agent: Agent) -> None:
    done = agent.ask("keep", text="Eve swims.", layer="er1", user="eve")
    agent.ask("undo", tx=done["tx"], reason="another Eve")

    assert [] == agent.ask("layers", query="swims", user="eve")["hits"]
    assert "Eve swims." not in agent.ask("context", user="eve", query="swims")["context"]


@task("Note that on Fay's pad, and that in her thread.")
def two_scratchpads(agent: Agent) -> None:
    agent.ask("scratchpad", user="fay", text="mend the net")
    agent.ask("scratchpad", user="fay", text="buy bait", thread="f1", append=True)

    assert (
        "mend the net\nbuy bait"
        == agent.ask("scratchpad", user="fay", text="mend the net\nbuy bait", thread="f1")["pad"]
    )
    assert "buy bait" in agent.ask("context", user="fay", thread="f1")["context"]
    assert "buy bait" not in agent.ask("context", user="fay", thread="f2")["context"]
    assert "mend the net" in agent.ask("context", user="fay", thread="f2")["context"]


@task("Clear the pad.")
def a_scratchpad_is_cleared(agent: Agent) -> None:
    noted = agent.ask("scratchpad", user="gil", text="sand the deck")
    cleared = agent.ask("scratchpad", user="gil", text="")

    assert ("sand the deck", None) == (noted["pad"], cleared.get("pad"))
    assert "sand the deck" not in agent.ask("context", user="gil")["context"]
    assert "sand the deck" in agent.ask("context", user="gil", valid=noted["tx"], tx=noted["tx"])["context"]


@task("Watch what we say.")
def messages_wait_to_be_observed(agent: Agent) -> None:
    waiting = [
        agent.ask("observe", user="hal", message=f"wave {n}", thread="h", sender="hal")["waiting"]
        for n in range(3)
    ]

    assert [1, 2, 3] == waiting
    assert "wave 2" in agent.ask("context", user="hal", thread="h")["context"]


@task("How did splicing go?")
def outcomes_are_counted(agent: Agent) -> None:
    for outcome in ("failure", "failure", "success"):
        agent.ask("record_outcome", domain="splicing", outcome=outcome, note="a rope")
    [found] = agent.ask("expertise", domain="splicing")["scores"]

    assert (3, True) == (found["outcomes"], found["score"] < 0.5)
    [nobody] = agent.ask("expertise", domain="splicing", agent="nobody")["scores"]
    assert (0, 0.5) == (nobody["outcomes"], nobody["score"])


@task("What I keep for one user is not another's.")
def no_user_sees_another_s(agent: Agent) -> None:
    agent.ask("keep", text="Ida's code is blue.", layer="er1", user="ida")

    assert [] == agent.ask("layers", query="code blue", user="jon")["hits"]
    assert "blue" not in agent.ask("context", user="jon", query="which code?")["context"]
    assert "blue" in agent.ask("context", user="ida", query="which code?")["context"]


@task("Keep it in a layer that is none.")
def an_unknown_layer_is_refused(agent: Agent) -> None:
    told = agent.refused("keep", text="x", layer="toll")

    assert "Did you mean 'tool'" in told and "Next: call keep again" in told


@task("Erase it.")
def erasing_is_not_offered(agent: Agent) -> None:
    told = agent.refused("forget", id="invoices", reason="a secret")

    assert "no tool 'forget'" in told
    assert "stands" == standing(agent, "invoices")
