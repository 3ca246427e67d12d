"""The made-up memories and their questions, and the noise they lie in.

In a file of facts a line that begins with a date is a fact, `?` asks for the fact above, `!` asks for what nothing says. In `dialogs.txt`
`==` begins a session, other lines are turns.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

FOLDER = Path(__file__).parent
FACTS = ("team", "person", "incidents", "german", "russian")
_PEOPLE = "Marta Jonas Priya Tom Anna Dana Helena Kenji Clara Lena Mama Papa Miso Boris Carla Deniz Emma Farid".split()
_PAIRS = (
    ("Nadia", "Owen"),
    ("Sam", "Ingrid"),
    ("Owen", "Theo"),
    ("Nadia", "Rosa"),
    ("Sam", "Karin"),
    ("Ingrid", "Emil"),
)
_THINGS = (
    "invoice table,card processor,login page,search results,access logs,backup job,mobile app,tax office,mail queue,data export,staging cluster,"
    "release branch,conference budget,webhook secret,cello lesson,bicycle,insurance number,test suite,release notes,customer phone numbers,image cache,"
    "payment worker,team meeting,office lease,washing machine,label printer,primary database,family dinner,birthday cake,feature flag,checkout deploy,"
    "wifi password,runbook,rate limits,session cookies,admin panel,refund,support tickets,API key,migration"
).split(",")
_PLANS = (
    "pottery class,dog,studio,loan,press,opening party,choir,grant proposal,cabin,drone,orchestra,bank,bike,trip,picnic,wedding card,job,sister,mentor,"
    "kitchen,garden,hiking boots,concert,book club,guitar,new car,climbing gym"
).split(",")
_DONE = (
    "fixed,reviewed,moved,opened,closed,checked,renamed,updated,finished,started,asked about,wrote about,talked about,took over,paid for,looked at,"
    "complained about,deployed,restarted,cancelled"
).split(",")
_WHEN = "before noon,after lunch,on a Monday,at night,for two hours,in a hurry,with some help,without asking,again,for the third time".split(
    ","
)
_ELSEWHERE = {
    "incidents": (
        "INC-{n} {0} failed for {m} minutes: {1}.",
        "checkout,search,orders,the gateway,the mail queue,image resizing,the backup job,the coupon service,the status page,payment webhooks,"
        "the primary database,the mobile app,the invoice job,token validation,the CDN,users of the warehouse",
        "a query timed out after the migration,the disk was full,the queue was replayed,the certificate was wrong,the connection was reset,"
        "the region lost traffic,the load balancer was restarted,a customer sent too many requests,the secret was rotated,the clock was wrong",
    ),
    "german": (
        "{0} {1}, sagt Herr Maier am {m}. des Monats.",
        "Der Vertrag,Die Rechnung,Das Passwort,Der Schlüssel,Die Lieferung,Der Server,Das Fest,Die Heizung,Der Drucker,Der neue Kollege,"
        "Die Kundin,Der Urlaub,Die Werkstatt,Das Haus,Der Ordner im Büro,Die Buchhaltung",
        "wird wie jedes Jahr im Keller geprüft,ist wo es immer war,war in der Schweiz,kommt wann sie will,wurde von wem auch immer bezahlt,"
        "muss man noch finden,ist was wir brauchen,hat viele Wochen gedauert,steht wieder im Lager",
    ),
    "russian": (
        "{0} {1}, это заняло {m} минут.",
        "Договор,Сервис,Команда,Сервер,Пароль,Отпуск,Бюджет,Собрание,Клиент,Карта,Копия,Приложение,Кондиционер,Логин,Сотрудник,Поставщик",
        "как всегда в офисе,где и раньше,когда все были на месте,кто бы что ни говорил,в новом отделе,на каком этаже неизвестно,у кого спросить,"
        "через час после собрания,что удивило всех",
    ),
}
_CHAT = (
    "That sounds great, {0}! How was the {1}?",
    "I was thinking about the {1} all week, it is a lot of work.",
    "Really? When did you hear about that, {0}?",
    "Yes, {0} told me, and I think we should do it.",
    "I love that! My {1} is finally done.",
    "How is your family doing, {0}? What is new with you?",
    "We went to see the {1} yesterday, it was fun.",
    "What do you think I should do with the {1}?",
    "Thanks {0}, that means a lot.",
    "I have to go now, see you next week, {0}!",
    "My friend has a {1} and I could not stop laughing.",
    "Who would have thought that the {1} takes so long?",
    "I am so proud of you, {0}! You have done so much for the {1}.",
    "Wow, that is amazing. Where did you get the {1}?",
    "I want to find a new {1}, what kind do you have, {0}?",
    "It has been a hard month, but the {1} keeps me going.",
)


@dataclass
class Said:
    """A text of a memory: when it was said, by whom and in which session if it is a turn."""

    id: str
    when: str
    text: str
    speaker: str = ""
    session: str = ""


@dataclass
class Asked:
    """A question, what it is of, and the ids of what answers it: none if nothing does."""

    text: str
    part: str
    answers: frozenset[str]

    @property
    def chosen(self) -> bool:
        """Whether it is of the half on which constants were chosen."""
        return crc32(self.text.encode()) % 2 == 0


@dataclass
class Memory:
    """Texts, and questions about them."""

    said: list[Said] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


def memory(noise: int = 3_000, chat: int = 900) -> Memory:
    """All memories, in so many facts and turns of noise."""
    found = Memory()
    for part in FACTS:
        _read(part, found)
    _read("dialogs", found)
    chance = random.Random(18)
    found.said += _noise(chance, noise)
    for part in _ELSEWHERE:
        found.said += _of_part(chance, part, noise // 3)
    found.said += _chatter(chance, chat)
    return found


def _read(part: str, found: Memory) -> None:
    session, when, number = "", "", 0
    for line in (FOLDER / f"{part}.txt").read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "==":
            when, _, names = rest.partition(" ")
            session = f"{names.replace(' ', '-')}-{when}"
        elif mark == "?":
            kind = "when" if part == "dialogs" and rest.startswith("When") else part
            found.asked.append(Asked(rest, kind, frozenset({found.said[-1].id})))
        elif mark == "!":
            found.asked.append(Asked(rest, "nothing", frozenset()))
        else:
            number += 1
            speaker, text = (mark.removesuffix(":"), rest) if part == "dialogs" else ("", rest)
            found.said.append(
                Said(f"{part}-{number}", when if speaker else mark, text, speaker, session if speaker else "")
            )


def _noise(chance: random.Random, many: int) -> Iterator[Said]:
    for number in range(many):
        pick = chance.choice
        text = f"{pick(_PEOPLE)} {pick(_DONE)} the {pick(_THINGS)} of {pick(_PEOPLE)} {pick(_WHEN)}, {chance.randint(2, 60)} minutes."
        yield Said(f"noise-{number}", f"2025-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}", text)


def _of_part(chance: random.Random, part: str, many: int) -> Iterator[Said]:
    shape, whats, dids = _ELSEWHERE[part]
    for number in range(many):
        text = shape.format(
            chance.choice(whats.split(",")),
            chance.choice(dids.split(",")),
            n=3000 + number,
            m=chance.randint(1, 28),
        )
        yield Said(
            f"noise-{part}-{number}", f"2025-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}", text
        )


def _chatter(chance: random.Random, many: int) -> Iterator[Said]:
    plan = ""
    for number in range(many):
        first, second = _PAIRS[number // 30 % len(_PAIRS)]
        speaker, other = (first, second) if number % 2 else (second, first)
        when = f"2025-{1 + number // 30 % 12:02}-{1 + number // 30 % 28:02}"
        if number % 30 in (0, 7, 14, 22):
            plan = chance.choice(_PLANS)  # a while about one thing
        text = chance.choice(_CHAT).format(other, plan)
        yield Said(f"chat-{number}", when, text, speaker, f"chat-{number // 30}")
