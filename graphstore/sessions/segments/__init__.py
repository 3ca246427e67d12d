"""What is said of a segment: its node, its words, and the analyser that works without a model. It writes nothing."""
