-- What was said by the versions from one on? One row for each, in order.
--
-- Parameters: :first, the number of a version.
-- Columns: number; is_event; kind; key; data, the content (NULL: it was removed, or its thing forgotten), and its CRC-32.
SELECT
  v.number, e.is_event, e.kind, e.key,
  CASE WHEN NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = v.entity) THEN b.data END AS data, coalesce(b.checksum, 0) AS checksum
FROM version v
CROSS JOIN entity e ON e.number = v.entity
LEFT JOIN body b ON b.number = v.body
WHERE v.number >= :first AND v.number < (SELECT version FROM next_number)
ORDER BY v.number;
