-- When did some events happen again, and where is what was said then? One row for each occurrence after the first report, in the order in which they were recorded.
--
-- Parameters: :numbers, a JSON array of the numbers of the events.
-- Columns: number; occurred_at; tx; operation; first and last, of the occurrences up to this one; event; body and length, of the operation (length 0: it has none).
SELECT h.number, h.occurred_at, h.tx, h.operation, h.first, h.last, h.event, coalesce(o.body, 0) AS body, coalesce(length(b.data), 0) AS length
FROM json_each(:numbers) j
CROSS JOIN occurrence h ON h.event = j.value
LEFT JOIN operation o ON o.number = h.operation
LEFT JOIN body b ON b.number = o.body
ORDER BY h.number;
