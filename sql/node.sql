-- What does a node say at a coordinate? One row where it stands there, else none.
--
-- Parameters: :id, the id of the node. :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- In the shell of sqlite3: .parameter init, then .parameter set :id "'n42'", .parameter set :valid 1767225600000000, and :tx likewise, then .read sql/node.sql
--
-- Columns: what the entity is (id, is_event, kind, key, scope, known_since: when its id was recorded first); number, its version, {id}-v{number};
-- valid_from and valid_to, tx_from and tx_to, the period of that version here (NULL: open, or not ended as known at :tx); author and recorded_at, who
-- recorded that version first, and when; forgotten, NULL here; data, its content as JSON (as text: CAST(data AS TEXT)), and its CRC-32 (-1: it is missing); standing, stands or shaky.
SELECT
  e.id, e.is_event, e.kind, e.key, e.scope, e.tx_from AS known_since, v.ordinal AS number,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to,
  o.author, coalesce(o.recorded, o.tx, e.tx_from) AS recorded_at, NULL AS forgotten, b.data, coalesce(b.checksum, -1) AS checksum,
  CASE WHEN CASE WHEN e.deep & 1 THEN (
    SELECT 1 FROM deep_past d
    WHERE d.owner = e.number AND d.sort = 'flag' AND d.node = (2 * :tx >> d.step | 1) AND d.valid_from = (
      SELECT max(n.valid_from) FROM deep_row n
      WHERE n.owner = d.owner AND n.sort = d.sort AND n.step = d.step AND n.length = 0 AND n.node = (2 * :tx >> d.step | 1) AND n.valid_from <= :valid
    ) AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
    LIMIT 1
  ) ELSE (
    SELECT 1 FROM shaky s
    WHERE s.entity = e.number AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
    ORDER BY s.valid_from DESC LIMIT 1
  ) END THEN 'shaky' ELSE 'stands' END AS standing
FROM entity e
CROSS JOIN period p ON p.number = CASE WHEN e.deep & 1 THEN (
  SELECT d.row FROM deep_past d
  WHERE d.owner = e.number AND d.sort = 'period' AND d.node = (2 * :tx >> d.step | 1) AND d.valid_from = (
    SELECT max(n.valid_from) FROM deep_row n
    WHERE n.owner = d.owner AND n.sort = d.sort AND n.step = d.step AND n.length = 0 AND n.node = (2 * :tx >> d.step | 1) AND n.valid_from <= :valid
  ) AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
  LIMIT 1
) ELSE (
  SELECT p.number FROM period p
  WHERE p.entity = e.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  ORDER BY p.valid_from DESC LIMIT 1
) END
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
WHERE e.number = (SELECT number FROM entity WHERE id = :id) AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number);
