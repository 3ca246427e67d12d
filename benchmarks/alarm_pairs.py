"""Labelled pairs for the benchmark of alarms: two things somebody wrote down, and whether they contradict each other.

Most come from templates, each told of several projects whose facts are alike in wording; the others are written one by one. Labels are what a person
would say who knows no more than the pair: both facts are held at once from the later date on. A pair that the store's rules are known to get wrong
stays in: the hard ones are marked as such in the names of their groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any


@dataclass(frozen=True)
class Fact:
    """A thing as somebody wrote it down."""

    content: dict[str, Any]
    kind: str = "fact"
    tags: tuple[str, ...] = ()
    key: str | None = None


@dataclass(frozen=True)
class Labelled:
    """Two facts, the older first, and whether they contradict each other."""

    group: str
    language: str
    older: Fact
    newer: Fact
    contradicts: bool


@dataclass(frozen=True)
class Template:
    """A pair with gaps: {p} a project, {q} another, {a} and {b} two values. A text is a statement, a dict a content."""

    group: str
    contradicts: bool
    older: Any
    newer: Any
    values: tuple[tuple[Any, Any], ...] = (("", ""),)
    tags: tuple[str, ...] = ()
    newer_tags: tuple[str, ...] | None = None
    kinds: tuple[str, str] = ("fact", "fact")
    keys: tuple[str | None, str | None] = (None, None)
    told: int = field(default=4)  # of so many projects


ENGLISH = [
    f"{first} {second}"
    for second in "North South East West Red Blue Green White Black Gold Silver Copper Iron Stone River Lake Hill Wood Field Sky Star Moon Sun Rain Snow "
    "Wind Fire Sand Salt Rose Oak Elm Ash Fern Moss Reed".split()
    for first in "Apollo Beacon Cobalt Delta Ember Falcon Granite Harbor Iris Juniper Kestrel Lumen".split()
]
RUSSIAN = [
    f"{first} {second}"
    for second in "Север Юг Восток Запад Озеро Лес Поле Небо Луна Солнце Дождь Снег Ветер Огонь Песок Соль Роза Дуб Клён Мох Камыш Река Гора Степь".split()
    for first in "Маяк Гранит Волга Сокол Берег Простор Орбита Радуга Заря Факел Искра Парус".split()
]
"""Every pair is of a project of its own, so that in one scope too no other two facts contradict each other."""

DAYS = (("Friday", "Tuesday"), ("Monday", "Thursday"))
MINUTES = ((5, 15), (30, 60), (10, 45))
PORTS = ((8080, 8081), (80, 443), (5432, 6432))
DATABASES = (("Postgres", "MySQL"), ("SQLite", "Postgres"), ("Oracle", "ClickHouse"))
PEOPLE = (("Ana", "Boris"), ("Chen", "Dora"), ("Emil", "Faye"))
ДНИ = (("пятницам", "вторникам"), ("понедельникам", "четвергам"))
ЛЮДИ = (("Анна", "Борис"), ("Вера", "Глеб"), ("Дина", "Егор"))
БАЗЫ = DATABASES

T = Template

# ---- they contradict each other ---------------------------------------------------------------

TRUE_ENGLISH = (
    T(
        "slot over time",
        True,
        "{a}",
        "{b}",
        (("sessions", "JWT"), ("REST", "GraphQL")),
        keys=("{p} auth_v1", "{p} auth_v2"),
    ),
    T(
        "slot over time",
        True,
        {"says": "{p} is hosted in {a}"},
        {"says": "we run {p} in {b}"},
        (("Ulm", "Oslo"), ("Rome", "Bern")),
        keys=("{p} host_v1", "{p} host_v2"),
        kinds=("fact", "decision"),
    ),
    T("field", True, {"subject": "{p}", "port": "{a}"}, {"subject": "{p}", "port": "{b}"}, PORTS),
    T(
        "field",
        True,
        {"name": "{p} api", "database": "{a}", "replicas": 3},
        {"name": "{p} api", "database": "{b}", "replicas": 3},
        DATABASES,
    ),
    T(
        "field",
        True,
        {"project": "{p}", "owner": "{a}"},
        {"project": "{p}", "owner": "{b}", "note": "as of the new plan"},
        PEOPLE,
    ),
    T(
        "field",
        True,
        {"subject": "{p}", "predicate": "deploy day", "value": "{a}"},
        {"subject": "{p}", "predicate": "deploy day", "value": "{b}"},
        DAYS,
    ),
    T(
        "field",
        True,
        {"service": "{p}", "env": "live", "timeout_s": "{a}"},
        {"service": "{p}", "env": "live", "timeout_s": "{b}"},
        MINUTES,
    ),
    T(
        "field",
        True,
        {"name": "{p}", "config": {"tls": True, "retries": "{a}"}},
        {"name": "{p}", "config": {"tls": False, "retries": "{a}"}},
        MINUTES,
    ),
    T(
        "field",
        True,
        {"method": "{a}"},
        {"method": "{b}"},
        (("sessions", "JWT"), ("passwords", "passkeys")),
        tags=("{p} auth",),
    ),
    T(
        "tag, a number",
        True,
        "The limit of {p} is {a} requests a minute",
        "The limit of {p} is {b} requests a minute",
        MINUTES,
        tags=("limits",),
    ),
    T(
        "tag, a number",
        True,
        "{p} listens on port {a}.",
        "{p} listens on port {b}.",
        PORTS,
        tags=("ports", "{p}"),
    ),
    T(
        "tag, a number",
        True,
        "Logs of {p} are kept for {a} days",
        "logs of {p} are kept for {b} days, all of them",
        MINUTES,
        tags=("logs",),
        told=2,
    ),
    T(
        "tag, a number",
        True,
        "Tokens of {p} expire after {a} minutes",
        "Tokens of {p} expire after {b} minutes",
        MINUTES,
        tags=("auth",),
    ),
    T("tag, a day", True, "Deploys of {p} run on {a}", "Deploys of {p} run on {b}s", DAYS, tags=("deploys",)),
    T(
        "tag, a day",
        True,
        "#release [2026-01-01] {p} ships on {a}",
        "{p} ships on {b}",
        DAYS,
        tags=("release",),
    ),
    T(
        "tag, an opposite",
        True,
        "The cache of {p} is enabled",
        "The cache of {p} is disabled",
        tags=("cache",),
    ),
    T(
        "tag, an opposite",
        True,
        "Code review is required in {p}",
        "Code review is optional in {p}",
        tags=("review process",),
    ),
    T("tag, a not", True, "{p} is covered by the audit", "{p} is not covered by the audit", tags=("audit",)),
    T("tag, a not", True, "Guests can read {p}", "Guests cannot read {p}", tags=("access",)),
    T(
        "tag, how",
        True,
        "{p} auth is done with {a}",
        "{p} auth is done with {b}",
        (("sessions", "tokens"), ("passwords", "keys")),
        tags=("auth",),
    ),
    T(
        "tag, how",
        True,
        "Using {a}",
        "Using {b}",
        (("sessions", "JWT tokens"), ("cookies", "passkeys")),
        tags=("{p} auth", "decision"),
    ),
    T(
        "tag, how",
        True,
        "Payments of {p} are handled via {a}",
        "Payments of {p} are handled via {b}",
        (("Stripe", "Adyen"),),
        tags=("payments",),
    ),
    T(
        "tag, a bare value",
        True,
        "{a}",
        "{b}",
        (("REST", "GraphQL"), ("Postgres", "MySQL")),
        tags=("{p} stack",),
    ),
    T(
        "tag, a change",
        True,
        "{p} auth is done with {a}",
        "We switched {p} auth from {a} to {b}",
        (("sessions", "tokens"), ("LDAP", "SAML")),
        tags=("auth",),
        told=2,
    ),
    T(
        "tag, a change",
        True,
        "{p} login uses {a}",
        "{p} login was switched to {b}",
        (("sessions", "OAuth2"), ("LDAP", "SAML")),
        tags=("login",),
    ),
    T("a change that says so", True, "{p} auth via sessions", "{p} auth refactored to JWT"),
    T(
        "a change that says so",
        True,
        "The {p} parser is written in {a}",
        "The {p} parser was rewritten in {b}",
        (("Python", "Rust"), ("Perl", "Go")),
    ),
    T(
        "a change that says so",
        True,
        "Search in {p} is implemented through {a}",
        "Search in {p} was rebuilt on {b} last week",
        (("Lucene", "Tantivy"),),
        told=3,
    ),
    # what the rules do not know
    T("untagged (not looked for)", True, "Deploys of {p} run on {a}", "Deploys of {p} run on {b}", DAYS),
    T(
        "untagged (not looked for)",
        True,
        "{p} stores its data in {a}",
        "All data of {p} is in {b}, nowhere else",
        DATABASES,
        told=2,
    ),
    T(
        "tag, in other words (hard)",
        True,
        "{p} ships every {a}",
        "New versions of {p} come out on {b} only",
        DAYS,
        tags=("release",),
        told=3,
    ),
    T(
        "tag, in other words (hard)",
        True,
        "{p} runs on {a}",
        "{p} was moved over to {b}",
        DATABASES,
        tags=("database",),
        told=3,
    ),
    T(
        "tag, in other words (hard)",
        True,
        "{a} leads {p}",
        "{p} is led by {b}",
        PEOPLE,
        tags=("people",),
        told=2,
    ),
)

TRUE_RUSSIAN = (
    T("slot over time", True, "{a}", "{b}", (("сессии", "JWT"), ("почта", "телефон")), keys=("{p} вход_v1", "{p} вход_v2")),
    T("field", True, {"subject": "{p}", "порт": "{a}"}, {"subject": "{p}", "порт": "{b}"}, PORTS),
    T("field", True, {"name": "сервис {p}", "база": "{a}"}, {"name": "Сервис {p}", "база": "{b}"}, БАЗЫ),
    T("field", True, {"project": "{p}", "ответственный": "{a}"}, {"project": "{p}", "ответственный": "{b}"}, ЛЮДИ),
    T("field", True, {"способ": "{a}"}, {"способ": "{b}"}, (("сессии", "JWT"), ("пароли", "ключи")), tags=("вход {p}",)),
    T("tag, a number", True, "Лимит проекта {p} равен {a} запросам в минуту", "Лимит проекта {p} равен {b} запросам в минуту", MINUTES, tags=("лимиты",)),
    T("tag, a number", True, "Порт сервиса {p} — {a}", "Порт сервиса {p} — {b}", PORTS, tags=("порты",)),
    T("tag, a number", True, "Токен {p} живёт {a} минут", "Токен {p} живет {b} минуты", MINUTES, tags=("auth",)),
    T("tag, a day", True, "Релизы проекта {p} выходят по {a}", "Релизы проекта {p} выходят по {b}", ДНИ, tags=("релизы",)),
    T("tag, a day", True, "Созвон по проекту {p} проходит во вторник", "Созвон по проекту {p} проходит в пятницу", tags=("созвоны",)),
    T("tag, an opposite", True, "Кэш проекта {p} включён", "Кэш проекта {p} выключен", tags=("кэш",)),
    T("tag, an opposite", True, "Ревью в проекте {p} обязательно", "Ревью в проекте {p} необязательно", tags=("ревью",)),
    T("tag, a not", True, "Проект {p} входит в аудит", "Проект {p} не входит в аудит", tags=("аудит",)),
    T("tag, how", True, "Вход в {p} сделан через {a}", "Вход в {p} сделан через {b}", (("почту", "телефон"), ("LDAP", "SAML")), tags=("вход",)),
    T("tag, how", True, "Используем {a}", "Используем {b}", (("сессии", "JWT токены"), ("куки", "ключи")), tags=("вход {p}", "решение")),
    T("tag, a bare value", True, "{a}", "{b}", (("сессии", "токены"), ("REST", "GraphQL")), tags=("стек {p}",)),
    T("tag, a change", True, "Вход в {p} использует {a}", "Вход в {p} переведён на {b}", (("сессии", "OAuth2"),), tags=("вход",)),
    T("a change that says so", True, "Аутентификация {p} реализована через сессии", "Аутентификация {p} переделана на JWT токены", told=6),
    T("a change that says so", True, "Парсер {p} написан на {a}", "Парсер {p} переписан с {a} на {b}", (("Python", "Rust"), ("Perl", "Go"))),
    T("untagged (not looked for)", True, "Релизы проекта {p} выходят по {a}", "Релизы проекта {p} выходят по {b}", ДНИ),
    T("tag, in other words (hard)", True, "Проект {p} ведёт {a}", "За {p} отвечает {b}", ЛЮДИ, tags=("люди",), told=3),
    T("tag, in other words (hard)", True, "{p} работает на {a}", "{p} переехал на {b}", БАЗЫ, tags=("база",), told=3),
)  # fmt: skip

# ---- they do not --------------------------------------------------------------------------------

FALSE_ENGLISH = (
    T("another project", False, "The limit of {p} is {a} requests a minute", "The limit of {q} is {b} requests a minute", MINUTES, tags=("limits",)),
    T("another project", False, "Deploys of {p} run on {a}", "Deploys of {q} run on {b}", DAYS, tags=("deploys",)),
    T("another project", False, "Deploys of {p} run on {a}", "Deploys of {q} run on {b}", DAYS),
    T("another project", False, "{p} auth is done with sessions", "{q} auth is done with tokens", tags=("auth",)),
    T("another project", False, "{p} auth via sessions", "{q} auth refactored to JWT"),
    T("another project", False, "The cache of {p} is enabled", "The cache of {q} is disabled", tags=("cache",)),
    T("another project", False, {"subject": "{p}", "port": "{a}"}, {"subject": "{q}", "port": "{b}"}, PORTS),
    T("another project", False, {"project": "{p}", "service": "api", "port": "{a}"}, {"project": "{q}", "service": "api", "port": "{b}"}, PORTS),
    T("another project", False, {"service": "{p}", "port": "{a}"}, {"service": "{q}", "port": "{b}"}, PORTS, tags=("ports",)),
    T("another project", False, "{a}", "{b}", (("REST", "GraphQL"),), keys=("{p} api", "{q} api")),
    T("another field", False, "The timeout of {p} is {a} seconds", "The timeout of {p} is {b} retries long", MINUTES, tags=("timeouts",)),
    T("another field", False, "{p} listens on port {a}", "{p} runs on {b} hosts", PORTS, tags=("{p}",)),
    T("another field", False, {"subject": "{p}", "port": "{a}"}, {"subject": "{p}", "admin_port": "{b}"}, PORTS),
    T("another field", False, {"subject": "{p}", "owner": "Ana"}, {"subject": "{p}", "database": "MySQL", "source": "wiki"}),
    T("another field", False, "Deploys of {p} run on {a}", "Deploys of {p} run for {b} minutes", (("Friday", 20),), tags=("deploys",)),
    T("another field", False, "Tokens of {p} expire after {a} minutes", "Sessions of {p} expire after {b} minutes", MINUTES, tags=("auth",)),
    T("several at once", False, "{p} uses {a}", "{p} uses {b}", (("Postgres", "Redis"), ("Python", "Rust")), tags=("stack",)),
    T("several at once", False, {"name": "Ana of {p}", "likes": "{a}"}, {"name": "Ana of {p}", "likes": "{b}"}, (("tea", "coffee"),)),
    T("several at once", False, {"project": "{p}", "files": "a.py"}, {"project": "{p}", "files": "b.py"}),
    T("several at once", False, {"project": "{p}", "members": ["{a}"]}, {"project": "{p}", "members": ["{b}"]}, PEOPLE),
    T("several at once", False, "{a} works on {p}", "{b} works on {p}", PEOPLE, tags=("people",)),
    T("several at once", False, {"subject": "{p}", "predicate": "depends_on", "object": "{a}"}, {"subject": "{p}", "predicate": "depends_on", "object": "{b}"}, DATABASES),
    T("several at once", False, "The login page of {p} is slow", "The login page of {p} is blue", tags=("auth",)),
    T("the same", False, "Deploys of {p} run on {a}", "deploys of {p} run on {a}s!", DAYS, tags=("deploys",)),
    T("the same", False, {"subject": "{p}", "port": 80}, {"subject": "{p}", "port": "80"}),
    T("the same", False, {"subject": "{p}", "ratio": 2}, {"subject": "{P}", "ratio": 2.0}),
    T("the same", False, "{p} auth was moved to JWT", "{p} auth is done with JWT", tags=("auth",)),
    T("more exactly", False, {"subject": "{p} auth", "method": "JWT"}, {"subject": "{p} auth", "method": "JWT tokens"}),
    T("more exactly", False, "Deploys of {p} run on {a}", "Deploys of {p} run on {a} at 18:00", DAYS, tags=("deploys",)),
    T("more exactly", False, "{p} auth is done with tokens", "{p} auth is done with signed tokens", tags=("auth",)),
    T("another place or time", False, {"service": "{p}", "env": "test", "port": "{a}"}, {"service": "{p}", "env": "live", "port": "{b}"}, PORTS),
    T("another place or time", False, {"service": "{p}", "date": "2026-01-01", "latency_ms": "{a}"}, {"service": "{p}", "date": "2026-01-02", "latency_ms": "{b}"}, MINUTES),
    T("another place or time", False, "In test the limit of {p} is {a}", "In production the limit of {p} is {b}", MINUTES, tags=("limits",)),
    T("what was done", False, "Fixed bug {a} in {p}", "Fixed bug {b} in {p}", MINUTES, tags=("bugs", "{p}")),
    T("what was done", False, "{p} 1.{a} was released", "{p} 1.{b} was released", MINUTES, tags=("release",)),
    T("what was done", False, "#auth #decision Using JWT tokens in {p}", "#auth #implemented JWT module of {p} done", tags=("auth", "decision"), newer_tags=("auth", "implemented")),
    T("what was done", False, "Adding WebSocket to {p} for realtime", "Switching {p} to GraphQL", tags=("api",), kinds=("evidence", "evidence")),
    T("a wish, a plan, a question", False, "{p} auth is done with sessions", "{p} auth should be done with tokens", tags=("auth",)),
    T("a wish, a plan, a question", False, "{p} auth via sessions", "{p} auth will be rewritten to OAuth2"),
    T("a wish, a plan, a question", False, "Deploys of {p} run on {a}", "Do deploys of {p} run on {b}?", DAYS, tags=("deploys",)),
    T("a wish, a plan, a question", False, "Deploys of {p} run on {a}", "Deploys of {p} run on {b}", DAYS, tags=("deploys",), kinds=("fact", "plan")),
    T("one word, many things", False, "The service is written in {a}", "The service was rewritten in {b}", (("Go", "Rust"),)),
    T("one word, many things", False, "{a} of {p}", "{b} of {p}", (("Login page", "Sign-up page"),), tags=("pages",), kinds=("page", "page")),
    T("one word, many things", False, "{a}", "{b}", PEOPLE, tags=("{p} team",), kinds=("person", "person")),
    T("one word, many things", False, "It was rewritten in Rust, says {p}", "It is written in Go, says {p}"),
    T("one tag, two subjects", False, "Cookies of {p} want a path", "Nobody in {p} likes captchas", tags=("auth",)),
    T("one tag, two subjects", False, {"city": "Ulm", "price": "{a}", "of": "{p}"}, {"city": "Oslo", "price": "{b}", "of": "{q}"}, MINUTES, tags=("offices",)),
    T("one tag, two subjects", False, "Switched {p} to dark mode", "The colours of {p} are done by Ana", tags=("design",)),
    T("two sides of it (hard)", False, "{p} is built with Bazel", "{p} was rewritten in Rust", told=3),
    T("two sides of it (hard)", False, "The standup of {p} is on Monday at 10", "The standup of {p} is on Thursday at 10", tags=("meetings",), told=3),
    T("two sides of it (hard)", False, "flaky tests", "slow builds", tags=("{p} ci",), told=3),
    T("two sides of it (hard)", False, {"name": "{a} of {p}", "room": 7}, {"name": "{a} of {p}", "room": 9}, PEOPLE, kinds=("visit", "visit"), told=2),
)  # fmt: skip

FALSE_RUSSIAN = (
    T("another project", False, "Порт сервиса {p} — {a}", "Порт сервиса {q} — {b}", PORTS, tags=("порты",)),
    T("another project", False, "Релизы проекта {p} выходят по {a}", "Релизы проекта {q} выходят по {b}", ДНИ, tags=("релизы",)),
    T("another project", False, "Релизы проекта {p} выходят по {a}", "Релизы проекта {q} выходят по {b}", ДНИ),
    T("another project", False, "Аутентификация {p} реализована через сессии", "Аутентификация {q} переделана на JWT токены"),
    T("another project", False, "Вход в {p} сделан через почту", "Вход в {q} сделан через телефон", tags=("вход",)),
    T("another project", False, {"project": "{p}", "порт": "{a}"}, {"project": "{q}", "порт": "{b}"}, PORTS, tags=("порты",)),
    T("another field", False, "Токен {p} живёт {a} минут", "Сессия {p} живёт {b} минут", MINUTES, tags=("auth",)),
    T("another field", False, "Порт сервиса {p} — {a}", "Порт сервера {p} — {b}", PORTS, tags=("порты",)),
    T("another field", False, {"subject": "{p}", "порт": "{a}"}, {"subject": "{p}", "адрес": "{b}"}, PORTS),
    T("several at once", False, "{p} использует {a}", "{p} использует {b}", (("Postgres", "Redis"),), tags=("стек",)),
    T("several at once", False, "Страница входа {p} медленная", "Страница входа {p} синяя", tags=("вход",)),
    T("several at once", False, "{a} работает над {p}", "{b} работает над {p}", ЛЮДИ, tags=("люди",)),
    T("the same", False, "Кэш проекта {p} включён", "Кэш проекта {p} включен.", tags=("кэш",)),
    T("the same", False, "Вход в {p} сделан через почту", "Вход в {p} переделан на почту", tags=("вход",)),
    T("more exactly", False, {"subject": "вход {p}", "способ": "JWT"}, {"subject": "вход {p}", "способ": "JWT токены"}),
    T("more exactly", False, "Релизы проекта {p} выходят по {a}", "Релизы проекта {p} выходят по {a} в 18:00", ДНИ, tags=("релизы",)),
    T("another place or time", False, {"service": "{p}", "region": "Омск", "порт": "{a}"}, {"service": "{p}", "region": "Тверь", "порт": "{b}"}, PORTS),
    T("what was done", False, "Исправлена ошибка {a} в {p}", "Исправлена ошибка {b} в {p}", MINUTES, tags=("ошибки",)),
    T("what was done", False, "Выбрали JWT для {p}", "Модуль JWT для {p} готов", tags=("auth", "решение"), newer_tags=("auth", "готово")),
    T("a wish, a plan, a question", False, "Аутентификация {p} реализована через сессии", "Аутентификация {p} будет переделана на JWT"),
    T("a wish, a plan, a question", False, "Релизы проекта {p} выходят по {a}", "Релизы проекта {p} выходят по {b}?", ДНИ, tags=("релизы",)),
    T("one word, many things", False, "Сервис написан на Go", "Сервис переписан на Rust"),
    T("one word, many things", False, "{a}", "{b}", ЛЮДИ, tags=("команда {p}",), kinds=("person", "person")),
    T("one tag, two subjects", False, "Пароли {p} хранятся в сейфе", "Никто в {p} не любит капчу", tags=("вход",)),
    T("two sides of it (hard)", False, "Аутентификация {p} реализована на Go", "Аутентификация {p} переделана на JWT", told=3),
    T("two sides of it (hard)", False, "Созвон {p} проходит в понедельник в 10:00", "Созвон {p} проходит в четверг в 10:00", tags=("созвоны",), told=3),
)  # fmt: skip

BY_HAND = (
    Labelled("the documents' Day 1 and Day 30", "ru", Fact({"says": "Аутентификация реализована через сессии"}), Fact({"says": "Аутентификация переделана на JWT токены"}), True),
    Labelled("the documents' Day 1 and Day 30", "ru", Fact({"thought": "Аутентификация реализована через сессии"}, "evidence", ("auth",)), Fact({"thought": "Аутентификация переделана на JWT токены"}, "evidence", ("auth",)), True),
    Labelled("the documents' Day 1 and Day 30", "en", Fact({"text": "Auth via sessions"}, "evidence"), Fact({"text": "Auth refactored to JWT"}, "evidence"), True),
    Labelled("the documents' Day 1 and Day 30", "ru", Fact({"text": "Sessions"}, key="auth_v1"), Fact({"text": "JWT (current)"}, key="auth_v2"), True),
    Labelled("the documents' story", "en", Fact({"says": "Adding WebSocket for realtime"}, "evidence", ("api",)), Fact({"says": "Switching to GraphQL"}, "evidence", ("api",)), False),
    Labelled("the documents' story", "en", Fact({"says": "Switching to GraphQL"}, "evidence", ("api",)), Fact({"says": "GraphQL replaces REST"}, "evidence", ("api",)), False),
    Labelled("the documents' story", "en", Fact({"says": "Build WB Repricer"}, "task", ("api",)), Fact({"says": "Using REST API"}, "evidence", ("api",)), False),
    Labelled("written one by one", "en", Fact({"says": "Lunch is at noon"}, tags=("food",)), Fact({"says": "Lunch is at Gino's"}, tags=("food",)), False),
    Labelled("written one by one", "en", Fact({"says": "The vault holds two keys"}, tags=("vault",)), Fact({"says": "The vault holds three keys"}, tags=("vault",)), True),
    Labelled("written one by one", "en", Fact({"says": "Bob's desk is in room 4"}, tags=("desks",)), Fact({"says": "Bob's desk is in room 6"}, tags=("desks",)), True),
    Labelled("written one by one", "en", Fact({"says": "Bob's desk is in room 4"}, tags=("desks",)), Fact({"says": "Bea's desk is in room 6"}, tags=("desks",)), False),
    Labelled("written one by one", "en", Fact({"name": "Ana Ruiz", "city": "Lima"}, "person"), Fact({"name": "Ana Ruiz", "city": "Cusco"}, "person"), True),
    Labelled("written one by one", "en", Fact({"name": "Ana Ruiz", "age": 30}, "person"), Fact({"name": "Ana Ruiz", "city": "Cusco"}, "person"), False),
    Labelled("written one by one", "en", Fact({"name": "billing", "size": 4}, "team"), Fact({"name": "billing", "size": 9}, "database"), False),
    Labelled("written one by one", "en", Fact({"says": "We never deploy on Fridays"}, tags=("deploys",)), Fact({"says": "We deploy on Fridays"}, tags=("deploys",)), True),
    Labelled("written one by one", "en", Fact({"says": "Backups take 3 hours"}, tags=("backups",)), Fact({"says": "Backups start at 3"}, tags=("backups",)), False),
    Labelled("written one by one", "en", Fact({"says": "The office is open"}, tags=("office",)), Fact({"says": "The office is closed on Sundays"}, tags=("office",)), False),
    Labelled("written one by one", "en", Fact({"says": "The config is in YAML"}, tags=("config",)), Fact({"says": "The config is in TOML"}, tags=("config",)), True),
    Labelled("written one by one", "ru", Fact({"says": "Офис закрыт"}, tags=("офис",)), Fact({"says": "Офис открыт"}, tags=("офис",)), True),
    Labelled("written one by one", "ru", Fact({"says": "Обед в полдень"}, tags=("еда",)), Fact({"says": "Обед у Марии"}, tags=("еда",)), False),
    Labelled("written one by one", "ru", Fact({"says": "Отчёт стоит 500 рублей"}, tags=("цены",)), Fact({"says": "Отчёт стоит 700 рублей"}, tags=("цены",)), True),
    Labelled("written one by one", "ru", Fact({"says": "Отчёт стоит 500 рублей"}, tags=("цены",)), Fact({"says": "Справка стоит 700 рублей"}, tags=("цены",)), False),
    Labelled("written one by one", "ru", Fact({"says": "Мы никогда не работаем в субботу"}, tags=("график",)), Fact({"says": "Мы работаем в субботу"}, tags=("график",)), True),
    Labelled("written one by one", "ru", Fact({"says": "Мы дежурим в субботу"}, tags=("график",)), Fact({"says": "Мы не дежурим в воскресенье"}, tags=("график",)), False),
)  # fmt: skip


def _late(
    language: str,
    contradicts: bool,
    older: Any,
    newer: Any,
    tags: str = "",
    kind: str = "fact",
    group: str = "written second",
) -> Labelled:
    one, other = ({"says": each} if isinstance(each, str) else each for each in (older, newer))
    topics = tuple(tags.split())
    return Labelled(group, language, Fact(one, kind, topics), Fact(other, kind, topics), contradicts)


SECOND = (
    _late("en", True, "The nightly job starts at 02:00 UTC", "The nightly job starts at 04:00 UTC", "jobs"),
    _late("en", True, "Our SLA is 99.9 percent", "Our SLA is 99.5 percent", "sla"),
    _late("en", True, "Invoices are sent on Mondays", "Invoices are sent on Wednesdays", "billing"),
    _late("en", True, "Feature flags are stored in LaunchDarkly", "Feature flags are stored in Postgres", "flags"),
    _late("en", True, "The mobile app is written in Kotlin", "The mobile app has been rewritten in Flutter"),
    _late("en", True, "Uploads are limited to 10 MB", "Uploads are limited to 25 MB", "uploads"),
    _late("en", True, "Public sign-up is enabled", "Public sign-up is disabled", "signup"),
    _late("en", True, "Anyone may merge to main", "Nobody may merge to main", "git"),
    _late("en", True, "The staging cluster lives in Frankfurt", "The staging cluster lives in Dublin", "infra"),
    _late("en", True, {"subject": "checkout", "lead": "Priya"}, {"subject": "checkout", "lead": "Tom"}),
    _late("en", True, {"name": "Priya", "team": "payments"}, {"name": "Priya", "team": "search"}, kind="person"),
    _late("en", True, {"service": "search", "memory_mb": 512}, {"service": "search", "memory_mb": 1024}),
    _late("en", True, {"project": "atlas", "status": "frozen"}, {"project": "atlas", "status": "live"}),
    _late("en", True, "Using npm", "Using pnpm", "js-packages"),
    _late("en", True, "We moved alerts from email to Slack", "Alerts are sent via email", "alerts"),
    _late("en", False, "The nightly job starts at 02:00 UTC", "The weekly job starts at 04:00 UTC", "jobs"),
    _late("en", False, "Our SLA is 99.9 percent", "Their SLA is 99.5 percent", "sla"),
    _late("en", False, "Invoices are sent on Mondays", "Reminders are sent on Wednesdays", "billing"),
    _late("en", False, "The API returns JSON", "The API returns 404 for unknown ids", "api"),
    _late("en", False, "The parser handles comments", "The parser handles nested quotes", "parser"),
    _late("en", False, "Retry after 5 seconds on timeout", "Retry after 30 seconds on overload", "retries"),
    _late("en", False, "Ticket 431 is closed", "Ticket 432 is open", "tickets"),
    _late("en", False, "Version 2 is faster", "Version 3 is smaller", "versions"),
    _late("en", False, "Step 1 takes 5 minutes", "Step 2 takes 9 minutes", "steps"),
    _late("en", False, "The build takes 5 minutes", "The build takes 5 minutes on CI", "build"),
    _late("en", False, "Priya joined on Monday", "Tom joined on Tuesday", "people"),
    _late("en", False, "The team meets in room 4 on Mondays", "The team meets in room 6 on Fridays", "meetings"),
    _late("en", False, "Use tabs in Makefiles", "Use spaces in Python", "style"),
    _late("en", False, "Do not log tokens", "Log request ids", "logging"),
    _late("en", False, "Postgres is open source", "Postgres is not a document store", "postgres"),
    _late("en", False, {"name": "index.html", "size": 10}, {"name": "index.html", "owner": "tom"}, kind="file"),
    _late("en", False, {"subject": "checkout", "risk": "slow"}, {"subject": "checkout", "benefit": "simple"}),
    _late("en", False, {"name": "login test", "result": "passed", "run": 1}, {"name": "login test", "result": "failed", "run": 2}, kind="run"),
    _late("en", False, {"user": "tom", "action": "login"}, {"user": "tom", "action": "logout"}, kind="log"),
    _late("en", False, "Search was rebuilt on Tantivy", "Search is implemented with care"),
    _late("en", False, "Payments via Stripe", "Payments refactored to smaller modules"),
    _late("ru", True, "Ночная задача начинается в 02:00", "Ночная задача начинается в 04:00", "задачи"),
    _late("ru", True, "Счета отправляются по понедельникам", "Счета отправляются по средам", "счета"),
    _late("ru", True, "Регистрация открыта", "Регистрация закрыта", "регистрация"),
    _late("ru", True, "Приложение для телефона написано на Kotlin", "Приложение для телефона переписано на Flutter"),
    _late("ru", True, "Размер файла — до 10 МБ", "Размер файла — до 25 МБ", "файлы"),
    _late("ru", True, {"name": "Прия", "команда": "платежи"}, {"name": "Прия", "команда": "поиск"}, kind="person"),
    _late("ru", True, {"subject": "корзина", "ведущий": "Прия"}, {"subject": "корзина", "ведущий": "Том"}),
    _late("ru", True, "Отчёты хранятся 30 дней", "Отчёты хранятся 90 дней", "отчёты"),
    _late("ru", True, "Уведомления сделаны через почту", "Уведомления переделаны на Slack"),
    _late("ru", True, "Мы используем npm", "Мы используем pnpm", "пакеты-js"),
    _late("ru", True, "Доступ гостей разрешён", "Доступ гостей запрещён", "доступ"),
    _late("ru", False, "Ночная задача начинается в 02:00", "Недельная задача начинается в 04:00", "задачи"),
    _late("ru", False, "Счета отправляются по понедельникам", "Напоминания отправляются по средам", "счета"),
    _late("ru", False, "Задача 431 закрыта", "Задача 432 открыта", "задачи"),
    _late("ru", False, "API возвращает JSON", "API возвращает 404 на чужие id", "api"),
    _late("ru", False, "Шаг 1 занимает 5 минут", "Шаг 2 занимает 9 минут", "шаги"),
    _late("ru", False, "Сборка занимает 5 минут", "Сборка занимает 5 минут на CI", "сборка"),
    _late("ru", False, "Прия пришла в понедельник", "Том пришёл во вторник", "люди"),
    _late("ru", False, "Уведомления сделаны через почту", "Отчёты переделаны на Slack"),
    _late("ru", False, "Не пишите токены в журнал", "Пишите в журнал id запросов", "журнал"),
    _late("ru", False, "Поиск переписан на Rust", "Поиск работает быстро"),
    _late("ru", False, {"user": "том", "действие": "вход"}, {"user": "том", "действие": "выход"}, kind="log"),
    _late("ru", False, {"name": "тест входа", "итог": "прошёл", "run": 1}, {"name": "тест входа", "итог": "упал", "run": 2}, kind="run"),
)  # fmt: skip
"""Written for the first rules, which had a precision of 0.81 on them; the rules learned from these."""

_third = partial(_late, group="written third")
THIRD = (
    _third("en", True, "Passwords must have 8 characters; they are 8 long", "Passwords must have 12 characters; they are 12 long", "passwords"),
    _third("en", True, "Sessions expire after 20 minutes", "Sessions expire after 2 hours", "sessions"),
    _third("en", True, "Support answers within 4 hours", "Support answers within 24 hours", "support"),
    _third("en", True, "The demo is on Wednesday", "The demo is on Thursday", "demo"),
    _third("en", True, "Telemetry is enabled", "Telemetry is not enabled", "telemetry"),
    _third("en", True, "Backups are stored in S3", "Backups are stored in Azure", "backups"),
    _third("en", True, "The gateway is written in Java", "The gateway was rewritten in Go"),
    _third("en", True, "Deployment is done through Jenkins", "We migrated deployment from Jenkins to GitHub Actions", "deployment"),
    _third("en", True, "Reports are public", "Reports are private", "reports"),
    _third("en", True, {"subject": "invoice export", "format": "CSV"}, {"subject": "invoice export", "format": "XLSX"}),
    _third("en", True, {"name": "Mercury", "language": "Go", "port": 7000}, {"name": "Mercury", "language": "Go", "port": 7001}, kind="service"),
    _third("en", True, {"person": "Lee", "role": "designer"}, {"person": "Lee", "role": "manager"}),
    _third("en", True, {"customer": "Acme", "plan": "free"}, {"customer": "Acme", "plan": "enterprise"}, kind="contract"),
    _third("en", True, "Kafka", "RabbitMQ", "message-broker", kind="decision"),
    _third("en", False, "Sessions expire after 20 minutes", "Invitations expire after 2 days", "sessions"),
    _third("en", False, "The demo is on Wednesday", "The retro is on Thursday", "meetings"),
    _third("en", False, "Telemetry is enabled in staging", "Telemetry is disabled in production", "telemetry"),
    _third("en", False, "Backups are stored in S3", "Logs are stored in Azure", "storage"),
    _third("en", False, "The gateway is written in Java", "The gateway handles 900 requests a second", "gateway"),
    _third("en", False, "Jenkins runs the unit tests", "GitHub Actions runs the release", "ci"),
    _third("en", False, "Lee designed the logo", "Lee designed the banner", "design"),
    _third("en", False, "Chapter 2 is 14 pages long", "Chapter 3 is 20 pages long", "book"),
    _third("en", False, "The bug appears in Firefox 120", "The bug appears in Firefox 121", "bugs"),
    _third("en", False, "Acme pays in euros", "Acme pays on time", "acme"),
    _third("en", False, "Costs rose by 5 percent", "Costs rose by 9 percent", "costs"),
    _third("en", False, "Mercury talks to Venus", "Mercury talks to Mars", "mercury"),
    _third("en", False, "Search is slow on Mondays", "Search is slow on Fridays", "search"),
    _third("en", False, {"subject": "invoice export", "format": "CSV"}, {"subject": "invoice import", "format": "XLSX"}),
    _third("en", False, {"person": "Lee", "skill": "Figma"}, {"person": "Lee", "skill": "Sketch"}),
    _third("en", False, {"name": "report.pdf", "pages": 4, "year": 2025}, {"name": "report.pdf", "pages": 9, "year": 2026}),
    _third("en", False, {"customer": "Acme", "amount": 100, "invoice": "A1"}, {"customer": "Acme", "amount": 250, "invoice": "A2"}),
    _third("en", False, {"service": "Mercury", "uses": "Kafka"}, {"service": "Mercury", "uses": "Redis"}),
    _third("en", False, {"name": "Lee", "email": "lee@one.example"}, {"name": "Lee", "phone": "555"}, kind="person"),
    _third("en", False, "Login via Google", "Login via GitHub", "login-options"),
    _third("ru", True, "Сессия истекает через 20 минут", "Сессия истекает через 40 минут", "сессии"),
    _third("ru", True, "Демо проходит в среду", "Демо проходит в четверг", "демо"),
    _third("ru", True, "Копии хранятся в S3", "Копии хранятся в Azure", "копии"),
    _third("ru", True, "Шлюз написан на Java", "Шлюз переписан на Go"),
    _third("ru", True, "Сборка сделана через Jenkins", "Сборка переведена на GitLab", "сборка"),
    _third("ru", True, "Телеметрия включена", "Телеметрия отключена", "телеметрия"),
    _third("ru", True, {"subject": "выгрузка счетов", "формат": "CSV"}, {"subject": "выгрузка счетов", "формат": "XLSX"}),
    _third("ru", True, {"customer": "Ромашка", "тариф": "бесплатный"}, {"customer": "Ромашка", "тариф": "полный"}, kind="contract"),
    _third("ru", False, "Сессия истекает через 20 минут", "Приглашение истекает через 2 дня", "сессии"),
    _third("ru", False, "Демо проходит в среду", "Ретро проходит в четверг", "встречи"),
    _third("ru", False, "Копии хранятся в S3", "Журналы хранятся в Azure", "хранение"),
    _third("ru", False, "Глава 2 занимает 14 страниц", "Глава 3 занимает 20 страниц", "книга"),
    _third("ru", False, "Расходы выросли на 5 процентов", "Расходы выросли на 9 процентов", "расходы"),
    _third("ru", False, "Поиск медленный по понедельникам", "Поиск медленный по пятницам", "поиск"),
    _third("ru", False, "Сборка переведена на GitLab", "Сборка сделана через GitLab", "сборка"),
    _third("ru", False, "Ли нарисовал логотип", "Ли нарисовал баннер", "дизайн"),
    _third("ru", False, {"subject": "выгрузка счетов", "формат": "CSV"}, {"subject": "загрузка счетов", "формат": "XLSX"}),
    _third("ru", False, {"person": "Ли", "навык": "Figma"}, {"person": "Ли", "навык": "Sketch"}),
)  # fmt: skip
"""Written for the second rules, which had a precision of 0.79 on them; the rules learned from these too."""

_fourth = partial(_late, group="written fourth")
FOURTH = (
    _fourth("en", True, "The pager rotates every 7 days", "The pager rotates every 14 days", "oncall"),
    _fourth("en", True, "The archive is hosted in Virginia", "The archive is hosted in Singapore", "archive"),
    _fourth("en", True, "Payroll closes on the 25th", "Payroll closes on the 28th", "payroll"),
    _fourth("en", True, "Two reviewers are required", "Two reviewers are optional", "reviews"),
    _fourth("en", True, "Emails are rendered with MJML", "Email rendering was reworked to React", "email"),
    _fourth("en", True, "The CLI is built on Click", "The CLI was rebuilt on Typer"),
    _fourth("en", True, "Contractors can see salaries", "Contractors cannot see salaries", "access"),
    _fourth("en", True, "The trial lasts 14 days", "The trial lasts one month", "trial"),
    _fourth("en", True, {"subject": "the vault", "code": 4711}, {"subject": "the vault", "code": 1147}),
    _fourth("en", True, {"name": "Saturn", "runtime": "Node 18", "tier": "gold"}, {"name": "Saturn", "runtime": "Node 22", "tier": "gold"}, kind="service"),
    _fourth("en", True, {"entity": "Q3 budget", "approved": True}, {"entity": "Q3 budget", "approved": False}, kind="decision"),
    _fourth("en", True, {"provider": "Twilio"}, {"provider": "Vonage"}, "sms"),
    _fourth("en", False, "The pager rotates every 7 days", "The keys rotate every 14 days", "oncall"),
    _fourth("en", False, "The archive is hosted in Virginia", "The mirror is hosted in Singapore", "archive"),
    _fourth("en", False, "Payroll closes on the 25th", "Payroll is done by Nia", "payroll"),
    _fourth("en", False, "Two reviewers are required", "One test is required", "reviews"),
    _fourth("en", False, "The trial lasts 14 days", "The trial lasts two weeks", "trial"),
    _fourth("en", False, "Nia owns the roadmap", "Nia owns the budget", "people"),
    _fourth("en", False, "Page 3 has 2 pictures", "Page 4 has 5 pictures", "layout"),
    _fourth("en", False, "Saturn depends on Kafka", "Saturn depends on Consul", "saturn"),
    _fourth("en", False, "Release 7 is on hold", "Release 8 is on track", "releases"),
    _fourth("en", False, "The form has a name field", "The form has an email field", "forms"),
    _fourth("en", False, "Costs are down", "Costs are a concern", "costs"),
    _fourth("en", False, "The cache is cold after a restart", "The cache is warm after an hour", "cache"),
    _fourth("en", False, "Lights go on at 7", "Lights go off at 22", "lights"),
    _fourth("en", False, "Ask Nia about invoices", "Ask Omar about refunds", "contacts"),
    _fourth("en", False, "Emails via SES", "Emails via SMTP as a fallback", "mail"),
    _fourth("en", False, "The museum is closed on Mondays", "The museum is open on Sundays", "museum"),
    _fourth("en", False, {"name": "Saturn", "tier": "gold"}, {"name": "Saturn", "tier": "bronze", "region": "eu"}, kind="service"),
    _fourth("en", False, {"subject": "the vault", "opened_by": "Nia"}, {"subject": "the vault", "opened_by": "Omar"}),
    _fourth("en", False, {"name": "Nia", "tags": ["a"]}, {"name": "Nia", "tags": ["b"]}, kind="person"),
    _fourth("en", False, {"title": "Intro", "page": 1}, {"title": "Intro", "page": 9}, "book"),
    _fourth("en", False, {"subject": "login", "bug": "slow"}, {"subject": "login", "bug": "ugly"}),
    _fourth("ru", True, "Дежурство меняется каждые 7 дней", "Дежурство меняется каждые 14 дней", "дежурство"),
    _fourth("ru", True, "Архив находится в Омске", "Архив находится в Твери", "архив"),
    _fourth("ru", True, "Пробный период длится 14 дней", "Пробный период длится 30 дней", "пробный"),
    _fourth("ru", True, "Письма сделаны на MJML", "Письма переделаны на React"),
    _fourth("ru", True, {"subject": "сейф", "код": 4711}, {"subject": "сейф", "код": 1147}),
    _fourth("ru", True, "Гости могут читать отчёты", "Гости не могут читать отчёты", "доступ"),
    _fourth("ru", True, {"поставщик": "Twilio"}, {"поставщик": "Vonage"}, "смс"),
    _fourth("ru", False, "Дежурство меняется каждые 7 дней", "Ключи меняются каждые 14 дней", "дежурство"),
    _fourth("ru", False, "Архив находится в Омске", "Зеркало находится в Твери", "архив"),
    _fourth("ru", False, "Пробный период длится 14 дней", "Пробный период длится две недели", "пробный"),
    _fourth("ru", False, "Нина ведёт план", "Нина ведёт бюджет", "люди"),
    _fourth("ru", False, "Музей закрыт по понедельникам", "Музей открыт по воскресеньям", "музей"),
    _fourth("ru", False, "Спросите Нину о счетах", "Спросите Омара о возвратах", "связь"),
    _fourth("ru", False, {"subject": "сейф", "открывал": "Нина"}, {"subject": "сейф", "открывал": "Омар"}),
    _fourth("ru", False, "Страница 3 содержит 2 рисунка", "Страница 4 содержит 5 рисунков", "вёрстка"),
)  # fmt: skip
"""Written for the third rules, which had a precision of 0.77 on them; the rules learned from these too."""

NOTEBOOK = {
    # what an agent keeps of one shop over a month, as it comes: (content, tags, kind)
    "rate": ({"says": "The checkout API allows 50 requests a second"}, "checkout api", "fact"),
    "rate2": ({"says": "The checkout API allows 80 requests a second"}, "checkout api", "fact"),
    "rate-search": ({"says": "The search API allows 200 requests a second"}, "search api", "fact"),
    "node": ({"says": "Checkout runs on Node 20"}, "checkout runtime", "fact"),
    "node2": ({"says": "Checkout runs on Node 22"}, "checkout runtime", "fact"),
    "cart": ({"says": "Carts expire after one hour"}, "checkout carts", "fact"),
    "cart2": ({"says": "Carts expire after 2 hours"}, "checkout carts", "fact"),
    "cart3": ({"says": "Carts are emptied at midnight"}, "checkout carts", "fact"),
    "cart4": ({"says": "Guests may keep a cart for a day"}, "checkout carts", "fact"),
    "wish": ({"says": "Wish lists never expire"}, "checkout carts", "fact"),
    "pay": ({"says": "Payments are handled via Stripe"}, "payments", "decision"),
    "pay2": ({"says": "Payments are handled via Adyen"}, "payments", "decision"),
    "pay3": ({"says": "Refunds are handled via support"}, "payments", "decision"),
    "pay4": ({"says": "Stripe charges 1.4 percent"}, "payments costs", "fact"),
    "pay5": ({"says": "Adyen charges 1.1 percent"}, "payments costs", "fact"),
    "pay6": ({"says": "Payments may be split in 3 parts"}, "payments", "fact"),
    "pay7": ({"says": "PayPal will be dropped in May"}, "payments", "plan"),
    "login": ({"says": "Login is done with passwords"}, "login", "decision"),
    "login2": ({"says": "Login was changed to passkeys"}, "login", "decision"),
    "login3": ({"says": "Login with Apple is asked for often"}, "login", "fact"),
    "login4": ({"says": "The login page takes 4 seconds to load"}, "login speed", "fact"),
    "login5": ({"says": "The start page takes 2 seconds to load"}, "start speed", "fact"),
    "login6": ({"says": "Passwords are hashed with argon2"}, "login security", "fact"),
    "owner": ({"subject": "checkout", "owner": "Mia"}, "people", "fact"),
    "owner2": ({"subject": "checkout", "owner": "Jon"}, "people", "fact"),
    "owner3": ({"subject": "search", "owner": "Mia"}, "people", "fact"),
    "owner4": ({"subject": "checkout", "reviewer": "Mia"}, "people", "fact"),
    "mia": ({"name": "Mia", "city": "Turin", "team": "shop"}, "people", "person"),
    "mia2": ({"name": "Mia", "city": "Milan", "team": "shop"}, "people", "person"),
    "jon": ({"name": "Jon", "city": "Turin", "team": "shop"}, "people", "person"),
    "mia3": ({"says": "Mia prefers short meetings"}, "people", "preference"),
    "jon2": ({"says": "Jon prefers long reviews"}, "people", "preference"),
    "index": ({"service": "search", "index": "BM25", "shards": 4}, "search", "fact"),
    "index2": ({"service": "search", "index": "BM25", "shards": 8}, "search", "fact"),
    "index3": ({"service": "search", "latency_ms": 41, "date": "2026-01-03"}, "search speed", "fact"),
    "index4": ({"service": "search", "latency_ms": 57, "date": "2026-01-09"}, "search speed", "fact"),
    "release": ({"says": "Releases go out on Thursdays"}, "release", "fact"),
    "release2": ({"says": "Releases go out on Tuesdays"}, "release", "fact"),
    "release3": ({"says": "Release 41 went out on a Friday"}, "release", "fact"),
    "release4": ({"says": "Release 42 went out on a Monday"}, "release", "fact"),
    "release5": ({"says": "Nobody is to release before a holiday"}, "release", "fact"),
    "logs": ({"says": "Logs are stored in Loki"}, "logs", "fact"),
    "logs2": ({"says": "Logs are stored in Elastic"}, "logs", "fact"),
    "logs3": ({"says": "Traces are stored in Tempo"}, "logs", "fact"),
    "logs4": ({"says": "Logs are kept for 30 days"}, "logs", "fact"),
    "bug": ({"says": "Bug 512 is fixed"}, "bugs", "fact"),
    "bug2": ({"says": "Bug 513 is not fixed"}, "bugs", "fact"),
    "bug3": ({"says": "Bug 514 breaks the cart on iOS 17"}, "bugs carts", "fact"),
    "bug4": ({"says": "Bug 515 breaks the cart on iOS 18"}, "bugs carts", "fact"),
    "beta": ({"says": "The beta is open"}, "beta", "fact"),
    "beta2": ({"says": "The beta is closed"}, "beta", "fact"),
    "склад": ({"says": "Склад обновляется каждые 15 минут"}, "склад", "fact"),
    "склад2": ({"says": "Склад обновляется каждый час"}, "склад", "fact"),
    "склад3": ({"says": "Остатки хранятся в Postgres"}, "склад", "fact"),
    "склад4": ({"says": "Остатки хранятся в ClickHouse"}, "склад", "fact"),
    "склад5": ({"says": "Возвраты хранятся в 1С"}, "склад", "fact"),
    "доставка": ({"says": "Доставка стоит 300 рублей"}, "доставка", "fact"),
    "доставка2": ({"says": "Доставка стоит 350 рублей"}, "доставка", "fact"),
    "доставка3": ({"says": "Срочная доставка стоит 900 рублей"}, "доставка", "fact"),
    "доставка4": ({"says": "Курьер работает по субботам"}, "доставка", "fact"),
    "доставка5": ({"says": "Курьер не работает по субботам"}, "доставка", "fact"),
    "доставка6": ({"says": "Пункт выдачи работает по воскресеньям"}, "доставка", "fact"),
    "отчёты": ({"says": "Отчёты реализованы через выгрузки"}, "отчёты", "decision"),
    "отчёты2": ({"says": "Отчёты переделаны на витрины"}, "отчёты", "decision"),
    "отчёты3": ({"says": "Отчёты смотрит Анна"}, "отчёты", "fact"),
    "отчёты4": ({"says": "Отчёты смотрит Олег"}, "отчёты", "fact"),
}  # fmt: skip
DISAGREE = (
    "rate rate2", "node node2", "cart cart2", "pay pay2", "login login2", "owner owner2", "mia mia2", "index index2", "release release2", "logs logs2",
    "beta beta2", "склад склад2", "склад3 склад4", "доставка доставка2", "доставка4 доставка5", "отчёты отчёты2",
)  # fmt: skip
"""The pairs of the notebook that contradict each other. It was written when the rules were done, which were not changed for it."""


def pairs() -> list[Labelled]:
    """All labelled pairs."""
    english = _told((*TRUE_ENGLISH, *FALSE_ENGLISH), "en", iter(ENGLISH))
    russian = _told((*TRUE_RUSSIAN, *FALSE_RUSSIAN), "ru", iter(RUSSIAN))
    return [*BY_HAND, *SECOND, *THIRD, *FOURTH, *chain(english, russian)]


def _told(templates: Iterable[Template], language: str, names: Iterator[str]) -> Iterator[Labelled]:
    for template, turn in ((each, turn) for each in templates for turn in range(each.told)):
        first, second = template.values[turn % len(template.values)]
        project = next(names)
        other = next(names) if "{q}" in str(template) else ""
        gaps = {"p": project, "P": project.upper(), "q": other, "a": first, "b": second}
        tags = template.tags if template.newer_tags is None else template.newer_tags
        yield Labelled(
            template.group,
            language,
            _fact(template.older, template.kinds[0], template.tags, template.keys[0], gaps),
            _fact(template.newer, template.kinds[1], tags, template.keys[1], gaps),
            template.contradicts,
        )


def _fact(said: Any, kind: str, tags: tuple[str, ...], key: str | None, gaps: dict[str, Any]) -> Fact:
    content = {"says": said} if isinstance(said, str) else said
    filled = tuple(tag.format(**gaps) for tag in tags)
    return Fact(_filled(content, gaps), kind, filled, key and key.format(**gaps))


def _filled(value: Any, gaps: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, gaps) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, gaps) for each in value]
    if isinstance(value, str):
        bare = value[1:-1] if value in ("{a}", "{b}") else ""
        return gaps[bare] if bare else value.format(**gaps)
    return value
