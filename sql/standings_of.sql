-- What are the standings of some things at a coordinate? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of their numbers; :valid and :tx, the coordinate.
-- Columns: number; standing, as in things.sql.
SELECT e.number, coalesce(
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
) AS standing
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value;
