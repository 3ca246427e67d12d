-- When do some links hold, as believed at :tx, and what was claimed? One row for each period, in the order in which they were recorded.
--
-- Parameters: :tx; :numbers, a JSON array of the numbers of links.
-- Columns: number, of the period; link; claim; valid_from and valid_to; tx_from and tx_to; strength, 0 where none was given; is_inferred; created_by; body,
-- and its length in bytes (0: there is none); operation, -1 where it is not known.
SELECT
  p.number, p.link, p.claim, p.valid_from, p.valid_to, p.tx_from, p.tx_to, coalesce(c.strength, 0) AS strength, c.is_inferred, c.created_by,
  coalesce(c.body, 0) AS body, coalesce(length(b.data), 0) AS length, coalesce(c.operation, -1) AS operation
FROM json_each(:numbers) j
CROSS JOIN link_period p ON p.link = j.value AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN claim c ON c.number = p.claim
LEFT JOIN body b ON b.number = c.body
ORDER BY p.number;
