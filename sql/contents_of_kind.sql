-- What did nodes ever say? One row for each version of a node that was believed by :tx, in the order in which they were recorded.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC; :kind, a text or NULL: of any.
-- Columns: data, what it says (NULL where it was forgotten); its checksum (-1: it is missing).
SELECT b.data, coalesce(b.checksum, -1) AS checksum
FROM version v
CROSS JOIN entity e ON e.number = v.entity AND NOT e.is_event AND (:kind IS NULL OR e.kind = :kind)
LEFT JOIN body b ON b.number = v.body
WHERE EXISTS (SELECT 1 FROM period p WHERE p.entity = v.entity AND p.version = v.number AND p.tx_from <= :tx)
ORDER BY v.number;
