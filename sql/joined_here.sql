-- What was joined into a thing, directly or not, as is believed at :tx? One row for each, in the order in which they were joined.
--
-- Parameters: :id, the id of the thing; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: id; joined_at, the tx from which it is believed to be joined.
WITH RECURSIVE
here (number, joined_at) AS (
  SELECT l.target, p.tx_from
  FROM entity e
  CROSS JOIN link l ON l.source = e.number AND l.kind = 'joined_from'
  CROSS JOIN link_period p ON p.link = l.number AND p.tx_from <= :tx AND p.tx_to > :tx
  WHERE e.id = :id
  UNION
  SELECT l.target, p.tx_from
  FROM here
  CROSS JOIN link l ON l.source = here.number AND l.kind = 'joined_from'
  CROSS JOIN link_period p ON p.link = l.number AND p.tx_from <= :tx AND p.tx_to > :tx
)
SELECT e.id, here.joined_at
FROM here
CROSS JOIN entity e ON e.number = here.number
ORDER BY here.joined_at, e.number;
