"""What a server sees of a browser, made into events: errors, measurements, lists of resources, deploys, and the time that passes.

The recorder never sleeps and reads no clock of its own: every call has an instant, or takes the store's now. Decisions are in
the pure functions of `regressions` and `correlation`; it only writes their results, each observation as one transaction.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from secrets import token_hex
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from graphstore.core.read.sight import Sight
from graphstore.core.read.view import Reading
from graphstore.errors import InvalidError
from graphstore.events.correlation import (
    CORRELATION,
    RELOAD,
    Activity,
    Happening,
    Pair,
    correlate,
    microseconds,
)
from graphstore.events.recurrences import name_of
from graphstore.events.regressions import (
    Metric,
    Recovered,
    Regressed,
    Shifted,
    Thresholds,
    change,
    is_time,
    label,
    measure,
    number_of,
    shown,
)
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.values.inputs import at_least_one, json_object, text_of
from graphstore.values.models import Event, Json, Recorded
from graphstore.values.period import EPOCH, Instant, TimeLike, instant, moment

CODE = (".js", ".mjs", ".css")
_NAMED = 3
_WENT_WELL = ("success", "succeeded", "ok", "deployed")


class _Knowledge(NamedTuple):
    """What the recorder knows between two observations, besides what is in the store."""

    metrics: dict[tuple[str, str | None], Metric]
    resources: frozenset[str] | None
    """Scripts and stylesheets seen last; None before the first list."""
    watched: dict[str, None]
    """Errors that may be active, in the order they were first seen."""


_SETTINGS = {
    "name": "str", "agent": "str | None", "correlation": "timedelta", "reload": "timedelta", "quiet": "timedelta", "ratio": "float", "margin_ms": "float",
    "settle": "int",
}  # fmt: skip
_KEPT = 64  # recorders of one store by name; one used again after so many others resumes from the store
_recorders: WeakKeyDictionary[Store, OrderedDict[str, Recorder]] = WeakKeyDictionary()


def _named(store: Store, name: str = "", **settings: Any) -> Recorder:
    """The recorder that goes by a name where its store is."""
    named = _recorders.setdefault(store, OrderedDict())
    found = named.pop(name, None) or Recorder(store, **settings)
    named[name] = found
    while len(named) > _KEPT:
        named.popitem(last=False)
    return found


class Recorder:
    """Turns raw observations into events of origin `system`, and links them by how near they lie in time.

    `correlation`, `reload`: how near a deploy must be to be the suspected cause of a regression, or end of an error. `quiet`: after so much
    active browsing without it an error is taken to be resolved. `ratio` (0.5: half as much again) and `margin_ms`: how far over its baseline a
    metric has regressed. `settle`: of how many values a baseline is the median. `agent`: the author of what is written.

    A new one on the same store takes up where the last left off. Inside `store.transaction()` it writes into that block; when such a block
    fails, make a new one.
    """

    def __init__(
        self,
        store: Store,
        *,
        agent: str | None = None,
        correlation: timedelta = CORRELATION,
        reload: timedelta = RELOAD,
        quiet: timedelta = timedelta(minutes=5),
        ratio: float = 0.5,
        margin_ms: float = 200,
        settle: int = 5,
    ) -> None:
        settle = at_least_one("settle", settle)
        microseconds(correlation, "correlation"), microseconds(reload, "reload")
        self._store = store
        self._agent = None if agent is None else text_of("agent", agent)
        self._correlation, self._reload = correlation, reload
        self._quiet = microseconds(quiet, "quiet")
        self._ratio = number_of("ratio", ratio, least=0)
        self._margin = number_of("margin_ms", margin_ms, least=0)
        self._settle = settle
        self._activity = Activity()
        if isinstance(
            store, registry.Elsewhere
        ):  # what is known between two observations is known there, under a name of its own
            self._settings = {
                "name": token_hex(8), "agent": agent, "correlation": correlation, "reload": reload, "quiet": quiet, "ratio": ratio,
                "margin_ms": margin_ms, "settle": settle,
            }  # fmt: skip
            return
        self._known = self._take_up()

    # ------------------------------------------------------------------ observations

    @registry.of("events", "write", lambda store, **settings: _named(store, **settings), _SETTINGS)
    def observe_error(
        self,
        message: str,
        *,
        source: str | None = None,
        at: TimeLike | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Recorded:
        """An error was seen: a new event, or one more occurrence of the event with its fingerprint."""
        with self._observing(at) as when:
            seen = self._record("error", message, when, source=source, metadata=metadata)
            self._known.watched[seen.event.id] = None
            return seen

    @registry.of("events", "write", lambda store, **settings: _named(store, **settings), _SETTINGS)
    def observe_metric(
        self,
        name: str,
        value: float,
        *,
        at: TimeLike | None = None,
        page: str | None = None,
        baseline: float | None = None,
        unit: str | None = None,
        ratio: float | None = None,
        margin: float | None = None,
    ) -> Recorded | None:
        """A metric was measured. Gives the regression, the resolution of one, or the shift of its baseline, when there is one.

        `baseline` sets it; without it the first values teach it. `ratio` and `margin` (in the metric's own unit) for this value alone.
        """
        text_of("metric name", name)
        number_of("value", value)
        page = None if page is None else text_of("page", page)
        if baseline is not None:
            number_of("baseline", baseline)
        if unit is None:
            unit = "ms" if is_time(name, unit) else ""
        usual = self._margin if is_time(name, unit) else 0.0
        thresholds = Thresholds(
            self._ratio if ratio is None else number_of("ratio", ratio, least=0),
            usual if margin is None else number_of("margin", margin, least=0),
            self._settle,
        )
        with self._observing(at) as when:
            before = self._known.metrics.get((name, page), Metric(name, page))
            metric, findings = measure(before, value, thresholds, baseline)
            recorded = None
            for finding in findings:
                if isinstance(finding, Regressed):
                    recorded = self._regressed(metric, finding, when, unit)
                    metric = metric._replace(regression=recorded.event.id)
                elif isinstance(finding, Shifted):
                    recorded = self._shifted(metric, finding, when, unit)
                    metric = metric._replace(shift=recorded.event.id)
                elif before.regression is not None:
                    recorded = self._recovered(before.regression, metric, finding, when, unit) or recorded
            self._known.metrics[name, page] = metric
            return recorded

    @registry.of("events", "write", lambda store, **settings: _named(store, **settings), _SETTINGS)
    def observe_resources(self, urls: Iterable[str], *, at: TimeLike | None = None) -> Recorded | None:
        """A page has loaded these. Other scripts or stylesheets than the last time imply a deploy; the first list is where it starts from."""
        if isinstance(urls, str) or not isinstance(urls, Iterable):
            raise InvalidError(f"urls {urls!r} is no list. Give a list of URLs.")
        code = frozenset(url.split("#")[0] for url in urls if is_code(text_of("url", url, empty=True)))
        with self._observing(at) as when:
            before = self._known.resources
            self._known = self._known._replace(resources=code)
            if before is None or before == code:
                return None
            added, removed = sorted(code - before), sorted(before - code)
            metadata = {"implied": True, "added": added, "removed": removed, "resources": sorted(code)}
            recorded = self._record("deploy", changed_resources(added, removed), when, metadata=metadata)
            self._correlate(when)
            return self._now(recorded)

    @registry.of("events", "write", lambda store, **settings: _named(store, **settings), _SETTINGS)
    def observe_deploy(self, payload: Mapping[str, Any], *, at: TimeLike | None = None) -> Recorded:
        """A CI webhook reported a deploy. `payload` has any of sha or commit, ref or branch, environment, actor, status, id, timestamp, and more.

        It happened at `at`, else at the payload's timestamp. A payload with an id that was delivered before is the same event.
        """
        body = json_object("payload", payload)
        if at is None and body.get("timestamp") is not None:
            at = _timestamp(body["timestamp"])
        name = body.get("id")
        id = None if name is None or name == "" else f"deploy_{name}"
        with self._observing(at) as when:
            if id is not None and self._store.knows(id):
                return Recorded(event=self._event(id), is_new=False)
            recorded = self._record("deploy", deploy_description(body), when, metadata=body, id=id)
            self._correlate(when)
            return self._now(recorded)

    @registry.of("events", "write", lambda store, **settings: _named(store, **settings), _SETTINGS)
    def tick(self, now: TimeLike | None = None, active: bool = True) -> list[Recorded]:
        """Time has passed until `now`; `active`: a user was browsing meanwhile. Gives the resolutions of errors that have stopped."""
        with self._observing(now, active):
            return self._reloaded() + self._quieted()

    # ------------------------------------------------------------------ what follows from them

    def _regressed(self, metric: Metric, found: Regressed, when: Instant, unit: str) -> Recorded:
        metadata = {
            **_of(metric, unit),
            "baseline": found.baseline,
            "value": found.value,
            "limit": metric.limit,
        }
        recorded = self._record(
            "regression",
            change(metric, "regressed", found.baseline, found.value, unit),
            when,
            source=metric.name,
            metadata=metadata,
            fingerprint=f"regression of {metric.subject}",
        )
        self._correlate(when)
        return self._now(recorded)

    def _shifted(self, metric: Metric, found: Shifted, when: Instant, unit: str) -> Recorded:
        metadata = {**_of(metric, unit), "old": found.old, "new": found.new, "learned": found.learned}
        recorded = self._record(
            "baseline_shift",
            change(metric, "baseline shifted", found.old, found.new, unit),
            when,
            source=metric.name,
            metadata=metadata,
        )
        if metric.shift is not None and self._stands(metric.shift):
            self._store.supersede(metric.shift, by=recorded.event.id, reason="the baseline shifted again")
        return self._now(recorded)

    def _recovered(
        self, regression: str, metric: Metric, found: Recovered, when: Instant, unit: str
    ) -> Recorded | None:
        if not self._stands(regression):
            return None
        where = "" if metric.page is None else f" on {metric.page}"
        description = f"{label(metric.name)} is back: {shown(found.value, unit)}{where}"
        reason = f"measured {shown(found.value, unit)}, at most {shown(found.limit, unit)}"
        return self._resolve(regression, when, description, reason)

    def _resolve(self, id: str, at: Instant, description: str, reason: str) -> Recorded:
        """Record that an event is over since `at`, as far as can be seen."""
        recorded = self._record(
            "resolution", description, at, metadata={"resolves": id}, fingerprint=f"resolution of {id}"
        )
        if not self._joined(id, "resolved_by", recorded.event.id):
            self._infer(id, "resolved_by", recorded.event.id, at, reason)
        return self._now(recorded)

    def _correlate(self, when: Instant) -> None:
        """Link regressions with the deploys just before them, as far as either lies near."""
        near = microseconds(self._correlation, "correlation")
        with self._looking() as sight:
            around = self._happenings(sight, ("deploy", "regression"), when - near, when + near)
            linked = _pairs_of(sight, around)
        for proposal in correlate(around, linked=linked, correlation=self._correlation, reload=self._reload):
            if proposal.kind == "caused_by":
                self._infer(*proposal)

    def _reloaded(self) -> list[Recorded]:
        """Resolve the active errors that went with a deploy, and link them with it."""
        active = self._active_errors()
        if not active:
            return []
        away = microseconds(self._reload, "reload")
        errors = [Happening(id, "error", (last,), self._activity.since(last)) for id, last in active.items()]
        with self._looking() as sight:
            deploys = self._happenings(
                sight, ("deploy",), min(active.values()) - away, max(active.values()) + away
            )
            linked = _pairs_of(sight, errors)
        resolved: dict[str, Recorded] = {}
        for proposal in correlate(
            [*deploys, *errors], linked=linked, correlation=self._correlation, reload=self._reload
        ):
            if proposal.source not in resolved:
                description = f"Possibly resolved by a deploy: {self._name(proposal.source)}"
                resolved[proposal.source] = self._resolve(
                    proposal.source, active[proposal.source], description, proposal.reason
                )
                self._known.watched.pop(proposal.source, None)
            self._infer(*proposal)
        return list(resolved.values())

    def _quieted(self) -> list[Recorded]:
        """Resolve the active errors that have not been seen for long enough."""
        resolved = []
        for id, last in self._active_errors().items():
            if self._activity.since(last) >= self._quiet:
                reason = f"not seen for {self._quiet / 1_000_000:g} s of active browsing"
                resolved.append(self._resolve(id, last, f"Possibly resolved: {self._name(id)}", reason))
                self._known.watched.pop(id, None)
        return resolved

    # ------------------------------------------------------------------ writing

    @contextmanager
    def _observing(self, at: TimeLike | None, active: bool = True) -> Iterator[Instant]:
        """One observation: a transaction, or a part of the caller's, and the instant it is about. One that raises teaches nothing."""
        store = self._store
        inside = store._open is not None and store._owner == threading.get_ident()
        with store._writer:
            metrics, resources, watched = self._known
            kept = _Knowledge(dict(metrics), resources, dict(watched))
            try:
                with nullcontext() if inside else store.transaction(author=self._agent):
                    when = store._time(store.at.valid if at is None else at, "at")
                    self._activity.note(when, active)
                    yield when
            except BaseException:
                self._known = kept
                raise

    def _record(
        self,
        type: str,
        description: str,
        at: Instant,
        *,
        id: str | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        fingerprint: str | None = None,
    ) -> Recorded:
        return self._store.record_event(
            type,
            description,
            id=id,
            occurred_at=moment(at),
            source=source,
            origin="system",
            metadata=metadata,
            fingerprint=fingerprint,
        )

    def _infer(self, source: str, kind: str, target: str, valid_from: Instant, reason: str) -> None:
        self._store.link(
            source,
            kind,
            target,
            reason=reason,
            confidence="inferred",
            created_by="store",
            valid_from=moment(valid_from),
        )

    # ------------------------------------------------------------------ looking

    def _looking(self) -> Reading:
        """The store now; where an observation came from ahead of its clock, then."""
        return self._store.reading(ahead=self._activity.latest)

    def _happenings(
        self, sight: Sight, types: tuple[str, ...], begin: Instant, end: Instant
    ) -> list[Happening]:
        """The events of these types that happened from `begin` to `end`, both included."""
        happened, found = sight.happened, []
        for ent in sight.entities(events=True):
            if sight.kind(ent) not in types or sight.find(ent) < 0 or sight.standing(ent) != "stands":
                continue
            first, last, _ = happened.seen(ent)
            if first <= end and last >= begin:
                seen = tuple(at for at in happened.instants(ent) if begin <= at <= end)
                if seen:
                    quiet = self._activity.since(seen[-1])
                    found.append(Happening(sight.id(ent), sight.kind(ent), seen, quiet))
        return found

    def _active_errors(self) -> dict[str, Instant]:
        """The errors watched that are active, with when each was seen last. The others are watched no more."""
        active = {}
        with self._looking() as sight:
            happened = sight.happened
            for id in list(self._known.watched):
                ent = sight.entity(id)
                if ent >= 0 and sight.find(ent) >= 0 and happened.status(ent) == "active":
                    active[id] = happened.seen(ent)[1]
                else:
                    del self._known.watched[id]
        return active

    def _now(self, recorded: Recorded) -> Recorded:
        """What was recorded, with the links it has got since."""
        return Recorded(
            event=self._event(recorded.event.id), is_new=recorded.is_new, warnings=recorded.warnings
        )

    def _event(self, id: str) -> Event:
        with self._looking() as sight:
            return sight.event_and_links(sight.entity(id))

    def _name(self, id: str) -> str:
        return name_of(self._event(id).description)

    def _stands(self, id: str) -> bool:
        with self._looking() as sight:
            ent = sight.entity(id)
            return ent >= 0 and sight.find(ent) >= 0

    def _joined(self, source: str, kind: str, target: str) -> bool:
        """Whether such a link is believed, over whatever period."""
        with self._looking() as sight:
            far = sight.entity(target)
            return any(
                edge.target == far and sight.believed_link(edge.link)
                for edge in sight.edges(sight.entity(source), "out", frozenset({kind}))
            )

    # ------------------------------------------------------------------ where the last one left off

    def _take_up(self) -> _Knowledge:
        """What the store's own events say of the state another recorder was in."""
        known = _Knowledge({}, None, {})
        with self._store.reading() as sight:
            for ent in sight.entities(events=True):
                type = sight.kind(ent)
                if type not in ("error", "regression", "baseline_shift", "deploy") or sight.find(ent) < 0:
                    continue
                body = sight.body(ent, b'"origin":"system"')
                if body.get("origin") == "system":
                    active = sight.happened.status(ent) == "active"
                    known = _recalled(known, sight.id(ent), type, body.get("metadata", {}), active)
        return known


def _pairs_of(sight: Sight, happenings: Iterable[Happening]) -> set[Pair]:
    """How these are linked or once were: a link that was retracted is not inferred again."""
    return {
        (each.id, edge.kind, sight.id(edge.target))
        for each in happenings
        for edge in sight.edges(sight.entity(each.id), "out")
    }


def _recalled(known: _Knowledge, id: str, type: str, metadata: Json, active: bool) -> _Knowledge:
    """What is known after one more event, in the order of recording."""
    if type == "error":
        if active:
            known.watched[id] = None
        return known
    if type == "deploy":
        code = metadata.get("resources")
        if metadata.get("implied") is True and isinstance(code, list):
            return known._replace(resources=frozenset(filter(is_code, map(str, code))))
        return known
    name, page = metadata.get("metric"), metadata.get("page")
    level = metadata.get("baseline" if type == "regression" else "new")
    if not isinstance(name, str) or not (page is None or isinstance(page, str)) or not _is_number(level):
        return known
    metric = known.metrics.get((name, page), Metric(name, page))._replace(
        baseline=level, given=metadata.get("given")
    )
    limit: Any = metadata.get("limit")
    if type == "baseline_shift":
        metric = metric._replace(armed=True, shift=id)
    elif active and _is_number(limit):
        metric = metric._replace(armed=False, regression=id, limit=limit)
    known.metrics[name, page] = metric
    return known


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _of(metric: Metric, unit: str) -> Json:
    """What the metadata of every event of a metric says of it."""
    fields: Json = {"metric": metric.name}
    if metric.page is not None:
        fields["page"] = metric.page
    if unit:
        fields["unit"] = unit
    if metric.given is not None:
        fields["given"] = metric.given
    return fields


def is_code(url: str) -> bool:
    """Whether a URL is that of a script or a stylesheet, by its path."""
    return re.split("[?#]", url, maxsplit=1)[0].lower().endswith(CODE)


def changed_resources(added: list[str], removed: list[str]) -> str:
    """The sentence of a deploy that the resources of a page imply."""
    parts = []
    for word, urls in (("added", added), ("removed", removed)):
        if urls:
            names = [re.split("[?#]", url, maxsplit=1)[0].rsplit("/", 1)[-1] for url in urls]
            more = ", …" if len(names) > _NAMED else ""
            parts.append(f"{len(urls)} {word} ({', '.join(names[:_NAMED])}{more})")
    return f"Resources changed: {', '.join(parts)}"


def deploy_description(payload: Json) -> str:
    """The description of a deploy that a webhook reported: `Deployed 1a2b3c4 (main) to production by ana`."""
    status = _text(payload, "status")
    parts = ["Deployed" if not status or status.lower() in _WENT_WELL else f"Deploy {status}:"]
    sha, ref = (
        _text(payload, "sha") or _text(payload, "commit"),
        _text(payload, "ref") or _text(payload, "branch"),
    )
    if sha:
        parts.append(sha[:7] if re.fullmatch("[0-9a-fA-F]{8,64}", sha) else sha)
    if ref:
        parts.append(f"({ref.removeprefix('refs/heads/').removeprefix('refs/tags/')})")
    for word, name in (("to", "environment"), ("by", "actor")):
        if value := _text(payload, name):
            parts.append(f"{word} {value}")
    return " ".join(parts).removesuffix(":")


def _text(payload: Json, name: str) -> str:
    """A field in words, empty when it says nothing. What is an object is known by its own sha, name or id."""
    value = payload.get(name)
    if isinstance(value, dict):
        value = next((value[key] for key in ("sha", "name", "login", "id") if value.get(key)), None)
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _timestamp(value: Any) -> TimeLike:
    """The instant in a payload: ISO text, or seconds since 1970."""
    if _is_number(value):
        try:
            return EPOCH + timedelta(seconds=value)
        except (OverflowError, ValueError):
            raise InvalidError(
                f"timestamp {value!r} is no time. Give ISO 8601 text, or seconds since 1970."
            ) from None
    return moment(instant(value, "timestamp"))
