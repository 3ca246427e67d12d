"""Reads at a coordinate: the view, hops, walks, succession, comparison, conflicts, snapshots. This package never writes."""
