"""GraphStore and Branch, bulk loading, upsert, and the registry of calls. This package does not depend on the rooms or the doors."""
