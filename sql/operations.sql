-- What was done to a thing or a link up to :tx, by whom and why? One row for each operation that names it, or that opened or closed a period of it, oldest first.
--
-- Parameters: :id, the id of the thing or link; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: those of operation.sql; verb: add_node, revise, retract, link …; subject: the id of what it was done to.
WITH
asked (link, entity) AS MATERIALIZED (
  SELECT l.number, NULL FROM link l WHERE l.id = :id
  UNION ALL
  SELECT NULL, e.number FROM entity e WHERE e.id = :id AND e.tx_from <= :tx AND NOT EXISTS (SELECT 1 FROM link l WHERE l.id = :id)
),
found (number) AS (
  SELECT o.number FROM asked CROSS JOIN operation o ON o.subject = :id AND o.tx <= :tx
  UNION
  SELECT p.opened_by FROM asked CROSS JOIN period p ON p.entity = asked.entity AND p.tx_from <= :tx
  UNION
  SELECT p.closed_by FROM asked CROSS JOIN period p ON p.entity = asked.entity AND p.tx_to <= :tx
  UNION
  SELECT p.opened_by FROM asked CROSS JOIN link_period p ON p.link = asked.link AND p.tx_from <= :tx
  UNION
  SELECT p.closed_by FROM asked CROSS JOIN link_period p ON p.link = asked.link AND p.tx_to <= :tx
)
SELECT o.author, o.tx, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum, o.verb, o.subject
FROM found
CROSS JOIN done o ON o.number = found.number
LEFT JOIN body b ON b.number = o.body
ORDER BY o.number;
