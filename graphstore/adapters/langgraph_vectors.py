"""Items found by the embeddings that a LangGraph application brings with it: each text of an item is a vector, and an item is as near as its nearest text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from graphstore.errors import InvalidError

__all__ = ["ItemVectors"]


class ItemVectors:
    """The vectors of the texts of items, made when a search first needs them and kept while this is: of equal texts once.

    Raises InvalidError for a vector that has not as many numbers as `dims` of the index says.
    """

    def __init__(self, index: IndexConfig) -> None:
        self.config = index
        self.fields = tuple(index.get("fields") or ("$",))
        self._embeddings = ensure_embeddings(index.get("embed"))
        self._of_text: dict[str, Any] = {}

    def scores(
        self, query: str, items: Sequence[tuple[Mapping[str, Any], Iterable[str]]]
    ) -> list[float | None]:
        """How near each value is to a query by its texts at these paths, from -1 to 1; None of a value that has none there."""
        import numpy as np

        texts = [self._texts(value, paths) for value, paths in items]
        self._make(dict.fromkeys(text for each in texts for text in each))
        if not any(texts):
            return [None] * len(texts)
        near = np.stack([self._of_text[text] for each in texts for text in each]) @ self._unit(
            self._asked(query)
        )
        scores, begin = [], 0
        for each in texts:
            scores.append(float(near[begin : begin + len(each)].max()) if each else None)
            begin += len(each)
        return scores

    def _texts(self, value: Mapping[str, Any], paths: Iterable[str]) -> list[str]:
        return [
            text
            for path in paths
            for text in get_text_at_path(value, path if path == "$" else tokenize_path(path))
        ]

    def _make(self, texts: Iterable[str]) -> None:
        new = [text for text in texts if text not in self._of_text]
        if new:
            vectors = map(self._unit, self._embedded(new))
            self._of_text.update(zip(new, vectors, strict=True))

    @property
    def _is_asynchronous(self) -> bool:
        """Whether nothing but an asynchronous function was given."""
        return getattr(self._embeddings, "afunc", None) is not None

    def _embedded(self, texts: list[str]) -> list[list[float]]:
        made: list[list[float]]
        if self._is_asynchronous:
            made = asyncio.run(self._embeddings.aembed_documents(texts))
        else:
            made = self._embeddings.embed_documents(texts)
        return made

    def _asked(self, query: str) -> list[float]:
        made: list[float]
        if self._is_asynchronous:
            made = asyncio.run(self._embeddings.aembed_query(query))
        else:
            made = self._embeddings.embed_query(query)
        return made

    def _unit(self, vector: Sequence[float]) -> Any:
        import numpy as np

        made = np.asarray(vector, dtype=np.float32)
        dims = self.config.get("dims")
        if made.ndim != 1 or (dims is not None and made.size != dims):
            raise InvalidError(
                f"a vector of shape {made.shape} came from the embeddings, and the index has dims={dims}."
            )
        return made / (float(np.linalg.norm(made)) or 1.0)
