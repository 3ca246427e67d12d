-- When do some links hold, as believed at :tx, and what was claimed? One row for each period, in the order in which they were recorded.
--
-- Parameters: :tx; :numbers, a JSON array of the numbers of links.
-- Columns: number, of the period; link; claim; valid_from and valid_to; tx_from and tx_to; strength, 0 where none was given; is_inferred; is_history; created_by; body,
-- and its length in bytes (0: there is none); operation, -1 where it is not known; recorded_at, when the period was recorded first.
SELECT
  p.number, p.link, p.claim, p.valid_from, p.valid_to, p.tx_from, p.tx_to, coalesce(c.strength, 0) AS strength, c.is_inferred, c.is_history, c.created_by,
  coalesce(c.body, 0) AS body, coalesce(length(b.data), 0) AS length, coalesce(c.operation, -1) AS operation,
  coalesce(
    (  -- what an undo opened again was recorded when it was opened first
      SELECT min(f.tx_from) FROM operation u
      CROSS JOIN link_period f
        ON f.link = p.link AND f.claim = p.claim AND f.valid_from = p.valid_from AND f.valid_to = p.valid_to
      WHERE u.number = p.opened_by AND u.verb = 'undo'
    ),
    p.tx_from
  ) AS recorded_at
FROM json_each(:numbers) j
CROSS JOIN link_period p ON p.link = j.value AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN claim c ON c.number = p.claim
LEFT JOIN body b ON b.number = c.body
ORDER BY p.number;
