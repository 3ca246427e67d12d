-- Which sealed versions have a term, and how often? One row for each segment that has it, in order.
--
-- Parameters: :term.
-- Columns: versions, times.
SELECT p.versions, p.times
FROM segment s
CROSS JOIN posting p ON p.segment = s.first AND p.term = :term
ORDER BY s.first;
