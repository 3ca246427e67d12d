"""Measure how much of a question a text covers: the share of the question's weight, the words that match, and the part of the text around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from graphstore.values.words import Analyzer, Term, spoken

Strength = Literal["strong", "weak"]
COVERS = 0.5
"""A thing that covers this share of a question, or more, answers it. Others are only near it."""
FLOOR = 0.04
"""A thing that covers a smaller share is not shown, unless something else leads to it."""
SNIPPET = 160
"""The largest number of characters of a snippet."""


def coverage_of_text(analyzer: Analyzer, terms: Sequence[Term], weights: Sequence[float], text: str) -> float:
    """Return the share of a question's weight that a text covers."""
    whole, forms = sum(weights), set(analyzer.terms(text))
    says = (any(_is(term, form) for form in forms) for term in terms)
    return (
        sum(weight for weight, is_said in zip(weights, says, strict=True) if is_said) / whole
        if whole
        else 0.0
    )


class SaidWords(NamedTuple):
    """Stores the words of a question as written in a text, each once, and the part of the text with most of them."""

    words: tuple[str, ...]
    snippet: str


def said(analyzer: Analyzer, terms: Sequence[Term], text: str) -> SaidWords:
    """Return the words of a text that match a question's terms, and a snippet. Without any match the snippet is the beginning."""
    places = [(start, end) for start, end, token in spoken(text) if _says(analyzer, terms, token)]
    words = dict.fromkeys(text[start:end] for start, end in places)
    return SaidWords(tuple(words), _around(text, places))


def _says(analyzer: Analyzer, terms: Sequence[Term], token: str) -> bool:
    forms = analyzer.terms_of(token)
    return any(_is(term, form) for form in forms for term in terms)


def _is(term: Term, form: str) -> bool:
    return form in term.forms or (term.prefix and form.startswith(term.forms))


def _around(text: str, places: Sequence[tuple[int, int]]) -> str:
    """Return the part of a text that contains most of the places, cut between words. An ellipsis marks what is left out."""
    if len(text) <= SNIPPET:
        return " ".join(text.split())
    start = -max(_starts(places), default=(0, 0))[1]
    begin = max(0, min(start - SNIPPET // 4, len(text) - SNIPPET))
    end = begin + SNIPPET
    if begin:
        begin = text.find(" ", begin, start) + 1 or begin
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + 1)
    shown = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"


def _starts(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield for each place how many places begin within a snippet from it. Among equals, the earliest compares greatest."""
    last = 0
    for first, (start, _) in enumerate(places):
        last = max(last, first)
        while last < len(places) and places[last][1] <= start + SNIPPET * 3 // 4:
            last += 1
        yield last - first, -start
