-- What do some versions of a node say, and do they still hold at a coordinate? One row for each version recorded by :tx: with the period that holds at
-- (:valid, :tx), else the last period in which it was believed.
--
-- Parameters: :id; :numbers, a JSON array of the numbers of versions; :valid and :tx, in microseconds since 1970-01-01 UTC.
-- Columns: those of node.sql; forgotten: evicted or erased; standing: that of the node, but superseded where another version holds.
WITH
subject (number, id, is_event, kind, key, scope, tx_from, deep, word, held) AS MATERIALIZED (
  SELECT
    e.number, e.id, e.is_event, e.kind, e.key, e.scope, e.tx_from, e.deep,
    (SELECT f.word FROM forgotten f WHERE f.entity = e.number),
    CASE WHEN EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number) THEN NULL WHEN e.deep & 1 THEN (
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
  FROM entity e
  WHERE e.id = :id AND e.tx_from <= :tx
),
wanted (version) AS MATERIALIZED (
  SELECT v.number
  FROM subject
  CROSS JOIN json_each(:numbers) j
  CROSS JOIN version v ON v.entity = subject.number AND v.ordinal = j.value
),
shown (period) AS MATERIALIZED (
  SELECT coalesce(max(CASE WHEN p.number = subject.held THEN p.number END), max(p.number))
  FROM subject
  CROSS JOIN period p ON p.entity = subject.number AND p.tx_from <= :tx
  WHERE p.version IN (SELECT version FROM wanted)
  GROUP BY p.version
)
SELECT
  subject.id, subject.is_event, subject.kind, subject.key, subject.scope, subject.tx_from AS known_since, v.ordinal AS number,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, CASE WHEN p.tx_to <= :tx THEN p.tx_to END AS tx_to,
  o.author, coalesce(o.recorded, o.tx, subject.tx_from) AS recorded_at, subject.word AS forgotten, b.data, coalesce(b.checksum, -1) AS checksum,
  CASE
    WHEN subject.held <> p.number THEN 'superseded'
    ELSE coalesce(
      subject.word,
      CASE WHEN subject.deep & 1 THEN coalesce(
        (
          SELECT CASE d.sort WHEN 'period' THEN 'stands' WHEN 'flag' THEN 'shaky' ELSE (
            SELECT a.standing FROM absence a WHERE a.entity = d.owner AND a.valid_from = d.valid_from AND a.tx_from = d.row
          ) END
          FROM deep_past d
          WHERE d.owner = subject.number AND d.sort <= 'period' AND d.node = (2 * :tx >> d.step | 1) AND d.valid_from = (
            SELECT max(n.valid_from) FROM deep_row n
            WHERE n.owner = d.owner AND n.sort = d.sort AND n.step = d.step AND n.length = 0 AND n.node = (2 * :tx >> d.step | 1) AND n.valid_from <= :valid
          ) AND d.valid_to > :valid AND d.tx_from <= :tx AND d.tx_to > :tx
          ORDER BY d.sort LIMIT 1
        ),
        'not_yet'
      ) END,
      (
        SELECT a.standing FROM absence a
        WHERE a.entity = subject.number AND a.valid_from <= :valid AND a.valid_to > :valid AND a.tx_from <= :tx AND a.tx_to > :tx
        ORDER BY a.valid_from DESC LIMIT 1
      ),
      CASE
        WHEN subject.held IS NULL THEN 'not_yet'
        WHEN (
          SELECT 1 FROM shaky s
          WHERE s.entity = subject.number AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
          ORDER BY s.valid_from DESC LIMIT 1
        ) THEN 'shaky'
        ELSE 'stands'
      END
    )
  END AS standing
FROM subject
CROSS JOIN shown
CROSS JOIN period p ON p.number = shown.period
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation;
