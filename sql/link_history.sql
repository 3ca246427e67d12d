-- Which periods are believed of the links that say one sentence, `source kind target`, as known at :tx? One row for each, in the order of (valid_from, when it
-- was recorded, id).
--
-- Parameters: :kinds, a JSON array of the kinds of the links; :pairs, a JSON object of their ends, {"<id of the source>": "<id of the target>"}, of a symmetric kind either way
-- round; :valid and :tx, the coordinate of the standings, in microseconds since 1970-01-01 UTC.
-- Columns: those of links_from.sql.
SELECT
  l.id, l.kind, source.id AS source, target.id AS target,
  coalesce(
    (SELECT f.word FROM forgotten f WHERE f.entity = l.source),
    (
      SELECT a.standing FROM absence a
      WHERE a.entity = l.source AND a.valid_from <= :valid AND a.valid_to > :valid AND a.tx_from <= :tx AND a.tx_to > :tx
      ORDER BY a.valid_from DESC LIMIT 1
    ),
    CASE
      WHEN (
        SELECT 1 FROM period p
        WHERE p.entity = l.source AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
        ORDER BY p.valid_from DESC LIMIT 1
      ) IS NULL THEN 'not_yet'
      WHEN (
        SELECT 1 FROM shaky s
        WHERE s.entity = l.source AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
        ORDER BY s.valid_from DESC LIMIT 1
      ) THEN 'shaky'
      ELSE 'stands'
    END
  ) AS source_standing,
  coalesce(
    (SELECT f.word FROM forgotten f WHERE f.entity = l.target),
    (
      SELECT a.standing FROM absence a
      WHERE a.entity = l.target AND a.valid_from <= :valid AND a.valid_to > :valid AND a.tx_from <= :tx AND a.tx_to > :tx
      ORDER BY a.valid_from DESC LIMIT 1
    ),
    CASE
      WHEN (
        SELECT 1 FROM period p
        WHERE p.entity = l.target AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
        ORDER BY p.valid_from DESC LIMIT 1
      ) IS NULL THEN 'not_yet'
      WHEN (
        SELECT 1 FROM shaky s
        WHERE s.entity = l.target AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
        ORDER BY s.valid_from DESC LIMIT 1
      ) THEN 'shaky'
      ELSE 'stands'
    END
  ) AS target_standing,
  c.strength, c.is_inferred, c.is_history, c.created_by, o.author, coalesce(o.recorded, o.tx) AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM json_each(:pairs) j
CROSS JOIN entity source ON source.id = j.key
CROSS JOIN entity target ON target.id = j.value
CROSS JOIN json_each(:kinds) k
CROSS JOIN link l ON l.source = source.number AND l.kind = k.value AND l.target = target.number
CROSS JOIN link_period p ON p.link = l.number AND p.tx_from <= :tx AND p.tx_to > :tx
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
