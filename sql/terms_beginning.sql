-- Which terms of sealed versions are between two? One row for each.
--
-- Parameters: :least, and :stop, which is not one of them.
-- Columns: term.
SELECT DISTINCT p.term
FROM segment s
CROSS JOIN posting p ON p.segment = s.first AND p.term >= :least AND p.term < :stop;
