"""Describes segments: the model of their node, word lists, and an analyser that needs no language model. It writes nothing."""
