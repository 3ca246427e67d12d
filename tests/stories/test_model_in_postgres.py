"""I5 for a store in PostgreSQL: random histories told by two processes in turn, and the oracle, which knows of neither."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

import graphstore
from tests.change.oracle import Oracle
from tests.stories.test_model import OURS, START, Histories

pytestmark = [pytest.mark.postgres, pytest.mark.rest]


class Last(Oracle):
    """No view is later than the last transaction, so none is in the way of the next one; but those made inside a block that failed are."""

    _handed = START

    @property
    def handed(self) -> datetime:
        return self._handed

    @handed.setter
    def handed(self, at: datetime) -> None:
        if at == START or self.block is not None:
            self._handed = at


class InPostgres(Histories):
    """Two openings of one store and the oracle, side by side."""

    server: ClassVar[Any]

    def __init__(self) -> None:
        self.address = self.server.url(uuid.uuid4().hex)
        super().__init__()
        self.oracle = Last(self.clock)
        self.other, self.handed_there = self.open(), START

    def open(self, **how: Any) -> Any:
        return graphstore.open(self.address, clock=self.clock, driver=self.driver, **how)

    @precondition(lambda self: self.block is None)
    @rule()
    def the_other_goes_on(self) -> None:
        self.store, self.other = self.other, self.store
        self.handed_there, self.oracle._handed = self.oracle._handed, self.handed_there
        self.store.refresh()

    def coordinate(self, v: int, t: int, jitter: int) -> tuple[datetime, datetime]:
        valid, tx = super().coordinate(v, t, jitter)
        return valid, min(tx, self.oracle.last)

    def teardown(self) -> None:
        try:
            super().teardown()
            assert self.other.refresh() >= 0
            found = graphstore.open(self.address, read_only=True)
            assert found.verify().ok
            found.close()
        finally:
            self.other.close()


def test_two_openings_answer_what_the_oracle_answers(postgres: Any) -> None:
    InPostgres.server = postgres

    run_state_machine_as_test(InPostgres, settings=settings(OURS, max_examples=5, stateful_step_count=15))
