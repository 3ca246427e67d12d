"""Columns made of buffers hold what they are made of."""

from __future__ import annotations

import pytest

from graphstore.graph.arrow_tables import texts


@pytest.mark.parametrize("text", ["initial", "größer", "", None])
@pytest.mark.parametrize("count", [0, 1, 64, 65, 1_000])
def test_a_column_of_one_text_holds_it_in_each_row(text: str | None, count: int) -> None:
    column = texts([text] * count)
    assert ("string", [text] * count) == (str(column.type), column.to_pylist())


def test_a_column_of_many_texts_that_are_alike_at_first_holds_each() -> None:
    values = [*["same"] * 100, None, "other"]
    assert values == texts(values).to_pylist()
