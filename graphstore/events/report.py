"""The room of the event log: its history as a report, with patterns; possible causes; and the recorder of raw observations."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from graphstore.errors import InvalidError
from graphstore.events.correlation import Activity, Happening, Proposal, correlate
from graphstore.events.grouped import occurrences, tell_apart
from graphstore.events.recorder import Recorder
from graphstore.events.recurrences import Criteria, patterns, patterns_at, shortened, zone_of
from graphstore.store import registry
from graphstore.store.links import Kind
from graphstore.values.event_fields import OF_AN_OCCURRENCE
from graphstore.values.fingerprints import CONFIRMATION, MESSAGES, NEVER_OPEN, fingerprint
from graphstore.values.inputs import ORIGINS, optional_text, text_of, whole_number
from graphstore.values.models import Json
from graphstore.values.period import Instant, iso
from graphstore.values.time_range import Window, plural, window, window_sentence, window_text
from graphstore.view.sight import Sight
from graphstore.view.view import Reader, View

__all__ = [
    "TYPES", "Activity", "Happening", "Proposal", "Recorder", "correlate", "fingerprint", "history_report", "occurrences", "patterns", "tell_apart", "window",
]  # fmt: skip

TYPES = ("error", "regression", "resolution", "baseline_shift", "deploy", "fix")
"""The types that the log knows. Other types are kept and reported too."""

STATUSES = ("active", "resolved", "superseded")
OF_ROOMS = frozenset({CONFIRMATION, "outcome"})
"""Types of events that other rooms record. They are reported on request."""

MOST_BYTES = 500_000
"""The limit of a report as compact JSON, in bytes."""
_FOR_PATTERNS = 50_000
_FOR_THE_REST = 2_000  # summary, keys, arguments
_IDS_OF_A_PATTERN = 20
_TYPES_TOLD = 20  # the most types in the summary, each cut to `_TYPE_LENGTH` characters
_TYPE_LENGTH = 60
_LEAST_PATTERNS = "30d"  # the shortest window in which patterns are searched
_POSSIBLE = frozenset({"caused_by", "resolved_by"})  # inferred links of these kinds are named possibly_…
_CAUSED = frozenset({"caused_by"})
_FORGOTTEN = ("evicted", "erased")
_AHEAD = 256  # events whose links and bodies are read at once


class _ReportFilter(NamedTuple):
    """Selects events; None selects any."""

    types: frozenset[str] | None
    statuses: frozenset[str] | None
    origins: frozenset[str] | None
    agents: frozenset[str] | None
    every: bool

    @property
    def narrows(self) -> bool:
        return any(each is not None for each in self[:4])

    def fits(self, body: Json) -> bool:
        """Return True if the origin and agent in an event's body fit."""
        if self.origins is not None and body["origin"] not in self.origins:
            return False
        return self.agents is None or body.get("agent") in self.agents


def _several(
    what: str, given: str | Iterable[str] | None, known: tuple[str, ...] | None = None
) -> frozenset[str] | None:
    if given is None:
        return None
    if not isinstance(given, str) and not isinstance(given, Iterable):
        raise InvalidError(f"{what} {given!r} is no text. Give a str, or a list of them.")
    several = frozenset(text_of(what, each) for each in ([given] if isinstance(given, str) else given))
    for each in several:
        if known is not None and each not in known:
            raise InvalidError.choice(what, each, known)
    return several


class _Match(NamedTuple):
    first: Instant
    last: Instant
    times: int
    ent: int


@registry.read("events")
def history_report(
    view: Reader,
    type: str | Iterable[str] | None = None,
    since: Any = "7d",
    related_to: str | None = None,
    pattern: str | None = None,
    limit: int | None = None,
    *,
    timezone: str = "UTC",
    skip: int | None = None,
    status: str | Iterable[str] | None = None,
    origin: str | None = None,
    agent: str | Iterable[str] | None = None,
    every: bool = False,
) -> Json:
    """What happened, newest first by the last occurrence: `{"events", "total_events", "time_range", "patterns", "summary"}`, under 500 KB as compact JSON.

    Filters are ANDed. `since` as in `window`: an occurrence lies in it. `related_to`: linked with that id either way, and the event itself,
    marked `asked`. `pattern`: part of the description, whatever the case. `total_events` counts all that match, `limit` or not.
    `skip`: the newest so many are left out, so a further call goes on where a report had no more room. `type`, `status` and `agent` may be several,
    any of which fits: `status="active"` is what is broken now. Messages, spans and what other rooms note are told with `every`, or when their type,
    or something they are related to, is asked for. Raises InvalidError for a window, status, origin or limit that is none, NotFoundError for an unknown `related_to`.
    """
    limit = whole_number("limit", limit)
    skip = whole_number("skip", skip) or 0
    optional_text("pattern", pattern)
    asked = _ReportFilter(
        _several("type", type),
        _several("status", status, STATUSES),
        _several("origin", origin, ORIGINS),
        _several("agent", agent),
        every,
    )
    only = next(iter(asked.types)) if asked.types is not None and len(asked.types) == 1 else None
    pinned, zone = isinstance(view, View), zone_of(timezone)
    with view.reading() as sight:
        within = window(since, sight.valid, sight.snapshots)
        history = _History(sight, view.vocabulary.kinds)
        related = -1 if related_to is None else sight.resolve(related_to)[0]
        matches = history.matching(asked, within, related, pattern)
        longer = _no_shorter(since, within, sight.valid)
        found = patterns_at(sight, pinned, longer, Criteria(only, timezone=timezone), zone)
        events = history.shown(matches[:limit][skip:], related)
        return {
            "events": events,
            "total_events": len(matches),
            "time_range": window_text(since),
            "patterns": _bounded_patterns(found),
            "summary": history.summary(
                matches, window_sentence(since), len(events), asked.narrows or related_to or pattern
            ),
        }


def _no_shorter(since: Any, within: Window, now: Instant) -> Any:
    """Return the window in which patterns are searched: the requested one, unless it is too short to show any."""
    begin, end = window(_LEAST_PATTERNS, min(within[1], now))
    if within[0] <= begin:
        return since
    return _LEAST_PATTERNS if end == now else (iso(begin), iso(end))


def _bounded_patterns(found: list[Json]) -> list[Json]:
    kept, size = [], 0
    for each in found:
        each["events"] = each["events"][:_IDS_OF_A_PATTERN]
        size += len(orjson.dumps(each)) + 1
        if size > _FOR_PATTERNS:
            break
        kept.append(each)
    return kept


class _History:
    """Makes one report at one coordinate."""

    def __init__(self, sight: Sight, kinds: Mapping[str, Kind]) -> None:
        self.sight, self.kinds = sight, kinds

    # ------------------------------------------------------------------ selection

    def matching(
        self, asked: _ReportFilter, within: Window, related: int, pattern: str | None
    ) -> list[_Match]:
        """Return the events that match every filter, newest first. `related`: the entity they must be linked with, -1 for any."""
        sight, seen = self.sight, self.sight.happened.seen
        begin, end = within
        wanted = None if pattern is None else pattern.lower()
        if related < 0:
            near: Iterable[int] = sight.happening(begin, end + 1, asked.types)
        else:
            around = {*sight.neighbours(related), related}
            sight.read_events(around)
            near = filter(sight.is_event, around)
        found = []
        for ent in near:
            if (asked.types is not None and sight.kind(ent) not in asked.types) or sight.find(ent) < 0:
                continue
            if asked.types is None and related < 0 and not asked.every and self._is_apart(ent):
                continue
            match = _Match(*seen(ent), ent)
            if (
                self._within(match, begin, end)
                and (wanted is None or self._says(ent, wanted))
                and (asked.statuses is None or sight.happened.status(ent) in asked.statuses)
                and (asked[2:4] == (None, None) or asked.fits(sight.body(ent)))
            ):
                found.append(match)
        found.sort(key=lambda match: (-match.last, -match.first, sight.id(match.ent)))
        return found

    def _is_apart(self, ent: int) -> bool:
        """Return True if an event is not part of the log: a message, a span, or a record of another room."""
        sight = self.sight
        type = sight.kind(ent)
        if type in TYPES:
            return False
        if type in MESSAGES or type in OF_ROOMS:
            return True
        return "authorized" in sight.body(ent, b'"authorized":') or "span_id" in sight.body(
            ent, b'"span_id":'
        )

    def _says(self, ent: int, wanted: str) -> bool:
        """Return True if the description of an event, or of its latest occurrence, contains `wanted`, in lower case."""
        body = self.sight.body(ent)
        if wanted in body["description"].lower():
            return True
        return wanted in self.sight.happened.latest(ent, body)["description"].lower()

    def _within(self, match: _Match, begin: Instant, end: Instant) -> bool:
        if match.last < begin or match.first > end:
            return False
        if match.first >= begin or match.last <= end:
            return True
        instants = self.sight.happened.instants(match.ent)
        at = bisect_left(instants, begin)
        return instants[at] <= end

    # ------------------------------------------------------------------ rendering

    def shown(self, matches: list[_Match], related: int) -> list[Json]:
        """Return as many of the newest events as fit into the report. If the first alone does not fit, it is shortened."""
        room = MOST_BYTES - _FOR_PATTERNS - _FOR_THE_REST
        events: list[Json] = []
        bodies: dict[int, Json] = {}
        for number, match in enumerate(matches):
            if number % _AHEAD == 0:
                ahead = [each.ent for each in matches[number : number + _AHEAD]]
                self.sight.read_ends(ahead)
                bodies = self.sight.bodies(ahead)
            event = self._event(match, related, bodies[match.ent])
            size = len(orjson.dumps(event)) + 1
            if size > room and not events:
                event = _squeezed(event, room)
                return [event] if len(orjson.dumps(event)) <= room else []  # an id is never cut
            room -= size
            if room < 0:
                break
            events.append(event)
        return events

    def _event(self, match: _Match, related: int, reported: Json) -> Json:
        sight, ent = self.sight, match.ent
        type = sight.kind(ent)
        body = sight.happened.latest(ent, reported)
        first = iso(match.first)
        event: Json = {
            "id": sight.id(ent),
            "type": type,
            "timestamp": first,
            "description": body["description"],
        }
        source, metadata = body.get("source"), body.get("metadata")
        if source is not None:
            event["source"] = source
        if type in ("regression", "baseline_shift"):
            metric = (metadata or {}).get("metric", source)
            if metric is not None:
                event["metric"] = metric
        event["status"] = sight.happened.status(ent, body)
        event["links"] = self._links(ent)
        if match.times > 1:
            event |= {"count": match.times, "first_seen": first, "last_seen": iso(match.last)}
            if body != reported:
                own = sight.happened.told(ent)[0][1]
                was = {**reported, **own}
                event["first"] = {name: was[name] for name in OF_AN_OCCURRENCE if was.get(name)}
        event["origin"] = body["origin"]
        if "agent" in body:
            event["agent"] = body["agent"]
        if metadata:
            event["metadata"] = metadata
        if ent == related:
            event["asked"] = True
        return event

    def _links(self, ent: int) -> list[Json]:
        """Return the links that hold at either end of an event, read from its side."""
        return [self._link(row, ent) for row in self.sight.links_either(ent)]

    def _link(self, row: int, ent: int) -> Json:
        sight, edge = self.sight, self.sight.edge(row)
        kind = self.kinds[edge.kind]
        other, name = (edge.target, kind.name) if edge.source == ent else (edge.source, kind.inverse)
        inferred = sight.claim(row).inferred
        shown: Json = {
            "target": sight.id(other),
            "relationship": f"possibly_{name}" if inferred and kind.name in _POSSIBLE else name,
            "confidence": "inferred" if inferred else "explicit",
        }
        if reason := sight.reason(row):
            shown["reason"] = reason
        if sight.standing(other) in _FORGOTTEN:
            shown["target_evicted"] = True
        return shown

    # ------------------------------------------------------------------ the summary

    def summary(self, matches: list[_Match], when: str, shown: int, filtered: Any) -> str:
        """Return the report in a few sentences."""
        if not matches:
            if not any(True for _ in self.sight.scan(events=True)):
                return "No history recorded yet."
            return f"No {'matching ' if filtered else ''}events {when}."
        counts = Counter(self.sight.kind(match.ent) for match in matches)
        types = [*(type for type in TYPES if type in counts), *sorted(counts.keys() - set(TYPES))]
        words = [self._counted(type, counts[type], matches) for type in types[:_TYPES_TOLD]]
        if rest := types[_TYPES_TOLD:]:
            words.append(f"{sum(counts[type] for type in rest):,} of {plural(len(rest), 'other type')}")
        parts = ", ".join(words)
        cut = "" if shown == len(matches) else f" Shown: the newest {shown:,} of {len(matches):,}."
        return f"{plural(len(matches), 'event')} {when}. {parts}.{cut}"

    def _counted(self, type: str, count: int, matches: list[_Match]) -> str:
        """Return such as `2 errors (1 resolved)`, `1 regression (linked to deploy)`."""
        words = plural(count, shortened(type.replace("_", " "), _TYPE_LENGTH))
        if type in NEVER_OPEN:
            return words
        ents = [match.ent for match in matches if self.sight.kind(match.ent) == type]
        bodies = self.sight.bodies(filter(self.sight.has_links, ents))
        resolved = sum(self.sight.happened.status(ent, body) == "resolved" for ent, body in bodies.items())
        linked = 0 if type != "regression" else sum(self._after_deploy(ent) for ent in ents)
        if count == 1:
            notes = ["resolved"] * resolved + ["linked to deploy"] * linked
        else:
            notes = [f"{resolved:,} resolved"] if resolved else []
            if linked:
                notes.append(f"{linked:,} linked to {'deploy' if linked == 1 else 'deploys'}")
        return f"{words} ({', '.join(notes)})" if notes else words

    def _after_deploy(self, ent: int) -> bool:
        sight = self.sight
        return any(
            sight.kind(edge.target) == "deploy" and sight.held(edge.link) >= 0
            for edge in sight.edges(ent, "out", _CAUSED)
        )


def _squeezed(event: Json, room: int) -> Json:
    """Return a huge event in at most `room` bytes: first its texts and metadata are shortened, then links are dropped."""
    short = {name: value for name, value in event.items() if name != "first"}
    for most in (20_000, 2_000, 200):
        texts = ("type", "description", "source", "metric", "agent")
        short |= _shortened_values({name: event[name] for name in texts if name in event}, most)
        if "metadata" in event:
            short["metadata"] = _shortened_values(event["metadata"], most)
        if len(orjson.dumps(short)) < room:
            return short
    short.pop("metadata", None)
    newest: list[Json] = []
    room -= len(orjson.dumps({**short, "links": []}))
    for link in reversed(event["links"]):
        link = {**link, "reason": shortened(link["reason"], 200)} if "reason" in link else link
        room -= len(orjson.dumps(link)) + 1
        if room < 0:
            break
        newest.append(link)
    return {**short, "links": newest[::-1]}


def _shortened_values(metadata: Json, most: int) -> Json:
    """Return metadata with no value longer than `most` characters. Longer values other than text become cut JSON text."""
    short: Json = {}
    for name, value in metadata.items():
        if isinstance(value, str):
            short[name] = shortened(value, most)
        else:
            raw = orjson.dumps(value)
            short[name] = value if len(raw) <= most else shortened(raw.decode(), most)
    return short
