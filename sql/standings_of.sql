-- What are the standings of some things at a coordinate? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of their numbers; :valid and :tx, the coordinate.
-- Columns: number; standing, as in things.sql.
SELECT e.number, coalesce(
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
) AS standing
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value;
