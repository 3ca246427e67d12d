-- What are some nodes and events, and how do they stand at a coordinate? One row for each id known at :tx, whatever its standing, in the order of :ids.
--
-- Parameters: :ids, a JSON array of ids; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :undone, a JSON array of the transactions
-- that are taken back as known at :tx ('[]' where table undone is empty).
-- Columns: those of node.sql. The version and the period are those that hold; else the last that covered :valid; else the last believed one, or the last
-- recorded one. forgotten: evicted or erased, then data is NULL. standing: stands, shaky, superseded, ended, retracted, not_yet, evicted or erased.
WITH
asked (place, number, held) AS MATERIALIZED (
  SELECT
    j.key, e.number,
    CASE WHEN e.deep & 1 THEN (
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
  FROM json_each(:ids) j
  CROSS JOIN entity e ON e.id = j.value AND e.tx_from <= :tx
)
SELECT
  e.id, e.is_event, e.kind, e.key, e.scope, e.tx_from AS known_since, v.ordinal AS number,
  coalesce(p.valid_from, e.tx_from) AS valid_from,
  nullif(coalesce(p.valid_to, e.tx_from), 253402300799999999) AS valid_to,
  coalesce(p.tx_from, e.tx_from) AS tx_from,
  CASE WHEN p.number IS NULL THEN e.tx_from WHEN p.tx_to <= :tx THEN p.tx_to END AS tx_to,
  o.author, coalesce(o.recorded, o.tx, e.tx_from) AS recorded_at, f.word AS forgotten, b.data, coalesce(b.checksum, -1) AS checksum,
  coalesce(
    f.word,
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
      WHEN asked.held IS NULL THEN 'not_yet'
      WHEN (
        SELECT 1 FROM shaky s
        WHERE s.entity = e.number AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
        ORDER BY s.valid_from DESC LIMIT 1
      ) THEN 'shaky'
      ELSE 'stands'
    END
  ) AS standing
FROM asked
CROSS JOIN entity e ON e.number = asked.number
LEFT JOIN forgotten f ON f.entity = e.number
LEFT JOIN period p ON p.number = coalesce(
  asked.held,
  (  -- the last decision about :valid; what an undone transaction recorded decides nothing
    SELECT max(c.number) FROM period c
    WHERE c.entity = e.number AND c.valid_from <= :valid AND c.valid_to > :valid AND c.tx_from <= :tx
      AND c.tx_from NOT IN (SELECT value FROM json_each(:undone))
  ),
  (SELECT c.number FROM period c WHERE c.entity = e.number AND c.tx_from <= :tx AND c.tx_to > :tx ORDER BY c.valid_from DESC LIMIT 1),
  (
    SELECT max(c.number) FROM period c
    WHERE c.entity = e.number AND c.tx_from <= :tx AND c.tx_from NOT IN (SELECT value FROM json_each(:undone))
  ),
  (SELECT max(c.number) FROM period c WHERE c.entity = e.number AND c.tx_from <= :tx)
)
CROSS JOIN version v ON v.number = coalesce(p.version, (SELECT min(w.number) FROM version w WHERE w.entity = e.number))
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
ORDER BY asked.place;
