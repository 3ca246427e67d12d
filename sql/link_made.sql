-- Which operation made a link? One row, or none.
--
-- Parameters: :number, of the link.
-- Columns: number, of the operation; verb.
SELECT o.number, o.verb
FROM link_period p
CROSS JOIN operation o ON o.number = p.opened_by
WHERE p.link = :number
ORDER BY p.number
LIMIT 1;
