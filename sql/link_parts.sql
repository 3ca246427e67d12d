-- When were some links believed, and which operations recorded that first? One row for each period, in the order in which they were recorded, and one for each
-- period that came and went in one transaction.
--
-- Parameters: :numbers, a JSON array of the numbers of the links.
-- Columns: link; claim, NULL in the rows of the second kind; number, of the period; valid_from and valid_to; tx_from and tx_to; operation.
SELECT p.link, p.claim, p.number AS number, p.valid_from, p.valid_to, p.tx_from, p.tx_to, coalesce(c.operation, -1) AS operation
FROM json_each(:numbers) j
CROSS JOIN link_period p ON p.link = j.value
CROSS JOIN claim c ON c.number = p.claim
UNION ALL
SELECT n.link, NULL, n.number, n.valid_from, n.valid_to, o.tx, o.tx, n.operation
FROM json_each(:numbers) j
CROSS JOIN linked n ON n.link = j.value
CROSS JOIN operation o ON o.number = n.operation
ORDER BY number;
