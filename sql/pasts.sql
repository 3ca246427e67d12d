-- What are some things, and may any of them have fallen? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of the entities.
-- Columns: number; id; is_event; kind; tx_from, since when its id is known; forgotten_by, the operation by which it was evicted or erased (NULL: none);
-- may_have_fallen, 0 where it was described once, with an open end, and nothing became of it.
SELECT
  e.number, e.id, e.is_event, e.kind, e.tx_from, (SELECT f.operation FROM forgotten f WHERE f.entity = e.number) AS forgotten_by,
  EXISTS (SELECT 1 FROM period p WHERE p.entity = e.number AND (p.valid_to < 253402300799999999 OR p.closed_by IS NOT NULL))
  OR NOT EXISTS (SELECT 1 FROM period p WHERE p.entity = e.number)
  OR EXISTS (SELECT 1 FROM changed c WHERE c.entity = e.number)
  OR EXISTS (SELECT 1 FROM removed r WHERE r.entity = e.number)
  OR EXISTS (SELECT 1 FROM link l WHERE l.target = e.number AND l.kind = 'supersedes') AS may_have_fallen
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value;
