-- Which nodes (with :events, which events) hold at a coordinate, in brief? One row for each, in the order in which they were first known. All filters that are not
-- NULL must hold.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :events, 1 or 0; :kind, :key (in its normal form: lower case, with _ between
-- words), :topic (a tag, as topics are compared: those that ever had it are looked at), :scope, each a text or NULL; :reads, 1 if the contents are wanted, else 0.
-- Columns: entity, its number; id; kind, of an event its type; key; scope; ordinal, of its version; valid_from; valid_to, NULL where no end is known; tx_from;
-- known_since; data, the content, and its CRC-32 (-1: it is missing).
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
  e.number AS entity, e.id, e.kind, e.key, e.scope, v.ordinal, p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from,
  e.tx_from AS known_since, b.data, coalesce(b.checksum, -1) AS checksum
FROM chosen
CROSS JOIN entity e ON e.number = chosen.number
CROSS JOIN period p ON p.entity = e.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body AND :reads
WHERE e.is_event = :events AND e.tx_from <= :tx
  AND (:kind IS NULL OR e.kind = :kind)
  AND (:scope IS NULL OR e.scope = :scope)
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number)
ORDER BY e.number;
