"""What says that a new build is out: the bundles a page loads, and what a CI service reports. Pure: no store and no clock."""

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
_BUILDS = frozenset({"v", "ver", "version", "h", "hash", "rev", "build"})  # of a query
_NUMBER = re.compile(r"(?<=[.\-_])\d+(?=\.\w)")
_FOLDER = re.compile(
    r"(?<=/)(?:v?\d+(?:\.\d+)*|(?=[a-f]{0,40}\d)[0-9a-f]{7,64}|(?=[\w-]{0,20}\d)[\w-]{20,22})(?=/)"
)
_KEPT = 16  # versions of a bundle
_AWAY = 3_600_000_000
"""Microseconds: an older version is a way back where the newer one was not seen for so long."""
_ELSEWHERE = ("zen", "workflow_run", "workflow_job", "check_run", "check_suite", "pull_request", "issue", "commits")  # fmt: skip

_SEGMENT = re.compile(
    r"(?<=/)(?:\d+|[0-9a-f]{8}-[0-9a-f-]{27}|(?=[a-f]{0,40}\d)[0-9a-f]{8,64})(?=/|\Z)", re.IGNORECASE
)
_TAIL = re.compile(r"(?<=[.\-_])(?=[\w-]*[A-Z\d])[\w-]{8,12}(?=\.\w+\Z)")

Bundles = dict[str, str]  # name without its version -> version
Versions = dict[str, list[list[Any]]]
"""Name -> versions, the newest last, each with since when it is known and when it was seen last; and True where it was wrongly taken for a way back."""


def is_code(url: str) -> bool:
    """Whether a URL is that of a script or a stylesheet, by its path."""
    return re.split("[?#]", url, maxsplit=1)[0].lower().endswith(CODE)


def route(page: str) -> str:
    """A page without query, fragment and the ids in its path: what loads the same bundles."""
    return _SEGMENT.sub("*", re.split("[?#]", page, maxsplit=1)[0]) or page


def bundles(
    urls: Iterable[str], page: str | None = None, entries: bool = True, known: Container[str] = ()
) -> Bundles:
    """The bundles of the page's own hosts by their names without a hash. What has several versions in one list is left out, and with `entries` what
    is loaded lazily, by its name. `known`: names seen before; what has one of these but for its end has a hash there, though it looks like a word."""
    found: dict[str, set[str]] = {}
    for host, name, version in _own(map(_parts, filter(is_code, urls)), page):
        if not version and (tail := _TAIL.search(name)) and host + _TAIL.sub("*", name) in known:
            name, version = _TAIL.sub("*", name), tail[0]
        if not entries or _is_entry(name):
            found.setdefault(host + name, set()).add(version)
    return {name: versions.pop() for name, versions in sorted(found.items()) if len(versions) == 1}


def _parts(url: str) -> tuple[str, str, str]:
    """The host, the name without hashes and numbers of builds, and these."""
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
    """Those of the page's own domain; where the page says none, or nothing is of it, those of the hosts that most are of."""
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
    """What a list of resources says: whether it is another build than before, and what is known of the page and of all bundles now."""

    is_deploy: bool
    page: Bundles
    versions: Versions
    replaced: Bundles = {}
    """On a way back: the newer versions that it replaced."""


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
    """What the bundles of a page say, beside those it had before. `same`: it surely is the same page; `deployed`: when bundles last said that a build is out.

    A deploy: of the bundles it had, at least `share` have another version, and one of these was never seen on any page, while the version before it was
    seen since the last deploy: what was seen before that alone only catches up with it, as the bundle of a route does that nobody came to. A list with
    an older version is that of an old tab and teaches nothing; it is a way back where the newer one was not seen for an hour.
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
    """Note the versions of a list as the newest, seen now; to the half of `settled`, so that not every list is a change."""
    for name, version in now.items():
        kept = versions.setdefault(name, [])
        entry = next((each for each in kept if each[0] == version), None)
        if entry is None:
            entry = [version, at, at]
        elif _seen(entry) < deployed or at - _seen(entry) >= settled // 2:
            entry = [entry[0], entry[1], at, *entry[3:]]
        versions[name] = [*(each for each in kept if each[0] != version), entry][-_KEPT:]


def put_back(before: Versions, replaced: Bundles) -> Versions:
    """The versions before a way back that was none: all but what it replaced are those of old tabs from now on, and no way back again."""
    return {
        name: [[*each[:3], True] for each in kept[:-1]] + kept[-1:] if name in replaced else kept
        for name, kept in before.items()
    }


def _older(now: Bundles, versions: Versions) -> set[str]:
    """The bundles of which a newer version than this one is known."""
    earlier = {name: [each[0] for each in versions.get(name, ())[:-1]] for name in now}
    return {name for name, version in now.items() if version in earlier[name]}


def _is_left(kept: list[list[Any]], version: str, at: Instant, deployed: Instant) -> bool:
    """Whether the newest version of a bundle was seen since the last deploy, and not for so long that this older one is a way back."""
    tab = any(each[0] == version and True in each[3:] for each in kept)
    return not tab and deployed <= _seen(kept[-1]) <= at - _AWAY


def _seen(entry: list[Any]) -> Instant:
    """When a version was seen last."""
    last: Instant = entry[2] if len(entry) > 2 else entry[1]
    return last


def changed_resources(added: list[str], removed: list[str]) -> str:
    """The sentence of a deploy that the resources of a page imply."""
    parts = []
    for word, urls in (("added", added), ("removed", removed)):
        if urls:
            names = [re.split("[?#]", url, maxsplit=1)[0].rsplit("/", 1)[-1] for url in urls]
            more = ", …" if len(names) > _NAMED else ""
            parts.append(f"{len(urls)} {word} ({', '.join(names[:_NAMED])}{more})")
    return f"Resources changed: {', '.join(parts)}"


# ---------------------------------------------------------------- what a CI service reports


class Delivery(NamedTuple):
    """What a payload says of a deploy: its id and instant, if it says them, and how it is: `done`, `announced`, `failed`, or `none` of these."""

    id: str | None
    at: TimeLike | None
    state: str
    fields: Json


def delivery(payload: Json) -> Delivery:
    """A payload as GitHub (`deployment`, `deployment_status`) or GitLab (`deployment`) sends it, or a plain one."""
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
    """The description of a deploy that a webhook reported: `Deployed 1a2b3c4 (main) to production by ana`."""
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
    """A field in words, empty when it says nothing. What is an object is known by its own sha, name or id."""
    value = payload.get(name)
    if isinstance(value, dict):
        value = next((value[key] for key in ("sha", "name", "login", "id") if value.get(key)), None)
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _timestamp(value: Any) -> TimeLike:
    """The instant in a payload: ISO text, or seconds since 1970."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return EPOCH + timedelta(seconds=value)
        except (OverflowError, ValueError):
            raise InvalidError(
                f"timestamp {value!r} is no time. Give ISO 8601 text, or seconds since 1970."
            ) from None
    return moment(instant(value, "timestamp"))
