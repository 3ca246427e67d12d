"""Reading at a coordinate: the view, hops, walks, succession, comparison, conflicts, snapshots. It writes nothing."""
