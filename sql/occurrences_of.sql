-- When did some events happen again, whenever that was recorded? One row for each time, in the order in which they were recorded.
--
-- Parameters: :numbers, a JSON array of the numbers of the events.
-- Columns: event; number; occurred_at; tx; operation; body of that operation, and its length in bytes (0: there is none).
SELECT h.event, h.number, h.occurred_at, h.tx, h.operation, coalesce(o.body, 0) AS body, coalesce(length(b.data), 0) AS length
FROM json_each(:numbers) j
CROSS JOIN occurrence h ON h.event = j.value
LEFT JOIN operation o ON o.number = h.operation
LEFT JOIN body b ON b.number = o.body
ORDER BY h.number;
