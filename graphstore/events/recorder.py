"""Turns observations of a browser into events: errors, measurements, lists of resources, deploys, and passing time.

The recorder never sleeps and has no clock of its own: every call has an instant, or uses the store's now. The pure functions of
`regressions` and `correlation` decide; the recorder only writes their results, each observation as one transaction.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from typing import Any, NamedTuple

from graphstore.errors import InvalidError, NotFoundError
from graphstore.events.correlation import (
    CORRELATION,
    RELOAD,
    Activity,
    Happening,
    Pair,
    Proposal,
    correlate,
    microseconds,
)
from graphstore.events.deploys import (
    Bundles,
    Delivery,
    Versions,
    bundles,
    changed_resources,
    compare_bundles,
    delivery,
    deploy_description,
    is_code,
    put_back,
    route,
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
from graphstore.values.findings import Recorded
from graphstore.values.inputs import at_least_one, json_object, text_of
from graphstore.values.models import Event, Json
from graphstore.values.period import BEGINNING, Instant, TimeLike, moment
from graphstore.view.sight import Sight
from graphstore.write.recording import occur

SETTING = "recorder"
"""The prefix of the settings in which a store keeps the state of its recorders."""
_CLOCK, _WATCHED, _CREDITS, _VERSIONS, _DEPLOYS, _SEEN, _BACK = (
    f"{SETTING} {what}"
    for what in ("clock", "errors", "credits", "bundles", "deploys", "deployed", "way back")
)


NO_WAY_BACK = "the build after it is seen again: it was an old tab"


class _Deploy(NamedTuple):
    """A recent deploy. Further signs of the same deploy are merged with it."""

    id: str
    at: Instant
    is_told: bool
    """A service reported it."""
    pages: list[str | None]
    """The pages whose bundles changed."""
    environment: str = ""


_SETTINGS = {
    "agent": "str | None", "correlation": "timedelta", "reload": "timedelta", "quiet": "timedelta", "ratio": "float", "margin_ms": "float",
    "settle": "int", "idle": "timedelta", "rollout": "timedelta",
}  # fmt: skip
_observation = registry.method(
    "events", "write", lambda store, **settings: Recorder(store, **settings), _SETTINGS
)


class Recorder:
    """Turns raw observations into events of origin `system`, and links events that are close in time.

    `correlation`, `reload`: how close a deploy must be to be the suspected cause of a regression, or end of an error. `quiet`: active browsing time
    without an error after which it counts as resolved. `ratio` (0.5: half as much again) and `margin_ms`: how far over its baseline a metric has
    regressed. `settle`: the number of values whose median is a baseline. `idle`: a longer gap between two observations is not browsing. `rollout`:
    signs of one build within this time are one deploy. `agent`: the author of what is written. All recorders of a store share their state, which is in
    the store's settings, even after a restart. Inside `store.transaction()` they write into that block.
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
        idle: timedelta = timedelta(seconds=60),
        rollout: timedelta = timedelta(minutes=10),
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
        self._idle, self._rollout = microseconds(idle, "idle"), microseconds(rollout, "rollout")
        self._activity = Activity()
        self._found: dict[str, Any] = {}  # changes of settings by this observation
        self._settings = {
            "agent": agent, "correlation": correlation, "reload": reload, "quiet": quiet, "ratio": ratio, "margin_ms": margin_ms, "settle": settle,
            "idle": idle, "rollout": rollout,
        }  # fmt: skip

    # ------------------------------------------------------------------ observations

    @_observation
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
            self._watch([*(id for id in self._watched() if id != seen.event.id), seen.event.id])
            return self._now(seen) if self._take_back(seen.event.id, when) else seen

    @_observation
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
            before = self._metric(name, page)
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
            self._keep(_of_metric(name, page), _plain(metric))
            return recorded

    @_observation
    def observe_resources(
        self,
        urls: Iterable[str],
        *,
        at: TimeLike | None = None,
        page: str | None = None,
        entries: bool = True,
        share: float = 0.0,
    ) -> Recorded | None:
        """A page has loaded these. Another version of a bundle it had before implies a deploy; the first list is where it starts from.

        Names are compared without the hash or number of a build, of the page's own hosts alone; with `entries` without what is loaded lazily, by
        its name. `share`: how many of the bundles must be other, from 0 (one) to 1. Versions that another page had before are no further deploy.
        Within `rollout` of a deploy that was reported, or seen on another page, it is that one.
        """
        if isinstance(urls, str) or not isinstance(urls, Iterable):
            raise InvalidError(f"urls {urls!r} is no list. Give a list of URLs.")
        code = sorted({url.split("#")[0] for url in urls if is_code(text_of("url", url, empty=True))})
        page = None if page is None else text_of("page", page)
        share = number_of("share", share, least=0, most=1)
        with self._observing(at) as when:
            before, known = self._page(page), self._setting(_VERSIONS) or {}
            now = bundles(code, page, entries, known)
            known = self._no_way_back(now, known, when)
            seen = compare_bundles(
                before[0] if before else None,
                now,
                known,
                when,
                same=page is not None,
                share=share,
                settled=self._rollout,
                deployed=self._setting(_SEEN) or BEGINNING,
            )
            had = before[1] if before else []
            if code and (code != had or before is None):
                self._keep(_of_page(page), [seen.page, code])
            self._keep(_VERSIONS, seen.versions)
            if not seen.is_deploy:
                return None
            self._keep(_SEEN, max(when, self._setting(_SEEN) or BEGINNING))
            added, removed = sorted({*code} - {*had}), sorted({*had} - {*code})
            metadata = {"implied": True, "added": added, "removed": removed, "resources": code}
            if page is not None:
                metadata["page"] = page
            description = changed_resources(added, removed)
            part_of = next((each for each in self._recent(when) if page not in each.pages), None)
            if part_of is not None:
                recorded = self._once_more(part_of.id, description, metadata, when)
                self._note(part_of._replace(pages=[*part_of.pages, page]), when)
            else:
                recorded = self._record("deploy", description, when, metadata=metadata)
                self._note(_Deploy(recorded.event.id, when, False, [page]), when)
                if seen.replaced:
                    self._keep(_BACK, [recorded.event.id, seen.replaced, known])
            self._correlate(when)
            return self._now(recorded)

    @_observation
    def observe_deploy(self, payload: Mapping[str, Any], *, at: TimeLike | None = None) -> Recorded | None:
        """A service reported a deploy: as GitHub (`deployment`, `deployment_status`) or GitLab (`deployment`) sends it, or in a plain form with any of
        sha or commit, ref or branch, environment, actor, status, id, timestamp, and more.

        It happened at `at`, else at the payload's instant. A deploy with an id that was reported before is the same event. One that failed is none,
        and one that was announced is taken back when it fails; None for these, for one under way and for another kind of payload. Within
        `rollout` of a deploy that the bundles of a page implied, it is that one.
        """
        told = delivery(json_object("payload", payload))
        at = told.at if at is None else at
        id = None if told.id is None else f"deploy_{told.id}"
        with self._observing(at) as when:
            if id is not None and (known := self._reported(id)) is not None:
                return self._told_again(known, told, when)
            if told.state in ("failed", "none"):
                return None
            description = deploy_description(told.fields)
            part_of = next((each for each in self._recent(when) if not each.is_told), None)
            environment = str(told.fields.get("environment") or "")
            if part_of is not None:
                metadata = {**self._event(part_of.id).metadata, **told.fields}
                recorded = self._once_more(part_of.id, description, metadata, when)
                self._note(part_of._replace(is_told=True, environment=environment), when, told.id)
            else:
                new = id if id is not None and not self._store.knows(id) else None
                recorded = self._record("deploy", description, when, metadata=told.fields, id=new)
                self._note(_Deploy(recorded.event.id, when, True, [], environment), when, told.id)
            self._correlate(when)
            return self._now(recorded)

    @_observation
    def tick(self, now: TimeLike | None = None, active: bool | None = True) -> list[Recorded]:
        """Time has passed until `now`; `active`: a user was browsing all the while; None: nobody knows. Gives the resolutions of errors that have stopped."""
        with self._observing(now, active, None):
            return self._reloaded() + self._quieted()

    # ------------------------------------------------------------------ consequences

    def _regressed(self, metric: Metric, found: Regressed, when: Instant, unit: str) -> Recorded:
        values = {"baseline": found.baseline, "value": found.value, "limit": metric.limit}
        recorded = self._record(
            "regression",
            change(metric, "regressed", found.baseline, found.value, unit),
            when,
            source=metric.name,
            metadata={**_of(metric, unit), **values},
            fingerprint=f"regression of {metric.subject}",
        )
        self._correlate(when)
        return self._now(recorded)

    def _shifted(self, metric: Metric, found: Shifted, when: Instant, unit: str) -> Recorded:
        metadata = {**_of(metric, unit), "old": found.old, "new": found.new, "learned": found.learned}
        description = change(metric, "baseline shifted", found.old, found.new, unit)
        recorded = self._record("baseline_shift", description, when, source=metric.name, metadata=metadata)
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
        """Record that an event has been over since `at`, as far as can be seen."""
        recorded = self._record(
            "resolution", description, at, metadata={"resolves": id}, fingerprint=f"resolution of {id}"
        )
        if not self._joined(id, "resolved_by", recorded.event.id):
            self._infer(id, "resolved_by", recorded.event.id, at, reason)
        return self._now(recorded)

    def _correlate(self, when: Instant) -> None:
        """Link regressions near `when` with the deploys just before them."""
        near = microseconds(self._correlation, "correlation")
        with self._looking() as sight:
            around = self._happenings(sight, ("deploy", "regression"), when - near, when + near)
            linked = _pairs_of(sight, around)
        for proposal in self._proposals(around, linked):
            if proposal.kind == "caused_by":
                self._infer(*proposal)

    def _reloaded(self) -> list[Recorded]:
        """Resolve the active errors that ended with a deploy, and link them with it."""
        active = self._active_errors()
        if not active:
            return []
        away = microseconds(self._reload, "reload")
        errors = [
            Happening(id, "error", (began, last), self._activity.since(last))
            for id, (began, last) in active.items()
        ]
        seen = {id: last for id, (_, last) in active.items()}
        with self._looking() as sight:
            begin, end = min(seen.values()) - away, max(seen.values()) + away
            deploys = self._happenings(sight, ("deploy",), begin, end)
            linked = _pairs_of(sight, errors)
        proposals = self._proposals([*deploys, *errors], linked)
        resolved = []
        for proposal in _likeliest(proposals, {each.id: each.seen[-1] for each in deploys}, seen):
            error = proposal.source
            description = f"Possibly resolved by a deploy: {self._name(error)}"
            resolution = self._resolve(error, seen[error], description, proposal.reason)
            self._watch(id for id in self._watched() if id != error)
            self._credit(error, seen[error], self._infer(*proposal), resolution)
            resolved.append(resolution)
        return resolved

    def _proposals(self, happenings: list[Happening], linked: set[Pair]) -> list[Proposal]:
        return correlate(happenings, linked=linked, correlation=self._correlation, reload=self._reload)

    def _credit(self, error: str, last: Instant, link: str, resolution: Recorded) -> None:
        """Remember that an error ended with a deploy, until it has been gone for long enough."""
        young = {
            id: each for id, each in self._credits().items() if self._activity.since(each[0]) < self._quiet
        }
        young[error] = [last, link, resolution.event.id if resolution.is_new else None]
        self._keep(_CREDITS, young)

    def _credits(self) -> dict[str, list[Any]]:
        return dict(self._setting(_CREDITS) or {})

    def _take_back(self, error: str, when: Instant) -> bool:
        """Retract the link to a deploy and the resolution if the error is seen again within the quiet time. Return True if this was done."""
        credits = self._credits()
        if error not in credits or when <= credits[error][0]:
            return False
        last, link, resolution = credits.pop(error)
        self._keep(_CREDITS, credits)
        if self._activity.since(last) >= self._quiet:
            return False
        reason = "it was seen again soon after"
        with suppress(NotFoundError):
            self._store.unlink(link, reason=reason)
        if resolution is not None and self._stands(resolution):
            self._store.retract(resolution, reason=reason)
        return True

    def _quieted(self) -> list[Recorded]:
        """Resolve the active errors that have not been seen for long enough."""
        resolved = []
        for id, (_, last) in self._active_errors().items():
            if self._activity.since(last) >= self._quiet:
                reason = f"not seen for {self._quiet / 1_000_000:g} s of active browsing"
                resolved.append(self._resolve(id, last, f"Possibly resolved: {self._name(id)}", reason))
                self._watch(other for other in self._watched() if other != id)
        return resolved

    # ------------------------------------------------------------------ writing

    @contextmanager
    def _observing(
        self, at: TimeLike | None, active: bool | None = True, gap: int | None = -1
    ) -> Iterator[Instant]:
        """Open a transaction, or join the caller's, and yield the instant of the observation. If it raises, nothing is recorded.
        `gap`: the longest time since the last observation that counts as browsing; -1 for `idle`, None for any."""
        store = self._store
        inside = store._open is not None and store._owner == threading.get_ident()
        with store._writer, nullcontext() if inside else store.transaction(author=self._agent):
            when = store.instant_of(store.at.valid if at is None else at, "at")
            clock = self._setting(_CLOCK)
            self._activity, self._found = Activity(*clock or ()), {}
            if active is not None:
                self._activity.note(when, active, self._idle if gap == -1 else gap)
            elif when > self._activity.latest:
                self._activity.seen = when
            yield when
            kept = self._activity.kept(max(self._quiet, microseconds(self._reload, "reload")))
            written = store._holds_more() if not inside else True
            if self._found or written or self._watched():
                if kept != clock:
                    self._found[_CLOCK] = kept
                if self._found:
                    store.keep_settings("observe", self._found)

    # ------------------------------------------------------------------ state between two observations

    def _setting(self, name: str) -> Any:
        return self._found[name] if name in self._found else self._store.setting(name)

    def _keep(self, name: str, value: Any) -> None:
        if self._setting(name) != value:
            self._found[name] = value

    def _watched(self) -> list[str]:
        """Return the errors that may be active, by when they were last seen."""
        known: list[str] | None = self._setting(_WATCHED)
        return self._taken_up(_WATCHED, []) if known is None else known

    def _watch(self, ids: Iterable[str]) -> None:
        self._keep(_WATCHED, list(ids))

    def _metric(self, name: str, page: str | None) -> Metric:
        known = self._setting(_of_metric(name, page))
        if known is None:
            known = self._taken_up(_of_metric(name, page), None)
        if known is None:
            return Metric(name, page)
        values, limit = tuple(known.get("values", ())), known.get("limit")
        return Metric(
            name, page, **{**known, "values": values, "limit": math.inf if limit is None else limit}
        )

    def _page(self, page: str | None) -> tuple[dict[str, str], list[str]] | None:
        """Return the bundles and code files that a page had last; None if unknown."""
        known: tuple[dict[str, str], list[str]] | None = self._setting(_of_page(page))
        return known if known is not None or page is not None else self._taken_up(_of_page(None), None)

    def _taken_up(self, name: str, absent: Any) -> Any:
        """Return a setting derived from the events of a store that is older than these settings. The events are read once."""
        if self._store.setting(_CLOCK) is not None:
            return absent
        known = self._take_up()
        self._found = {**known, **self._found}
        return known.get(name, absent)

    # ------------------------------------------------------------------ one deploy and its signs

    def _no_way_back(self, now: Bundles, known: Versions, at: Instant) -> Versions:
        """Retract a rollback if a list shows again what it replaced: it was an old tab, unless a service reported it. Return the corrected versions."""
        id, replaced, before = self._setting(_BACK) or ("", {}, {})
        if not any(now.get(name) == version for name, version in replaced.items()):
            return known
        self._keep(_BACK, None)
        if any(each[0] == id and each[2] for each in self._setting(_DEPLOYS) or ()) or not self._stands(id):
            return known
        for link in self._event(id).links or ():
            if link.confidence == "inferred" and link.created_by == "store":
                self._store.unlink(link.id, reason=NO_WAY_BACK)
        self._store.retract(id, reason=NO_WAY_BACK)
        self._keep(_SEEN, at)  # what the old tab showed meanwhile identifies no build
        return put_back(before, replaced)

    def _recent(self, at: Instant) -> list[_Deploy]:
        """Return the recent deploys: production first, then the nearest."""
        known = [_Deploy(*each) for each in self._setting(_DEPLOYS) or ()]
        near = [each for each in known if abs(each.at - at) <= self._rollout and self._stands(each.id)]
        return sorted(near, key=lambda each: (not each.environment.startswith("prod"), abs(each.at - at)))

    def _note(self, deploy: _Deploy, at: Instant, id: str | None = None) -> None:
        known = [_Deploy(*each) for each in self._setting(_DEPLOYS) or ()]
        others = [each for each in known if each.id != deploy.id and each.at >= at - 2 * self._rollout]
        self._keep(_DEPLOYS, [list(each) for each in (*others, deploy)])
        if id is not None and deploy.id != f"deploy_{id}":
            self._keep(f"{SETTING} deploy {id}", deploy.id)

    def _reported(self, id: str) -> Event | None:
        """Return the standing event of a deploy that was reported under this id."""
        known = self._setting(f"{SETTING} deploy {id.removeprefix('deploy_')}") or id
        return self._event(known) if self._store.knows(known) and self._stands(known) else None

    def _told_again(self, known: Event, told: Delivery, when: Instant) -> Recorded | None:
        """Handle a further report of a known deploy: an announced one was completed, or failed."""
        if known.metadata.get("state") == "created":
            if told.state == "failed":
                self._store.retract(known.id, reason=f"the deployment ended with {told.fields.get('state')}")
                return None
            if told.state == "done":
                metadata = {**known.metadata, **told.fields}
                recorded = self._once_more(known.id, deploy_description(told.fields), metadata, when)
                self._correlate(when)
                return self._now(recorded)
        return Recorded(event=known, is_new=False)

    def _once_more(self, id: str, description: str, metadata: Json, at: Instant) -> Recorded:
        """Add an occurrence to the event of a deploy for a further sign of it."""
        metadata = {**self._event(id).metadata, **metadata}
        with self._store.verb(is_narrow=True) as work:
            occur(work, id, at, {"description": description, "metadata": metadata})
        return Recorded(event=self._event(id), is_new=False)

    def _record(self, type: str, description: str, at: Instant, **fields: Any) -> Recorded:
        return self._store.record_event(type, description, occurred_at=moment(at), origin="system", **fields)

    def _infer(self, source: str, kind: str, target: str, valid_from: Instant, reason: str) -> str:
        return self._store.link(
            source, kind, target, valid_from=moment(valid_from), reason=reason, confidence="inferred", created_by="store"
        ).id  # fmt: skip

    # ------------------------------------------------------------------ looking

    def _looking(self) -> AbstractContextManager[Sight]:
        """Open the store at its now, or later if an observation was ahead of its clock."""
        return self._store.reading(ahead=self._activity.latest)

    def _happenings(
        self, sight: Sight, types: tuple[str, ...], begin: Instant, end: Instant
    ) -> list[Happening]:
        """Return the events of these types that occurred from `begin` to `end`, both included."""
        happened, found = sight.happened, []
        ents = sight.happening(begin, end + 1, types)
        sight.read_weighed(ents)
        for ent in ents:
            if sight.find(ent) < 0 or sight.standing(ent) != "stands":
                continue
            first, last, _ = happened.seen(ent)
            if first <= end and last >= begin:
                seen = tuple(at for at in happened.instants(ent) if begin <= at <= end)
                if seen:
                    quiet = self._activity.since(seen[-1])
                    found.append(Happening(sight.id(ent), sight.kind(ent), seen, quiet))
        return found

    def _active_errors(self) -> dict[str, tuple[Instant, Instant]]:
        """Return the watched errors that are active, each with its start and the instant it was last seen. Stop watching the others."""
        active = {}
        watched = self._watched()
        if not watched:
            return {}
        with self._looking() as sight:
            happened = sight.happened
            ents = {id: sight.entity(id) for id in watched}
            known = [ent for ent in ents.values() if ent >= 0]
            sight.read_things(known)
            sight.read_events(known)
            for id, ent in ents.items():
                if ent >= 0 and sight.find(ent) >= 0 and happened.status(ent) == "active":
                    active[id] = (happened.episodes(ent)[-1][0], happened.seen(ent)[1])
        self._watch(active)
        return active

    def _now(self, recorded: Recorded) -> Recorded:
        """Return the record with the links that the event has received since."""
        return recorded.model_copy(update={"event": self._event(recorded.event.id)})

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
        """Return True if such a link is believed, over any period."""
        with self._looking() as sight:
            far = sight.entity(target)
            return any(
                edge.target == far and sight.believed_link(edge.link)
                for edge in sight.edges(sight.entity(source), "out", frozenset({kind}))
            )

    # ------------------------------------------------------------------ state of an older store

    def _take_up(self) -> dict[str, Any]:
        """Return the settings that follow from the store's own events."""
        known: dict[str, Any] = {_WATCHED: []}
        with self._store.reading() as sight:
            for ent in sight.of_kinds(("error", "regression", "baseline_shift", "deploy"), events=True):
                if sight.find(ent) < 0:
                    continue
                type = sight.kind(ent)
                body = sight.body(ent, b'"origin":"system"')
                if body.get("origin") == "system":
                    active = sight.happened.status(ent) == "active"
                    metadata = sight.happened.latest(ent, body).get("metadata", {})
                    _recall(known, sight.id(ent), type, metadata, active)
        return known


def look_again(store: Store) -> list[Recorded]:
    """Resolve errors that have stopped by the store's now, if a recorder has worked there. A server calls this periodically."""
    return Recorder(store).tick(active=None) if store.setting(_WATCHED) else []


def _pairs_of(sight: Sight, happenings: Iterable[Happening]) -> set[Pair]:
    """Return the present and former links of these events. A retracted link is not inferred again."""
    return {
        (each.id, edge.kind, sight.id(edge.target))
        for each in happenings
        for edge in sight.edges(sight.entity(each.id), "out")
    }


def _likeliest(
    proposals: Iterable[Proposal], deployed: Mapping[str, Instant], last: Mapping[str, Instant]
) -> list[Proposal]:
    """Return the likeliest deploy for each error: the first after its last occurrence, else the last before."""
    best: dict[str, tuple[tuple[bool, int], Proposal]] = {}
    for each in proposals:
        apart = deployed[each.target] - last[each.source]
        rank = (apart < 0, abs(apart))
        if each.source not in best or rank < best[each.source][0]:
            best[each.source] = (rank, each)
    return [each for _, each in best.values()]


def _recall(known: dict[str, Any], id: str, type: str, metadata: Json, active: bool) -> None:
    """Add the state that one more event implies, in the order of recording."""
    if type == "error":
        known[_WATCHED] += [id] * active
        return
    if type == "deploy":
        code = metadata.get("resources")
        if metadata.get("implied") is True and isinstance(code, list):
            urls = sorted(filter(is_code, map(str, code)))
            known[_of_page(None)] = [bundles(urls), urls]
        return
    name, page = metadata.get("metric"), metadata.get("page")
    level = metadata.get("baseline" if type == "regression" else "new")
    if not isinstance(name, str) or not (page is None or isinstance(page, str)) or not _is_number(level):
        return
    before = known.get(_of_metric(name, page), {})
    metric = {**before, "baseline": level, "given": metadata.get("given")}
    if type == "baseline_shift":
        metric |= {"armed": True, "shift": id}
    elif active and _is_number(metadata.get("limit")):
        metric |= {"armed": False, "regression": id, "limit": metadata["limit"]}
    known[_of_metric(name, page)] = metric


def _of_metric(name: str, page: str | None) -> str:
    return f"{SETTING} metric {name}" if page is None else f"{SETTING} metric {name} on {page}"


def _of_page(page: str | None) -> str:
    return f"{SETTING} resources" if page is None else f"{SETTING} resources of {route(page)}"


def _plain(metric: Metric) -> Json:
    """Return the fields of a metric that differ from the defaults, for a setting."""
    fields = {name: value for name, value in metric._asdict().items() if name not in ("name", "page")}
    fields["values"] = list(metric.values)
    usual = Metric("")._asdict()
    return {
        name: value
        for name, value in fields.items()
        if value != usual[name] and not (name == "limit" and not math.isfinite(value))
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _of(metric: Metric, unit: str) -> Json:
    """Return the metadata that every event of a metric has."""
    fields: Json = {"metric": metric.name}
    if metric.page is not None:
        fields["page"] = metric.page
    if unit:
        fields["unit"] = unit
    if metric.given is not None:
        fields["given"] = metric.given
    return fields
