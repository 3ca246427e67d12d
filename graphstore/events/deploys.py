"""Detects deploys from the bundles that a page loads, and from the payloads of CI services. It is pure: no store and no clock."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from graphstore.errors import InvalidError
from graphstore.values.fingerprints import HASH
from graphstore.values.models import Json
from graphstore.values.period import BEGINNING, EPOCH, Instant, TimeLike, instant, moment

CODE = (".js", ".mjs", ".css")
_NAMED = 3
_WENT_WELL = ("success", "succeeded", "ok", "deployed", "active", "finished", "complete", "completed")
_FAILED = ("failure", "failed", "error", "canceled", "cancelled", "rejected", "timed_out", "skipped")
_UNDER_WAY = ("created", "pending", "queued", "waiting", "in_progress", "running", "requested", "started", "blocked", "inactive")  # fmt: skip
_ENTRIES = frozenset(
    "main app index runtime vendor vendors bundle framework polyfill polyfills client entry style styles site webpack common commons".split()
)
_LAZY = frozenset({"chunk", "chunks", "lazy", "async", "prefetch"})
_BUILDS = frozenset({"v", "ver", "version", "h", "hash", "rev", "build"})  # names of query parameters
_NUMBER = re.compile(r"(?<=[.\-_])\d+(?=\.\w)")
_FOLDER = re.compile(
    r"(?<=/)(?:v?\d+(?:\.\d+)*|(?=[a-f]{0,40}\d)[0-9a-f]{7,64}|(?=[\w-]{0,20}\d)[\w-]{20,22})(?=/)"
)
_KEPT = 16  # versions kept of a bundle
_AWAY = 3_600_000_000
"""Microseconds. An older version is a rollback if the newer one was not seen for this long."""
_ELSEWHERE = ("zen", "workflow_run", "workflow_job", "check_run", "check_suite", "pull_request", "issue", "commits")  # fmt: skip

_SEGMENT = re.compile(
    r"(?<=/)(?:\d+|[0-9a-f]{8}-[0-9a-f-]{27}|(?=[a-f]{0,40}\d)[0-9a-f]{8,64})(?=/|\Z)", re.IGNORECASE
)
_TAIL = re.compile(r"(?<=[.\-_])(?=[\w-]*[A-Z\d])[\w-]{8,12}(?=\.\w+\Z)")

Bundles = dict[str, str]  # name without its version -> version
Versions = dict[str, list[list[Any]]]
"""Maps a name to versions, newest last. Each has the instants when it was first and last seen, and True if it was wrongly taken for a rollback."""


def is_code(url: str) -> bool:
    """Return True if the path of a URL is that of a script or stylesheet."""
    return re.split("[?#]", url, maxsplit=1)[0].lower().endswith(CODE)


def route(page: str) -> str:
    """Return a page without query, fragment and ids in its path. Pages with one route load the same bundles."""
    return _SEGMENT.sub("*", re.split("[?#]", page, maxsplit=1)[0]) or page


def bundles(
    urls: Iterable[str], page: str | None = None, entries: bool = True, known: Container[str] = ()
) -> Bundles:
    """Return the bundles of the page's own hosts, by names without hashes. A bundle with several versions in the list is left out; with `entries`
    also one with a name of a lazily loaded file. `known`: names seen before; a word-like ending of such a name counts as a hash."""
    found: dict[str, set[str]] = {}
    for host, name, version in _own(map(_parts, filter(is_code, urls)), page):
        if not version and (tail := _TAIL.search(name)) and host + _TAIL.sub("*", name) in known:
            name, version = _TAIL.sub("*", name), tail[0]
        if not entries or _is_entry(name):
            found.setdefault(host + name, set()).add(version)
    return {name: versions.pop() for name, versions in sorted(found.items()) if len(versions) == 1}


def _parts(url: str) -> tuple[str, str, str]:
    """Return the host, the name without hashes and build numbers, and these."""
    try:
        split = urlsplit(url)
    except ValueError:
        return "", url, ""
    version: list[str] = []

    def keep(found: re.Match[str]) -> str:
        version.append(found[0])
        return "*"

    name = split.path
    for pattern in (HASH, _NUMBER, _FOLDER):
        name = pattern.sub(keep, name)
    version += [value for key, value in parse_qsl(split.query) if key.lower() in _BUILDS]
    if split.query and "=" not in split.query:
        version.append(split.query)
    return split.netloc.lower(), name, " ".join(version)


def _own(parts: Iterable[tuple[str, str, str]], page: str | None) -> list[tuple[str, str, str]]:
    """Return the parts of the page's own domain; if the page names none, or none belongs to it, those of the most frequent hosts."""
    known = list(parts)
    domain = ".".join(_parts(page)[0].split(":")[0].split(".")[-2:]) if page else ""
    own = [each for each in known if not each[0] or each[0].split(":")[0].endswith(domain)] if domain else []
    if own:
        return own
    counts = Counter(host for host, _, _ in known)
    most = max(counts.values(), default=0)
    return [each for each in known if counts[each[0]] == most]


def _is_entry(name: str) -> bool:
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    words = set(re.split(r"[.\-_~*]+", stem.lower())) - {""}
    if words & _ENTRIES:
        return True
    return bool(words) and not words & _LAZY and not all(word.isdigit() for word in words)


class BundlesSeen(NamedTuple):
    """Holds the result of a list of resources: whether it is a new build, and the known bundles of the page and versions of all bundles."""

    is_deploy: bool
    page: Bundles
    versions: Versions
    replaced: Bundles = {}
    """On a rollback: the newer versions that it replaced."""


def compare_bundles(
    before: Bundles | None,
    now: Bundles,
    known: Versions,
    at: Instant,
    *,
    same: bool,
    share: float,
    settled: int,
    deployed: Instant = BEGINNING,
) -> BundlesSeen:
    """Compare the bundles of a page with those it had before. `same`: it is certainly the same page; `deployed`: when bundles last showed a deploy.

    It is a deploy if at least `share` of its bundles have another version, and one of these is new on all pages while its previous version was seen
    since the last deploy. A bundle last seen before that only catches up, like one of a route without visitors. A list with an older version comes
    from an old tab and is ignored; it is a rollback if the newer version was not seen for an hour.
    """
    versions = {name: [list(each) for each in kept] for name, kept in known.items()}
    older = _older(now, versions)
    if before is None or not now:
        if not older:
            teach(versions, now, at, deployed, settled)
        return BundlesSeen(False, before or now, versions)
    shared = before.keys() & now.keys()
    other = sorted(name for name in shared if now[name] != before[name])
    enough = bool(other) and len(other) >= share * len(shared)
    if older:
        left = all(name in older and _is_left(versions[name], now[name], at, deployed) for name in other)
        if not (enough and left):
            return BundlesSeen(False, before, versions)
    fresh = (name for name in other if all(now[name] != each[0] for each in versions[name]))
    is_new = enough and any(_seen(versions[name][-1]) >= deployed for name in fresh)
    is_another = same and bool(before) and not shared and not now.keys() <= known.keys()
    replaced = {name: versions[name][-1][0] for name in sorted(older)}
    is_deploy = bool(older) or is_new or is_another
    teach(versions, now, at, at if is_deploy else deployed, settled)
    return BundlesSeen(is_deploy, now if is_another else {**before, **now}, versions, replaced)


def teach(versions: Versions, now: Bundles, at: Instant, deployed: Instant, settled: int) -> None:
    """Record the versions of a list as the newest. A time is updated only after a deploy or half of `settled`, so that not every list is a change."""
    for name, version in now.items():
        kept = versions.setdefault(name, [])
        entry = next((each for each in kept if each[0] == version), None)
        if entry is None:
            entry = [version, at, at]
        elif _seen(entry) < deployed or at - _seen(entry) >= settled // 2:
            entry = [entry[0], entry[1], at, *entry[3:]]
        versions[name] = [*(each for each in kept if each[0] != version), entry][-_KEPT:]


def put_back(before: Versions, replaced: Bundles) -> Versions:
    """Return the versions from before a false rollback. From now on, all but what it replaced count as old tabs and never as a rollback."""
    return {
        name: [[*each[:3], True] for each in kept[:-1]] + kept[-1:] if name in replaced else kept
        for name, kept in before.items()
    }


def _older(now: Bundles, versions: Versions) -> set[str]:
    """Return the bundles for which a newer version is known."""
    earlier = {name: [each[0] for each in versions.get(name, ())[:-1]] for name in now}
    return {name for name, version in now.items() if version in earlier[name]}


def _is_left(kept: list[list[Any]], version: str, at: Instant, deployed: Instant) -> bool:
    """Return True if this older version is a rollback: the newest one was seen since the last deploy, but not recently."""
    tab = any(each[0] == version and True in each[3:] for each in kept)
    return not tab and deployed <= _seen(kept[-1]) <= at - _AWAY


def _seen(entry: list[Any]) -> Instant:
    """Return when a version was last seen."""
    last: Instant = entry[2] if len(entry) > 2 else entry[1]
    return last


def changed_resources(added: list[str], removed: list[str]) -> str:
    """Return the description of a deploy that changed resources of a page imply."""
    parts = []
    for word, urls in (("added", added), ("removed", removed)):
        if urls:
            names = [re.split("[?#]", url, maxsplit=1)[0].rsplit("/", 1)[-1] for url in urls]
            more = ", …" if len(names) > _NAMED else ""
            parts.append(f"{len(urls)} {word} ({', '.join(names[:_NAMED])}{more})")
    return f"Resources changed: {', '.join(parts)}"


# ---------------------------------------------------------------- payloads of CI services


class Delivery(NamedTuple):
    """Holds what a payload states of a deploy: its id and instant, if any, and its state: `done`, `announced`, `failed`, or `none` of these."""

    id: str | None
    at: TimeLike | None
    state: str
    fields: Json


def delivery(payload: Json) -> Delivery:
    """Read a payload of GitHub (`deployment`, `deployment_status`) or GitLab (`deployment`), or a plain one."""
    deployment, status = payload.get("deployment"), payload.get("deployment_status")
    if isinstance(deployment, dict):
        return _github(payload, deployment, status if isinstance(status, dict) else None)
    if payload.get("object_kind") == "deployment":
        return _gitlab(payload)
    if "object_kind" in payload or any(isinstance(payload.get(name), dict | list) for name in _ELSEWHERE):
        return Delivery(None, None, "none", payload)
    if "zen" in payload and "hook_id" in payload:
        return Delivery(None, None, "none", payload)
    name = None if payload.get("id") == "" else payload.get("id")
    return _delivery(name, payload.get("timestamp"), _how(_text(payload, "status").lower()), payload)


def _delivery(id: Any, at: Any, how: str, fields: Json) -> Delivery:
    return Delivery(None if id is None else str(id), None if at is None else _timestamp(at), how, fields)


def _how(state: str) -> str:
    if state in _FAILED:
        return "failed"
    return "none" if state in _UNDER_WAY else "done"


def _github(payload: Json, deployment: Json, status: Json | None) -> Delivery:
    said = status or deployment
    state = _text(status, "state").lower() if status is not None else "created"
    at = said.get("created_at") or said.get("updated_at")
    fields = {
        "provider": "github",
        "id": deployment.get("id"),
        "state": state,
        "sha": deployment.get("sha"),
        "ref": deployment.get("ref"),
        "environment": said.get("environment") or deployment.get("environment"),
        "actor": _text(deployment, "creator") or _text(payload, "sender"),
        "repository": (payload.get("repository") or {}).get("full_name"),
        "url": said.get("log_url") or said.get("target_url") or deployment.get("url"),
        "description": said.get("description"),
    }
    how = "announced" if status is None else _how(state)
    return _delivery(deployment.get("id"), at, how, _said(fields))


def _gitlab(payload: Json) -> Delivery:
    at, name = payload.get("status_changed_at"), payload.get("deployment_id")
    state = _text(payload, "status").lower()
    user, project = payload.get("user") or {}, payload.get("project") or {}
    fields = {
        "provider": "gitlab",
        "id": name,
        "state": state,
        "sha": payload.get("sha") or payload.get("short_sha"),
        "ref": payload.get("ref"),
        "environment": payload.get("environment"),
        "actor": user.get("username") or user.get("name"),
        "repository": project.get("path_with_namespace"),
        "url": payload.get("deployable_url") or payload.get("commit_url"),
        "description": payload.get("commit_title"),
    }
    if isinstance(at, str):
        at = re.sub(r"^(\S+) (\S+) ?([+-]\d\d):?(\d\d)$", r"\1T\2\3:\4", at).replace(" UTC", "Z")
    return _delivery(name, at, _how(state), _said(fields))


def _said(fields: Mapping[str, Any]) -> Json:
    return {name: value for name, value in fields.items() if value not in (None, "")}


def deploy_description(payload: Json) -> str:
    """Return the description of a deploy that a webhook reported: `Deployed 1a2b3c4 (main) to production by ana`."""
    status = _text(payload, "status")
    parts = ["Deployed" if not status or status.lower() in _WENT_WELL else f"Deploy {status}:"]
    sha = _text(payload, "sha") or _text(payload, "commit")
    ref = _text(payload, "ref") or _text(payload, "branch")
    if sha:
        parts.append(sha[:7] if re.fullmatch("[0-9a-fA-F]{8,64}", sha) else sha)
    if ref:
        parts.append(f"({ref.removeprefix('refs/heads/').removeprefix('refs/tags/')})")
    for word, name in (("to", "environment"), ("by", "actor")):
        if value := _text(payload, name):
            parts.append(f"{word} {value}")
    return " ".join(parts).removesuffix(":")


def _text(payload: Json, name: str) -> str:
    """Return a field as text, empty if it has no value. An object is represented by its sha, name, login or id."""
    value = payload.get(name)
    if isinstance(value, dict):
        value = next((value[key] for key in ("sha", "name", "login", "id") if value.get(key)), None)
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _timestamp(value: Any) -> TimeLike:
    """Return the instant in a payload: ISO text, or seconds since 1970."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return EPOCH + timedelta(seconds=value)
        except (OverflowError, ValueError):
            raise InvalidError(
                f"timestamp {value!r} is no time. Give ISO 8601 text, or seconds since 1970."
            ) from None
    return moment(instant(value, "timestamp"))
