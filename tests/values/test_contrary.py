"""How two plain sentences relate: the same, another value for the same subject, or nothing that can be seen."""

from __future__ import annotations

import pytest

from graphstore.values.contrary import compare


def verdict(one: str, other: str) -> str | None:
    found = compare(one, other)
    return None if found is None else found.verdict


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        ("Log files are kept for 90 days", "Log files are kept for 30 days", ("90 days", "30 days")),
        ("Log files are kept for 90 days", "Log files are kept for two weeks", ("90 days", "two weeks")),
        ("Anna lives in Berlin", "Anna lives in Munich", ("Berlin", "Munich")),
        ("Our CEO is Ada Byron", "The CEO is Grace Hopper", ("Ada Byron", "Grace Hopper")),
        ("The contract ends on 31 March 2026", "The contract ends on 2026-09-30", ("31 March 2026", "2026-09-30")),
        ("Standup is at 9:15", "Standup is at half past nine", ("9:15", "half past nine")),
        ("The job runs hourly", "The job runs once a day", ("hourly", "once a day")),
        ("Refunds are made before shipping", "Refunds are made after shipping", ("before", "after")),
        ("The router has IP 10.0.4.1", "The router has IP 10.0.8.1", ("10.0.4.1", "10.0.8.1")),
        ("The bus leaves on Monday", "The bus leaves on Tuesday", ("Monday", "Tuesday")),
        ("The seat costs $29", "The seat costs 39 dollars", ("$ 29", "39 dollars")),
    ],
)  # fmt: skip
def test_another_value_for_the_same_subject_is_contrary(one, other, values):
    found, back = compare(one, other), compare(other, one)

    assert found is not None and back is not None
    assert ("contrary", values) == (found.verdict, found.values)
    assert ("contrary", values[::-1]) == (back.verdict, back.values)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Cars may use the bridge", "Cars may not use the bridge"),
        ("The flag is enabled in production", "The flag is disabled in production"),
        ("Two-factor login is required", "Two-factor login is optional"),
        ("The launch was approved by legal", "Legal rejected the launch"),
        ("Interviews are always recorded", "Interviews are never recorded"),
        ("Iron is harder than tin", "Tin is harder than iron"),
        ("Only admins can delete projects", "Everyone can delete projects"),
        ("Сессии включены", "Сессии отключены"),
        ("The boat is diesel", "The boat is fully electric"),
        ("the worker runs on linux", "the worker runs on windows"),
        ("The owner hired Ada", "The owner fired Ada"),
        ("Rents rose in May", "Rents fell in May"),
        ("The rope is made of cotton", "The rope is made of nylon"),
        ("The barn is owned by the parish", "The barn is owned by the council"),
        ("The default sort is relevance", "The default sort is date"),
        ("Keys are integers", "Keys are strings"),
        ("The parser returns a tuple", "The parser returns a dict"),
        ("Olga reports to Pavel", "Pavel reports to Olga"),
        ("Mina prefers trains to planes", "Mina prefers planes to trains"),
        ("Otto is responsible for sales", "Ulla is responsible for sales"),
        ("Otto smokes", "Otto quit smoking"),
        ("The cake uses butter", "The cake uses oil instead of butter"),
        ("The mayor supports the tunnel", "The mayor opposes the tunnel"),
        ("The match ended 2:1", "The match ended 3:1"),
    ],
)
def test_a_yes_and_a_no_are_contrary(one, other):
    assert ["contrary", "contrary"] == [verdict(one, other), verdict(other, one)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The film lasts 2 hours", "The film lasts 120 minutes."),
        ("The gym closes at 10 pm", "the gym closes at 22:00"),
        ("Backups run every day", "Backups run daily"),
        ("Berlin is the capital of Germany", "The capital of Germany is Berlin"),
        ("The flag is not enabled", "The flag is disabled"),
        ("Uploads are limited to 10 MB", "Uploads are limited to 10,000 kB"),
        ("The contract ends on 31 March 2027", "The contract ends on 2027-03-31"),
        ("Copper conducts better than iron", "Iron conducts worse than copper"),
        ("We do not accept cash", "We don't accept cash!"),
        ("Rents increased in May", "In May rents rose"),
        ("The lake is 1 km wide", "The lake is 1000 m wide"),
    ],
)
def test_the_same_in_other_units_or_words_is_the_same(one, other):
    assert ["same", "same"] == [verdict(one, other), verdict(other, one)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Port 80 is used in staging", "Port 81 is used in production"),
        ("The timeout for uploads is 30 seconds", "The timeout for downloads is 60 seconds"),
        ("Anna lives in Oslo", "Ben lives in Bergen"),
        ("Anna lives in Oslo", "Ben lives in Oslo"),
        ("We use Postgres", "We use MySQL"),
        ("Dana speaks Danish", "Dana speaks Dutch"),
        ("Ticket 481 is open", "Ticket 482 is closed"),
        ("server_a has 32 GB of memory", "server_b has 64 GB of memory"),
        ("In 2023 we hired 4 people", "In 2024 we hired 9 people"),
        ("Marco is an engineer at Fiat", "Silvia is an engineer at Fiat"),
        ("The old printer is broken", "The new printer works"),
        ("The first draft is due on Monday", "The final draft is due on Friday"),
        ("The warehouse has 3 docks", "The warehouse has 2 forklifts"),
        ("The boat is diesel", "The boat is white"),
        ("Otto has a car", "Otto has a bike"),
        ("The red line is late", "The blue line is late"),
        ("The wall is 2 metres high", "The wall is 40 metres long"),
        ("The cat sleeps in the kitchen", "The cat sleeps in the morning"),
        ("Olga reports to Pavel", "Pavel reports to Irina"),
        ("Olga met Pavel", "Pavel met Olga"),
        ("Mina is allergic to nuts", "Mina is allergic to eggs"),
        ("The inn is near the station", "The inn is near the museum"),
        ("The owner hired Ada", "The owner fired Ben"),
        ("Is the bridge open?", "The bridge is not open"),
        ("The cat sleeps", "The API returns JSON"),
        ("", "The API returns JSON"),
    ],
)
def test_other_subjects_qualifiers_and_lists_are_no_contradiction(one, other):
    assert [None, None] == [verdict(one, other), verdict(other, one)]


def test_it_is_sure_only_where_nothing_else_differs():
    assert compare("The cache holds 100 entries", "The cache holds 200 entries").sure
    assert not compare("The cache holds 100 entries", "The cache in memory holds 200 entries at most").sure


def test_one_clause_of_several_may_contradict():
    assert "contrary" == verdict("Ines writes chapter 6", "Ines does not write chapter 6; Paul does.")


@pytest.mark.parametrize(
    "odd", ["", "?", "...", "a" * 10_000, "1 " * 500, "— — —", "\x00", "½ ¾ ①", "на на на"]
)
def test_odd_texts_are_compared_with_anything(odd):
    assert verdict(odd, "The cache holds 100 entries") is None
    assert verdict(odd, odd) in ("same", None)
