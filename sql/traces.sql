-- Which traces have something that had begun by a coordinate, as far as is known now? One row for each, in the order in which they were first known.
--
-- Parameters: :valid.
-- Columns: trace.
SELECT trace FROM message WHERE trace IS NOT NULL GROUP BY trace HAVING min(at) <= :valid ORDER BY min(period);
