"""A made-up web application, watched: pages of bundles with hashes, ten deploys, five regressions, twelve errors of which three come again over builds.

A stream is a list of observations in the order of time, each a name of a method of the recorder with its arguments, and the truth about it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.conftest import START

PAGES = ("/", "/dashboard", "/orders", "/settings", "/reports")
METRICS = {"lcp_ms": 1400.0, "ttfb_ms": 320.0, "load_time_ms": 2100.0}
STEP = 20  # seconds between two observations of a user at work
DEPLOYS, REGRESSIONS = 10, 5
ERRORS = (
    "TypeError: Cannot read properties of undefined (reading 'total') at OrderList.render",
    "User {n} not found",
    "ChunkLoadError: Loading chunk {n} failed",
    "Request failed with status code 404",
    "Request failed with status code 500",
    "GET /api/orders/{n} 500 (Internal Server Error)",
    "GET /api/orders/{n} 404 (Not Found)",
    "ReferenceError: flags is not defined at Settings.init",
    "RangeError: Maximum call stack size exceeded at Tree.walk",
    "Session '{n}' expired",
    "SyntaxError: Unexpected token < in JSON at position {n}",
    "NetworkError: the reports could not be fetched",
)
AGAIN = (0, 1, 9)  # of these, over builds


@dataclass
class Stream:
    """`seen`: method, arguments, instant. `deploys`: when each was; `fixed`: error -> the number of the deploy that ended it."""

    seen: list[tuple[str, tuple[Any, ...], dict[str, Any], datetime]] = field(default_factory=list)
    deploys: list[datetime] = field(default_factory=list)
    fixed: dict[int, list[int]] = field(default_factory=dict)
    slow: list[tuple[str, str, int]] = field(default_factory=list)  # metric, page, deploy

    def tell(self, at: datetime, method: str, *args: Any, **more: Any) -> None:
        self.seen.append((method, args, more, at))


class Application:
    """What the pages load in each build. `style`: how the bundler names files."""

    def __init__(self, dice: random.Random, style: str) -> None:
        self.dice, self.style, self.build = dice, style, 0
        self.hashes: dict[str, str] = {}
        for name in ("runtime", "main", "vendor", "styles", *(f"lazy{n}" for n in range(12))):
            self.hashes[name] = self._hash()

    def _hash(self) -> str:
        if self.style == "vite":
            letters = "".join(self.dice.choice("abcdefghkmnpqrstuvwxyzABCDEFGHKLMNPQR") for _ in range(6))
            return f"{letters}{self.dice.choice('ABCDEF')}{self.dice.randrange(10)}"
        return "".join(self.dice.choice("0123456789abcdef") for _ in range(7)) + "4"

    def deploy(self) -> None:
        self.build += 1
        changed = ["runtime", "main", *self.dice.sample([f"lazy{n}" for n in range(12)], 4)]
        changed += [name for name in ("vendor", "styles") if self.dice.random() < 0.3]
        for name in changed:
            self.hashes[name] = self._hash()

    def _url(self, name: str, suffix: str = "js") -> str:
        if self.style == "vite":
            plain = {"main": "index", "runtime": "app"}.get(name, name)
            plain = f"chunk-{plain.removeprefix('lazy')}" if plain.startswith("lazy") else plain
            return f"https://app.shop.test/assets/{plain}-{self.hashes[name]}.{suffix}"
        plain = f"{400 + int(name[4:])}" if name.startswith("lazy") else name
        chunk = ".chunk" if name.startswith("lazy") else ""
        return f"/static/js/{plain}.{self.hashes[name]}{chunk}.{suffix}"

    def resources(self, page: str) -> list[str]:
        lazy = self.dice.sample([f"lazy{n}" for n in range(12)], self.dice.randrange(5))
        urls = [self._url(name) for name in ("runtime", "main", "vendor", *lazy)]
        urls.append(self._url("styles", "css"))
        if self.dice.random() < 0.4:
            urls.append(f"https://tags.test/gtm.{self.dice.randrange(10**6)}.js")
        urls += [f"/img/{self.dice.randrange(50)}.png", "/api/me"]
        self.dice.shuffle(urls)
        return urls

    def source(self) -> str:
        return f"{self._url('main')}:{self.dice.randrange(1, 90)}:{self.dice.randrange(1, 9000)}"


def _github(number: int, state: str | None, at: datetime, environment: str = "production") -> dict[str, Any]:
    deployment = {
        "id": 7000 + number, "sha": f"{number:02x}" * 20, "ref": "main", "environment": environment,
        "creator": {"login": "ana"}, "created_at": at.isoformat(),
    }  # fmt: skip
    payload = {"action": "created", "deployment": deployment, "repository": {"full_name": "shop/app"}}
    if state is not None:
        payload["deployment_status"] = {
            "state": state,
            "environment": environment,
            "created_at": at.isoformat(),
        }
    return payload


def stream(seed: int, observations: int = 2152) -> Stream:
    """A stream of so many observations over ten days, a build a day; each build by a webhook, by its bundles, or both."""
    dice = random.Random(seed)
    made, app = Stream(), Application(dice, dice.choice(("webpack", "vite")))
    slow = {number: (dice.choice(list(METRICS)), dice.choice(PAGES)) for number in sorted(dice.sample(range(DEPLOYS - 1), REGRESSIONS))}  # fmt: skip
    levels = {(metric, page): usual for page in PAGES for metric, usual in METRICS.items()}
    born = {error: dice.randrange(0, DEPLOYS - 2) for error in range(len(ERRORS))}
    day = START
    for page in PAGES:
        made.tell(day, "observe_resources", app.resources(page), page=page)
        for metric, usual in METRICS.items():
            made.tell(day, "observe_metric", metric, usual, page=page, baseline=usual)
    broken: set[int] = set()
    back: dict[int, set[int]] = {}  # build -> errors that come again with it
    for number in range(DEPLOYS):
        at = day + timedelta(hours=9, minutes=dice.randrange(50))
        _browse(made, app, dice, at, broken, levels, 40)
        deployed = at + timedelta(seconds=40 * STEP + 5)
        mended = {error for error in broken if dice.random() < 0.7}
        for error in sorted(mended):
            made.fixed.setdefault(error, []).append(number)
            made.tell(
                deployed - timedelta(seconds=9), "observe_error", _text(error, dice), source=app.source()
            )
        app.deploy()
        made.deploys.append(deployed)
        _release(made, app, dice, deployed, number)
        broken = (broken - mended) | {error for error, build in born.items() if build == number}
        broken |= back.get(number, set())
        back.setdefault(number + 2, set()).update(mended & {*AGAIN})
        if number in slow:
            metric, page = slow[number]
            made.slow.append((metric, page, number))
            made.tell(
                deployed + timedelta(seconds=24), "observe_metric", metric, METRICS[metric] * 2.4, page=page
            )
            made.tell(deployed + timedelta(minutes=50), "observe_metric", metric, METRICS[metric], page=page)
        _browse(made, app, dice, deployed + timedelta(seconds=70), broken, levels, 60)
        day += timedelta(days=1)
    _fill(made, app, dice, observations, day, broken, levels)
    made.seen.sort(key=lambda one: one[3])
    return made


def _text(error: int, dice: random.Random) -> str:
    return ERRORS[error].format(n=dice.randrange(1, 400))


def _release(made: Stream, app: Application, dice: random.Random, at: datetime, number: int) -> None:
    """How a deploy shows: reported, by the bundles of a page, or both; other pages catch up later."""
    reported = number % 3 != 2
    if reported:
        made.tell(at - timedelta(seconds=90), "observe_deploy", _github(number, "in_progress", at))
        made.tell(at, "observe_deploy", _github(number, "success", at))
        made.tell(at + timedelta(seconds=3), "observe_deploy", _github(number, "success", at))
    made.tell(at - timedelta(hours=2), "observe_deploy", _github(100 + number, "failure", at))
    if number % 3 != 1:
        made.tell(
            at + timedelta(seconds=15 if reported else 0), "observe_resources", app.resources("/"), page="/"
        )
    else:
        made.tell(at + timedelta(seconds=240), "observe_resources", app.resources("/"), page="/")
    for page in PAGES[1:]:
        made.tell(
            at + timedelta(minutes=dice.randrange(6, 300)),
            "observe_resources",
            app.resources(page),
            page=page,
        )


def _browse(
    made: Stream,
    app: Application,
    dice: random.Random,
    at: datetime,
    broken: set[int],
    levels: dict[tuple[str, str], float],
    count: int,
) -> None:
    """A user at work: something is seen every twenty seconds."""
    for step in range(count):
        now = at + timedelta(seconds=step * STEP)
        if broken and (step % 8 == 0 or dice.random() < 0.5):
            for error in sorted(broken) if step % 4 == 0 else [dice.choice(sorted(broken))]:
                made.tell(now, "observe_error", _text(error, dice), source=app.source())
        else:
            (metric, page), usual = dice.choice(list(levels.items()))
            made.tell(now, "observe_metric", metric, round(usual * dice.uniform(0.85, 1.2), 1), page=page)


def _fill(
    made: Stream,
    app: Application,
    dice: random.Random,
    observations: int,
    day: datetime,
    broken: set[int],
    levels: dict[tuple[str, str], float],
) -> None:
    """Quiet days of browsing until there are so many."""
    left = observations - len(made.seen)
    for step in range(left):
        (metric, page), usual = dice.choice(list(levels.items()))
        now = day + timedelta(days=step // 200, seconds=STEP * (step % 200))
        if step % 25 == 24:
            made.tell(now, "observe_resources", app.resources(page), page=page)
        else:
            made.tell(now, "observe_metric", metric, round(usual * dice.uniform(0.85, 1.2), 1), page=page)


def crowd(seed: int, users: int = 3) -> Stream:
    """Some days of several users whose tabs stay open over builds, on an application cut by routes: a route's bundle is loaded where somebody comes to it."""
    dice = random.Random(seed)
    made, names = Stream(), ["index", "vendor", *(f"route{n}" for n in range(5)), "chart", "map", "editor"]
    builds = [{name: _vite(dice) for name in names}]
    at = START
    for _ in range(DEPLOYS):
        at += timedelta(hours=dice.randrange(5, 40), minutes=dice.randrange(60))
        made.deploys.append(at)
        changed = {"index", *dice.sample(names[2:], 5)}
        builds.append({name: _vite(dice) if name in changed else old for name, old in builds[-1].items()})
        urls = [_asset(builds[-1], name) for name in ("index", "vendor", "route0")]
        made.tell(at + timedelta(seconds=100), "observe_resources", urls, page="https://shop.test/")
    for user in range(users):
        now, tab = START + timedelta(minutes=user), 0
        while now < at + timedelta(hours=8):
            for _ in range(dice.randrange(5, 30)):
                if dice.random() < 0.15:
                    tab = sum(now >= each for each in made.deploys)
                number = dice.randrange(5)
                page = (
                    "https://shop.test"
                    + ("/", "/orders", f"/orders/{dice.randrange(400)}", "/cart", "/search?q=loom")[number]
                )
                more = dice.sample(["chart", "map", "editor"], dice.randrange(3))
                urls = [_asset(builds[tab], name) for name in ("index", "vendor", f"route{number}", *more)]
                made.tell(now, "observe_resources", [*urls, "https://pay.test/v3/pay.js"], page=page)
                now += timedelta(seconds=dice.randrange(5, 90))
            now += timedelta(minutes=dice.randrange(30, 400))
    made.seen.sort(key=lambda one: one[3])
    return made


def _vite(dice: random.Random) -> str:
    return "".join(
        dice.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") for _ in range(8)
    )


def _asset(build: dict[str, str], name: str) -> str:
    return f"https://shop.test/assets/{name}-{build[name]}.js"
