-- What was ever believed of a link up to :tx, and until when? One row for each period, in the order of (tx_from, valid_from).
--
-- Parameters: :id, the id of the link; :valid and :tx, the coordinate of the standings, in microseconds since 1970-01-01 UTC.
-- Columns: those of links_from.sql; tx_to: when it ceased to be believed, NULL if not by :tx.
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
  k.valid_from, nullif(k.valid_to, 253402300799999999) AS valid_to, k.tx_from, CASE WHEN k.tx_to <= :tx THEN k.tx_to END AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM link l
CROSS JOIN link_period k ON k.link = l.number AND k.tx_from <= :tx
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = k.claim
CROSS JOIN operation o ON o.number = c.operation
LEFT JOIN body b ON b.number = c.body
WHERE l.id = :id
ORDER BY k.tx_from, k.valid_from, k.number;
