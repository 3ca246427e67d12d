"""Questions as a person asks them of an agent, each with the one call that a careful reader of the list of tools makes, and what the answer must say.

They stand beside the tasks of `agent_tasks` and are asked in the same ways. What is expected is written down from the stories of `agent_world`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.agent_tasks import READ, Agent, Answer, Task, ids, writes

TODAY = "2025-03-03T12:00:00Z"


def hits(found: Answer) -> set[str]:
    return set(ids(found["hits"]))


def happened(found: Answer) -> list[str]:
    return ids(found["events"])


def stood(found: Answer) -> set[tuple[str, str]]:
    return {(each["id"], each["standing"]) for each in found["entries"]}


def replaced(found: Answer) -> dict[str, list[str]]:
    return {each["id"]: each["replaced_by"] for each in found["entries"] if "replaced_by" in each}


def done(found: Answer) -> list[tuple[str, str, str | None]]:
    return [(each["verb"], each["who"], each.get("reason")) for each in found["said"]]


def lines(field: str) -> Callable[[Answer], list[tuple[str, str | None]]]:
    return lambda found: [(each["who"], each.get("reason")) for each in found[field]]


def rows(found: Answer) -> list[list[Any]]:
    return list(found["rows"])


def chain(found: Answer) -> list[tuple[str, str | None]]:
    return [(step["how"], step.get("id")) for step in found["chain"]]


def says(part: str) -> Callable[[Answer], bool]:
    return lambda found: part in found["answer"]


Row = tuple[str, str, dict[str, Any], Callable[[Answer], Any], Any]
QUESTIONS: list[Row] = [
    # finding, and who
    ("What has Ana ever decided?", "search", {"kind": "decision", "author": "ana", "standing": "any"}, hits, {"deploy-fri"}),
    ("Which decisions of the planner stand?", "search", {"kind": "decision", "author": "planner"}, hits, {"checkout-simple", "freeze-afternoon"}),
    ("What did the critic decide that stands?", "search", {"kind": "decision", "author": "critic"}, hits, {"auth-passkeys"}),
    ("Where are orders stored?", "search", {"tag": "storage"}, hits, {"db-postgres", "db-cockroach"}),
    ("Where were orders ever stored?", "search", {"tag": "storage", "standing": "any"}, hits, {"db-mysql", "db-postgres", "db-cockroach"}),
    ("Where did Boris say orders are stored?", "search", {"tag": "storage", "author": "boris"}, hits, {"db-postgres"}),
    ("How did clients ever log in?", "search", {"tag": "auth", "standing": "any"}, hits, {"auth-basic", "auth-sessions", "auth-jwt", "auth-passkeys"}),
    ("How did clients log in at New Year 2024?", "search", {"tag": "auth", "valid": "2024-01-01"}, hits, {"auth-jwt"}),
    ("Which policies are there?", "search", {"kind": "policy"}, hits, {"logs-kept"}),
    ("What has been decided since September 2024?", "search", {"kind": "decision", "since": "2024-09"}, hits, {"auth-passkeys"}),
    ("Which facts are older than 3 March 2023?", "search", {"kind": "fact", "until": "2023-03-03"}, hits, {"office-mill"}),
    ("Which errors were there on 3 October 2023?", "search", {"kind": "error", "since": "2023-10-03", "until": "2023-10-04"}, hits, {"err-timeout"}),
    ("Which deploys were recorded?", "search", {"kind": "deploy"}, hits, {"dep-42"}),
    ("Which facts had Boris told by the end of 2023?", "search", {"kind": "fact", "author": "boris", "valid": "2023-12-31", "tx": "2023-12-31"}, hits, {"db-postgres"}),
    ("What has a wrong foundation, of what the planner said?", "search", {"standing": "shaky", "author": "planner"}, hits, {"checkout-simple"}),
    ("Which facts are shaky?", "search", {"standing": "shaky", "kind": "fact"}, hits, {"carts-survive"}),
    ("What did Boris say that somebody contradicts?", "search", {"standing": "contested", "author": "boris"}, hits, {"limit-200"}),
    ("Is anything on logins contested?", "search", {"standing": "contested", "tag": "auth"}, hits, set()),
    ("Who said the limit is 200?", "why", {"id": "limit-200"}, done, [("add_node", "boris", None)]),
    ("Who ended the nightly export, and why?", "why", {"id": "export-nightly"}, lambda found: done(found)[-1], ("end", "ops", "the customer left")),
    ("Who said what of the vendor's price, and why?", "get", {"id": "vendor-price"}, lines("history"), [("builder", None), ("ana", "the April invoice")]),
    ("Who took back that Redis keeps carts?", "history", {"id": "redis-durable"}, lambda found: (found["versions"][-1]["unsaid_by"], found["versions"][-1]["unsaid_because"]), ("critic", "persistence was never switched on")),
    ("Which standing decisions are the critic's? In Cypher.", "cypher", {"query": "MATCH (n:Node {kind: 'decision', author: 'critic'}) RETURN n.id"}, rows, [["auth-passkeys"]]),
    ("Who said where the office is? In Cypher.", "cypher", {"query": "MATCH (n:Node {id: 'office-mill'}) RETURN n.author"}, rows, [["ana"]]),
    # what holds, and what became of it
    ("Does the export still run?", "why", {"id": "export-nightly"}, says("has ended: it held 2023-06-01 02:00Z → 2024-05-01."), True),
    ("Are we in Harbour Street?", "why", {"id": "office-harbour"}, says("is not yet so: it begins 2025-06-01."), True),
    ("Do we cache in Valkey?", "why", {"id": "cache-valkey"}, says("is retracted."), True),
    ("Do we deploy on Tuesdays?", "why", {"id": "deploy-tue"}, says("is superseded: it held 2023-09-01 → 2024-02-01."), True),
    ("What came after Memcached?", "what_superseded", {"id_or_text": "cache-memcached"}, chain, []),
    ("What came after Kafka?", "what_superseded", {"id_or_text": "queue-kafka"}, chain, [("retracted", None)]),
    ("What came after reading mail by IMAP?", "what_superseded", {"id_or_text": "mail-imap"}, chain, [("ended", None)]),
    ("What came after Berlin time?", "what_superseded", {"id_or_text": "zone-cet"}, chain, [("superseded", "zone-utc")]),
    # over time
    ("What was said of backups, and does it stand?", "timeline", {"about": "backup"}, stood, {("backup-disk", "stands"), ("backup-tape", "superseded"), ("backup-glacier", "stands")}),
    ("Which login took the place of which?", "timeline", {"about": "auth"}, replaced, {"auth-basic": ["auth-sessions"], "auth-sessions": ["auth-jwt"], "auth-jwt": ["auth-passkeys"]}),
    ("What happened around the afternoon freeze?", "timeline", {"about": "freeze-afternoon"}, lambda found: {id for id, _ in stood(found)}, {"freeze-afternoon-v1", "err-timeout", "reg-latency", "fix-pool", "fix-leak", "fix-driver"}),
    ("Was Redis ever believed to keep carts?", "timeline", {"about": "redis-durable"}, stood, {("redis-durable-v1", "retracted")}),
    ("How long are logs kept, then and now?", "timeline", {"about": "logs-kept"}, lambda found: [each["standing"] for each in found["entries"]], ["stands", "superseded", "superseded", "superseded"]),
    ("Which fixes came out in February 2025?", "events", {"type": "fix", "since": "2025-02-01"}, happened, ["fix-stream", "fix-batch"]),
    ("Which errors did we ever have?", "events", {"type": "error", "since": "2023-01-01"}, happened, ["err-leak", "err-timeout"]),
    ("What has to do with the leak?", "events", {"related_to": "err-leak", "since": "2025-01-01"}, lambda found: set(happened(found)), {"err-leak", "fix-batch", "fix-stream"}),
]  # fmt: skip


def _task(
    question: str, tool: str, asked: dict[str, Any], pick: Callable[[Answer], Any], expected: Any
) -> Task:
    def play(agent: Agent) -> None:
        assert expected == pick(agent.pages(tool, **{"valid": TODAY, **asked}))

    play.__name__ = "_".join("".join(c if c.isalnum() else " " for c in question.lower()).split())
    return Task(question, play)


READ += [_task(*row) for row in QUESTIONS]


# ---------------------------------------------------------------------- what is written


@writes("We moved to Fastly. No, that was a slip: take it back.")
def a_slip_is_undone(agent: Agent) -> None:
    slip = agent.ask(
        "remember", statement="Pages are cached in Fastly.", supersedes=["cache-memcached"], id="cache-fastly"
    )
    assert ["cache-memcached"] == ids(slip["closed"])
    undone = agent.ask("undo", tx=slip["tx"], reason="the wrong product")

    assert [("cache-fastly", "retracted")] == [(each["id"], each["standing"]) for each in undone["things"]]
    assert [] == agent.ask("what_superseded", id_or_text="cache-memcached")["chain"]
    assert "stands" == agent.ask("get", id="cache-memcached")["thing"]["standing"]


@writes("Taking it back was the slip: have it again.")
def an_undo_is_undone(agent: Agent) -> None:
    made = agent.ask(
        "remember", statement="Pages are cached in Fastly.", supersedes=["cache-memcached"], id="cache-fastly"
    )
    undone = agent.ask("undo", tx=made["tx"], reason="a slip")
    agent.ask("undo", tx=undone["tx"], reason="it was right")

    assert [("superseded", "cache-fastly")] == chain(
        agent.ask("what_superseded", id_or_text="cache-memcached")
    )


@writes("CockroachDB never replaced MySQL, it came beside it.")
def a_link_is_taken_back(agent: Agent) -> None:
    done = agent.ask(
        "unlink", source="db-cockroach", kind="supersedes", target="db-mysql", reason="beside it"
    )

    assert ("stands", "superseded") == (done["source"]["standing"], done["target"]["standing"])
    found = agent.ask("what_superseded", id_or_text="db-mysql")
    assert ([("superseded", "db-postgres")], False) == (chain(found), found["forked"])


@writes("The limit is 200, I measured it.")
def a_contradiction_is_decided(agent: Agent) -> None:
    done = agent.ask("resolve", id="limit-100", other="limit-200", keep="limit-200", reason="measured")

    assert [("limit-100", "retracted"), ("limit-200", "stands")] == [
        (e["id"], e["standing"]) for e in done["things"]
    ]
    assert "limit-200" not in hits(agent.ask("search", standing="contested"))


@writes("Remember three things of the new team.")
def several_at_once(agent: Agent) -> None:
    names = ["Cleo leads search.", "Dan leads data.", "Eve leads mobile."]
    done = agent.ask(
        "remember_many", statements=[{"statement": name, "kind": "lead", "tags": ["team"]} for name in names]
    )

    assert names == [each["statement"] for each in done["things"]]
    assert 1 == len({each["recorded_at"] for each in done["things"]})
    assert set(ids(done["things"])) == hits(agent.ask("search", kind="lead", author=agent.name))


@writes("Remember two things, of which one is wrong.")
def all_of_several_or_none(agent: Agent) -> None:
    told = agent.refused(
        "remember_many",
        statements=[
            {"statement": "Fay leads.", "kind": "lead"},
            {"statement": "x", "corrects": "nothing-like-it"},
        ],
    )

    assert "nothing-like-it" in told
    assert set() == hits(agent.ask("search", kind="lead"))


@writes("Reports are paged now: does that settle the leak?")
def a_fix_says_what_it_resolves(agent: Agent) -> None:
    fix = agent.ask("record_event", type="fix", description="reports are paged", related_to=["err-leak"])

    assert ["err-leak"] == ids(fix["resolved"])


@writes("There never were passkeys.")
def a_retraction_says_what_holds_again(agent: Agent) -> None:
    assert ["auth-jwt"] == ids(agent.ask("retract", id="auth-passkeys", reason="only a test")["holds_again"])


@writes("Keep logs for a year, if nobody changed that since I looked.")
def a_write_on_an_old_version_is_refused(agent: Agent) -> None:
    told = agent.refused("amend", id="logs-kept", fields={"days": 365}, if_number=9)

    assert "version 3 holds now" in told


@writes("No recovery step is needed after all? The new facts shake what?")
def a_new_value_says_what_is_shaky(agent: Agent) -> None:
    agent.ask("remember", statement="Support watches on Thursdays.", id="watch", derived_from=["deploy-thu"])
    moved = agent.ask(
        "remember", statement="We deploy on Mondays.", key="deploy_day", kind="decision", id="deploy-mon"
    )

    assert (["deploy-thu"], ["watch"]) == (ids(moved["closed"]), ids(moved["now_shaky"]))
