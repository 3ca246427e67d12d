"""A store with something of everything, the same each time, and a question for every call that reads."""

from __future__ import annotations

from typing import Any

from graphstore import GraphStore, memory, topics, working
from graphstore.events.timeline import record_message
from tests.conftest import BOOM, START, Clock, after

QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("without", {"author": "nobody"}),
    ("node", {"id": "jwt"}),
    ("event", {"id": "boom"}),
    ("history", {"id": "jwt"}),
    ("versions", {"id": "jwt"}),
    ("history", {"id": "drinks"}),
    ("versions", {"id": "drinks"}),
    ("inspect", {"id": "drinks"}),
    ("what_superseded", {"id": "drinks"}),
    ("diff", {"id": "jwt", "old": 1, "new": 2}),
    ("inspect", {"id": "jwt"}),
    ("inspect", {"id": "boom"}),
    ("nodes", {}),
    ("nodes", {"kind": "fact", "tag": "auth"}),
    ("nodes", {"content": {"session": "s1"}}),
    ("events", {"since": "2026-01-01"}),
    ("links_from", {"id": "jwt", "kinds": ["supersedes"]}),
    ("backlinks_to", {"id": "sessions"}),
    ("link_history", {"source": "coffee", "kind": "contradicts", "target": "tea"}),
    ("supersedes", {"id": "jwt"}),
    ("what_superseded", {"id": "sessions"}),
    ("causes", {"id": "boom"}),
    ("effects", {"id": "deploy"}),
    ("walk", {"ids": ["jwt", "boom"], "hops": 3}),
    ("path", {"source": "jwt", "target": "sessions", "kinds": "supersedes"}),
    ("paths", {"source": "jwt", "target": "sessions", "kinds": "supersedes"}),
    ("shaky", {}),
    ("grounds", {"id": "jwt"}),
    ("contradictions", {"settled": True}),
    ("joinable", {"limit": 5}),
    ("sessions.review", {}),
    ("contradiction", {"one": "tea", "other": "coffee"}),
    ("warnings_of", {"ids": ["tea", "coffee"]}),
    ("whole_id", {"text": "tea"}),
    ("at", {}),
    ("vocabulary", {}),
    ("query", {"cypher": "MATCH (n:Node) RETURN n, n.id, n.valid_from, n.valid_to ORDER BY n.id"}),
    ("query", {"cypher": "MATCH p = (a)-[l:SUPERSEDES]->(b) RETURN p, l, a.number, 1.0 / 0.0 AS endless"}),
    ("query_tables", {"cypher": "MATCH (v:Version) RETURN v.ref AS ref, [1.5, 2.0] AS numbers ORDER BY ref"}),
    ("query_tables", {"cypher": "UNWIND range(1, 1500) AS n RETURN n"}),
    ("snapshots", {}),
    ("changes", {}),
    ("changes", {"since": "2026-01-01", "until": "2026-02-01T01:30:00Z"}),
    ("tables.history", {"kind": "fact", "valid_from": "2026-01-01", "valid_to": "2026-02-01", "clip": True}),
    ("tables.history", {"tx_from": "2026-01-01", "coalesce_on": ["auth"]}),
    ("tables.links", {}),
    ("tables.changes", {"since": "2026-01-01"}),
    ("stats", {}),
    ("verify", {}),
    ("branches", {}),
    ("on", {"name": "plan"}),
    ("as_of", {"valid": "2026-01-10"}),
    ("as_of", {"snapshot": "release"}),
    ("retention", {}),
    ("trust", {}),
    ("languages", {}),
    ("refresh", {}),
    ("compare", {"other": "plan"}),
    ("changes_to", {"other": "plan"}),
    ("to_networkx", {}),
    ("to_arrow", {}),
    ("recall.recall", {"text": "tokens for auth"}),
    ("recall.mentions", {"text": "sessions"}),
    ("operations", {"id": "jwt"}),
    ("recall.recall", {"text": "auth", "decay": {"half_life": 30.0}}),
    ("topics.latest_on", {"topic": "auth"}),
    ("topics.latest_on", {"topic": "auth", "strategy": "explicit_override"}),
    ("topics.topic", {"topic": "auth"}),
    ("events.history_report", {}),
    ("events.patterns", {"correlation": 60.0}),
    ("timeline.messages", {"thread": "t1"}),
    ("timeline.whole_trace_id", {"text": "0af7651916cd"}),
    ("timeline.senders", {}),
    ("timeline.threads", {}),
    ("timeline.traces", {}),
    ("timeline.trace", {"trace_id": "0af7651916cd43dd8448eb211c80319c"}),
    ("timeline.added", {"id": "boom"}),
    ("consolidation.consolidate", {"topic": "auth"}),
    ("consolidation.consolidations", {}),
    ("lifecycle.due", {}),
    ("working.get", {"user": "ana"}),
    ("working.get", {"user": "nobody"}),
    ("working.expertise", {"domain": "tea"}),
    ("working.expertises", {"half_life": 86400}),
    ("observer.queue", {"user": "ana"}),
    ("observer.messages", {"user": "ana", "thread": "t1"}),
    ("observer.observations", {}),
    ("observer.members", {"thread": "t1"}),
    ("context.context", {"user": "ana", "query": "tea"}),
    ("context.context", {"user": "ana", "memory": True, "conversation": ["hello", ["Ana", "tea, please"]]}),
    ("context.shares", {}),
    ("memory.recall", {"text": "tea"}),
    ("memory.recollect", {"text": "tea", "memory": True}),
    ("events.occurrences", {"id": "boom"}),
    ("memory.stats", {}),
    ("memory.status", {}),
    ("memory.chunks", {"layer": "conversation"}),
    ("page.clocks", {"parts": 7}),
    ("page.next_change", {"axis": "valid", "at": "2026-01-01"}),
    ("page.latest", {}),
    ("page.recent", {"limit": 3}),
    ("page.glimpse", {"id": "jwt"}),
    ("page.causes", {"ids": ["boom"], "way": "walk"}),
    ("page.graph", {"ids": ["tea", "coffee", "nothing"], "links": ["drinks"]}),
    ("page.named", {"ids": ["tea", "drinks", "boom", "nothing"]}),
    ("page.settings", {}),
    ("memory.layer_stats", {}),
    ("recipes", {}),
    ("readers_of", {"id": "jwt"}),
    ("brief", {"budget_tokens": 500}),
    ("recipe", {"name": "links_by_kind"}),
    ("recipe", {"name": "taken_back", "valid": "2026-03-01"}),
    ("memory.layers", {}),
    ("memory.cap", {}),
    ("memory.embedding", {}),
    ("memory.soul", {}),
    ("sessions.listed", {}),
    ("sessions.decisions", {}),
    ("sessions.lessons", {}),
    ("sessions.recurring_errors", {}),
    ("sessions.costs", {"by": "day", "since": "2026-01-01"}),
    ("sessions.work_on", {}),
    ("sessions.files", {"path": "src/a.py"}),
    ("sessions.search", {"text": "tea"}),
    ("sessions.prices", {}),
    ("sessions.doubts", {}),
    ("links.propose", {"proposals": [
        {"source": "tea", "kind": "uses", "target": "jwt", "reason": "says so", "basis": "text"},
        {"source": "tea", "kind": "uses", "target": "nobody", "reason": "says so", "basis": "text"},
    ]}),
]  # fmt: skip


def fill(store: GraphStore, clock: Any) -> None:
    """What the questions are about."""
    store.add_node(
        "fact",
        {"auth": "sessions", "ttl": 30.5},
        id="sessions",
        key="auth",
        tags=["auth"],
        text="auth by sessions",
        valid_from="2026-01-01",
    )
    clock.move(hours=1)
    store.add_node(
        "fact",
        {"auth": "JWT", "list": [1, {"a": None}]},
        id="jwt",
        key="auth",
        tags=["auth"],
        text="auth by tokens",
        valid_from="2026-01-30",
        reason="scale",
        source="adr:7",
    )
    clock.move(hours=1)
    store.revise("jwt", {"auth": "JWT", "list": [1, 2]}, reason="fewer", text="auth by short tokens")
    store.add_node(
        "note", {"drink": "tea"}, id="tea", text="Ana drinks tea in the morning", valid_from="2026-01-02"
    )
    store.add_node(
        "note",
        {"drink": "coffee"},
        id="coffee",
        text="Ana drinks coffee in the morning",
        valid_from="2026-01-03",
    )
    store.link(
        "tea", "contradicts", "coffee", reason="one of two", strength=4, metadata={"seen": 2}, id="drinks"
    )
    store.define_kind("mentors", causal=True)
    store.record_event("deploy", "v2 is out", id="deploy", occurred_at=after(-600))
    store.record_event(
        "error", BOOM, id="boom", occurred_at=after(-300), related_to="deploy", metadata={"line": 7}
    )
    store.record_event("error", BOOM, occurred_at=after(-200))
    store.link("boom", "caused_by", "deploy", confidence="inferred")
    record_message(
        store, "TEXT", "tea, please", sender="ana", thread="t1", occurred_at=after(-100),
        trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331", related_to="tea",
    )  # fmt: skip
    topics.memorize(
        store, [{"id": "m1", "content": "Using WebSocket for auth", "date": "2026-01-15"}], session="1"
    )
    memory.Memory(store).remember(
        "Ana likes green tea", layer="conversation", source="conversation:1", user="ana"
    )
    memory.Memory(store).define_layer(memory.Layer("wiki", "wiki:"))
    working.set(store, "ana", None, "asks about tea")
    working.ExpertiseTracker(agent="ana").record(store, "tea", "success", weight=2.0)
    store.fold(["tea", "coffee"], into={"summary": "drinks"}, reason="enough")
    store.retract("coffee", reason="it was not hers")
    store.set_trust({"adr": 2})
    clock.move(minutes=1)
    store.snapshot("release")
    branch = store.branch("plan")
    branch.add_node("fact", {"auth": "passkeys"}, id="passkeys", valid_from="2026-06-01")
    clock.move(minutes=1)
    assert clock.now > START


def fill_further(store: GraphStore, clock: Clock) -> None:
    """The same, and an event that was taken back for a while, and what was described often."""
    fill(store, clock)
    store.record_event("error", "it fell", id="fell", occurred_at="2026-01-10")
    store.retract("fell", reason="another machine")
    store.undo(store.changes()[-1], reason="this one after all")
    store.add_node("fact", {"n": 1}, id="n", valid_from="2026-01-01")
    for number in range(5):
        clock.move(days=1)
        store.revise("n", {"n": number}, valid_from=f"2026-01-0{number + 2}")
