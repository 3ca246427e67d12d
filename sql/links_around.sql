-- Which links hold at a coordinate at either end of some things? One row for each link, as it is stored, in the order of (valid_from, when it was recorded, id).
--
-- Parameters: :ids, a JSON array of the ids of the things; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: those of links_from.sql.
WITH
found (number) AS (
  SELECT p.number
  FROM json_each(:ids) j
  CROSS JOIN entity e ON e.id = j.value AND e.deep & 2 = 0
  CROSS JOIN link l ON l.source = e.number
  CROSS JOIN link_period p ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  UNION
  SELECT d.row
  FROM json_each(:ids) j
  CROSS JOIN entity e ON e.id = j.value AND e.deep & 2
  CROSS JOIN deep_past d ON d.owner = e.number AND d.sort > 'source ' AND d.sort < 'source!' AND d.node = (2 * :tx >> d.step | 1)
    AND d.valid_from BETWEEN :valid - d.length AND :valid AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
  UNION
  SELECT p.number
  FROM json_each(:ids) j
  CROSS JOIN entity e ON e.id = j.value AND e.deep & 4 = 0
  CROSS JOIN link l ON l.target = e.number
  CROSS JOIN link_period p ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  UNION
  SELECT d.row
  FROM json_each(:ids) j
  CROSS JOIN entity e ON e.id = j.value AND e.deep & 4
  CROSS JOIN deep_past d ON d.owner = e.number AND d.sort > 'target ' AND d.sort < 'target!' AND d.node = (2 * :tx >> d.step | 1)
    AND d.valid_from BETWEEN :valid - d.length AND :valid AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
)
SELECT
  l.id, l.kind, source.id AS source, target.id AS target,
  coalesce(
    (SELECT f.word FROM forgotten f WHERE f.entity = l.source),
    CASE WHEN source.deep & 1 THEN coalesce(
      (
        SELECT CASE d.sort WHEN 'period' THEN 'stands' WHEN 'flag' THEN 'shaky' ELSE (
          SELECT a.standing FROM absence a WHERE a.entity = d.owner AND a.valid_from = d.valid_from AND a.tx_from = d.row
        ) END
        FROM deep_past d
        WHERE d.owner = l.source AND d.sort <= 'period' AND d.node = (2 * :tx >> d.step | 1) AND d.valid_from = (
          SELECT max(n.valid_from) FROM deep_row n
          WHERE n.owner = d.owner AND n.sort = d.sort AND n.step = d.step AND n.length = 0 AND n.node = (2 * :tx >> d.step | 1) AND n.valid_from <= :valid
        ) AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
        ORDER BY d.sort LIMIT 1
      ),
      'not_yet'
    ) END,
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
    CASE WHEN target.deep & 1 THEN coalesce(
      (
        SELECT CASE d.sort WHEN 'period' THEN 'stands' WHEN 'flag' THEN 'shaky' ELSE (
          SELECT a.standing FROM absence a WHERE a.entity = d.owner AND a.valid_from = d.valid_from AND a.tx_from = d.row
        ) END
        FROM deep_past d
        WHERE d.owner = l.target AND d.sort <= 'period' AND d.node = (2 * :tx >> d.step | 1) AND d.valid_from = (
          SELECT max(n.valid_from) FROM deep_row n
          WHERE n.owner = d.owner AND n.sort = d.sort AND n.step = d.step AND n.length = 0 AND n.node = (2 * :tx >> d.step | 1) AND n.valid_from <= :valid
        ) AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
        ORDER BY d.sort LIMIT 1
      ),
      'not_yet'
    ) END,
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
FROM found
CROSS JOIN link_period p ON p.number = found.number
CROSS JOIN link l ON l.number = p.link
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
