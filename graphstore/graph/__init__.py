"""The graph tables in Kùzu: the engine, its guard, the projection and results. They are a copy: nothing here decides what is true."""
