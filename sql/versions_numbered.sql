-- What are some versions of? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of versions.
-- Columns: number; entity; ordinal; body; length, of the body in bytes (0: it was removed); operation, -1 where it is not known.
SELECT v.number, v.entity, v.ordinal, v.body, coalesce(length(b.data), 0) AS length, coalesce(v.operation, -1) AS operation
FROM json_each(:numbers) j
CROSS JOIN version v ON v.number = j.value
LEFT JOIN body b ON b.number = v.body;
