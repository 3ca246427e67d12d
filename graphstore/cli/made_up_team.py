"""Two weeks of a made-up team and its agents, written with a clock that ran then: something to look at on every tab of the page."""

from __future__ import annotations

import io
import math
import random
import struct
import wave
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import graphstore
from graphstore.context.observer import Message, Observer
from graphstore.context.working import ExpertiseTracker
from graphstore.context.working import append as jot
from graphstore.errors import ConflictError
from graphstore.events import timeline
from graphstore.memory.memory import Memory
from graphstore.store.store import GraphStore
from graphstore.values.findings import Recorded
from graphstore.values.models import Event

DAYS = 14
_PEOPLE = {"ana": "Ana Ruiz", "ben": "Ben Okoro", "chiara": "Chiara Rossi", "dmitri": "Dmitri Volkov"}
_TALK = (
    ("ana", "The login page takes four seconds since this morning. Did anything go out?", "Release 4.{d} went out at nine. It changed the session cache; I am comparing the traces."),
    ("ben", "Can we raise the rate limit for the partner before their launch?", "The gateway allows 100 requests a minute now. Raising it to 400 touches the billing alarm; I noted both."),
    ("chiara", "The customer asks for her export again. What did we promise?", "A CSV within two working days, agreed on the third. I found the voice note in which you said so."),
    ("dmitri", "The nightly build failed, the third time this week.", "The same error as on Tuesday: the certificate store is read before it is mounted. A retry hides it."),
    ("ana", "Which decision made us keep sessions in Redis?", "`sessions in Redis`, of January; it rests on `one region`, which no longer stands. It is shaky."),
    ("ben", "Please draft the note for the outage.", "Draft is in working memory. It names the cause, the fix and who decided."),
    ("chiara", "I like shorter answers, and dates written out.", "Noted as a preference: short answers, dates written out."),
)  # fmt: skip
_DECISIONS = (
    ("region", "fact", "we run in one region", "the first customers are all in Europe"),
    ("sessions", "decision", "logins are sessions kept in Redis", "one region, one store, nothing to sign"),
    ("limit", "fact", "the API allows 100 requests a minute", "the default of the gateway"),
    ("export", "decision", "exports are CSV, within two working days", "agreed with support"),
    ("deploys", "fact", "releases go out on Tuesdays", "written down when the second team started"),
)


def make(folder: Path, *, until: datetime | None = None) -> Path:
    """Write the team's store below a folder, with its media, and give its place. Raises ConflictError where there is one."""
    place, media = folder / "team.gs", folder.resolve() / "team-media"  # who serves it runs elsewhere
    if place.exists():
        raise ConflictError(f"{place} is there already. Give another folder, or remove it.")
    media.mkdir(parents=True, exist_ok=True)
    end = (until or datetime.now(UTC)).replace(microsecond=0) - timedelta(minutes=2)
    clock = _TeamClock(end - timedelta(days=DAYS))
    with graphstore.open(place, clock=clock, author="ana") as store:
        _Weeks(store, clock, end, media).write()
    return place


class _TeamClock:
    def __init__(self, at: datetime) -> None:
        self.at = at

    def __call__(self) -> datetime:
        self.at += timedelta(microseconds=50)
        return self.at


def _compress(messages: Sequence[Message], /) -> str:
    """Return what is worth knowing of the messages of a day: those that ask or promise something."""
    first = messages[0]
    lines = [f"## {first.occurred_at:%Y-%m-%d}"]
    for number, each in enumerate(messages[::3]):
        lines.append(f"- [{('HIGH', 'MEDIUM', 'LOW')[number % 3]}] {each.text[:110]}")
    return "\n".join(lines)


class _Weeks:
    """The two weeks, hour by hour."""

    def __init__(self, store: GraphStore, clock: _TeamClock, end: datetime, media: Path) -> None:
        self.store, self.clock, self.end, self.media = store, clock, end, media
        self.random = random.Random(22)
        self.memory = Memory(store)
        self.observer = Observer(store, _compress, threshold=12)
        self.skills = ExpertiseTracker()

    def at(self, day: int, hour: float) -> datetime:
        """Turn the clock to an hour of a day of the two weeks; it never goes back."""
        wanted = self.end - timedelta(days=DAYS - day) + timedelta(hours=hour)
        self.clock.at = max(self.clock.at + timedelta(milliseconds=5), min(wanted, self.end))
        return self.clock.at

    def write(self) -> None:
        """Write both weeks."""
        self._begin()
        for day in range(DAYS):
            self._talk(day)
            self._work(day)
            self._changes(day)
        self._end()

    def _node(
        self, kind: str, id: str, says: str, *tags: str, more: Mapping[str, Any] = {}, **how: Any
    ) -> None:
        """Add a node that says something. `more`: what else is in its content."""
        self.store.add_node(kind, {"says": says, **more}, id=id, text=says, tags=tags, **how)

    def _revise(self, id: str, says: str, *, more: Mapping[str, Any] = {}, **how: Any) -> None:
        self.store.revise(id, {"says": says, **more}, **how)

    def _event(self, type: str, description: str, id: str, source: str | None = None, **how: Any) -> Event:
        """Record what the system told, or who else is named."""
        how = {"origin": "system"} | how if source else how
        return self.store.record_event(type, description, id=id, source=source, **how).event

    def _message(self, text: str, sender: str, name: str, thread: str, role: str, **how: Any) -> Recorded:
        kind = how.pop("kind", "TEXT")
        return timeline.record_message(
            self.store, kind, text, sender=sender, sender_name=name, thread=thread, role=role, **how
        )

    def _begin(self) -> None:
        store, start = self.store, self.at(0, 0.1)
        for number, (id, kind, says, why) in enumerate(_DECISIONS):
            since, begin = f"the {number + 1}. of the quarter", start - timedelta(days=90 - 9 * number)
            self._node(
                kind, id, says, "platform", id, more={"since": since}, valid_from=begin, source="handbook"
            )
            store.confirm(id, reason=why)
        store.link("sessions", "derived_from", "region", reason="one region, one store")
        store.link("export", "derived_from", "deploys", reason="exports change with releases only")
        for name, text in (
            ("SOUL", "Answer with the decision, who made it and since when."),
            ("USER", "Ana leads the platform. Chiara answers customers."),
            ("TOOLS", "Traces, releases and the billing alarm can be asked."),
        ):
            self.memory.remember(text, layer="soul", source=f"soul:{name}.md")
        for text in (
            "Ana prefers mornings for releases.",
            "Ben travels to the partner every second week.",
            "Chiara is away in August.",
        ):
            self.memory.remember(text, layer="er1", source="er1:notes", user="ana")

    def _talk(self, day: int) -> None:
        for number in range(7):
            who, asked, answered = _TALK[(day + number * 3) % len(_TALK)]
            thread, user = f"{who}-{('release', 'support')[number % 2]}", who
            self.at(day, 8 + number * 1.7)
            message = self._message(
                asked.format(d=day), user, _PEOPLE[user], thread, "user", trace_id=f"{day:02d}{number:02d}" * 8,
                classification="internal" if number % 3 else "customer", authorized=bool((day + number) % 11),
            )  # fmt: skip
            self.observer.enqueue(message, user=user, thread=thread, sender=user)
            if (day + number) % 6 == 1:
                self._medium(day, number, user, thread)
            self._trace(day, number, answered.format(d=day), thread)
            self.memory.remember(
                f"{asked} {answered}".format(d=day),
                layer="conversation",
                source=f"conversation:{thread}",
                user=user,
                thread=thread,
            )
            if number % 3 == 0:
                self.memory.remember(
                    f"traces compared for release 4.{day}: {40 + number * 7} spans, {day % 3} slower",
                    layer="tool",
                    source="tool:traces",
                    user=user,
                )

    def _medium(self, day: int, number: int, user: str, thread: str) -> None:
        kind: Literal["AUDIO", "IMAGE"] = "AUDIO" if number % 2 else "IMAGE"
        path = self.media / f"{day:02d}-{number}.{'wav' if kind == 'AUDIO' else 'png'}"
        path.write_bytes(_tone(3 + number, 220 + 40 * day) if kind == "AUDIO" else _chart(day))
        text = "Voice note about the export" if kind == "AUDIO" else f"Latency since release 4.{day}"
        self._message(text, user, _PEOPLE[user], thread, "user", kind=kind, media_path=path)

    def _trace(self, day: int, number: int, answer: str, thread: str) -> None:
        """Record what an agent did for an answer, as spans, and the answer itself."""
        trace, start = f"{day:02d}{number:02d}" * 8, self.clock.at
        steps = [
            ("answer", None, 0.0, 3.2),
            ("recall", "answer", 0.1, 0.5),
            ("search", "recall", 0.15, 0.2),
            ("rank", "recall", 0.38, 0.1),
            ("model", "answer", 0.7, 2.2),
            ("tool: traces", "model", 1.1, 0.9),
            ("write", "answer", 2.95, 0.2),
        ]
        ids = {name: f"{day:02x}{number:02x}{place:012x}" for place, (name, *_) in enumerate(steps)}
        for name, parent, after, lasts in steps:
            failed = name.startswith("tool") and (day + number) % 5 == 0
            at = start + timedelta(seconds=after - (0.2 if name == "rank" and number == 2 else 0))
            stretch = 1 + self.random.random()
            self.store.record_event(
                "span", name, occurred_at=at - timedelta(seconds=8), trace_id=trace, span_id=ids[name], parent_span_id=None if parent is None else ids[parent] if not (number == 4 and name == "rank") else "ffffffffffffffff",
                agent="aide", metadata={"ended_at": (at - timedelta(seconds=8) + timedelta(seconds=lasts * stretch)).isoformat(), **({"error": "upstream timed out"} if failed else {"tokens": self.random.randrange(100, 3000)})},
            )  # fmt: skip
        self.at(day, (self.clock.at - (self.end - timedelta(days=DAYS - day))) / timedelta(hours=1) + 0.01)
        spans = {"trace_id": trace, "span_id": ids["write"], "parent_span_id": ids["answer"]}
        message = self._message(answer, "aide", "Aide", thread, "agent", **spans)
        self.observer.enqueue(message, user=thread.partition("-")[0], thread=thread, sender="aide")

    def _work(self, day: int) -> None:
        store = self.store
        self.at(day, 20)
        if day % 2 == 0:
            deploy = self._event("deploy", f"release 4.{day}", f"release_{day}", "ci")
            self.at(day, 20.01)
            measured = {"baseline": 900, "value": 1600 + 90 * day}
            words = f"login slower: 900 ms → {measured['value']} ms"
            slow = self._event("regression", words, f"slow_{day}", "login_ms", metadata=measured)
            store.link(slow.id, "caused_by", deploy.id, reason="it began with the release")
            words = "CertificateError: the store is not mounted"
            error = self._event("error", words, f"error_{day}", "build/cert.py:42")
            store.link(error.id, "caused_by", slow.id, confidence="inferred", reason="within a minute of it")
            self.at(day, 21)
            words = "mount the certificate store first"
            self._event("fix", words, f"fix_{day}", agent="aide", related_to=error.id)
            if day:
                store.link(deploy.id, "caused_by", f"fix_{day - 2}", reason="it carries the fix")
            self.skills.record(store, "incidents", "success" if day % 4 else "partial", note=words)
        for domain in ("releases", "support", "billing"):
            self.skills.record(
                store, domain, self.random.choice(("success", "success", "partial", "failure"))
            )
        self.memory.remember(
            f"The group agreed on day {day + 1}: one owner a release.",
            layer="group",
            source="group:platform",
            key=f"day-{day}",
        )
        jot(store, "ana", "ana-release", f"- day {day + 1}: watch the login times after release 4.{day}")

    def _changes(self, day: int) -> None:
        store, now = self.store, self.at(day, 22)
        if day == 3:
            how: dict[str, Any] = {
                "supersedes": "region",
                "reason": "the American customers",
                "valid_from": now,
            }
            self._node("fact", "regions", "we run in two regions", "platform", "region", **how)
        if day == 4:
            words, pilot = "the API allows 200 requests a minute", {"since": "the partner's pilot"}
            begin = now - timedelta(days=1)
            self._revise("limit", words, more=pilot, reason="raised for the pilot", valid_from=begin)
        if day == 6:
            words = "logins are signed tokens, valid for an hour"
            self._node("decision", "tokens", words, "platform", "sessions", valid_from=now)
            store.link("tokens", "contradicts", "sessions", reason="a login cannot be both")
            store.link("tokens", "caused_by", "error_6", reason="no restart may log everybody out again")
            words = "nobody could log in for 40 minutes"
            begin, end = now - timedelta(hours=3), now - timedelta(hours=2)
            self._node("incident", "outage", words, more={"minutes": 40}, valid_from=begin, valid_to=end)
            store.link("outage", "caused_by", "sessions", reason="Redis restarted and forgot every session")
            store.link("tokens", "caused_by", "outage", reason="it must not happen twice")
        if day > 6:
            self._later(day, now)

    def _later(self, day: int, now: datetime) -> None:
        store = self.store
        if day == 8:
            limit = {"says": "the API allows 400 requests a minute"}
            store.amend("limit", limit, valid_from=now, reason="the partner's launch")
            why = "it was Wednesdays since March, nobody wrote it down"
            store.retract("deploys", valid_from=now - timedelta(days=20), reason=why)
        if day == 10:
            words = "exports are CSV or Parquet, within one working day"
            self._revise("export", words, reason="asked for twice", valid_from=now)
        if day == 11:
            words, begin = "the partner's launch is in May", now + timedelta(days=30)
            self._node("fact", "launch", words, "partner", valid_from=begin)
            store.snapshot("before-the-launch")

    def _end(self) -> None:
        self.at(DAYS, -0.5)
        trial = self.store.branch("what-if", reason="try the limit of 800")
        trial.amend("limit", {"says": "the API allows 800 requests a minute"}, reason="what if")
        self.observer.tick()


def _tone(seconds: int, pitch: int) -> bytes:
    """A voice note: a tone that fades, as a WAV of 8,000 samples a second."""
    rate = 8_000
    samples = b"".join(
        struct.pack("<h", int(9_000 * math.sin(2 * math.pi * pitch * n / rate) * (1 - n / (rate * seconds))))
        for n in range(rate * seconds)
    )
    written = io.BytesIO()
    with wave.open(written, "wb") as sink:
        sink.setnchannels(1)
        sink.setsampwidth(2)
        sink.setframerate(rate)
        sink.writeframes(samples)
    return written.getvalue()


def _chart(day: int) -> bytes:
    """A picture: bars of latency, as a PNG."""
    width, height, rows = 320, 160, bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            bar = 30 + (x // 20 * 37 + day * 13) % 100
            rows += bytes((11, 110, 153) if height - y < bar and x % 20 < 16 else (245, 245, 242))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(bytes(rows)))
        + chunk(b"IEND", b"")
    )
