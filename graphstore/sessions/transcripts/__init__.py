"""Reads session files into entries, boundaries, segments and steps. It does not depend on a store."""
