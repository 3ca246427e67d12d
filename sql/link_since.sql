-- When was a period of a link recorded first? One row: what an undo opened again was recorded when it was opened first.
--
-- Parameters: :number, of the period.
-- Columns: tx.
SELECT CASE WHEN o.verb = 'undo' THEN (
  SELECT min(f.tx_from) FROM link_period f
  WHERE f.link = p.link AND f.claim = p.claim AND f.valid_from = p.valid_from AND f.valid_to = p.valid_to
) ELSE p.tx_from END AS tx
FROM link_period p
CROSS JOIN operation o ON o.number = p.opened_by
WHERE p.number = :number;
