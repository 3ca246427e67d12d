-- Which links end with a thing at a coordinate? One row for each that holds there, in the order of (valid_from, when it was recorded, id).
--
-- Parameters: :id, the id of the thing; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :kinds, a JSON array of the kinds of link,
-- NULL: all; :turned, a JSON object of the kinds whose links are read the other way round, from those that begin with the thing, each with the name that they have
-- then: {"contradicts": "contradicts"} for a symmetric kind, {"caused_by": "causes"} for an inverse name; '{}': none.
--
-- Columns: id, kind, source, target, as the sentence `source kind target`; source_standing and target_standing: stands, shaky, superseded, ended, retracted,
-- not_yet, evicted or erased; strength, is_inferred, created_by; author and recorded_at, who recorded it first, and when; valid_from and valid_to, tx_from and tx_to, its
-- period (NULL: open); data, its reason and metadata as JSON (as text: CAST(data AS TEXT)), NULL where none were given, and its CRC-32 (-1: it is missing).
WITH
near (number, id, standing) AS MATERIALIZED (
  SELECT
    e.number, e.id,
    coalesce(
      (SELECT f.word FROM forgotten f WHERE f.entity = e.number),
      (
        SELECT a.standing FROM absence a
        WHERE a.entity = e.number AND a.valid_from <= :valid AND a.valid_to > :valid AND a.tx_from <= :tx AND a.tx_to > :tx
        ORDER BY a.valid_from DESC LIMIT 1
      ),
      CASE
        WHEN (
          SELECT 1 FROM period p
          WHERE p.entity = e.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
          ORDER BY p.valid_from DESC LIMIT 1
        ) IS NULL THEN 'not_yet'
        WHEN (
          SELECT 1 FROM shaky s
          WHERE s.entity = e.number AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
          ORDER BY s.valid_from DESC LIMIT 1
        ) THEN 'shaky'
        ELSE 'stands'
      END
    )
  FROM entity e
  WHERE e.id = :id AND e.tx_from <= :tx
),
found (number, id, kind, far) AS (
  SELECT l.number, l.id, l.kind, l.source
  FROM near
  CROSS JOIN link l ON l.target = near.number
  WHERE :kinds IS NULL
  UNION ALL
  SELECT l.number, l.id, l.kind, l.source
  FROM near
  CROSS JOIN json_each(:kinds) k
  CROSS JOIN link l ON l.target = near.number AND l.kind = k.value
  UNION ALL
  SELECT l.number, l.id, t.value, l.target
  FROM near
  CROSS JOIN json_each(:turned) t
  CROSS JOIN link l ON l.source = near.number AND l.kind = t.key
)
SELECT
  found.id, found.kind, far.id AS source, near.id AS target,
  coalesce(
    (SELECT f.word FROM forgotten f WHERE f.entity = found.far),
    (
      SELECT a.standing FROM absence a
      WHERE a.entity = found.far AND a.valid_from <= :valid AND a.valid_to > :valid AND a.tx_from <= :tx AND a.tx_to > :tx
      ORDER BY a.valid_from DESC LIMIT 1
    ),
    CASE
      WHEN (
        SELECT 1 FROM period p
        WHERE p.entity = found.far AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
        ORDER BY p.valid_from DESC LIMIT 1
      ) IS NULL THEN 'not_yet'
      WHEN (
        SELECT 1 FROM shaky s
        WHERE s.entity = found.far AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
        ORDER BY s.valid_from DESC LIMIT 1
      ) THEN 'shaky'
      ELSE 'stands'
    END
  ) AS source_standing,
  near.standing AS target_standing,
  c.strength, c.is_inferred, c.created_by, o.author, o.tx AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM found
CROSS JOIN near
CROSS JOIN link_period p
  ON p.link = found.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN entity far ON far.number = found.far
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
  found.id;
