"""Full-text search as of any coordinate, held against a plain BM25 over the things that stand there."""

from __future__ import annotations

import math
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import Event, GraphStoreError, Node
from graphstore.memory.memory import Memory
from graphstore.memory.recall import recall
from graphstore.search.search import words
from graphstore.values.text import given_text
from graphstore.values.words import Analyzer
from tests.conftest import Clock, day

pytestmark = pytest.mark.in_process("asks the parts of the store that search")

POOL = ("login", "token", "cache", "8080", "Straße", "auth_v1", "deploy", "ключ")
NAMES = ("a", "b", "c", "d", "e")
ENGLISH = Analyzer()


# ---------------------------------------------------------------- the plain twin


def said(thing: Node | Event) -> list[str]:
    if isinstance(thing, Event):
        return ENGLISH.terms(f"{thing.description}\n{thing.source or ''}")
    parts = [thing.key or "", given_text(thing.content, thing.text) or "", *thing.tags]

    def leaves(value):
        if isinstance(value, dict):
            for each in value.values():
                leaves(each)
        elif isinstance(value, list):
            for each in value:
                leaves(each)
        elif value is not None and not isinstance(value, bool):
            parts.append(str(value))

    whose = ("user", "thread") if thing.kind == "chunk" else ()
    leaves({name: value for name, value in thing.content.items() if name not in whose})
    return ENGLISH.terms("\n".join(parts))


def bm25(view, text: str) -> list[tuple[str, float]]:
    """Every thing of the view that says a word of the text, with its score, best first."""
    things = [*view.nodes(), *(event for event in view.events() if event.standing == "stands")]
    bags = {thing.id: Counter(said(thing)) for thing in things}
    lengths = {id: sum(bag.values()) for id, bag in bags.items()}
    mean = sum(lengths.values()) / len(lengths) if lengths else 1.0
    scores: dict[str, float] = {}
    for term in ENGLISH.ask(text).terms:
        word = term.forms[0]
        having = [id for id, bag in bags.items() if word in bag]
        idf = math.log(1 + (len(bags) - len(having) + 0.5) / (len(having) + 0.5))
        for id in having:
            often = bags[id][word]
            norm = 0.9 * (1 - 0.4 + 0.4 * lengths[id] / mean)
            scores[id] = scores.get(id, 0.0) + term.weight * idf * often * 1.9 / (often + norm)
    return sorted(scores.items(), key=lambda found: (-round(found[1], 9), found[0]))


def found(view, text: str, most: int = 10_000, kinds: tuple[str, ...] = ()) -> list[tuple[str, float]]:
    with view.reading() as sight:
        matches = sight.found(text, most, frozenset(kinds)).matches
        named = [(sight.id(ent), score) for ent, score in matches]
    return sorted(named, key=lambda match: (-round(match[1], 9), match[0]))


def unknown(view, text: str) -> list[str]:
    with view.reading() as sight:
        return sight.found(text, 5).unknown


def ids(view, text: str) -> set[str]:
    return {id for id, _ in found(view, text)}


def agree(view) -> None:
    for text in (*POOL, "login 8080 cache", "fact error"):
        expected = bm25(view, text)
        got = found(view, text)
        assert [id for id, _ in expected] == [id for id, _ in got]
        assert [score for _, score in expected] == pytest.approx([score for _, score in got])


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("… !? --", []),
        ("Logins FAIL", ["logins", "fail"]),
        ("auth_v1 deploy-day", ["auth", "v1", "deploy", "day"]),
        ("port 8080, ERR-404, 3.14", ["port", "8080", "err", "404", "3", "14"]),
        ("evt_1700000000000_ab12cd34", ["evt", "1700000000000", "ab12cd34"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("Ключ ДОСТУПА", ["ключ", "доступа"]),
        ("cafe\u0301 caf\u00e9", ["café", "café"]),
        ("ＡＢＣ１２", ["abc12"]),
        ("東京tower", ["東", "京", "tower"]),
        ("don't", ["don", "t"]),
    ],
)
def test_words_of_a_text(text, expected):
    assert expected == words(text)


def test_node_is_found_by_text_leaves_tags_and_key(store):
    content = {"a": ["deep", {"b": 443}], "c": 2.5, "d": True, "e": None}
    store.add_node("decision", content, id="n", key="Login Way", text="sessions", tags=["urgent"])

    for text in ("sessions", "deep", "443", "2.5", "urgent", "login", "way"):
        assert {"n"} == ids(store, text), text
    for text in ("true", "none", "b", "n", "decision"):
        assert set() == ids(store, text), text


def test_chunk_is_not_found_by_whose_it_is(store):
    memory = Memory(store)
    memory.remember("tea is hot", layer="conversation", user="anna", thread="kitchen")

    assert not ids(store, "anna kitchen chunk")
    assert ids(store, "tea")


def test_event_is_found_by_description_and_source(store):
    store.record_event(
        "error", "tokens expire", id="event-1", source="auth.py", agent="bot", metadata={"x": "quiet"}
    )

    for text in ("tokens", "auth", "py", "auth.py"):
        assert {"event-1"} == ids(store, text), text
    assert set() == ids(store, "bot quiet error")


def test_match_needs_one_of_the_words_and_says_which_nobody_says(store):
    store.add_node("fact", {}, id="n", text="login")

    assert ["token", "cache"] == unknown(store, "token login cache token")
    assert set() == ids(store, "token")


def test_word_forms_are_found_and_function_words_are_not_asked_for(store):
    store.add_node("fact", {}, id="n", text="Logins are PASETO v4 tokens")
    store.add_node("fact", {}, id="m", text="how are you")

    assert {"n"} == ids(store, "how does login work?")
    assert {"m"} <= ids(store, "how are you")


def test_a_phrase_is_said_word_by_word(store):
    store.add_node("fact", {}, id="said", text="Deploys of checkout need two reviewers.")
    store.add_node("fact", {}, id="apart", text="two of the reviewers deploy checkout")

    assert {"said"} == ids(store, 'checkout "two reviewers"')
    assert set() == ids(store, '"two reviewer"')


def test_what_says_an_excluded_word_is_not_found(store):
    store.add_node("fact", {}, id="old", text="login by legacy sessions")
    store.add_node("fact", {}, id="new", text="login by tokens")

    assert {"new"} == ids(store, "login -legacy")


def test_a_code_is_found_whole_and_by_its_beginning(store):
    store.add_node("fact", {}, id="a", text="the gateway answers ERR-4041 at night")
    store.add_node("fact", {}, id="b", text="an err of 404 pages")

    assert ["a", "b"] == [id for id, _ in found(store, "ERR-404")]
    assert "a" == found(store, "err-4041")[0][0]


def test_words_are_those_of_the_languages_of_the_store(tmp_path, clock):
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        store.add_node("fact", {}, id="n", text="Die Häuser am Markt")
        assert not ids(store, "Haus")
        store.set_languages(["english", "german"])
        assert {"n"} == ids(store, "Wo steht das Haus?") == ids(store, "häuser")
        with pytest.raises(GraphStoreError, match="germn"):
            store.set_languages(["germn"])
        with pytest.raises(GraphStoreError, match="no language"):
            store.set_languages([])
    with graphstore.open(tmp_path / "memory.gs", read_only=True) as follower:
        assert ("english", "german") == follower.languages
        assert {"n"} == ids(follower, "Haus")


def test_rare_words_and_short_texts_rank_higher(store):
    store.add_node("fact", {}, id="long", text="token " + "filler " * 30)
    store.add_node("fact", {}, id="short", text="token")
    store.add_node("fact", {}, id="rare", text="unicorn")

    assert ["rare", "short", "long"] == [id for id, _ in found(store, "token unicorn")]


def test_ties_are_by_id_and_only_the_most_are_given(store):
    for id in ("c", "a", "b"):
        store.add_node("fact", {}, id=id, text="same words")

    assert ["a", "b"] == [id for id, _ in found(store, "same", 2)]


def test_kinds_are_left_out_before_the_best_are_taken(store):
    for number in range(5):
        store.add_node("fact", {}, id=f"fact-{number}", text="token")
    store.add_node("decision", {}, id="decided", text="token " + "more " * 20)

    assert ["decided"] == [id for id, _ in found(store, "token", 1, ("decision",))]


# ---------------------------------------------------------------- as of


def test_what_does_not_stand_is_not_found(store, clock):
    store.add_node("fact", {}, id="old", text="login")
    store.add_node("fact", {}, id="wrong", text="login")
    store.add_node("fact", {}, id="ended", text="login")
    store.add_node("fact", {}, id="planned", text="login", valid_from="2027-01-01")
    store.record_event("error", "login fails", id="event-1")
    store.record_event("error", "login fails here", id="event-2")
    clock.move(days=1)
    before = store.as_of()
    clock.move(days=1)
    store.add_node("fact", {}, id="new", text="login", supersedes=["old"])
    store.retract("wrong", reason="never so")
    store.end("ended")
    store.link("event-2", "supersedes", "event-1")

    assert {"new", "event-2"} == ids(store, "login")
    assert {"old", "wrong", "ended", "event-1", "event-2"} == ids(before, "login")
    assert {"new", "planned", "event-2"} == ids(store.as_of(valid="2027-02-01"), "login")
    agree(store)
    agree(before)


def test_description_is_found_by_what_it_said_there(store, clock):
    store.add_node("fact", {}, id="n", text="sessions")
    clock.move(days=1)
    first = store.as_of()
    clock.move(days=1)
    store.revise("n", {}, text="tokens")

    assert ({"n"}, set()) == (ids(store, "tokens"), ids(store, "sessions"))
    assert ({"n"}, set()) == (ids(first, "sessions"), ids(first, "tokens"))


def test_supersession_of_an_event_counts_while_it_holds(store):
    store.record_event("error", "login fails", id="event-1", occurred_at="2026-01-01")
    store.record_event("fix", "patched", id="event-2", occurred_at="2026-01-02")
    store.link("event-2", "supersedes", "event-1", valid_from="2026-01-10", valid_to="2026-01-20")

    seen = {
        at: bool(ids(store.as_of(valid=at), "login"))
        for at in ("2026-01-09", "2026-01-10", "2026-01-19", "2026-01-20")
    }

    assert {"2026-01-09": True, "2026-01-10": False, "2026-01-19": False, "2026-01-20": True} == seen


def history(store, clock: Clock, seed: int, steps: int) -> list[tuple[datetime, datetime]]:
    """A random history; gives coordinates of interest. The store is asked on the way, so that it has to follow."""
    chance, places = random.Random(seed), []
    for number in range(steps):
        clock.move(hours=chance.randint(1, 40))
        text = " ".join(chance.choices(POOL, k=chance.randint(1, 5)))
        name, start = chance.choice(NAMES), clock.now - timedelta(days=chance.randint(-4, 8))
        stop = start + timedelta(days=chance.randint(1, 9)) if chance.random() < 0.4 else None
        try:
            match chance.randint(0, 9):
                case 0 | 1:
                    store.add_node(
                        "fact", {"says": text}, id=f"{name}{number}", valid_from=start, valid_to=stop
                    )
                case 2 | 3:
                    store.revise(
                        chance.choice(store.nodes()).id, {}, text=text, valid_from=start, valid_to=stop
                    )
                case 4:
                    old, new = chance.sample([*store.nodes(), *store.events()], 2)
                    store.link(old.id, "supersedes", new.id, valid_from=start, valid_to=stop)
                case 5:
                    store.retract(chance.choice([*store.nodes(), *store.events()]).id, reason="wrong")
                case 6 | 7:
                    store.record_event("error", text, id=f"event{number}", occurred_at=start)
                case 8:
                    links = [link for event in store.events() for link in event.links or ()]
                    store.unlink(chance.choice(links).id, valid_from=start, valid_to=stop)
                case _:
                    store.end(chance.choice(store.nodes()).id, at=start)
        except (GraphStoreError, IndexError, ValueError):
            pass
        if chance.random() < 0.3:
            agree(store)
        places.append((start, clock.now))
    return places


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_every_coordinate_ranks_as_plain_bm25_does(seed):
    clock = Clock()
    with graphstore.open(":memory:", clock=clock) as store:
        places = history(store, clock, seed, 40)
        for valid, tx in random.Random(seed).sample(places, 8):
            agree(store.as_of(valid=valid, tx=tx))
            agree(store.as_of(valid=valid))
        agree(store)


def test_what_is_told_later_changes_no_past_answer(store, clock):
    store.add_node("fact", {}, id="a", text="the gateway answers ERR-4041 to login")
    store.add_node("fact", {}, id="b", text="login by token")
    store.retract("b", reason="never so")
    clock.move(days=1)
    past = store.as_of()

    def answers() -> list[object]:
        with past.reading() as sight:
            texts = ("ERR-404 login", "unicorn login", "token", "gateway")
            return [
                (answer.matches, answer.unknown, answer.weights)
                for answer in (sight.found(text, 99) for text in texts)
            ]

    before = answers()
    clock.move(days=1)
    for number in range(40):
        store.add_node("fact", {}, id=f"n{number}", text=f"unicorn ERR-404 login gateway {'token ' * number}")

    assert before == answers()
    assert [[], ["unicorn"], [], []] == [answer[1] for answer in before]


def test_a_word_is_known_where_anything_recorded_says_it(store, clock):
    store.add_node("fact", {}, id="a", text="login")
    store.add_node("fact", {}, id="b", text="token")
    store.retract("b", reason="never so")

    assert ["cache"] == unknown(store, "token cache login")


def test_a_match_tells_which_words_it_says_and_how_much_of_the_question_that_is(store):
    store.add_node("fact", {}, id="both", text="login by unicorn")
    store.add_node("fact", {}, id="one", text="login")
    store.add_node("decision", {}, id="other", text="login cache")

    with store.reading() as sight:
        found = sight.found("login unicorn pegasus", 1)
        both, one = sight.entity("both"), sight.entity("one")
        login, unicorn, pegasus = found.weights
        assert [both] == [ent for ent, _ in found.matches]
        assert ((0, 1), (0,)) == (found.terms_said_by(both), found.terms_said_by(one))
        assert found.coverages((both,))[0] == pytest.approx((login + unicorn) / (login + unicorn + pegasus))
        assert login < unicorn < pegasus
        assert 3 == len(sight.found("login unicorn pegasus", 9).matches)
        assert 1 == len(sight.found("login unicorn", 9, frozenset({"decision"})).matches)


# ---------------------------------------------------------------- following


def test_block_finds_what_it_wrote_and_nobody_else_does(store, clock):
    store.add_node("fact", {}, id="there", text="login")
    seen = {}

    def other() -> None:
        seen["other"] = ids(store, "login")

    with store.transaction():
        store.add_node("fact", {}, id="fresh", text="login token")
        store.revise("there", {}, text="cache")
        store.record_event("error", "login fails", id="event-1")
        agree(store)
        seen["block"] = ids(store, "login")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    assert {"block": {"fresh", "event-1"}, "other": {"there"}} == seen
    assert {"fresh", "event-1"} == ids(store, "login")


def test_block_that_fails_leaves_no_word(store):
    store.add_node("fact", {}, id="there", text="login")
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.add_node("fact", {}, id="fresh", text="unicorn")
        store.retract("there", reason="wrong")
        assert ({"fresh"}, set()) == (ids(store, "unicorn"), ids(store, "login"))
        raise ZeroDivisionError
    store.add_node("fact", {}, id="later", text="token")

    assert (set(), {"there"}, {"later"}) == (ids(store, "unicorn"), ids(store, "login"), ids(store, "token"))
    agree(store)


def test_verb_refused_in_a_block_leaves_no_word(store):
    with store.transaction():
        store.add_node("fact", {}, id="first", text="login")
        with pytest.raises(GraphStoreError):
            store.add_node("fact", {}, id="second", text="unicorn", supersedes=["nobody"])
        agree(store)
        store.add_node("fact", {}, id="third", text="cache")
        assert (set(), {"third"}) == (ids(store, "unicorn"), ids(store, "cache"))


def test_version_that_died_in_its_block_is_not_found(store):
    with store.transaction():
        store.add_node("fact", {}, id="n", text="unicorn")
        store.revise("n", {}, text="login")
        assert (set(), {"n"}) == (ids(store, "unicorn"), ids(store, "login"))

    assert (set(), {"n"}) == (ids(store, "unicorn"), ids(store, "login"))


def test_reopened_store_finds_the_same(tmp_path, clock):
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        history(store, clock, 7, 40)
        expected = [found(store, text) for text in POOL]
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        assert expected == [found(store, text) for text in POOL]
        agree(store)


def test_a_reader_finds_what_another_process_has_written(disk_store):
    disk_store.add_node("fact", {}, id="one", text="login")
    with graphstore.open(disk_store.path, read_only=True) as follower:
        assert {"one"} == ids(follower, "login")
        disk_store.add_node("fact", {}, id="two", text="login")
        assert {"one", "two"} == ids(follower, "login")


def test_bulk_load_is_followed(store):
    store.add_node("fact", {}, id="one", text="login")
    assert {"one"} == ids(store, "login")
    names = [f"n{number}" for number in range(50)]
    store.bulk_load(
        nodes=[{"id": name, "kind": "fact"} for name in names],
        versions=[{"node_id": name, "content": {"says": "login"}} for name in names],
    )

    assert 51 == len(ids(store, "login"))


# ---------------------------------------------------------------- forgetting


def held(store) -> set[str]:
    """Every word that a process keeps."""
    return set(store._core.row_search._kept.fresh.numbers)


def test_erased_words_are_in_no_structure(disk_store, clock):
    disk_store.add_node("fact", {"says": "unicorn login"}, id="secret")
    disk_store.revise("secret", {"says": "pegasus login"})
    disk_store.add_node("fact", {"says": "login"}, id="plain")
    clock.move(days=1)
    before = disk_store.as_of()
    assert {"secret"} == ids(before, "pegasus")
    clock.move(days=1)

    disk_store.erase("secret", reason="asked to")

    for view in (disk_store, before):
        assert (set(), {"plain"}) == (ids(view, "unicorn pegasus"), ids(view, "login"))
        assert not {"unicorn", "pegasus"} & held(disk_store)
        agree(view)


def test_evicted_events_are_not_found_at_any_coordinate(store, clock):
    store.record_event("error", "unicorn", id="event-1", occurred_at="2026-01-01")
    store.record_event("error", "login", id="event-2")
    clock.move(days=1)
    before = store.as_of()
    assert {"event-1"} == ids(before, "unicorn")

    store.evict(before="2026-01-15")

    assert (set(), {"event-2"}) == (ids(before, "unicorn"), ids(before, "login"))
    assert "unicorn" not in held(store)
    agree(before)


def test_without_tombstones_nothing_is_left_either(store):
    store.record_event("error", "unicorn", id="event-1", occurred_at="2026-01-01")
    store.add_node("fact", {}, id="n", text="login")
    assert {"event-1"} == ids(store, "unicorn")

    store.evict(before="2026-01-15", keep_audit=False)

    assert (set(), {"n"}) == (ids(store, "unicorn"), ids(store, "login"))
    assert "unicorn" not in held(store)


def test_follower_lets_go_of_what_was_erased(disk_store):
    disk_store.add_node("fact", {}, id="secret", text="unicorn")
    with graphstore.open(disk_store.path, read_only=True) as follower:
        assert {"secret"} == ids(follower, "unicorn")
        disk_store.erase("secret", reason="asked to")
        follower.refresh()

        assert set() == ids(follower, "unicorn")
        assert "unicorn" not in held(follower)


# ---------------------------------------------------------------- threads


def test_threads_search_while_one_writes(store):
    store.add_node("fact", {}, id="start", text="login")

    def ask(_: int) -> bool:
        view = store.as_of()
        first = ids(view, "login")
        return first == ids(view, "login") == {id for id, _ in bm25(view, "login")}

    def write(number: int) -> bool:
        store.add_node("fact", {}, id=f"n{number}", text="login token", valid_from=day("2026-01-01"))
        return True

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: write(n) if n % 4 == 0 else ask(n), range(80)))

    assert all(answers)
    agree(store)


def test_a_verb_and_its_particle_find_the_noun_they_make(store):
    store.add_node("fact", {"says": "Logins are PASETO v4 tokens"}, id="login")
    store.add_node("fact", {"says": "Rollbacks need two reviewers"}, id="rollback")

    assert ["login"] == [hit.node.id for hit in recall(store, "how do users log in?")]
    assert ["rollback"] == [hit.node.id for hit in recall(store, "who rolled back")]
