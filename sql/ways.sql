-- Where do links lead on from some things at a coordinate? One row for each link that holds there, for each end from which it leads on; in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of the things; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :ahead, a JSON array of the
-- kinds of link that lead from their source to their target; :back, of those that lead from their target to their source.
-- Columns: near and far, the numbers of the thing and of what the link leads to; far_id; id, of the link; period, the number of its period; valid_from; recorded_at,
-- when that period was recorded first.
WITH
found (near, link, id, far) AS (
  SELECT l.source, l.number, l.id, l.target
  FROM json_each(:numbers) n
  CROSS JOIN json_each(:ahead) k
  CROSS JOIN link l ON l.source = n.value AND l.kind = k.value
  UNION ALL
  SELECT l.target, l.number, l.id, l.source
  FROM json_each(:numbers) n
  CROSS JOIN json_each(:back) k
  CROSS JOIN link l ON l.target = n.value AND l.kind = k.value
)
SELECT
  found.near, found.far, far.id AS far_id, found.id, p.number AS period, p.valid_from,
  (  -- what an undo opened again was recorded when it was opened first
    SELECT CASE WHEN u.verb = 'undo' THEN (
      SELECT min(f.tx_from) FROM link_period f
      WHERE f.link = p.link AND f.claim = p.claim AND f.valid_from = p.valid_from AND f.valid_to = p.valid_to
    ) ELSE p.tx_from END
    FROM operation u WHERE u.number = p.opened_by
  ) AS recorded_at
FROM found
CROSS JOIN link_period p
  ON p.link = found.link AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN entity far ON far.number = found.far;
