"""Every episode through the tools of an agent: the answers of a person, and the way that explains them."""

from __future__ import annotations

import contextlib

import pytest

from tests.change.episodes import EPISODES, Episode

pytest.importorskip("mcp")
from tests.change.by_tools import ByTools

pytestmark = pytest.mark.in_process("opens a store of its own for each episode, and a server of tools on it")


@pytest.mark.parametrize(
    "episode",
    [
        pytest.param(episode, marks=[pytest.mark.rest] if number % 3 else [], id=episode.name)
        for number, episode in enumerate(EPISODES)
    ],
)
def test_the_tools_have_the_answers_of_a_person(episode: Episode) -> None:
    with contextlib.closing(ByTools()) as teller:
        for telling in episode.told:
            teller.tell(telling)
        for question in episode.asked:
            assert question.answer == teller.ask(question), question


def test_what_episodes_tell_has_tools() -> None:
    with contextlib.closing(ByTools()) as teller:
        assert {"remember", "amend", "record_event", "supersede", "retract", "link"} <= set(teller.arguments)
        steps = [step for episode in EPISODES for telling in episode.told for step in telling.steps]
        teller.known_at = {telling.day: teller.today for one in EPISODES for telling in one.told}
        assert 0.7 * len(steps) < sum(teller.tool(step) is not None for step in steps)
