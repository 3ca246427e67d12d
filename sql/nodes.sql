-- Which nodes stand at a coordinate? One row for each, in the order in which they were first known. All filters that are not NULL must hold.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :kind, :key (in its normal form: lower case, with _ between words),
-- :scope, :tag and :topic (the tag, and as topics are compared), each a text or NULL.
-- Columns: those of node.sql.
WITH
chosen (number) AS (
  SELECT e.number FROM entity e WHERE :key IS NOT NULL AND e.key = :key
  UNION ALL
  SELECT DISTINCT v.entity FROM tag t CROSS JOIN version v ON v.number = t.version WHERE :key IS NULL AND t.tag = :topic
  UNION ALL
  SELECT e.number FROM entity e WHERE :key IS NULL AND :topic IS NULL AND :kind IS NOT NULL AND e.kind = :kind
  UNION ALL
  SELECT e.number FROM entity e WHERE :key IS NULL AND :topic IS NULL AND :kind IS NULL
)
SELECT
  e.id, e.is_event, e.kind, e.key, e.scope, e.tx_from AS known_since, v.ordinal AS number,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to,
  o.author, coalesce(o.recorded, o.tx, e.tx_from) AS recorded_at, NULL AS forgotten, b.data, coalesce(b.checksum, -1) AS checksum,
  CASE WHEN (
    SELECT 1 FROM shaky s
    WHERE s.entity = e.number AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
    ORDER BY s.valid_from DESC LIMIT 1
  ) THEN 'shaky' ELSE 'stands' END AS standing
FROM chosen
CROSS JOIN entity e ON e.number = chosen.number
CROSS JOIN period p ON p.entity = e.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
WHERE NOT e.is_event AND e.tx_from <= :tx
  AND (:kind IS NULL OR e.kind = :kind)
  AND (:scope IS NULL OR e.scope = :scope)
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number)
  AND (
    :tag IS NULL
    OR (  -- most contents do not have the text of the tag anywhere: those are not parsed
      instr(b.data, CAST(json_quote(:tag) AS BLOB))
      AND EXISTS (SELECT 1 FROM json_each(CAST(b.data AS TEXT), '$.tags') t WHERE t.value = :tag)
    )
  )
ORDER BY e.number;
