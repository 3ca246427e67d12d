"""Fifty questions as a person asks them of an agent, the calls the agent makes, and the whole answer it must get.

What is expected is written down, or comes from the plain rows of `agent_world`; never from the store. `READ` only asks; `WRITTEN` tell something
new and look what became of it, each in a copy of the world.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from tests.conftest import Clock
from tests.support.agent_world import BOOM, HOSTILE, LEAK, SNAPSHOTS, TRACE, World, at

Answer = dict[str, Any]


class Agent(Protocol):
    """Whoever has the tools."""

    world: World
    clock: Clock
    name: str

    def ask(self, tool: str, **arguments: Any) -> Answer:
        """The structured answer of a call that must succeed."""

    def pages(self, tool: str, **arguments: Any) -> Answer:
        """All pages of an answer as one, its lists joined; `pages` says how many there were."""

    def refused(self, tool: str, **arguments: Any) -> str:
        """What a call that must fail says."""


class Task(NamedTuple):
    question: str
    play: Callable[[Agent], None]

    @property
    def name(self) -> str:
        return self.play.__name__


READ: list[Task] = []
WRITTEN: list[Task] = []


def task(question: str) -> Callable[[Callable[[Agent], None]], Callable[[Agent], None]]:
    def keep(play: Callable[[Agent], None]) -> Callable[[Agent], None]:
        READ.append(Task(question, play))
        return play

    return keep


def writes(question: str) -> Callable[[Callable[[Agent], None]], Callable[[Agent], None]]:
    def keep(play: Callable[[Agent], None]) -> Callable[[Agent], None]:
        WRITTEN.append(Task(question, play))
        return play

    return keep


# ---------------------------------------------------------------------- how answers are read


def when(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def ids(things: list[Answer]) -> list[str]:
    return [thing["id"] for thing in things]


def said(things: list[Answer]) -> list[tuple[str, str]]:
    return [(thing["id"], thing["statement"]) for thing in things]


def subject(found: Answer) -> tuple[str, str, str]:
    """id, statement, and how it stands; said twice alike."""
    assert found["standing"] == found["subject"]["standing"]
    return found["subject"]["id"], found["subject"]["statement"], found["standing"]


def coordinate(found: Answer) -> tuple[datetime | None, datetime | None]:
    return when(found["at"]["valid"]), when(found["at"]["tx"])


def described(found: Answer) -> tuple[str, str, str]:
    """What `get` says: version, statement, standing."""
    thing = found["thing"]
    return f"{thing['id']}-v{found['version']}", thing["statement"], thing["standing"]


def period(thing: Answer) -> tuple[datetime | None, datetime | None]:
    return when(thing["valid_from"]), when(thing.get("valid_to"))


Step = tuple[str, str, str | None, str | None, datetime | None, datetime | None, str, str | None]


def steps(found: Answer, *, planned: bool = False) -> list[Step]:
    """how, what went, what came, its statement, since when true, since when known, who said so, why; of what has come, or of what is planned"""
    return [
        (
            step["how"], step["replaced"], step.get("id"), step.get("statement"),
            when(step.get("since")), when(step["recorded_at"]), step["who"], step.get("reason"),
        )
        for step in found["chain"] if step.get("planned", False) is planned
    ]  # fmt: skip


Told = tuple[
    str,
    str,
    datetime | None,
    datetime | None,
    datetime | None,
    datetime | None,
    str,
    str | None,
    str | None,
    str | None,
]


def versions(found: Answer) -> list[Told]:
    """ref, statement, valid from and to, recorded, believed until, who, why; who unsaid it, why"""
    return [
        (
            each["ref"], each["statement"], *period(each), when(each["recorded_at"]), when(each.get("believed_until")),
            each["who"], each.get("reason"), each.get("unsaid_by"), each.get("unsaid_because"),
        )
        for each in found["versions"]
    ]  # fmt: skip


def links(found: list[Answer]) -> list[tuple[str, str, str, str | None]]:
    return [(each["source"], each["kind"], each["target"], each.get("reason")) for each in found]


def reached(found: list[Answer]) -> list[tuple[str, int, str, str, str | None]]:
    """id, how far, by which link, of what, why"""
    return [(each["id"], each["hops"], each["by"], each["of"], each.get("reason")) for each in found]


def done(found: Answer) -> list[tuple[str, str, str, datetime | None, str | None]]:
    """verb, subject, who, when told, why"""
    return [
        (each["verb"], each["subject"], each["who"], when(each["recorded_at"]), each.get("reason"))
        for each in found["said"]
    ]


Coordinate = tuple[datetime | None, datetime | None]


def differs(agent: Agent, found: Answer, before: Coordinate, after: Coordinate) -> None:
    """That a diff of two coordinates says what the rows say."""
    oracle = agent.world.oracle
    added, removed, changed = oracle.compare(before, after)
    happened, undone = oracle.compare_events(before, after)

    assert added | happened == set(ids(found["added"])) and len(added | happened) == len(found["added"])
    assert removed | undone == set(ids(found["removed"]))
    assert changed == set(ids(found["changed"]))
    assert changed == set(ids(found["changes"]))
    now = {row["id"]: agent.world.text(row) for row in oracle.nodes_at(*after)}
    was = {row["id"]: agent.world.text(row) for row in oracle.nodes_at(*before)}
    assert {(id, "statement", was[id], now[id]) for id in changed} == {
        (each["id"], each["path"], each["old"], each["new"]) for each in found["changes"]
    }
    links = [{link["id"] for link in oracle._links(*each)} for each in (before, after)]
    assert links[1] - links[0] == set(ids(found["links_added"]))
    assert links[0] - links[1] == set(ids(found["links_removed"]))


DEPLOYS = {
    "fri": "We deploy on Fridays.",
    "tue": "We deploy on Tuesdays.",
    "wed": "We deploy on Wednesdays.",
    "thu": "We deploy on Thursdays.",
}
TO_WED: Step = (
    "superseded", "deploy-tue", "deploy-wed", DEPLOYS["wed"], at("2024-02-01"), at("2024-02-20T16:00"), "ops", "the sign-off moved to Tuesday",
)  # fmt: skip
TO_THU: Step = (
    "superseded", "deploy-wed", "deploy-thu", DEPLOYS["thu"], at("2024-02-15"), at("2024-04-02T11:00"), "builder", "the release train leaves on Thursday",
)  # fmt: skip
TO_POSTGRES: Step = (
    "superseded", "db-mysql", "db-postgres", "Orders are stored in Postgres.", at("2023-11-01T08:00"), at("2023-11-01T08:00"), "boris", "row locks under load",
)  # fmt: skip
TO_COCKROACH: Step = (
    "superseded", "db-mysql", "db-cockroach", "Orders from the EU are stored in CockroachDB.", at("2024-01-10T08:00"), at("2024-01-10T08:00"), "ana", "data must stay in the EU",
)  # fmt: skip
TO_JWT: Step = (
    "superseded", "auth-sessions", "auth-jwt", "Clients log in with signed tokens.", at("2023-12-05T12:00"), at("2023-12-05T12:00"), "planner", "three services need the login",
)  # fmt: skip

# ---------------------------------------------------------------------- what superseded it


@task("What replaced the Tuesday deploys, as we knew on 3 March 2024?")
def replaced_as_known_then(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="deploy-tue", valid="2024-03-03", tx="2024-03-03")

    assert ("deploy-tue", DEPLOYS["tue"], "superseded") == subject(found)
    assert [TO_WED] == steps(found)
    assert [("deploy-wed", DEPLOYS["wed"])] == said(found["current"])
    end = at("2024-03-04") - timedelta(microseconds=1)
    assert (end, end) == coordinate(found)


@task("'We deploy on Tuesdays': is that still so, and what came after?")
def replaced_by_text(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="We deploy on Tuesdays")

    assert ("deploy-tue", DEPLOYS["tue"], "superseded") == subject(found)
    assert [TO_WED, TO_THU] == steps(found)
    assert [("deploy-thu", DEPLOYS["thu"])] == said(found["current"])
    assert not found["retracted"]


@task("What replaced the Tuesday deploys on 10 February 2024, by what we know today?")
def replaced_then_as_known_now(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="deploy-tue", valid="2024-02-10")

    assert [TO_WED] == steps(found)
    assert [TO_THU] == steps(found, planned=True)
    assert ["deploy-wed"] == ids(found["current"])


@task("What became of the tape backups?")
def ambiguous_text(agent: Agent) -> None:
    several = agent.ask("what_superseded", id_or_text="Backups go to")
    assert {"backup-disk", "backup-tape", "backup-glacier"} == set(ids(several["candidates"]))
    assert "subject" not in several
    assert [] == several["chain"]

    chosen = next(one["id"] for one in several["candidates"] if "tape" in one["statement"])
    found = agent.ask("what_superseded", id_or_text=chosen)
    assert [
        ("superseded", "backup-tape", "backup-glacier", "Backups go to Glacier every week.", at("2024-08-08T10:00"), at("2024-08-08T10:00"), "ops", "nobody could read the tapes")
    ] == steps(found)  # fmt: skip


@task("What came after the Tuesday deploys? I do not know how it was put.")
def words_in_other_forms(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="Tuesday deploys")

    assert ("deploy-tue", DEPLOYS["tue"], "superseded") == subject(found)
    assert ["deploy-thu"] == ids(found["current"])


@task("Is it still true that nobody deploys on a Tuesday?")
def words_nothing_says(agent: Agent) -> None:
    several = agent.ask("what_superseded", id_or_text="nobody deploys on a Tuesday")
    assert "subject" not in several and [] == several["chain"] == several["current"]
    assert "deploy-tue" in ids(several["candidates"])

    [meant] = [one["id"] for one in several["candidates"] if "Tuesday" in one["statement"]]
    assert ["deploy-thu"] == ids(agent.ask("what_superseded", id_or_text=meant)["current"])


@task("What came after MySQL?")
def forked(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="db-mysql")

    assert [TO_POSTGRES, TO_COCKROACH] == steps(found)
    assert ["db-postgres", "db-cockroach"] == ids(found["current"])
    assert found["forked"]


@task("And at Christmas 2023, what had come after MySQL?")
def before_it_forked(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="db-mysql", valid="2023-12-24")

    assert [TO_POSTGRES] == steps(found)
    assert [TO_COCKROACH] == steps(found, planned=True)
    assert ["db-postgres"] == ids(found["current"])
    assert not found["forked"]


@task("How did logging in change since basic auth, who decided, and why?")
def chain_of_three(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="auth-basic")

    assert [
        ("superseded", "auth-basic", "auth-sessions", "Clients log in with server sessions.", at("2023-07-01T12:00"), at("2023-07-01T12:00"), "builder", "passwords went with every request"),
        TO_JWT,
        ("superseded", "auth-jwt", "auth-passkeys", "Clients log in with passkeys.", at("2024-09-17T12:00"), at("2024-09-17T12:00"), "critic", "phishing in August"),
    ] == steps(found)  # fmt: skip
    assert ["auth-passkeys"] == ids(found["current"])


@task("What had replaced server sessions by New Year 2024?")
def middle_of_a_chain(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="auth-sessions", valid="2024-01-01", tx="2024-01-01")

    assert [TO_JWT] == steps(found)
    assert ["auth-jwt"] == ids(found["current"])


@task("Was the May outage really 40 minutes long?")
def corrected(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="The May outage lasted 40 minutes.")

    assert [
        ("corrected", "outage-40", "outage-55", "The May outage lasted 55 minutes.", at("2024-05-10T06:00"), at("2024-05-20T07:00"), "critic", "the log of the load balancer")
    ] == steps(found)  # fmt: skip
    assert found["retracted"] and not found["forked"], (
        "what was corrected was wrong over all the time the new one holds"
    )


@task("Logs are kept for 90 days, aren't they?")
def a_version_that_held_for_a_while(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="Logs are kept for 90 days.", valid="2025-03-03")

    assert ("logs-kept", "Logs are kept for 90 days.", "superseded") == subject(found)
    assert (at("2024-03-01"), at("2024-06-01")) == period(found["subject"])
    assert [("logs-kept", "Logs are kept for 180 days.")] == said(found["current"])
    assert "180 days" in found["answer"] and "nothing superseded it" not in found["answer"]


@task("What replaced the Tuesday deploys, as we knew on 1 August 2023?")
def asked_before_it_was_known(agent: Agent) -> None:
    told = agent.refused("what_superseded", id_or_text="deploy-tue", tx="2023-08-01")
    assert "deploy-tue" in told and "2023-08-28" in told

    several = agent.ask("what_superseded", id_or_text=DEPLOYS["tue"], tx="2023-08-01", valid="2023-08-01")
    assert "subject" not in several


@task("Does the export still run every night?")
def ended_without_successor(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="The export runs every night at two")

    assert ("export-nightly", "The export runs every night at two.", "ended") == subject(found)
    assert [
        (
            "ended",
            "export-nightly",
            None,
            None,
            at("2024-05-01"),
            at("2024-05-03T09:00"),
            "ops",
            "the customer left",
        )
    ] == steps(found)
    assert [] == found["current"]
    assert not found["retracted"]


@task("Redis keeps carts on disk, doesn't it?")
def retracted(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="Redis keeps carts on disk.")

    assert ("redis-durable", "Redis keeps carts on disk.", "retracted") == subject(found)
    assert found["retracted"]
    assert [
        ("retracted", "redis-durable", None, None, at("2023-05-02T10:00"), at("2024-06-12T15:30"), "critic", "persistence was never switched on")
    ] == steps(found)  # fmt: skip
    assert [] == found["current"]


@task("What was said of the logs after the first version?")
def revised_since_a_version(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="logs-kept-v1")

    assert [
        ("revised", "logs-kept", "logs-kept", "Logs are kept for 90 days.", at("2024-03-01"), at("2024-03-25T09:00"), "critic", "the audit asked for it"),
        ("revised", "logs-kept", "logs-kept", "Logs are kept for 180 days.", at("2025-01-01"), at("2024-10-01T09:00"), "planner", "the new contract"),
    ] == steps(found)  # fmt: skip


@task("On 10 August 2024 we thought Memcached was replaced. Is it?")
def supersession_taken_back(agent: Agent) -> None:
    then = agent.ask("what_superseded", id_or_text="cache-memcached", valid="2024-08-10", tx="2024-08-10")
    assert [
        ("superseded", "cache-memcached", "cache-valkey", "Pages are cached in Valkey.", at("2024-08-01T10:00"), at("2024-08-01T10:00"), "builder", "one system less")
    ] == steps(then)  # fmt: skip
    assert ["cache-valkey"] == ids(then["current"])

    now = agent.ask("what_superseded", id_or_text="cache-memcached", valid="2024-08-10")
    assert ("cache-memcached", "Pages are cached in Memcached.", "stands") == subject(now)
    assert [] == steps(now)
    assert ["cache-memcached"] == ids(now["current"])


@task("Will anything replace the office in Mill Lane by July 2025?")
def planned(agent: Agent) -> None:
    today = agent.ask("what_superseded", id_or_text="office-mill", valid="2025-03-03")
    assert ("office-mill", "The office is in Mill Lane.", "stands") == subject(today)
    move = ("superseded", "office-mill", "office-harbour", "The office is in Harbour Street.", at("2025-06-01"), at("2024-11-20T09:00"), "ana", "the lease ends")  # fmt: skip
    assert ([], [move]) == (steps(today), steps(today, planned=True))

    july = agent.ask("what_superseded", id_or_text="office-mill", valid="2025-07-01")
    assert ([move], []) == (steps(july), steps(july, planned=True))
    assert ["office-harbour"] == ids(july["current"])


@task("We read support mail by POP once. What happened since?")
def successor_ended(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="Support mail is read by POP.")

    assert ("mail-pop", "Support mail is read by POP.", "superseded") == subject(found)
    assert [
        ("superseded", "mail-pop", "mail-imap", "Support mail is read by IMAP.", at("2023-09-05T10:00"), at("2023-09-05T10:00"), "ops", "two readers"),
        ("ended", "mail-imap", None, None, at("2024-07-15"), at("2024-07-20T10:00"), "boris", "support moved to tickets"),
    ] == steps(found)  # fmt: skip
    assert [] == found["current"]
    assert not found["retracted"]


@task("RabbitMQ had two successors, I think. Are both still right?")
def one_branch_of_a_fork_retracted(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="queue-rabbit")

    assert [
        ("superseded", "queue-rabbit", "queue-sqs", "Jobs wait in SQS.", at("2023-12-06T10:00"), at("2023-12-06T10:00"), "planner", "no machines of our own"),
    ] == steps(found)  # fmt: skip
    assert ["queue-sqs"] == ids(found["current"])
    assert not found["forked"] and not found["retracted"]


@task("Where does the team talk, if not on IRC?")
def only_successor_retracted(agent: Agent) -> None:
    found = agent.ask("what_superseded", id_or_text="The team talks on IRC")

    assert ("chat-irc", "The team talks on IRC.", "stands") == subject(found)
    assert [] == steps(found)
    assert ["chat-irc"] == ids(found["current"])


# ---------------------------------------------------------------------- as of then, as known then


@task("On which day did we deploy on 10 February 2024?")
def slot_as_of_then(agent: Agent) -> None:
    found = agent.ask("search", query="on which day do we deploy", kind="decision", valid="2024-02-10")

    assert ("deploy-wed", DEPLOYS["wed"]) == said(found["hits"])[0]
    assert ["deploy-wed"] == [id for id in ids(found["hits"]) if id.startswith("deploy-")]
    assert (at("2024-02-01"), at("2024-02-15")) == period(found["hits"][0])


@task("And which day did we believe it was, on 10 February 2024?")
def slot_as_known_then(agent: Agent) -> None:
    found = agent.ask(
        "search", query="on which day do we deploy", kind="decision", valid="2024-02-10", tx="2024-02-10"
    )

    assert ("deploy-tue", DEPLOYS["tue"]) == said(found["hits"])[0]
    assert ["deploy-tue"] == [id for id in ids(found["hits"]) if id.startswith("deploy-")]
    assert (at("2023-09-01"), None) == period(found["hits"][0])


@task("How long were logs kept in April 2024, and did we know that on 20 March 2024?")
def as_of_and_as_known(agent: Agent) -> None:
    april = agent.ask("get", id="logs-kept", valid="2024-04-15")
    assert ("logs-kept-v2", "Logs are kept for 90 days.", "stands") == described(april)
    assert (at("2024-03-01"), at("2024-06-01")) == period(april["thing"])

    march = agent.ask("get", id="logs-kept", valid="2024-04-15", tx="2024-03-20")
    assert ("logs-kept-v1", "Logs are kept for 30 days.", "stands") == described(march)
    assert (at("2023-04-10T09:00"), None) == period(march["thing"])


@task("How long did logs stay over the years?")
def pieces_of_a_split_period(agent: Agent) -> None:
    found = agent.ask("get", id="logs-kept")

    assert [
        ("logs-kept-v1", at("2023-04-10T09:00"), at("2024-03-01")),
        ("logs-kept-v2", at("2024-03-01"), at("2024-06-01")),
        ("logs-kept-v1", at("2024-06-01"), at("2025-01-01")),
        ("logs-kept-v3", at("2025-01-01"), None),
    ] == [(each["ref"], *period(each)) for each in found["history"]]


@task("Was Boris on call on 15 October 2023?")
def part_taken_back(agent: Agent) -> None:
    now = agent.ask("get", id="oncall-boris", valid="2023-10-15")
    assert "retracted" == now["thing"]["standing"]
    assert [(at("2023-09-01"), at("2023-10-01")), (at("2023-11-01"), at("2024-01-01"))] == [
        period(each) for each in now["history"]
    ]

    then = agent.ask("get", id="oncall-boris", valid="2023-10-15", tx="2023-11-15")
    assert ("oncall-boris-v1", "Boris is on call.", "stands") == described(then)
    assert (at("2023-09-01"), at("2024-01-01")) == period(then["thing"])


@task("What did our snapshots say of Redis?")
def at_snapshots(agent: Agent) -> None:
    found = {name: agent.ask("get", id="redis-durable", valid=name, tx=name) for name in SNAPSHOTS}

    assert {"year-one": "stands", "audit": "retracted"} == {
        name: got["thing"]["standing"] for name, got in found.items()
    }
    assert {name: (when_, when_) for name, when_ in SNAPSHOTS.items()} == {
        name: coordinate(got) for name, got in found.items()
    }


@task("Who knew when what the vendor charges?")
def who_knew_when(agent: Agent) -> None:
    found = agent.ask("history", id="vendor-price")

    two, three = "The vendor charges 2 cents a call.", "The vendor charges 3 cents a call."
    first, second, why = at("2024-03-18T10:00"), at("2024-06-05T10:00"), "the April invoice"
    assert [
        ("vendor-price-v1", two, at("2024-01-01"), None, first, second, "builder", None, "ana", why),
        (
            "vendor-price-v1",
            two,
            at("2024-01-01"),
            at("2024-04-01"),
            first,
            None,
            "builder",
            None,
            None,
            None,
        ),
        ("vendor-price-v2", three, at("2024-04-01"), None, second, None, "ana", why, None, None),
    ] == versions(found)


@task("Did we know in May 2024 that the vendor charges 3 cents?")
def not_known_yet(agent: Agent) -> None:
    found = agent.ask("history", id="vendor-price", tx="2024-05-01")

    assert [
        ("vendor-price-v1", "The vendor charges 2 cents a call.", at("2024-01-01"), None, at("2024-03-18T10:00"), None, "builder", None, None, None),
    ] == versions(found)  # fmt: skip


@task("Who said that Redis keeps carts on disk, and who took it back?")
def who_took_it_back(agent: Agent) -> None:
    found = agent.ask("history", id="redis-durable")

    assert [
        ("redis-durable-v1", "Redis keeps carts on disk.", at("2023-05-02T10:00"), None, at("2023-05-02T10:00"), at("2024-06-12T15:30"), "builder", None, "critic", "persistence was never switched on"),
    ] == versions(found)  # fmt: skip
    assert "retracted" == found["standing"]


# ---------------------------------------------------------------------- why


@task("Why do we not deploy after three in the afternoon?")
def why_a_decision(agent: Agent) -> None:
    found = agent.ask("why", id="freeze-afternoon")

    assert [
        ("err-timeout", 1, "caused_by", "freeze-afternoon", "the incident of 3 October"),
        ("reg-latency", 2, "caused_by", "err-timeout", "slow queries held the pool"),
        ("dep-42", 3, "caused_by", "reg-latency", "it began two minutes after the deploy"),
    ] == reached(found["causes"])
    assert [("add_node", "freeze-afternoon", "planner", at("2023-10-04T09:00"), None)] == done(found)


@task("Why do we deploy on Wednesdays, who decided it, and what did it replace?")
def why_a_value_of_a_slot(agent: Agent) -> None:
    found = agent.ask("why", id="deploy-wed", valid="2024-03-03", tx="2024-03-03")

    assert [
        ("add_node", "deploy-wed", "ops", at("2024-02-20T16:00"), "the sign-off moved to Tuesday")
    ] == done(found)
    assert [("deploy-wed", "supersedes", "deploy-tue", "the sign-off moved to Tuesday")] == links(
        found["replaces"]
    )


@task("Is it safe that checkout needs no recovery step?")
def why_shaky(agent: Agent) -> None:
    found = agent.ask("why", id="checkout-simple")
    assert ("checkout-simple", "shaky") == (found["subject"]["id"], found["subject"]["standing"])
    assert [("checkout-simple", "derived_from", "carts-survive", "nothing is lost")] == links(
        found["rests_on"]
    )

    assert "redis-durable" in found["shaky"] and "persistence was never switched on" in found["shaky"]

    below = agent.ask("why", id=found["rests_on"][0]["target"])
    assert [("carts-survive", "derived_from", "redis-durable", "carts are in Redis")] == links(
        below["rests_on"]
    )
    assert "retracted" == below["rests_on"][0]["target_standing"]


@task("What is shaky since Redis turned out not to keep carts?")
def what_is_shaky(agent: Agent) -> None:
    found = agent.ask("search", query="redis-durable", standing="shaky")

    assert {("carts-survive", "shaky"), ("checkout-simple", "shaky")} == {
        (hit["id"], hit["standing"]) for hit in found["hits"]
    }


@task("Which rules contradict each other?")
def contested(agent: Agent) -> None:
    found = agent.ask("search", query="API limit", standing="contested")

    assert [("limit-200", "The API limit is 200 requests a minute.")] == said(found["hits"])
    assert "limit-100" in found["hits"][0]["note"] and "the handbook says both" in found["hits"][0]["note"]


# ---------------------------------------------------------------------- what led to it, what rests on it


@task("What led to the timeouts of October 2023?")
def what_caused(agent: Agent) -> None:
    found = agent.ask("trace", id="err-timeout", direction="up")

    assert ("err-timeout", BOOM) == (found["root"]["id"], found["root"]["statement"])
    assert [
        ("reg-latency", 1, "caused_by", "err-timeout", "slow queries held the pool"),
        ("dep-42", 2, "caused_by", "reg-latency", "it began two minutes after the deploy"),
    ] == reached(found["reached"])
    assert not found["truncated"]


@task("What did deploy 42 bring about?")
def what_it_led_to(agent: Agent) -> None:
    found = agent.ask("trace", id="dep-42", direction="down")

    assert [
        ("reg-latency", 1, "caused_by", "dep-42", "it began two minutes after the deploy"),
        ("err-timeout", 2, "caused_by", "reg-latency", "slow queries held the pool"),
        ("freeze-afternoon", 3, "caused_by", "err-timeout", "the incident of 3 October"),
    ] == reached(found["reached"])


@task("What did we think deploy 42 had brought about, at three on the day itself?")
def what_it_led_to_as_known_then(agent: Agent) -> None:
    found = agent.ask(
        "trace",
        id="dep-42",
        direction="down",
        depth=1,
        tx="2023-10-03T15:00:00Z",
        valid="2023-10-03T15:00:00Z",
    )

    assert [("reg-latency", 1, "caused_by", "dep-42", "it began two minutes after the deploy")] == reached(
        found["reached"]
    )
    assert found["truncated"]


@task("What else rests on Redis keeping carts on disk?")
def what_rests_on_it(agent: Agent) -> None:
    found = agent.ask("trace", id="redis-durable", direction="down")

    assert "retracted" == found["root"]["standing"]
    assert [
        ("carts-survive", 1, "derived_from", "redis-durable", "carts are in Redis"),
        ("checkout-simple", 2, "derived_from", "carts-survive", "nothing is lost"),
    ] == reached(found["reached"])
    assert ["shaky", "shaky"] == [each["standing"] for each in found["reached"]]


@task("Where did the time go in that checkout request?")
def spans_of_a_trace(agent: Agent) -> None:
    found = agent.ask("trace", id=TRACE)

    assert "trace" == found["kind"]
    assert [
        ("a1", None, 0, ["tr-request"], False),
        ("b2", "a1", 1, ["tr-stock"], False),
        ("c3", "a1", 1, ["tr-pay"], False),
        ("d4", "c3", 2, ["tr-bank"], False),
        ("ff", None, 0, [], True),
        ("e5", "ff", 1, ["tr-lost"], False),
    ] == [
        (each["span"], each.get("parent"), each["depth"], each["events"], each.get("missing", False)) for each in found["spans"]
    ]  # fmt: skip


# ---------------------------------------------------------------------- what changed


@task("What changed from the first word on the logs to the second?")
def versions_apart(agent: Agent) -> None:
    found = agent.ask("diff", id="logs-kept", old=1, new=2)

    assert [
        {"id": "logs-kept", "path": "statement", "type": "changed", "old": "Logs are kept for 30 days.", "new": "Logs are kept for 90 days."}
    ] == found["changes"]  # fmt: skip


@task("What was said of the logs last, and what before that?")
def last_two_versions(agent: Agent) -> None:
    found = agent.ask("diff", id="logs-kept")

    assert (2, 3) == (found["old"], found["new"])
    assert [
        {"id": "logs-kept", "path": "statement", "type": "changed", "old": "Logs are kept for 90 days.", "new": "Logs are kept for 180 days."}
    ] == found["changes"]  # fmt: skip


@task("What have we learned about 15 February 2024 between the 16th and the end of April?")
def learned_in_between(agent: Agent) -> None:
    noon = "2024-02-15T12:00:00Z"
    found = agent.pages("diff", valid=noon, before_tx="2024-02-16", tx="2024-05-01")

    differs(agent, found, (when(noon), at("2024-02-16")), (when(noon), at("2024-05-01")))
    assert {"deploy-thu", "vendor-price"} <= set(ids(found["added"]))
    assert "deploy-tue" in ids(found["removed"])


@task("What changed in the world in the first half of 2024, by what we know now?")
def changed_in_between(agent: Agent) -> None:
    found = agent.pages("diff", before_valid="2024-01-01", valid="2024-07-01", tx="2025-03-03")

    tx = at("2025-03-03")
    differs(agent, found, (at("2024-01-01"), tx), (at("2024-07-01"), tx))
    assert "export-nightly" in ids(found["removed"])


@task("What is different from the end of year one to the audit?")
def snapshots_apart(agent: Agent) -> None:
    found = agent.pages(
        "diff", before_valid="year-one", before_tx="year-one", valid="audit", tx="audit", budget_tokens=1500
    )

    one, other = SNAPSHOTS["year-one"], SNAPSHOTS["audit"]
    differs(agent, found, (one, one), (other, other))
    assert found["pages"] > 1


@task("Did anything change on the night to 12 June 2024?")
def nothing_changed(agent: Agent) -> None:
    found = agent.ask(
        "diff", before_valid="2024-06-12", before_tx="2024-06-12", valid="2024-06-12", tx="2024-06-12"
    )

    assert ([], [], [], []) == tuple(found[name] for name in ("added", "removed", "changed", "changes"))


@task("What became different for the cache on 1 August 2024?")
def one_thing_between_coordinates(agent: Agent) -> None:
    found = agent.ask(
        "diff",
        id="cache-memcached",
        before_valid="2024-07-31",
        before_tx="2024-07-31",
        valid="2024-08-02",
        tx="2024-08-02",
    )

    assert [
        {"id": "cache-memcached", "path": "standing", "type": "changed", "old": "stands", "new": "superseded"}
    ] == found["changes"]


# ---------------------------------------------------------------------- over time


@task("What was said about the release, in order?")
def talk(agent: Agent) -> None:
    found = agent.ask("timeline", thread="release")

    assert [f"msg-{k}" for k in range(6, -1, -1)] == ids(found["entries"])
    assert [at(f"2025-01-10T{9 + k:02}:00") for k in range(6, -1, -1)] == [
        when(each["at"]) for each in found["entries"]
    ]
    assert ("boris", "I will tell support.", "message") == tuple(
        found["entries"][0][name] for name in ("who", "statement", "what")
    )


@task("What did Boris say about the release after eleven?")
def talk_of_one(agent: Agent) -> None:
    found = agent.ask("timeline", thread="release", sender="boris", since="2025-01-10T11:00:00Z")

    assert [("msg-6", "I will tell support."), ("msg-3", "Then Thursday.")] == said(found["entries"])


@task("How long were logs kept, over all the years?")
def timeline_of_a_node(agent: Agent) -> None:
    found = agent.ask("timeline", about="logs-kept", valid="2025-03-03")

    assert [
        ("logs-kept-v3", at("2025-01-01"), None, "planner"),
        ("logs-kept-v1", at("2024-06-01"), at("2025-01-01"), "ops"),
        ("logs-kept-v2", at("2024-03-01"), at("2024-06-01"), "critic"),
        ("logs-kept-v1", at("2023-04-10T09:00"), at("2024-03-01"), "ops"),
    ] == [(each["id"], when(each["at"]), when(each.get("until")), each["who"]) for each in found["entries"]]


@task("On which days did we deploy, over the years?")
def timeline_of_a_topic(agent: Agent) -> None:
    found = agent.ask("timeline", about="deploy_day")

    assert [
        ("deploy-thu", DEPLOYS["thu"], at("2024-02-15"), None, "stands", []),
        ("deploy-wed", DEPLOYS["wed"], at("2024-02-01"), at("2024-02-15"), "superseded", ["deploy-thu"]),
        ("deploy-tue", DEPLOYS["tue"], at("2023-09-01"), at("2024-02-01"), "superseded", ["deploy-wed"]),
        ("deploy-fri", DEPLOYS["fri"], at("2023-03-10T09:00"), at("2023-09-01"), "superseded", ["deploy-tue"]),
    ] == [
        (each["id"], each["statement"], when(each["at"]), when(each.get("until")), each["standing"], each.get("replaced_by", []))
        for each in found["entries"]
    ]  # fmt: skip


@task("And as we saw it on 3 March 2024?")
def timeline_of_a_topic_as_known_then(agent: Agent) -> None:
    found = agent.ask("timeline", about="deploy_day", valid="2024-03-03", tx="2024-03-03")

    assert [("deploy-wed", at("2024-02-01"), None), ("deploy-tue", at("2023-09-01"), at("2024-02-01")), ("deploy-fri", at("2023-03-10T09:00"), at("2023-09-01"))] == [
        (each["id"], when(each["at"]), when(each.get("until"))) for each in found["entries"]
    ]  # fmt: skip


# ---------------------------------------------------------------------- what happened


@task("Which errors did we have in the month to 3 March 2025, and do they keep coming back?")
def errors_that_come_back(agent: Agent) -> None:
    found = agent.ask("events", type="error", since="30d", valid="2025-03-03")

    assert 1 == found["total_events"]
    event = found["events"][0]
    assert ("err-leak", LEAK, "active", 3) == tuple(
        event[name] for name in ("id", "description", "status", "count")
    )
    assert (at("2025-02-20T05:55"), at("2025-02-28T05:45")) == (
        when(event["first_seen"]),
        when(event["last_seen"]),
    )
    assert [("fix-batch", "resolved_by"), ("fix-stream", "resolved_by")] == [
        (each["target"], each["relationship"]) for each in event["links"]
    ]
    [recurring] = [each for each in found["patterns"] if each["kind"] == "recurring"]
    assert (["err-leak"], 3, 2, True) == tuple(
        recurring[name] for name in ("events", "times", "resolved", "active")
    )


@task("What was open on 3 October 2023 at half past two, by what we knew?")
def open_then(agent: Agent) -> None:
    then = "2023-10-03T14:30:00Z"
    found = agent.ask("events", since="1h", valid=then, tx=then)

    assert [("err-timeout", "active"), ("reg-latency", "active"), ("dep-42", None)] == [
        (each["id"], each["status"]) for each in found["events"]
    ]


@task("Which incidents were there in March 2024?")
def incidents_of_a_month(agent: Agent) -> None:
    found = agent.pages(
        "events", type="incident", since="2024-03-01..2024-04-01", valid="2025-03-03", tx="2025-03-03"
    )

    here = agent.world.oracle
    expected = here.events_between(at("2024-03-01"), at("2024-04-01"), at("2025-03-03"), at("2025-03-03"))
    assert {id for id in expected if here.events[id]["type"] == "incident"} == set(ids(found["events"]))
    assert len(found["events"]) == found["total_events"]


@task("What has to do with the timeouts?")
def related_events(agent: Agent) -> None:
    found = agent.ask("events", related_to="err-timeout", since="2023-01-01", valid="2025-03-03")

    assert ["fix-driver", "fix-leak", "err-timeout", "fix-pool", "reg-latency"] == sorted(
        ids(found["events"]), key=["fix-driver", "fix-leak", "err-timeout", "fix-pool", "reg-latency"].index
    )
    asked = next(each for each in found["events"] if each.get("asked"))
    assert ("err-timeout", "resolved", 3) == (asked["id"], asked["status"], asked["count"])


# ---------------------------------------------------------------------- found by words, asked in Cypher


@task("Find what we said about carts, then tell me all about the first.")
def search_then_get(agent: Agent) -> None:
    found = agent.ask("search", query="carts survive restart")
    assert "carts-survive" == found["hits"][0]["id"]

    got = agent.ask("get", id=found["hits"][0]["id"])
    assert ("carts-survive-v1", "Carts survive a restart.", "shaky") == described(got)
    assert [("carts-survive", "derived_from", "redis-durable", "carts are in Redis")] == links(got["links"])
    assert [("checkout-simple", "derived_from", "carts-survive", "nothing is lost")] == links(
        got["backlinks"]
    )
    assert "Redis keeps carts on disk." == got["links"][0]["other"]


@task("We said something about Memcached or tape once, whatever became of it.")
def search_for_what_fell(agent: Agent) -> None:
    now = agent.ask("search", query="tape")
    assert "backup-tape" not in ids(now["hits"])

    ever = agent.ask("search", query="tape", standing="any")
    assert ("backup-tape", "superseded") == (ever["hits"][0]["id"], ever["hits"][0]["standing"])


@task("Which services had the search team on New Year 2024?")
def search_through_pages(agent: Agent) -> None:
    v = at("2024-01-01")
    found = agent.pages(
        "search",
        query="search",
        kind="service",
        limit=200,
        valid="2024-01-01",
        tx="2025-03-01",
        budget_tokens=600,
    )

    oracle = agent.world.oracle
    expected = [
        row
        for row in oracle.nodes_at(v, at("2025-03-01"), kind="service")
        if "search" in agent.world.text(row)
    ]
    assert {(row["id"], agent.world.text(row)) for row in expected} == set(said(found["hits"]))
    assert found["pages"] > 1


@task("How many services has each team? Look at what there is first.")
def schema_then_cypher(agent: Agent) -> None:
    there = agent.ask("schema", valid="2024-06-01", tx="2024-06-01")
    kinds = {(each["what"], each["kind"]): each["count"] for each in there["kinds"]}
    rows = agent.world.oracle.nodes_at(at("2024-06-01"), at("2024-06-01"))
    services = [row for row in rows if row["kind"] == "service"]
    assert len(services) == kinds["node", "service"]
    assert {("node", row["kind"]) for row in rows} == {key for key in kinds if key[0] == "node"}

    found = agent.ask(
        "cypher",
        query="MATCH (n:Node) WHERE n.kind = $kind UNWIND n.tags AS team RETURN team, count(*) AS many ORDER BY team",
        params={"kind": "service"},
        valid="2024-06-01",
        tx="2024-06-01",
    )
    teams = sorted({tag for row in services for tag in row["tags"]})
    assert ["team", "many"] == found["columns"]
    assert [[team, sum(team in row["tags"] for row in services)] for team in teams] == found["rows"]


@task("Which decisions replaced which, as we knew on 3 March 2024?")
def supersessions_in_cypher(agent: Agent) -> None:
    found = agent.ask(
        "cypher",
        query="MATCH (new:Node)-[s:SUPERSEDES]->(old) WHERE new.kind = 'decision' RETURN new.id, old.id, s.reason ORDER BY new.id",
        valid="2024-03-03",
        tx="2024-03-03",
    )

    assert [
        ["auth-jwt", "auth-sessions", "three services need the login"],
        ["deploy-wed", "deploy-tue", "the sign-off moved to Tuesday"],
    ] == found["rows"]


@task("Is there anything in the notes that tries to give orders?")
def words_stay_words(agent: Agent) -> None:
    found = agent.ask(
        "cypher", query="MATCH (n:Node) WHERE n.text = $text RETURN n.id", params={"text": HOSTILE}
    )
    assert [["note-hostile"]] == found["rows"]

    got = agent.ask("get", id="note-hostile")
    assert {"statement": HOSTILE} == got["content"]


# ---------------------------------------------------------------------- errors that lead on


@task("What has been said of the release?")
def a_thread_is_no_topic(agent: Agent) -> None:
    assert 'thread="release"' in agent.refused("timeline", about="release").replace("'", '"')

    assert 7 == len(agent.ask("timeline", thread="release")["entries"])


@task("What do we know of 'deploy-tuesday'?")
def a_wrong_id_leads_to_the_right_one(agent: Agent) -> None:
    told = agent.refused("get", id="deploy-tuesday")
    assert "deploy-tue" in told and "search(" in told

    assert "deploy-tue" == agent.ask("get", id="deploy-tue")["thing"]["id"]


@task("Show me what the table of logs says in Cypher.")
def a_wrong_column_leads_to_the_schema(agent: Agent) -> None:
    assert "schema()" in agent.refused("cypher", query="MATCH (n:Node) RETURN n.no_such_column")
    assert "statement" in agent.ask("schema")["graph"]


@task("How was it at the review?")
def an_unknown_snapshot_leads_to_those_there_are(agent: Agent) -> None:
    assert "schema()" in agent.refused("get", id="logs-kept", valid="revieww")
    assert {"year-one", "audit"} == {name.split(":")[0] for name in agent.ask("schema")["snapshots"]}


# ---------------------------------------------------------------------- told anew, and read back

BEFORE = "2025-03-03T12:30:00Z"
"""After all of the world, before anything an agent tells."""
LATER = at("2025-03-03T14:00")


def just_now(agent: Agent, text: str) -> bool:
    """Whether an instant is that of the clock, or as little later as views that were handed out ask for."""
    told = when(text)
    return told is not None and timedelta() <= told - agent.clock.now < timedelta(milliseconds=1)


@writes("Remember that we ship on Mondays to the app stores.")
def remember_and_read_back(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask(
        "remember",
        statement="App store builds ship on Mondays.",
        kind="decision",
        tags=["stores"],
        reason="review takes two days",
    )
    assert "new" == made["outcome"]
    assert ([], []) == (made["closed"], made["conflicts"])
    id = made["thing"]["id"]

    agent.clock.move(hours=1)
    got = agent.ask("get", id=id)
    assert (f"{id}-v1", "App store builds ship on Mondays.", "stands") == described(got)
    assert ["stores"] == got["thing"]["tags"]
    found = agent.ask("search", query="app stores Mondays")
    assert id == found["hits"][0]["id"]
    [first] = agent.ask("history", id=id)["versions"]
    assert (agent.name, "review takes two days") == (first["who"], first["reason"])
    assert f"by {agent.name}" in agent.refused("get", id=id, tx=BEFORE)


@writes("We deploy on Mondays from now on, to have the week for repairs.")
def remember_a_new_value_of_a_slot(agent: Agent) -> None:
    before = agent.ask("what_superseded", id_or_text="deploy-tue", valid=BEFORE, tx=BEFORE)
    agent.clock.set(LATER)
    made = agent.ask(
        "remember",
        statement="We deploy on Mondays.",
        kind="decision",
        key="deploy day",
        reason="the week is left for repairs",
    )
    assert [("deploy-thu", "superseded")] == [(each["id"], each["standing"]) for each in made["closed"]]

    found = agent.ask("what_superseded", id_or_text="deploy-tue")
    *known, last = steps(found)
    assert [TO_WED, TO_THU] == known
    assert ("superseded", "deploy-thu", made["thing"]["id"], "We deploy on Mondays.") == last[:4]
    assert (agent.name, "the week is left for repairs") == last[6:]
    assert just_now(agent, found["chain"][-1]["since"]) and just_now(agent, found["chain"][-1]["recorded_at"])
    assert [made["thing"]["id"]] == ids(found["current"])
    again = agent.ask("what_superseded", id_or_text="deploy-tue", valid=BEFORE, tx=BEFORE)
    # each states the tx that was used: the last one that was committed by then
    assert {**before, "at": None} == {**again, "at": None}


@writes("By the way, through January 2024 we deployed on Mondays already.")
def remember_late_news(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask(
        "remember",
        statement="We deploy on Mondays.",
        kind="decision",
        key="deploy_day",
        valid_from="2024-01-01",
        reason="found in the calendar",
    )
    assert (at("2024-01-01"), at("2024-02-01")) == period(made["thing"])

    january = agent.ask("what_superseded", id_or_text="deploy-tue", valid="2024-01-15")
    assert [made["thing"]["id"]] == ids(january["current"])
    today = agent.ask("what_superseded", id_or_text="deploy-tue")
    assert ["deploy-thu"] == ids(today["current"])
    as_known = agent.ask("what_superseded", id_or_text="deploy-tue", valid="2024-01-15", tx=BEFORE)
    assert [] == steps(as_known)
    assert ["deploy-wed", "deploy-thu"] == [step[2] for step in steps(as_known, planned=True)]


@writes("All orders are in Spanner now: join the two stores.")
def remember_what_joins_a_fork(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask(
        "remember",
        statement="All orders are stored in Spanner.",
        supersedes=["db-postgres", "db-cockroach"],
        reason="one store again",
    )
    assert {"db-postgres", "db-cockroach"} == set(ids(made["closed"]))

    found = agent.ask("what_superseded", id_or_text="db-mysql")
    assert [made["thing"]["id"]] == ids(found["current"])
    assert not found["forked"]
    assert ["db-postgres", "db-cockroach", made["thing"]["id"]] == [step["id"] for step in found["chain"]]


@writes("Reports use UTC, remember that.")
def say_the_same_again(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask("remember", statement="reports use utc")

    assert ("confirmed", "zone-utc") == (made["outcome"], made["thing"]["id"])
    got = agent.ask("get", id="zone-utc")
    assert 1 == got["confirmations"]
    assert ["zone-utc-v1"] == [each["ref"] for each in got["history"]]


@writes("The API limit is 300 requests a minute.")
def remember_what_disagrees(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask("remember", statement="The API limit is 300 requests a minute.")

    assert "new" == made["outcome"]
    assert [] == made.get("conflicts", []), "words that are alike are no disagreement"
    agent.ask("link", source=made["thing"]["id"], kind="contradicts", target="limit-200")
    found = agent.ask("search", query="API limit", standing="contested")
    assert {made["thing"]["id"], "limit-200"} <= {each["id"] for each in found["hits"]} | {
        each["other"] for each in found["hits"]
    }
    assert "stands" == agent.ask("get", id="limit-100")["thing"]["standing"]


@writes("The limit of 200 is right since 1 March 2024, the other is history.")
def supersede_since_then(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask(
        "supersede", old="limit-100", by="limit-200", reason="the gateway says so", valid_from="2024-03-01"
    )
    assert ("limit-100", "superseded") == (made["old"]["id"], made["old"]["standing"])

    found = agent.ask("what_superseded", id_or_text="limit-100")
    [step] = steps(found)
    assert (
        "superseded",
        "limit-100",
        "limit-200",
        "The API limit is 200 requests a minute.",
        at("2024-03-01"),
    ) == step[:5]
    assert (agent.name, "the gateway says so") == step[6:]
    assert "stands" == agent.ask("get", id="limit-100", valid="2024-02-28")["thing"]["standing"]
    assert "stands" == agent.ask("get", id="limit-100", tx=BEFORE)["thing"]["standing"]


@writes("Carts do not survive a restart. Take it back, and tell me what hangs on it.")
def retract_and_see_what_shakes(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask("retract", id="carts-survive", reason="seen in the drill")
    assert ("carts-survive", "retracted", ["checkout-simple"]) == (
        made["thing"]["id"],
        made["thing"]["standing"],
        ids(made["now_shaky"]),
    )

    found = agent.ask("what_superseded", id_or_text="carts-survive")
    assert found["retracted"]
    [(how, replaced, came, _, since, _, name, why)] = steps(found)
    assert ("retracted", "carts-survive", None, at("2023-05-10T10:00"), agent.name, "seen in the drill") == (
        how,
        replaced,
        came,
        since,
        name,
        why,
    )
    assert ("carts-survive-v1", "Carts survive a restart.", "shaky") == described(
        agent.ask("get", id="carts-survive", tx=BEFORE)
    )


@writes("There are no backups to the second disk since 1 March: it is full.")
def end_it_without_a_successor(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask("retract", id="backup-disk", ended_at="2025-03-01", reason="the disk is full")
    assert ("ended", "ended") == (made["how"], made["thing"]["standing"])

    found = agent.ask("what_superseded", id_or_text="backup-disk")
    assert [("ended", "backup-disk", None, None, at("2025-03-01"), agent.name, "the disk is full")] == [
        (*step[:5], *step[6:]) for step in steps(found)
    ]
    assert not found["retracted"]
    assert "stands" == agent.ask("get", id="backup-disk", valid="2025-02-28")["thing"]["standing"]


@writes("The freeze rests on the incident report; note it, then the report falls.")
def link_then_let_it_fall(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask(
        "link", source="freeze-afternoon", kind="derived_from", target="outage-55", reason="the report of May"
    )
    assert made["is_new"]
    again = agent.ask(
        "link", source="freeze-afternoon", kind="derived_from", target="outage-55", reason="the report of May"
    )
    assert (False, made["link"]["id"]) == (again["is_new"], again["link"]["id"])

    fell = agent.ask("retract", id="outage-55", reason="it was 50")
    assert ["freeze-afternoon"] == ids(fell["now_shaky"])
    why = agent.ask("why", id="freeze-afternoon")
    assert [("freeze-afternoon", "derived_from", "outage-55", "the report of May")] == [
        each for each in links(why["rests_on"]) if each[1] == "derived_from"
    ]


@writes("The report workers were killed again; the fix is out since half past one.")
def an_event_that_comes_again_and_is_resolved(agent: Agent) -> None:
    agent.clock.set(LATER)
    again = agent.ask("record_event", type="error", description=LEAK, occurred_at="2025-03-03T13:10:00Z")
    assert ("err-leak", False, 4, "active") == (
        again["event"]["id"],
        again["is_new"],
        again["count"],
        again["status"],
    )
    fixed = agent.ask(
        "record_event",
        type="fix",
        description="reports are paged",
        occurred_at="2025-03-03T13:30:00Z",
        related_to=["err-leak"],
    )
    assert (True, []) == (fixed["is_new"], fixed["warnings"])

    found = agent.ask("events", type="error", since="7d")
    assert [("err-leak", "resolved", 4)] == [
        (each["id"], each["status"], each["count"]) for each in found["events"]
    ]
    before = agent.ask("events", type="error", since="7d", valid=BEFORE, tx=BEFORE)
    assert [("err-leak", "active", 3)] == [
        (each["id"], each["status"], each["count"]) for each in before["events"]
    ]


@writes("The vendor charges 4 cents since February, says the new invoice.")
def describe_it_better(agent: Agent) -> None:
    agent.clock.set(LATER)
    made = agent.ask(
        "remember",
        statement="The vendor charges 4 cents a call.",
        revises="vendor-price",
        valid_from="2025-02-01",
        reason="the February invoice",
    )
    assert ("revised", "vendor-price") == (made["outcome"], made["thing"]["id"])

    told = [
        (each[0], each[1], each[2], each[3], each[6])
        for each in versions(agent.ask("history", id="vendor-price"))
    ][-2:]
    assert [
        (
            "vendor-price-v2",
            "The vendor charges 3 cents a call.",
            at("2024-04-01"),
            at("2025-02-01"),
            "ana",
        ),
        ("vendor-price-v3", "The vendor charges 4 cents a call.", at("2025-02-01"), None, agent.name),
    ] == told
    assert (
        "The vendor charges 3 cents a call."
        == agent.ask("get", id="vendor-price", tx=BEFORE)["thing"]["statement"]
    )
    assert (
        "The vendor charges 2 cents a call."
        == agent.ask("get", id="vendor-price", valid="2024-02-01")["thing"]["statement"]
    )


@writes("Link the outage to the leak. No? Then tell me what was wrong.")
def a_wrong_kind_leads_to_those_there_are(agent: Agent) -> None:
    told = agent.refused("link", source="outage-55", kind="caused_bye", target="err-timeout")
    assert "caused_by" in told

    assert agent.ask("link", source="freeze-afternoon", kind="caused_by", target="reg-latency")["is_new"]
