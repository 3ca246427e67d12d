-- What took or will take the place of a thing, and of that, and so on, as is believed at :tx? One row for each period of a link that leads away from the thing or
-- from what was reached from it, whenever it holds: supersedes, transition, corrects and joined_from. In the order of (valid_from, when it was recorded, id). things.sql says how
-- what is reached stands.
--
-- Parameters: :id, the id of the thing; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: those of links_from.sql; source: what took the place of target; the standings are NULL.
WITH RECURSIVE
reached (number) AS (
  SELECT number FROM entity WHERE id = :id AND tx_from <= :tx
  UNION
  SELECT l.source
  FROM reached
  CROSS JOIN link l ON l.target = reached.number AND l.kind IN ('supersedes', 'transition', 'corrects', 'joined_from')
  CROSS JOIN link_period p ON p.link = l.number AND p.tx_from <= :tx AND p.tx_to > :tx
)
SELECT
  l.id, l.kind, source.id AS source, target.id AS target, NULL AS source_standing, NULL AS target_standing,
  c.strength, c.is_inferred, c.is_history, c.created_by, o.author, coalesce(o.recorded, o.tx) AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM reached
CROSS JOIN link l ON l.target = reached.number AND l.kind IN ('supersedes', 'transition', 'corrects', 'joined_from')
CROSS JOIN link_period p ON p.link = l.number AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = p.claim
CROSS JOIN operation o ON o.number = c.operation
LEFT JOIN body b ON b.number = c.body
ORDER BY
  p.valid_from,
  (  -- what an undo opened again was recorded when it was opened first
    SELECT CASE WHEN u.verb = 'undo' THEN (
      SELECT min(f.tx_from) FROM link_period f
      WHERE f.link = p.link AND f.claim = p.claim AND f.valid_from = p.valid_from AND f.valid_to = p.valid_to
    ) ELSE p.tx_from END
    FROM operation u WHERE u.number = p.opened_by
  ),
  l.id;
