-- When were some periods of links recorded first? One row for each, in no order: what an undo opened again was recorded when it was opened first.
--
-- Parameters: :numbers, a JSON array of the numbers of the periods.
-- Columns: number; tx.
SELECT p.number, CASE WHEN o.verb = 'undo' THEN (
  SELECT min(f.tx_from) FROM link_period f
  WHERE f.link = p.link AND f.claim = p.claim AND f.valid_from = p.valid_from AND f.valid_to = p.valid_to
) ELSE p.tx_from END AS tx
FROM json_each(:numbers) j
CROSS JOIN link_period p ON p.number = j.value
CROSS JOIN operation o ON o.number = p.opened_by;
