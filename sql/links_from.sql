-- Which links begin with a thing at a coordinate? One row for each that holds there, in the order of (valid_from, when it was recorded, id).
--
-- Parameters: :id, the id of the thing; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :kinds, a JSON array of the kinds of link,
-- NULL: all; :turned, a JSON object of the kinds whose links are read the other way round, from those that end with the thing, each with the name that they have
-- then: {"contradicts": "contradicts"} for a symmetric kind, {"caused_by": "causes"} for an inverse name; '{}': none.
--
-- Columns: id, kind, source, target, as the sentence `source kind target`; source_standing and target_standing: stands, shaky, superseded, ended, retracted,
-- not_yet, evicted or erased; strength, is_inferred, is_history, created_by; author and recorded_at, who recorded it first, and when; valid_from and valid_to, tx_from and tx_to, its
-- period (NULL: open); data, its reason and metadata as JSON (as text: CAST(data AS TEXT)), NULL where none were given, and its CRC-32 (-1: it is missing).
WITH
near (number, id, deep, standing) AS MATERIALIZED (
  SELECT
    e.number, e.id, e.deep,
    coalesce(
      (SELECT f.word FROM forgotten f WHERE f.entity = e.number),
      CASE WHEN e.deep & 1 THEN coalesce(
        (
          SELECT CASE d.sort WHEN 'period' THEN 'stands' WHEN 'flag' THEN 'shaky' ELSE (
            SELECT a.standing FROM absence a WHERE a.entity = d.owner AND a.valid_from = d.valid_from AND a.tx_from = d.row
          ) END
          FROM deep_past d
          WHERE d.owner = e.number AND d.sort <= 'period' AND d.node = (2 * :tx >> d.step | 1) AND d.valid_from = (
            SELECT max(n.valid_from) FROM deep_row n
            WHERE n.owner = d.owner AND n.sort = d.sort AND n.step = d.step AND n.length = 0 AND n.node = (2 * :tx >> d.step | 1) AND n.valid_from <= :valid
          ) AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
          ORDER BY d.sort LIMIT 1
        ),
        'not_yet'
      ) END,
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
found (id, kind, far, period) AS (
  SELECT l.id, l.kind, l.target, p.number
  FROM near
  CROSS JOIN link l ON l.source = near.number
  CROSS JOIN link_period p ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  WHERE :kinds IS NULL AND near.deep & 2 = 0
  UNION ALL
  SELECT l.id, l.kind, l.target, p.number
  FROM near
  CROSS JOIN json_each(:kinds) k
  CROSS JOIN link l ON l.source = near.number AND l.kind = k.value
  CROSS JOIN link_period p ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  WHERE near.deep & 2 = 0
  UNION ALL
  SELECT l.id, t.value, l.source, p.number
  FROM near
  CROSS JOIN json_each(:turned) t
  CROSS JOIN link l ON l.target = near.number AND l.kind = t.key
  CROSS JOIN link_period p ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  WHERE near.deep & 4 = 0
  UNION ALL
  SELECT l.id, CASE near.number WHEN l.source THEN l.kind ELSE json_extract(:turned, '$."' || l.kind || '"') END, CASE near.number WHEN l.source THEN l.target ELSE l.source END, p.number
  FROM near
  CROSS JOIN deep_past d ON d.owner = near.number AND d.node = (2 * :tx >> d.step | 1)
    AND d.valid_from BETWEEN :valid - d.length AND :valid AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
    AND d.sort > 'source ' AND (
      +d.sort IN (SELECT 'target ' || key FROM json_each(:turned)) OR +d.sort IN (SELECT 'source ' || value FROM json_each(:kinds))
      OR :kinds IS NULL AND +d.sort BETWEEN 'source ' AND 'source!'
    )
  CROSS JOIN link_period p ON p.number = d.row
  CROSS JOIN link l ON l.number = p.link
  WHERE near.deep & 6
)
SELECT
  found.id, found.kind, near.id AS source, far.id AS target,
  near.standing AS source_standing,
  coalesce(
    (SELECT f.word FROM forgotten f WHERE f.entity = found.far),
    CASE WHEN far.deep & 1 THEN coalesce(
      (
        SELECT CASE d.sort WHEN 'period' THEN 'stands' WHEN 'flag' THEN 'shaky' ELSE (
          SELECT a.standing FROM absence a WHERE a.entity = d.owner AND a.valid_from = d.valid_from AND a.tx_from = d.row
        ) END
        FROM deep_past d
        WHERE d.owner = found.far AND d.sort <= 'period' AND d.node = (2 * :tx >> d.step | 1) AND d.valid_from = (
          SELECT max(n.valid_from) FROM deep_row n
          WHERE n.owner = d.owner AND n.sort = d.sort AND n.step = d.step AND n.length = 0 AND n.node = (2 * :tx >> d.step | 1) AND n.valid_from <= :valid
        ) AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
        ORDER BY d.sort LIMIT 1
      ),
      'not_yet'
    ) END,
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
  ) AS target_standing,
  c.strength, c.is_inferred, c.is_history, c.created_by, o.author, coalesce(o.recorded, o.tx) AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM found
CROSS JOIN near
CROSS JOIN link_period p ON p.number = found.period
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
