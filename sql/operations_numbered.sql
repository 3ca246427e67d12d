-- When was something done, what, and to what? One row for each operation of these numbers, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of the operations.
-- Columns: number; tx; verb; subject.
SELECT o.number, o.tx, o.verb, o.subject
FROM json_each(:numbers) j
CROSS JOIN operation o ON o.number = j.value;
