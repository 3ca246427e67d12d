"""Answers questions about a store with the statements of `sql/`: one statement per question, and the values that a `View` returns."""
