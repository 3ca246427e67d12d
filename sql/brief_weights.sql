-- What speaks for some nodes at a coordinate: how often was each confirmed, and how much rests on it? One row for each.
--
-- Parameters: :numbers, a JSON array of numbers of nodes; :resting, a JSON array of the kinds of link whose source rests on their target; :valid and :tx, the
-- coordinate, in microseconds since 1970-01-01 UTC; :undone, a JSON array of the transactions that are taken back as known at :tx; :most, how many links of a sort are looked at.
-- Columns: id; confirmations; confirmed_at, when last (NULL: never); dependants.
SELECT
  e.id,
  (SELECT count(*) FROM operation o WHERE o.subject = e.id AND o.verb = 'confirm' AND o.tx <= :tx AND o.tx NOT IN (SELECT value FROM json_each(:undone))) AS confirmations,
  (SELECT max(o.tx) FROM operation o WHERE o.subject = e.id AND o.verb = 'confirm' AND o.tx <= :tx AND o.tx NOT IN (SELECT value FROM json_each(:undone))) AS confirmed_at,
  (
    SELECT count(*) FROM link l
    WHERE l.number IN (SELECT k.number FROM link k WHERE k.target = e.number AND k.kind IN (SELECT value FROM json_each(:resting)) LIMIT coalesce(:most, -1))
      AND EXISTS (SELECT 1 FROM link_period p WHERE p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx)
  ) + (
    SELECT count(*) FROM link l
    WHERE l.number IN (SELECT k.number FROM link k WHERE k.source = e.number AND k.kind = 'supports' LIMIT coalesce(:most, -1))
      AND EXISTS (SELECT 1 FROM link_period p WHERE p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx)
  ) AS dependants
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value;
