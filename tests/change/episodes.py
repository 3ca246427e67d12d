"""Episodes of knowledge that changes, each with the answers a person would give who knows the story.

An episode is data: what is told, each `Telling` one transaction on a day, and what is asked then. Steps are calls of public verbs by
name, times are dates, so an episode can be told and asked through any door. `refused` names the error a step must end in, and
what its message must name. `beyond` marks what the oracle does not know (forgetting, branches, ids, text).

What can be asked, of an id unless said otherwise:

    standing   the word
    says       the statement, None where nothing stands
    content    the content, None where nothing stands
    number     the number of the version that stands
    source     the source of what stands
    told       author of what stands, and the day on which that was first told
    slot       (of a key) the ids that stand in the slot
    shaken_by  the way from a shaky thing to what fell, None when it is not shaky
    steps      how it was followed: (how, by which id, why)
    closing    how it closed with nothing after it: (how, why)
    current    the ids that stand now in its place
    periods    what is believed over all valid time: (from, to, statement)
    link       (of a sentence) its periods: (from, to)
    links      (of a sentence) how many links it has
    causes     ids of what led to it
    status     of an event
    nodes      (of nothing) the ids that stand
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Step(NamedTuple):
    verb: str
    arguments: dict[str, Any]
    refused: tuple[str, ...] = ()


class Telling(NamedTuple):
    day: str
    by: str | None
    steps: tuple[Step, ...]


class Question(NamedTuple):
    read: str
    of: Any
    answer: Any
    valid: str | None = None
    tx: str | None = None


class Episode(NamedTuple):
    name: str
    manner: str
    told: tuple[Telling, ...]
    asked: tuple[Question, ...]
    beyond: bool = False


def on(day: str, *steps: Step, by: str | None = "ana") -> Telling:
    return Telling(day, by, steps)


def fact(id: str, says: str | dict[str, Any], since: str, until: str | None = None, **more: Any) -> Step:
    content = {"says": says} if isinstance(says, str) else says
    period = {"valid_from": since} | ({"valid_to": until} if until else {})
    return Step("add_node", {"kind": "fact", "id": id, "content": content, **period, **more})


def do(verb: str, refused: tuple[str, ...] = (), **arguments: Any) -> Step:
    return Step(verb, arguments, refused)


def link(source: str, kind: str, target: str, refused: tuple[str, ...] = (), **more: Any) -> Step:
    return Step("link", {"source": source, "kind": kind, "target": target, **more}, refused)


def rests(thing: str, on: str, **more: Any) -> Step:
    return link(thing, "derived_from", on, **more)


def retract(id: str, **more: Any) -> Step:
    return do("retract", id=id, **{"reason": "it was wrong", **more})


def confirm(id: str, **more: Any) -> Step:
    return do("confirm", id=id, **{"reason": "looked at it again", **more})


def revise(id: str, says: str, **more: Any) -> Step:
    return do("revise", id=id, content={"says": says}, **more)


def event(id: str, type: str, day: str, **more: Any) -> Step:
    return do("record_event", id=id, type=type, description=id, occurred_at=day, **more)


def ask(read: str, of: Any, answer: Any, valid: str | None = None, tx: str | None = None) -> Question:
    return Question(read, of, answer, valid, tx)


def refusal(step: Step, *names: str) -> Step:
    return step._replace(refused=names)


GROUND = (
    fact("survey", "most users are on phones", "2026-01-01"),
    fact("design", "the app is made for phones first", "2026-01-01"),
    fact("budget", "nothing is planned for desktops", "2026-01-01"),
    rests("design", "survey"),
    rests("budget", "design"),
)
CHAIN = on("2026-02-01", *GROUND)
MONDAYS = on("2026-02-01", fact("mondays", "we deploy on Mondays", "2026-01-01", key="deploy_day"))
FRIDAYS = fact("fridays", "we deploy on Fridays", "2026-03-01", key="deploy_day", reason="the team grew")

EPISODES = (
    # ------------------------------------------------------------------ cascade
    Episode("a retraction shakes what rests on it, and what rests on that", "cascade", (
        CHAIN, on("2026-02-02", retract("survey")),
    ), (
        ask("standing", "survey", "retracted"),
        ask("shaken_by", "design", ("design", "survey")),
        ask("shaken_by", "budget", ("budget", "design", "survey")),
        ask("standing", "budget", "stands", tx="2026-02-01"),
    )),
    Episode("support that falls away shakes what it supports", "cascade", (
        on("2026-02-01", fact("log", "the log shows ten timeouts", "2026-01-01"), fact("claim", "the pool is too small", "2026-01-01"),
           link("log", "supports", "claim")),
        on("2026-02-02", do("end", id="log", at="2026-01-20")),
    ), (
        ask("standing", "claim", "stands", valid="2026-01-19"),
        ask("shaken_by", "claim", ("claim", "log"), valid="2026-01-20"),
    )),
    Episode("a superseded foundation shakes from the day it was superseded", "cascade", (
        CHAIN, on("2026-02-02", fact("tablets", "most users are on tablets", "2026-01-20", supersedes=["survey"], reason="new survey")),
    ), (
        ask("standing", "design", "stands", valid="2026-01-19"),
        ask("shaken_by", "design", ("design", "survey"), valid="2026-01-20"),
        ask("steps", "survey", (("superseded", "tablets", "new survey"),)),
    )),
    Episode("a repaired cause shakes nothing: the outage happened", "cascade", (
        on("2026-02-01", fact("leak", "the worker leaks memory", "2026-01-01"), fact("slow", "reports are slow", "2026-01-05"),
           link("slow", "caused_by", "leak")),
        on("2026-02-02", fact("patched", "the worker frees its memory", "2026-01-20", supersedes=["leak"])),
        on("2026-02-03", do("end", id="patched", at="2026-01-25")),
    ), (
        ask("standing", "slow", "stands"),
        ask("standing", "leak", "superseded"),
    )),
    Episode("a cause that never was shakes its effect", "cascade", (
        on("2026-02-01", fact("leak", "the worker leaks memory", "2026-01-01"), fact("slow", "reports are slow", "2026-01-05"),
           link("slow", "caused_by", "leak")),
        on("2026-02-02", retract("leak")),
    ), (ask("shaken_by", "slow", ("slow", "leak")), ask("standing", "slow", "stands", tx="2026-02-01"))),
    Episode("what happened is not shaken by a cause that was taken back", "cascade", (
        on("2026-02-01", event("deploy-7", "deploy", "2026-01-10"), event("outage", "incident", "2026-01-11"),
           link("outage", "caused_by", "deploy-7")),
        on("2026-02-02", retract("deploy-7")),
    ), (ask("standing", "outage", "stands"), ask("standing", "deploy-7", "retracted"))),
    Episode("an observed event is not shaken because what it was derived from ended", "cascade", (
        on("2026-02-01", fact("beta", "the beta is on", "2026-01-01"), event("signup", "observation", "2026-01-10"), rests("signup", "beta")),
        on("2026-02-02", do("end", id="beta", at="2026-01-20")),
    ), (ask("standing", "signup", "stands"),)),
    Episode("an observed event is shaken when what it was derived from never was", "cascade", (
        on("2026-02-01", fact("beta", "the beta is on", "2026-01-01"), event("signup", "observation", "2026-01-10"), rests("signup", "beta")),
        on("2026-02-02", retract("beta")),
    ), (ask("shaken_by", "signup", ("signup", "beta")),)),
    Episode("a part is not shaken by what became of the whole", "cascade", (
        on("2026-02-01", fact("suite", "the suite is sold", "2026-01-01"), fact("editor", "the editor is sold", "2026-01-01"),
           link("editor", "part_of", "suite", valid_from="2026-01-01")),
        on("2026-02-02", retract("suite")),
    ), (ask("standing", "editor", "stands"),)),
    Episode("a cascade shows in the valid past too, since a foundation holds as long as its ends", "cascade", (
        on("2026-02-01", fact("survey", "most users are on phones", "2025-06-01"), fact("design", "phones first", "2025-08-01"),
           rests("design", "survey")),
        on("2026-02-02", retract("survey")),
    ), (
        ask("link", ("design", "derived_from", "survey"), (("2025-08-01", None),)),
        ask("shaken_by", "design", ("design", "survey"), valid="2025-09-01"),
    )),
    Episode("an erased foundation shakes", "cascade", (
        CHAIN, on("2026-02-02", do("erase", id="survey", reason="private")),
    ), (ask("standing", "survey", "erased"), ask("shaken_by", "budget", ("budget", "design", "survey"))), beyond=True),
    # ------------------------------------------------------------------ looking again
    Episode("who looked at it again is not asked again", "looking again", (
        CHAIN, on("2026-02-02", retract("survey")), on("2026-02-03", confirm("design")),
    ), (ask("standing", "design", "stands"), ask("standing", "budget", "stands"), ask("standing", "budget", "shaky", tx="2026-02-02"))),
    Episode("a look at the end of a chain steadies only that", "looking again", (
        CHAIN, on("2026-02-02", retract("survey")), on("2026-02-03", confirm("budget")),
    ), (ask("standing", "design", "shaky"), ask("standing", "budget", "stands"))),
    Episode("a look before the fall is none", "looking again", (
        CHAIN, on("2026-02-02", confirm("design")), on("2026-02-03", retract("survey")),
    ), (ask("shaken_by", "design", ("design", "survey")),)),
    Episode("in one transaction what was said first was first: a look, then the fall", "looking again", (
        CHAIN, on("2026-02-02", confirm("design"), retract("survey")),
    ), (ask("standing", "design", "shaky"),)),
    Episode("in one transaction what was said first was first: the fall, then a look", "looking again", (
        CHAIN, on("2026-02-02", retract("survey"), confirm("design")),
    ), (ask("standing", "design", "stands"), ask("standing", "budget", "stands"))),
    Episode("a better description steadies it where it holds", "looking again", (
        CHAIN, on("2026-02-02", retract("survey")), on("2026-02-03", revise("design", "phones first, as sold", valid_from="2026-01-20")),
    ), (ask("standing", "design", "stands", valid="2026-01-20"), ask("standing", "design", "shaky", valid="2026-01-19"))),
    Episode("saying the same description once more is no look", "looking again", (
        CHAIN, on("2026-02-02", retract("survey")), on("2026-02-03", revise("design", "the app is made for phones first")),
    ), (ask("standing", "design", "shaky"), ask("number", "design", 1))),
    # ------------------------------------------------------------------ order and grouping
    Episode("all of it told at once is as shaky as told day by day", "grouping", (
        on("2026-02-01", *GROUND, retract("survey", valid_from="2026-01-10")),
    ), (
        ask("standing", "design", "stands", valid="2026-01-09"),
        ask("shaken_by", "design", ("design", "survey"), valid="2026-01-10"),
    )),
    Episode("what is derived today from what fell yesterday is shaky from birth", "grouping", (
        on("2026-02-01", fact("survey", "most users are on phones", "2026-01-01")),
        on("2026-02-02", retract("survey")),
        on("2026-02-03", fact("design", "phones first", "2026-01-01", derived_from=["survey"])),
    ), (ask("shaken_by", "design", ("design", "survey")),)),
    Episode("a foundation told to end shakes like one that was ended later", "grouping", (
        on("2026-02-01", fact("offer", "the offer is open", "2026-01-01", "2026-01-15"), fact("plan", "we buy at the offer", "2026-01-01"),
           rests("plan", "offer")),
    ), (ask("standing", "plan", "stands", valid="2026-01-14"), ask("shaken_by", "plan", ("plan", "offer"), valid="2026-01-15"))),
    Episode("what came and went in one transaction was never known", "grouping", (
        MONDAYS, on("2026-02-02", fact("typo", "we deploy on Moonday", "2026-01-01"), confirm("typo"), retract("typo")),
    ), (ask("standing", "typo", None), ask("nodes", None, ("mondays",)))),
    # ------------------------------------------------------------------ revision of a foundation
    Episode("a foundation that says something else shakes what was linked to it before", "revised foundation", (
        CHAIN, on("2026-02-02", revise("survey", "most users are on desktops")),
    ), (ask("shaken_by", "design", ("design", "survey")), ask("standing", "survey", "stands"))),
    Episode("what was linked after the revision knew of it", "revised foundation", (
        on("2026-02-01", fact("survey", "most users are on phones", "2026-01-01"), fact("design", "phones first", "2026-01-01")),
        on("2026-02-02", revise("survey", "most users are on desktops")),
        on("2026-02-03", rests("design", "survey")),
    ), (ask("standing", "design", "stands"),)),
    Episode("only the times that changed are shaken", "revised foundation", (
        CHAIN, on("2026-02-02", revise("survey", "most users are on desktops", valid_from="2026-01-20")),
    ), (ask("standing", "design", "stands", valid="2026-01-19"), ask("standing", "design", "shaky", valid="2026-01-20"))),
    Episode("a minor revision shakes nothing", "revised foundation", (
        CHAIN, on("2026-02-02", revise("survey", "most users (61 %) are on phones", minor=True)),
    ), (ask("standing", "design", "stands"), ask("number", "survey", 2))),
    Episode("other tags are no other content", "revised foundation", (
        CHAIN, on("2026-02-02", revise("survey", "most users are on phones", tags=["mobile"])),
    ), (ask("standing", "design", "stands"), ask("number", "survey", 2))),
    Episode("a changed field of a foundation shakes too", "revised foundation", (
        on("2026-02-01", fact("plan", {"seats": 5, "price": 10}, "2026-01-01"), fact("bill", {"sum": 50}, "2026-01-01"), rests("bill", "plan")),
        on("2026-02-02", do("amend", id="plan", patch={"seats": 6}, valid_from="2026-01-10", valid_to="2026-01-20")),
    ), (
        ask("standing", "bill", "stands", valid="2026-01-09"),
        ask("shaken_by", "bill", ("bill", "plan"), valid="2026-01-10"),
        ask("standing", "bill", "stands", valid="2026-01-20"),
    )),
    # ------------------------------------------------------------------ diamond, cycle, own foundation
    Episode("one good leg of a diamond is not enough", "diamond", (
        CHAIN,
        on("2026-02-02", fact("ads", "we advertise in app stores", "2026-01-01"), rests("ads", "survey"), rests("budget", "ads")),
        on("2026-02-03", retract("survey")), on("2026-02-04", confirm("design")),
    ), (ask("standing", "design", "stands"), ask("shaken_by", "budget", ("budget", "ads", "survey")))),
    Episode("both legs of a diamond looked at, the top is steady", "diamond", (
        CHAIN,
        on("2026-02-02", fact("ads", "we advertise in app stores", "2026-01-01"), rests("ads", "survey"), rests("budget", "ads")),
        on("2026-02-03", retract("survey")), on("2026-02-04", confirm("design"), confirm("ads")),
    ), (ask("standing", "budget", "stands"),)),
    Episode("things that rest on each other are shaken once each, and the way ends", "cycle", (
        CHAIN, on("2026-02-02", rests("design", "budget")), on("2026-02-03", retract("survey")),
    ), (ask("shaken_by", "design", ("design", "survey")), ask("shaken_by", "budget", ("budget", "design", "survey")))),
    Episode("what takes the place of its own foundation is not shaken by that", "own foundation", (
        on("2026-02-01", fact("draft", "five pages", "2026-01-01")),
        on("2026-02-02", fact("final", "six pages", "2026-01-20", supersedes=["draft"], derived_from=["draft"])),
    ), (ask("standing", "draft", "superseded"), ask("standing", "final", "stands"))),
    Episode("what corrects its own foundation is not shaken by that", "own foundation", (
        on("2026-02-01", fact("count", "300 people came", "2026-01-01")),
        on("2026-02-02", fact("recount", "250 people came", "2026-01-01", corrects=["count"], derived_from=["count"])),
    ), (ask("standing", "recount", "stands"),)),
    Episode("a part that was never rested on shakes nothing when it is taken back", "own foundation", (
        on("2026-02-01", fact("lease", "we rent the hall", "2026-01-01"), fact("party", "the party is in the hall", "2026-01-20"),
           rests("party", "lease")),
        on("2026-02-02", retract("lease", valid_from="2026-01-01", valid_to="2026-01-10")),
    ), (ask("standing", "party", "stands"), ask("standing", "lease", "not_yet", valid="2026-01-05"))),
    Episode("a beginning that is taken back shakes what rested on it then", "own foundation", (
        CHAIN, on("2026-02-02", retract("survey", valid_to="2026-01-10")),
    ), (ask("shaken_by", "design", ("design", "survey"), valid="2026-01-05"), ask("standing", "design", "stands", valid="2026-01-10"))),
    # ------------------------------------------------------------------ absence and deletion
    Episode("before it was told nobody knew", "absence", (
        MONDAYS,
    ), (ask("standing", "mondays", None, tx="2026-01-31"), ask("says", "mondays", "we deploy on Mondays", valid="2026-01-15"),
        ask("standing", "mondays", "not_yet", valid="2025-12-31"), ask("standing", "sundays", None))),
    Episode("what was deleted is no answer, and was one", "deletion", (
        MONDAYS, on("2026-02-02", retract("mondays", reason="nobody said so")),
    ), (
        ask("says", "mondays", None), ask("slot", "deploy_day", ()), ask("standing", "mondays", "retracted"),
        ask("says", "mondays", "we deploy on Mondays", tx="2026-02-01"),
    )),
    Episode("a deletion says who and why", "deletion", (
        MONDAYS, on("2026-02-02", retract("mondays", reason="nobody said so"), by="bob"),
    ), (ask("closing", "mondays", (("retracted", "nobody said so"),)),), beyond=True),
    Episode("what ended is not what was deleted", "deletion", (
        MONDAYS, on("2026-02-02", do("end", id="mondays", at="2026-01-20")),
    ), (ask("says", "mondays", "we deploy on Mondays", valid="2026-01-19"), ask("standing", "mondays", "ended", valid="2026-01-20"))),
    # ------------------------------------------------------------------ late correction
    Episode("300 and 250 never both stand", "late correction", (
        on("2026-02-01", fact("count", "300 people came", "2026-01-01")),
        on("2026-02-02", fact("recount", "250 people came", "2026-01-01", corrects=["count"], reason="counted the tickets")),
    ), (
        ask("nodes", None, ("recount",)), ask("standing", "count", "retracted"), ask("current", "count", ("recount",)),
        ask("steps", "count", (("corrected", "recount", "counted the tickets"),)), ask("says", "count", "300 people came", tx="2026-02-01"),
    )),
    Episode("a correction said by hand is the same correction", "late correction", (
        on("2026-02-01", fact("count", "300 people came", "2026-01-01"), fact("recount", "250 people came", "2026-01-01")),
        on("2026-02-02", link("recount", "corrects", "count", reason="counted the tickets")),
    ), (ask("nodes", None, ("recount",)), ask("standing", "count", "retracted"),
        ask("steps", "count", (("corrected", "recount", "counted the tickets"),)))),
    Episode("a correction for a while leaves the rest", "late correction", (
        on("2026-02-01", fact("price", "it costs 10", "2026-01-01")),
        on("2026-02-02", fact("sale", "it costs 8", "2026-01-10", "2026-01-20", corrects=["price"])),
    ), (
        ask("periods", "price", (("2026-01-01", "2026-01-10", "it costs 10"), ("2026-01-20", None, "it costs 10"))),
        ask("standing", "price", "retracted", valid="2026-01-15"), ask("current", "price", ("price",), valid="2026-01-20"),
    )),
    Episode("a corrected cause never was", "late correction", (
        on("2026-02-01", fact("rain", "it rained", "2026-01-01"), fact("wet", "the road was wet", "2026-01-02"), link("wet", "caused_by", "rain")),
        on("2026-02-02", fact("pipe", "a pipe broke", "2026-01-01", corrects=["rain"])),
    ), (ask("shaken_by", "wet", ("wet", "rain")),)),
    Episode("a corrected value of a slot was never superseded", "late correction", (
        MONDAYS, on("2026-02-02", fact("tuesdays", "we deploy on Tuesdays", "2026-01-01", key="deploy_day", corrects=["mondays"])),
    ), (ask("standing", "mondays", "retracted"), ask("slot", "deploy_day", ("tuesdays",)),
        ask("links", ("tuesdays", "supersedes", "mondays"), 0))),
    Episode("what the corrected one had superseded stays superseded", "late correction", (
        on("2026-02-01", fact("old", "the office is in Bonn", "2026-01-01")),
        on("2026-02-02", fact("typo", "the office is in Berlim", "2026-01-10", supersedes=["old"])),
        on("2026-02-03", fact("new", "the office is in Berlin", "2026-01-10", corrects=["typo"])),
    ), (ask("nodes", None, ("new",)), ask("standing", "old", "superseded"), ask("current", "old", ("new",)))),
    Episode("what was taken back before a correction still shakes the corrector by way of another", "late correction", (
        on("2026-02-01", fact("draft", "the draft says 10", "2026-01-02")),
        on("2026-02-02", retract("draft", valid_from="2026-01-03", valid_to="2026-01-06")),
        on("2026-02-03", fact("final", "it says 12", "2026-01-02", corrects=["draft"])),
        on("2026-02-04", fact("memo", "the memo cites the draft", "2026-01-01"), rests("memo", "draft")),
        on("2026-02-05", rests("final", "memo")),
    ), (
        ask("shaken_by", "final", ("final", "memo", "draft"), valid="2026-01-04"),
        ask("standing", "final", "stands", valid="2026-01-02"),
    )),
    Episode("a description is a look at what it corrects further", "late correction", (
        on("2026-02-01", fact("new", "the pool has 20", "2026-01-03")), on("2026-02-02", retract("new", valid_from="2026-01-05", valid_to="2026-01-08")),
        on("2026-02-03", fact("old", "the pool has 10", "2026-01-02")), on("2026-02-04", link("new", "corrects", "old")),
        on("2026-02-05", revise("new", "the pool has 25", valid_from="2026-01-03")),
        on("2026-02-06", fact("other", "the pool has 15", "2026-01-02", supersedes=["old"])),
        on("2026-02-07", do("unlink", source="new", kind="corrects", target="old")), on("2026-02-08", link("new", "caused_by", "old")),
    ), (ask("standing", "new", "stands", valid="2026-01-06"), ask("standing", "new", "stands", valid="2026-01-09"))),
    # ------------------------------------------------------------------ backdating
    Episode("a value told late ends where the next begins", "backdating", (
        MONDAYS, on("2026-02-02", FRIDAYS._replace(arguments={**FRIDAYS.arguments, "valid_from": "2026-01-20"})),
        on("2026-02-03", fact("sundays", "we deploy on Sundays", "2026-01-10", key="deploy_day")),
    ), (
        ask("slot", "deploy_day", ("sundays",), valid="2026-01-15"), ask("slot", "deploy_day", ("fridays",)),
        ask("periods", "sundays", (("2026-01-10", "2026-01-20", "we deploy on Sundays"),)),
        ask("current", "sundays", ("fridays",)), ask("current", "mondays", ("fridays",)),
    )),
    Episode("a value with an end said cuts a later one and says nothing of it", "backdating", (
        MONDAYS, on("2026-02-02", FRIDAYS._replace(arguments={**FRIDAYS.arguments, "valid_from": "2026-01-20"})),
        on("2026-02-03", fact("sundays", "we deploy on Sundays", "2026-01-10", "2026-01-25", key="deploy_day")),
    ), (
        ask("slot", "deploy_day", ("sundays",), valid="2026-01-22"), ask("slot", "deploy_day", ("fridays",), valid="2026-01-25"),
        ask("links", ("sundays", "supersedes", "fridays"), 0),
    )),
    Episode("what is learned late changes the past only as known now", "backdating", (
        MONDAYS, on("2026-02-10", do("end", id="mondays", at="2026-01-10")),
    ), (ask("standing", "mondays", "ended", valid="2026-01-20"), ask("standing", "mondays", "stands", valid="2026-01-20", tx="2026-02-09"))),
    Episode("a plan is not yet, and comes true by itself", "backdating", (
        MONDAYS, on("2026-02-02", FRIDAYS),
    ), (ask("slot", "deploy_day", ("mondays",)), ask("standing", "fridays", "not_yet"), ask("slot", "deploy_day", ("fridays",), valid="2026-03-01"),
        ask("standing", "mondays", "superseded", valid="2026-03-01"))),
    # ------------------------------------------------------------------ replaced plan
    Episode("a plan replaced before it began is superseded, and is not to come", "replaced plan", (
        on("2026-02-01", fact("june", "we move to hall A", "2026-06-01")),
        on("2026-02-02", fact("hall-b", "we move to hall B", "2026-06-01", supersedes=["june"], reason="hall A is let")),
    ), (
        ask("standing", "june", "superseded"), ask("standing", "june", "superseded", valid="2026-06-02"), ask("standing", "hall-b", "not_yet"),
        ask("standing", "june", "not_yet", tx="2026-02-01"),
    )),
    Episode("a plan replaced only from later on is still to come", "replaced plan", (
        on("2026-02-01", fact("june", "we are in hall A", "2026-06-01")),
        on("2026-02-02", fact("hall-b", "we are in hall B", "2026-06-01"), do("supersede", old="june", by="hall-b", valid_from="2026-06-01"),
           do("unlink", source="hall-b", kind="supersedes", target="june", valid_to="2026-08-01")),
    ), (ask("standing", "june", "not_yet"), ask("standing", "june", "superseded", valid="2026-08-02"))),
    Episode("a plan that was wrong from the beginning is retracted, also before it would have begun", "replaced plan", (
        on("2026-02-01", fact("june", "we move to hall A", "2026-06-01")),
        on("2026-02-02", fact("hall-b", "we move to hall B", "2026-06-01", corrects=["june"], reason="misheard")),
    ), (ask("standing", "june", "retracted"), ask("standing", "june", "retracted", valid="2026-06-02"))),
    Episode("a plan whose beginning was taken back is still to come", "replaced plan", (
        on("2026-02-01", fact("june", "the bridge is closed", "2026-06-01")),
        on("2026-02-02", retract("june", valid_to="2026-07-01")),
    ), (ask("standing", "june", "not_yet"), ask("standing", "june", "not_yet", valid="2026-06-02"), ask("standing", "june", "stands", valid="2026-07-02"))),
    Episode("in a later gap its own reason counts", "replaced plan", (
        on("2026-02-01", fact("closed", "the bridge is closed", "2026-01-01")),
        on("2026-02-02", retract("closed", valid_from="2026-01-05", valid_to="2026-01-10"), fact("open", "the bridge is open", "2026-01-20", supersedes=["closed"])),
    ), (ask("standing", "closed", "not_yet", valid="2025-12-31"), ask("standing", "closed", "retracted", valid="2026-01-06"),
        ask("standing", "closed", "stands", valid="2026-01-11"), ask("standing", "closed", "superseded"))),
    # ------------------------------------------------------------------ cancelled plan
    Episode("a cancelled plan leaves the slot as it was", "cancelled plan", (
        MONDAYS, on("2026-02-02", FRIDAYS), on("2026-02-03", retract("fridays", reason="cancelled")),
    ), (
        ask("slot", "deploy_day", ("mondays",), valid="2026-03-02"), ask("standing", "fridays", "retracted"),
        ask("periods", "mondays", (("2026-01-01", None, "we deploy on Mondays"),)), ask("steps", "mondays", ()),
        ask("links", ("fridays", "contradicts", "mondays"), 0), ask("standing", "mondays", "superseded", valid="2026-03-02", tx="2026-02-02"),
    )),
    Episode("a cancelled successor gives back what it took, without a slot too", "cancelled plan", (
        on("2026-02-01", fact("old", "auth by sessions", "2026-01-01"), fact("new", "auth by tokens", "2026-01-20", supersedes=["old"])),
        on("2026-02-02", retract("new")),
    ), (ask("says", "old", "auth by sessions"), ask("current", "old", ("old",)))),
    Episode("a plan cancelled for a while leaves the slot as it was for that while", "cancelled plan", (
        MONDAYS, on("2026-02-02", FRIDAYS), on("2026-02-03", retract("fridays", valid_from="2026-03-10", valid_to="2026-03-20")),
    ), (
        ask("slot", "deploy_day", ("fridays",), valid="2026-03-09"), ask("slot", "deploy_day", ("mondays",), valid="2026-03-10"),
        ask("slot", "deploy_day", ("fridays",), valid="2026-03-20"), ask("standing", "mondays", "superseded", valid="2026-03-20"),
    )),
    Episode("the next value goes on to follow the first when the one between is cancelled", "cancelled plan", (
        MONDAYS, on("2026-02-02", FRIDAYS), on("2026-02-03", fact("daily", "we deploy daily", "2026-04-01", key="deploy_day")),
        on("2026-02-04", retract("fridays", reason="cancelled")),
    ), (
        ask("slot", "deploy_day", ("mondays",), valid="2026-03-15"), ask("slot", "deploy_day", ("daily",), valid="2026-04-01"),
        ask("standing", "mondays", "superseded", valid="2026-04-01"), ask("current", "mondays", ("daily",), valid="2026-04-01"),
    )),
    Episode("a successor that only ended gives back nothing", "cancelled plan", (
        MONDAYS, on("2026-02-02", FRIDAYS), on("2026-02-03", do("end", id="fridays", at="2026-04-01")),
    ), (ask("slot", "deploy_day", (), valid="2026-04-02"), ask("standing", "mondays", "superseded", valid="2026-04-02"))),
    Episode("nothing retracted ever comes back", "cancelled plan", (
        MONDAYS, on("2026-02-02", FRIDAYS), on("2026-02-03", retract("mondays")), on("2026-02-04", retract("fridays")),
    ), (ask("nodes", None, ()), ask("standing", "mondays", "retracted", valid="2026-03-02"))),
    Episode("what was ended since comes back only until then", "cancelled plan", (
        MONDAYS, on("2026-02-02", FRIDAYS), on("2026-02-03", do("end", id="mondays", at="2026-02-20")), on("2026-02-04", retract("fridays")),
    ), (ask("slot", "deploy_day", ("mondays",), valid="2026-02-19"), ask("slot", "deploy_day", (), valid="2026-03-02"),
        ask("standing", "mondays", "ended", valid="2026-03-02"))),
    Episode("of two successors the other keeps it", "cancelled plan", (
        on("2026-02-01", fact("mysql", "orders are in MySQL", "2026-01-01"), fact("postgres", "orders are in Postgres", "2026-01-10", supersedes=["mysql"]),
           fact("cockroach", "orders of the EU are in CockroachDB", "2026-01-15", supersedes=["mysql"])),
        on("2026-02-02", retract("postgres")),
    ), (ask("says", "mysql", "orders are in MySQL", valid="2026-01-12"), ask("standing", "mysql", "superseded", valid="2026-01-15"),
        ask("current", "mysql", ("cockroach",), valid="2026-01-15"))),
    Episode("a value recorded late runs on when the plan it ended at is cancelled", "borrowed bounds", (
        on("2026-02-01", FRIDAYS), on("2026-02-02", fact("mondays", "we deploy on Mondays", "2026-01-01", key="deploy_day")),
        on("2026-02-03", retract("fridays", reason="cancelled")),
    ), (ask("periods", "mondays", (("2026-01-01", None, "we deploy on Mondays"),)), ask("slot", "deploy_day", ("mondays",), valid="2026-03-02"))),
    Episode("a value stated for a while gives the time back when it is withdrawn", "borrowed bounds", (
        MONDAYS, on("2026-02-02", FRIDAYS),
        on("2026-02-03", fact("freeze", "we do not deploy", "2026-02-20", valid_to="2026-03-10", key="deploy_day")), on("2026-02-04", retract("freeze")),
    ), (
        ask("slot", "deploy_day", ("freeze",), valid="2026-03-05", tx="2026-02-03"), ask("slot", "deploy_day", ("fridays",), valid="2026-03-05"),
        ask("slot", "deploy_day", ("mondays",), valid="2026-02-25"),
    )),
    Episode("a bounded successor gives the time back at its end", "borrowed bounds", (
        on("2026-02-01", fact("office", "we meet in the office", "2026-01-01"),
           fact("online", "we meet online", "2026-01-10", valid_to="2026-01-20", supersedes=["office"])),
    ), (
        ask("standing", "office", "superseded", valid="2026-01-15"), ask("says", "office", "we meet in the office", valid="2026-01-20"),
        ask("current", "office", ("office",), valid="2026-01-21"), ask("current", "office", ("online",), valid="2026-01-15"),
    )),
    Episode("a plan postponed before it began leaves no old date in between", "borrowed bounds", (
        MONDAYS, on("2026-02-02", FRIDAYS),
        on("2026-02-03", fact("later", "we deploy on Fridays", "2026-05-01", key="deploy_day", supersedes=["fridays"], reason="postponed", text="from May")),
    ), (
        ask("slot", "deploy_day", ("mondays",), valid="2026-04-01"), ask("slot", "deploy_day", ("later",), valid="2026-05-02"),
        ask("standing", "fridays", "superseded", valid="2026-04-01"),
    )),
    Episode("a correction withdrawn leaves what was corrected as it was", "borrowed bounds", (
        on("2026-02-01", fact("first", "the outage took an hour", "2026-01-01"), fact("second", "it took two hours", "2026-01-01", corrects=["first"])),
        on("2026-02-02", retract("second")),
    ), (ask("standing", "first", "retracted", tx="2026-02-01"), ask("says", "first", "the outage took an hour"), ask("current", "first", ("first",)))),
    *(
        Episode(f"a correction {how} leaves the word of the supersession ({order})", "borrowed bounds", (
            on("2026-02-01", fact("berlin", "the office is in Berlin", "2026-01-01")),
            *(on(f"2026-02-0{day}", steps[name]) for day, name in enumerate(order.split(" then "), 2)),
            on("2026-02-04", away),
        ), (
            ask("standing", "berlin", "superseded"), ask("says", "berlin", "the office is in Berlin", valid="2026-01-15"),
            ask("standing", "berlin", "retracted", tx="2026-02-03", valid="2026-01-15"), ask("current", "berlin", ("bonn",)),
        ))
        for steps in [{
            "moved": fact("bonn", "the office is in Bonn", "2026-01-20", supersedes=["berlin"]),
            "corrected": fact("essen", "the office is in Essen", "2026-01-01", corrects=["berlin"]),
        }]
        for order in ("moved then corrected", "corrected then moved")
        for how, away in (("unlinked", do("unlink", source="essen", kind="corrects", target="berlin")), ("retracted", retract("essen")))
    ),
    Episode("two that correct each other are refused", "late correction", (
        on("2026-02-01", fact("first", "it costs 10", "2026-01-01"), fact("second", "it costs 12", "2026-01-01", corrects=["first"])),
        on("2026-02-02", link("first", "corrects", "second", refused=("ConflictError", "'first' corrects 'second' would close a cycle", "retract the one that was wrong"))),
        on("2026-02-03", fact("third", "it costs 14", "2026-01-01", corrects=["second"])),
        on("2026-02-04", link("first", "corrects", "third", refused=("ConflictError", "cycle"))),
        on("2026-02-05", retract("third")), on("2026-02-06", retract("second")),
    ), (ask("says", "first", "it costs 10"), ask("nodes", None, ("first",)))),
    Episode("what was right after all is not said by a correction of its successor", "late correction", (
        on("2026-02-01", fact("first", "it costs 10", "2026-01-01"), fact("second", "it costs 12", "2026-01-10", supersedes=["first"])),
        on("2026-02-02", link("first", "corrects", "second", refused=("ConflictError", "'second' supersedes 'first' already", "retract('second')"))),
        on("2026-02-03", retract("second")),
    ), (ask("says", "first", "it costs 10"), ask("current", "second", ()))),
    Episode("a correction stays in force when what was corrected is revised", "borrowed bounds", (
        on("2026-02-01", fact("first", "the outage took an hour", "2026-01-01"), fact("second", "it took two hours", "2026-01-10", corrects=["first"])),
        on("2026-02-02", do("revise", id="first", content={"says": "an hour or so"}, valid_from="2026-01-01")),
    ), (ask("nodes", None, ("second",)), ask("says", "first", "an hour or so", valid="2026-01-05"), ask("standing", "first", "retracted"))),
    Episode("a revision reaches what a successor took", "borrowed bounds", (
        MONDAYS, on("2026-02-02", FRIDAYS), on("2026-02-03", do("revise", id="mondays", content={"says": "on Monday mornings"})),
        on("2026-02-04", retract("fridays")),
    ), (ask("periods", "mondays", (("2026-01-01", None, "on Monday mornings"),)),)),
    Episode("a supersession unlinked gives back what it took", "cancelled plan", (
        on("2026-02-01", fact("old", "auth by sessions", "2026-01-01"), fact("new", "auth by tokens", "2026-01-20", supersedes=["old"])),
        on("2026-02-02", do("unlink", source="new", kind="supersedes", target="old", reason="both are in use")),
    ), (ask("nodes", None, ("new", "old")),)),
    # ------------------------------------------------------------------ slots
    Episode("a slot holds one truth, whatever its kind", "slot of two kinds", (
        MONDAYS,
        on("2026-02-02", Step("add_node", {"kind": "decision", "id": "daily", "content": {"says": "we deploy daily"}, "key": "deploy_day", "valid_from": "2026-01-20"})),
    ), (ask("slot", "deploy_day", ("daily",)), ask("standing", "mondays", "superseded"), ask("current", "mondays", ("daily",)))),
    Episode("scopes do not close each other's values", "slot of two kinds", (
        MONDAYS, on("2026-02-02", fact("theirs", "team b deploys daily", "2026-01-20", key="deploy_day", scope="team b")),
    ), (ask("nodes", None, ("mondays", "theirs")),)),
    Episode("said again in other words it is the same, confirmed", "restatement", (
        on("2026-02-01", fact("survey", "most users are on phones", "2026-01-01"), fact("mondays", "we deploy on Mondays", "2026-01-01", key="deploy_day"),
           rests("mondays", "survey")),
        on("2026-02-02", retract("survey")),
        on("2026-02-03", Step("add_node", {"kind": "fact", "content": {"says": "We deploy on mondays!"}, "key": "deploy_day"})),
    ), (ask("slot", "deploy_day", ("mondays",)), ask("standing", "mondays", "stands"), ask("standing", "mondays", "shaky", tx="2026-02-02")), beyond=True),
    # ------------------------------------------------------------------ trust
    *(
        Episode(f"an agent may not {verb} what a user said", "trust", (
            on("2026-02-01", do("set_trust", ranks={"user": 3, "agent": 2}),
               fact("mondays", "we deploy on Mondays", "2026-01-01", key="deploy_day", source="user:ana"),
               fact("note", "an agent's note", "2026-01-01", source="agent:7"), by="user:ana"),
            on("2026-02-02", step._replace(refused=("ConflictError", "mondays")), by="agent:7"),
        ), (ask("says", "mondays", "we deploy on Mondays"), ask("number", "mondays", 1)))
        for verb, step in (
            ("replace in its slot", fact("daily", "we deploy daily", "2026-01-20", key="deploy_day", source="agent:7")),
            ("supersede", do("supersede", old="mondays", by="note")),
            ("supersede by adding", fact("daily", "we deploy daily", "2026-01-20", source="agent:7", supersedes=["mondays"])),
            ("correct", fact("daily", "we deploy daily", "2026-01-01", source="agent:7", corrects=["mondays"])),
            ("correct by hand", link("note", "corrects", "mondays")),
            ("revise", revise("mondays", "we deploy daily")),
            ("amend", do("amend", id="mondays", patch={"says": "we deploy daily"})),
            ("retract", retract("mondays")),
            ("end", do("end", id="mondays", at="2026-01-20")),
        )
    ),
    Episode("a revision keeps the source of what it describes anew", "trust", (
        on("2026-02-01", do("set_trust", ranks={"user": 3, "agent": 2}),
           fact("mondays", "we deploy on Mondays", "2026-01-01", source="user:ana"), by="user:ana"),
        on("2026-02-02", revise("mondays", "we deploy on Monday mornings"), by="user:bob"),
        on("2026-02-03", retract("mondays")._replace(refused=("ConflictError", "mondays")), by="agent:7"),
    ), (ask("source", "mondays", "user:ana"), ask("says", "mondays", "we deploy on Monday mornings"))),
    Episode("who has no source is known by name", "trust", (
        on("2026-02-01", do("set_trust", ranks={"ana": 3}), fact("mondays", "we deploy on Mondays", "2026-01-01")),
        on("2026-02-02", retract("mondays")._replace(refused=("ConflictError",)), by="bob"),
        on("2026-02-03", retract("mondays")),
    ), (ask("standing", "mondays", "retracted"), ask("standing", "mondays", "stands", tx="2026-02-02"))),
    *(
        Episode(f"an agent that names the user as its source may not {verb} what the user said", "trust", (
            on("2026-02-01", do("set_trust", ranks={"ana": 3, "agent": 1}), fact("mondays", "we deploy on Mondays", "2026-01-01", key="deploy_day")),
            on("2026-02-02", step._replace(refused=("ConflictError", "mondays")), by=by),
        ), (ask("says", "mondays", "we deploy on Mondays"), ask("number", "mondays", 1)))
        for by in ("agent:7", "somebody")
        for verb, step in (
            (f"replace in its slot, as {by},", fact("daily", "we deploy daily", "2026-01-20", key="deploy_day", source="ana")),
            (f"correct, as {by},", fact("daily", "we deploy daily", "2026-01-01", source="ana", corrects=["mondays"])),
            (f"revise, as {by},", do("revise", id="mondays", content={"says": "we deploy daily"}, source="ana")),
        )
    ),
    Episode("a careful person lowers what a rumour says by naming its source", "trust", (
        on("2026-02-01", do("set_trust", ranks={"ana": 3, "bob": 2, "rumour": 1}),
           fact("mondays", "we deploy on Mondays", "2026-01-01", source="rumour")),
        on("2026-02-02", revise("mondays", "we deploy on Fridays"), by="bob"),
    ), (ask("says", "mondays", "we deploy on Fridays"), ask("source", "mondays", "rumour"))),
    # ------------------------------------------------------------------ undo
    Episode("a slip is undone, and what was known meanwhile stays known", "undo", (
        CHAIN, on("2026-02-02", revise("survey", "most users are on desktops")), on("2026-02-03", do("undo", tx="2026-02-02", reason="a slip")),
    ), (
        ask("says", "survey", "most users are on phones"), ask("number", "survey", 1), ask("standing", "design", "stands"),
        ask("says", "survey", "most users are on desktops", tx="2026-02-02"), ask("told", "survey", ("ana", "2026-02-01")),
    )),
    Episode("an undone retraction brings all of it back", "undo", (
        MONDAYS, on("2026-02-02", FRIDAYS), on("2026-02-03", retract("fridays")), on("2026-02-04", do("undo", tx="2026-02-03", reason="not cancelled")),
    ), (ask("slot", "deploy_day", ("fridays",), valid="2026-03-02"), ask("standing", "mondays", "superseded", valid="2026-03-02"),
        ask("links", ("fridays", "transition", "mondays"), 1))),
    Episode("a value that an undone one kept from coming back holds again", "undo", (
        on("2026-01-02", fact("ten", "we open at 10", "2026-01-10", "2026-01-31", key="opening")),
        on("2026-01-03", fact("nine", "we open at 9", "2026-01-20", key="opening", supersedes=["ten"])),
        on("2026-01-04", fact("noon", "we open at noon", "2026-01-10", "2026-01-15", key="opening")),
        on("2026-01-05", retract("nine")), on("2026-01-06", do("undo", tx="2026-01-04", reason="a slip")),
    ), (ask("slot", "opening", ("ten",), valid="2026-01-12"), ask("slot", "opening", ("ten",), valid="2026-01-25"))),
    Episode("what took nothing while nothing stood keeps its withdrawal from being undone", "undo", (
        on("2026-02-01", fact("ten", "we open at 10", "2026-01-01")), on("2026-02-02", retract("ten")),
        on("2026-02-03", fact("nine", "we open at 9", "2026-01-20", supersedes=["ten"])),
        on("2026-02-04", do("undo", refused=("ConflictError", "'nine'"), tx="2026-02-02", reason="a slip")),
    ), (ask("nodes", None, ("nine",)),)),
    Episode("an undone correction lets the old one stand again", "undo", (
        on("2026-02-01", fact("count", "300 people came", "2026-01-01")),
        on("2026-02-02", fact("recount", "250 people came", "2026-01-01", corrects=["count"])),
        on("2026-02-03", do("undo", tx="2026-02-02", reason="the recount was of another day")),
    ), (ask("nodes", None, ("count",)), ask("standing", "recount", "retracted"), ask("steps", "count", ()))),
    Episode("an undo is undone like anything else", "undo", (
        MONDAYS, on("2026-02-02", retract("mondays")), on("2026-02-03", do("undo", tx="2026-02-02", reason="a slip")),
        on("2026-02-04", do("undo", tx="2026-02-03", reason="it was none")),
    ), (ask("standing", "mondays", "retracted"), ask("standing", "mondays", "stands", tx="2026-02-03"))),
    Episode("what others were told to rest on is not pulled away by an undo", "undo", (
        MONDAYS, on("2026-02-02", fact("calm", "weekends are calm", "2026-01-01", derived_from=["mondays"])),
        on("2026-02-03", do("undo", tx="2026-02-01", reason="a slip", refused=("ConflictError", "calm"))),
    ), (ask("nodes", None, ("calm", "mondays")),)),
    # ------------------------------------------------------------------ amend
    Episode("a field is changed where something stands, and nowhere else", "amend", (
        on("2026-02-01", fact("ana", {"title": "engineer", "team": "red"}, "2026-01-01", "2026-01-30")),
        on("2026-02-02", do("revise", id="ana", content={"title": "lead", "team": "red"}, valid_from="2026-01-10", valid_to="2026-01-20")),
        on("2026-02-03", retract("ana", valid_from="2026-01-22", valid_to="2026-01-24")),
        on("2026-02-04", do("amend", id="ana", patch={"team": "blue"}, valid_from="2026-01-15", valid_to="2026-03-01")),
    ), (
        ask("content", "ana", {"title": "lead", "team": "red"}, valid="2026-01-14"),
        ask("content", "ana", {"title": "lead", "team": "blue"}, valid="2026-01-15"),
        ask("content", "ana", {"title": "engineer", "team": "blue"}, valid="2026-01-20"),
        ask("standing", "ana", "retracted", valid="2026-01-23"), ask("content", "ana", None, valid="2026-02-10"),
        ask("content", "ana", {"title": "engineer", "team": "red"}, valid="2026-01-05"),
    )),
    Episode("an amendment that changes nothing is none", "amend", (
        on("2026-02-01", fact("ana", {"title": "engineer", "team": "red"}, "2026-01-01")),
        on("2026-02-02", do("amend", id="ana", patch={"team": "red"})),
    ), (ask("number", "ana", 1), ask("told", "ana", ("ana", "2026-02-01")))),
    Episode("a nightly sync writes what differs", "amend", (
        on("2026-02-01", fact("price", "10", "2026-01-01", "2026-01-20")),
        on("2026-02-02", revise("price", "12", valid_from="2026-01-10", valid_to="2026-01-20")),
        on("2026-02-03", revise("price", "12"), by="bob"),
    ), (
        ask("periods", "price", (("2026-01-01", "2026-01-10", "12"), ("2026-01-10", "2026-01-20", "12"))),
        ask("number", "price", 2, valid="2026-01-15"), ask("number", "price", 3, valid="2026-01-05"),
        ask("told", "price", ("bob", "2026-02-03"), valid="2026-01-05"), ask("told", "price", ("ana", "2026-02-02"), valid="2026-01-15"),
    )),
    Episode("an end is opened again", "amend", (
        MONDAYS, on("2026-02-02", do("end", id="mondays", at="2026-01-20")),
        on("2026-02-03", revise("mondays", "we deploy on Mondays", valid_from="2026-01-20", valid_to="open")),
    ), (ask("says", "mondays", "we deploy on Mondays", valid="2027-01-01"), ask("standing", "mondays", "ended", valid="2026-01-25", tx="2026-02-02"))),
    # ------------------------------------------------------------------ lost update
    *(
        Episode(f"a lost update is refused: {verb}", "lost update", (
            MONDAYS, on("2026-02-02", revise("mondays", "we deploy on Monday mornings"), by="bob"),
            on("2026-02-03", step._replace(refused=("ConflictError",))),
        ), (ask("says", "mondays", "we deploy on Monday mornings"), ask("number", "mondays", 2)))
        for verb, step in (
            ("revise", revise("mondays", "we deploy on Monday evenings", if_number=1)),
            ("retract", retract("mondays", if_number=1)),
            ("end", do("end", id="mondays", at="2026-01-20", if_number=1)),
            ("confirm", confirm("mondays", if_number=1)),
        )
    ),
    Episode("an update that knows what stands is taken", "lost update", (
        MONDAYS, on("2026-02-02", revise("mondays", "we deploy on Monday mornings", if_number=1)),
    ), (ask("number", "mondays", 2),)),
    Episode("a value ended while it was corrected comes back with its end", "slots", (
        on("2026-02-01", fact("anna", "Anna is on call", "2026-01-04", "2026-01-06", key="on_call")),
        on("2026-02-02", fact("ben", "Ben is on call", "2026-01-03", "2026-01-31", key="on_call")),
        on("2026-02-03", fact("alone", "Ben is on leave", "2026-01-01", corrects=["ben"])),
        on("2026-02-04", do("end", id="ben", at="2026-01-05")), on("2026-02-05", retract("alone")),
    ), (
        ask("slot", "on_call", ("ben",), valid="2026-01-04"), ask("slot", "on_call", (), valid="2026-01-05"),
        ask("slot", "on_call", ("anna",), valid="2026-01-05", tx="2026-02-04"),
    )),
    Episode("an end that a correction left in force keeps the slot empty", "slots", (
        on("2026-02-01", fact("anna", "Anna is on call", "2026-01-08", key="on_call"), do("end", id="anna", at="2026-01-10")),
        on("2026-02-02", fact("alone", "Anna is on leave", "2026-01-08", "2026-01-10", corrects=["anna"])),
        on("2026-02-03", fact("ben", "Ben is on call", "2026-01-03", key="on_call")),
    ), (
        ask("slot", "on_call", ("ben",), valid="2026-01-05"), ask("slot", "on_call", ("ben",), valid="2026-01-09"),
        ask("slot", "on_call", (), valid="2026-01-10"), ask("slot", "on_call", (), valid="2026-01-20"),
    )),
    Episode("what is left of a rota gives way to a value that begins later", "slots", (
        on("2026-02-01", fact("anna", "Anna is on call", "2026-01-08", key="on_call")),
        on("2026-02-02", fact("ben", "Ben is on call", "2026-01-01", "2026-01-10", key="on_call")),
        on("2026-02-03", retract("ben", valid_from="2026-01-02", valid_to="2026-01-09")),
        on("2026-02-04", fact("cleo", "Cleo is on call", "2026-01-06", key="on_call")),
    ), (
        ask("slot", "on_call", ("ben",), valid="2026-01-01"), ask("slot", "on_call", ("cleo",), valid="2026-01-07"),
        ask("slot", "on_call", ("anna",), valid="2026-01-08"), ask("slot", "on_call", ("cleo",), valid="2026-01-09"),
        ask("slot", "on_call", ("ben",), valid="2026-01-09", tx="2026-02-03"), ask("slot", "on_call", ("anna",), valid="2026-01-10"),
    )),
    Episode("a value comes back also where its successor was superseded itself", "slots", (
        on("2026-02-01", fact("anna", "Anna is on call", "2026-01-01", key="on_call")),
        on("2026-01-02", fact("ben", "Ben is on call", "2026-01-05", key="on_call", supersedes=["anna"])),
        on("2026-01-03", fact("closed", "nobody is on call any more", "2026-01-08", supersedes=["ben"])), on("2026-02-04", retract("ben")),
    ), (
        ask("slot", "on_call", ("anna",), valid="2026-01-06"), ask("slot", "on_call", ("anna",), valid="2026-01-09"),
        ask("slot", "on_call", (), valid="2026-01-09", tx="2026-02-03"),
    )),
    Episode("an undo gives back what a supersession kept, whoever took it", "undo", (
        on("2026-02-01", fact("old", "we deploy on Mondays", "2026-03-01")),
        on("2026-02-02", fact("first", "we deploy on Fridays", "2026-03-01", supersedes=["old"])),
        on("2026-02-03", fact("second", "we deploy daily", "2026-03-10", supersedes=["old"])),
        on("2026-02-04", do("unlink", source="first", kind="supersedes", target="old")),
        on("2026-02-05", do("undo", tx="2026-02-03", reason="a slip")),
    ), (ask("says", "old", "we deploy on Mondays", valid="2026-04-01"), ask("standing", "old", "superseded", valid="2026-04-01", tx="2026-02-04"))),
    Episode("a supersession is not opened again where what it took came to hold since", "undo", (
        on("2026-02-01", fact("old", "we deploy on Mondays", "2026-01-01"), fact("new", "we deploy on Fridays", "2026-01-01")),
        on("2026-02-02", do("supersede", old="old", by="new")),
        on("2026-02-03", fact("alone", "there was no deploy day", "2026-01-01", corrects=["old"])),
        on("2026-02-04", do("unlink", source="new", kind="supersedes", target="old")), on("2026-02-05", retract("alone")),
        on("2026-02-06", do("undo", tx="2026-02-04", reason="a slip", refused=("ConflictError", "old"))),
        on("2026-02-07", do("supersede", old="old", by="new")),
    ), (ask("says", "old", "we deploy on Mondays", valid="2026-03-01", tx="2026-02-06"), ask("standing", "old", "superseded", valid="2026-03-01"))),
    Episode("whoever amends what came back has looked at it", "slots", (
        on("2026-02-01", fact("mondays", "we deploy on Mondays", "2026-01-03", key="deploy_day")),
        on("2026-02-02", fact("fridays", "we deploy on Fridays", "2026-01-08", key="deploy_day")),
        on("2026-02-03", revise("mondays", "we deploy on Mondays at noon")), on("2026-02-04", retract("fridays")),
        on("2026-02-05", revise("mondays", "we deploy on Mondays")),
        on("2026-02-06", link("fridays", "supports", "mondays", valid_from="2026-01-02")),
    ), (ask("standing", "mondays", "stands", valid="2026-01-09"), ask("shaken_by", "mondays", None, valid="2026-01-09"))),
    # ------------------------------------------------------------------ links and their periods
    Episode("a link said again for longer keeps the rest", "periods of links", (
        on("2026-02-01", fact("bob", "Bob", "2026-01-01"), fact("acme", "Acme", "2026-01-01"),
           link("bob", "related_to", "acme", valid_from="2026-01-01", valid_to="2026-01-10")),
        on("2026-02-02", link("bob", "related_to", "acme", valid_from="2026-01-05", valid_to="2026-01-20")),
        on("2026-02-03", link("bob", "related_to", "acme", valid_from="2026-01-20", valid_to="2026-01-25")),
    ), (
        ask("link", ("bob", "related_to", "acme"), (("2026-01-01", "2026-01-10"), ("2026-01-10", "2026-01-20"), ("2026-01-20", "2026-01-25"))),
        ask("links", ("bob", "related_to", "acme"), 1),
    )),
    Episode("two jobs with a gap are two links", "periods of links", (
        on("2026-02-01", fact("bob", "Bob", "2026-01-01"), fact("acme", "Acme", "2026-01-01"),
           link("bob", "related_to", "acme", valid_from="2026-01-01", valid_to="2026-01-10"),
           link("bob", "related_to", "acme", valid_from="2026-01-15", valid_to="2026-01-20")),
    ), (ask("links", ("bob", "related_to", "acme"), 2),)),
    Episode("a supersession said again with another date is refused, not dropped", "periods of links", (
        on("2026-02-01", fact("old", "auth by sessions", "2026-01-01"), fact("new", "auth by tokens", "2026-01-10")),
        on("2026-02-02", do("supersede", old="old", by="new", valid_from="2026-01-15")),
        on("2026-02-03", do("supersede", old="old", by="new", valid_from="2026-01-20", refused=("ConflictError",))),
        on("2026-02-04", do("supersede", old="old", by="new", valid_from="2026-01-15")),
    ), (ask("standing", "old", "stands", valid="2026-01-14"), ask("standing", "old", "superseded", valid="2026-01-15"),
        ask("links", ("new", "supersedes", "old"), 1))),
    Episode("a piece keeps who first said it", "periods of links", (
        on("2026-02-01", fact("old", "it costs 10", "2026-01-01")),
        on("2026-02-02", fact("new", "it costs 12", "2026-01-10", supersedes=["old"], reason="asked the shop"), by="ana"),
        on("2026-06-01", revise("new", "it costs 13", valid_from="2026-03-01", valid_to="2026-04-01"), by="bob"),
    ), (
        ask("told", "new", ("ana", "2026-02-02"), valid="2026-02-15"), ask("told", "new", ("bob", "2026-06-01"), valid="2026-03-15"),
        ask("steps", "old", (("superseded", "new", "asked the shop"),), valid="2026-02-15"),
    )),
    # ------------------------------------------------------------------ causes and status
    Episode("a cause never starts after its effect", "causes", (
        on("2026-02-01", event("outage", "incident", "2026-01-10"), event("deploy-8", "deploy", "2026-01-11"),
           link("outage", "caused_by", "deploy-8", valid_from="2026-01-12", refused=("GraphStoreError", "deploy-8"))),
    ), (ask("causes", "outage", ()),)),
    Episode("two things do not cause each other", "causes", (
        on("2026-02-01", event("hen", "incident", "2026-01-10"), event("egg", "incident", "2026-01-10"), link("hen", "caused_by", "egg"),
           link("egg", "caused_by", "hen", refused=("GraphStoreError", "hen"))),
    ), (ask("causes", "hen", ("egg",)), ask("causes", "egg", ()))),
    Episode("a fix resolves whatever is open and named", "causes", (
        on("2026-02-01", event("outage", "incident", "2026-01-10"), event("deploy-8", "deploy", "2026-01-09")),
        on("2026-02-02", event("fix-1", "fix", "2026-01-12", related_to="outage")),
    ), (
        ask("status", "outage", "active", valid="2026-01-11"), ask("status", "outage", "resolved", valid="2026-01-12"),
        ask("status", "deploy-8", None), ask("status", "fix-1", None), ask("link", ("outage", "resolved_by", "fix-1"), (("2026-01-12", None),)),
    )),
    Episode("what was taken back is not open", "causes", (
        on("2026-02-01", event("outage", "incident", "2026-01-10")), on("2026-02-02", retract("outage")),
    ), (ask("standing", "outage", "retracted"), ask("status", "outage", None))),
    # ------------------------------------------------------------------ branches, ids, text
    Episode("a retraction on a branch arrives as one, with its reason", "branches", (
        CHAIN, on("2026-02-02", do("branch", name="plan")), on("2026-02-03", do("retract", id="survey", reason="measured again", branch="plan")),
        on("2026-02-04", do("confirm", id="design", reason="holds anyway", branch="plan")), on("2026-02-05", do("merge", name="plan")),
    ), (ask("standing", "survey", "retracted"), ask("standing", "design", "stands"), ask("standing", "budget", "stands"),
        ask("closing", "survey", (("retracted", "measured again"),))), beyond=True),
    Episode("an id is itself and never the beginning of another", "ids", (
        on("2026-02-01", fact("US/Hawaiian", "a time zone", "2026-01-01")),
    ), (ask("standing", "US/Hawaii", None), ask("standing", "US/Hawaiian", "stands")), beyond=True),
)  # fmt: skip
