-- Which evictions without tombstones were recorded since an instant? One row for each that told something, in the order in which they were recorded.
--
-- Parameters: :tx, the instant, in microseconds since 1970-01-01 UTC.
-- Columns: tx; data, the JSON of what it told, and its CRC-32.
SELECT o.tx, b.data, b.checksum
FROM operation o
CROSS JOIN body b ON b.number = o.body
WHERE o.tx >= :tx AND o.verb = 'evict' AND o.subject = '' AND b.data IS NOT NULL
ORDER BY o.number;
