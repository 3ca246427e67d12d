"""Every episode, through each door: the answers of a person."""

from __future__ import annotations

import contextlib

import pytest

from tests.change.episodes import EPISODES, Episode
from tests.change.tellers import TELLERS

pytestmark = pytest.mark.in_process("opens a store of its own for each episode")


def test_every_manner_has_its_episodes() -> None:
    assert len({episode.name for episode in EPISODES}) == len(EPISODES)
    assert {
        "cascade", "absence", "deletion", "late correction", "backdating", "diamond", "cycle", "restatement", "cancelled plan",
        "slot of two kinds", "trust", "undo", "amend", "lost update", "periods of links",
    } <= {episode.manner for episode in EPISODES}  # fmt: skip


def _answers(episode: Episode, door: str) -> None:
    with contextlib.closing(TELLERS[door]()) as teller:
        for telling in episode.told:
            teller.tell(telling)
        for question in episode.asked:
            assert question.answer == teller.ask(question), question


@pytest.mark.parametrize("episode", [one for one in EPISODES if not one.beyond], ids=lambda one: one.name)
def test_the_oracle_has_the_answers_of_a_person(episode: Episode) -> None:
    _answers(episode, "oracle")


@pytest.mark.parametrize("episode", EPISODES, ids=lambda one: one.name)
def test_the_store_has_the_answers_of_a_person(episode: Episode) -> None:
    _answers(episode, "python")
