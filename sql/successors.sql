-- Which things supersede a thing at a coordinate, or will? One row for each supersedes link that holds there or begins later, in the order in which the links
-- were made.
--
-- Parameters: :id, the id of the thing; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: id, of what supersedes it; begins_later.
SELECT s.id, p.valid_from > :valid AS begins_later
FROM entity e
CROSS JOIN link l ON l.target = e.number AND l.kind = 'supersedes'
CROSS JOIN link_period p
  ON p.link = l.number AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN entity s ON s.number = l.source
WHERE e.number = (SELECT number FROM entity WHERE id = :id)
ORDER BY l.number;
