"""Embedders for tests: what a text means follows from its words alone, in numbers that float32 holds exactly."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from graphstore.search.search import words

MEANS = {
    "car": "vehicle", "automobile": "vehicle", "truck": "vehicle", "cat": "animal", "dog": "animal", "puppy": "animal",
    "login": "access", "signin": "access", "password": "access", "bread": "food", "cake": "food",
}  # fmt: skip
AXES = sorted(set(MEANS.values()))


class Concepts:
    """Counts the concepts of a text; counts its calls too."""

    model = "concepts"
    dimension = len(AXES)
    batch = 8

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        return np.array([[_said(text).count(axis) for axis in AXES] for text in texts], dtype=float).reshape(
            -1, len(AXES)
        )


def _said(text: str) -> list[str]:
    return [MEANS[word] for word in words(text) if word in MEANS]


def signs(texts: list[str]) -> list[list[float]]:
    """One of 2^16 directions for each text, of which any two have a cosine that is a multiple of an eighth."""
    digests = [blake2b(" ".join(words(text)).encode(), digest_size=2).digest() for text in texts]
    return [[1.0 if byte >> bit & 1 else -1.0 for byte in digest for bit in range(8)] for digest in digests]


class Broken(Concepts):
    """Fails whenever it is asked."""

    def __call__(self, texts: list[str]) -> np.ndarray:
        raise ConnectionError("the service is away")
