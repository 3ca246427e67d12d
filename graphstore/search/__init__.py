"""Search for words, names, messages and lookups as of any coordinate. It does not depend on views and graph tables."""
