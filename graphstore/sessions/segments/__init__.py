"""A segment described: its node, its words, and the analyser that works without a model. It writes nothing."""
