"""Answers questions about a store by the statements of `sql/`: one statement for a question, and the values that a `View` answers."""
