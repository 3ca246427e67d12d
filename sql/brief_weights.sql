-- How often were some nodes confirmed, and how much rests on each at a coordinate? One row for each.
--
-- Parameters: :numbers, a JSON array of numbers of nodes; :resting, a JSON array of the kinds of link whose source rests on their target; :valid and :tx, the
-- coordinate, in microseconds since 1970-01-01 UTC; :undone, a JSON array of the transactions that are taken back as known at :tx; :most, up to which number is counted.
-- Columns: id; confirmations; confirmed_at, when last (NULL: never); dependants.
SELECT
  e.id,
  (SELECT count(*) FROM operation o WHERE o.subject = e.id AND o.verb = 'confirm' AND o.tx <= :tx AND o.tx NOT IN (SELECT value FROM json_each(:undone))) AS confirmations,
  (SELECT max(o.tx) FROM operation o WHERE o.subject = e.id AND o.verb = 'confirm' AND o.tx <= :tx AND o.tx NOT IN (SELECT value FROM json_each(:undone))) AS confirmed_at,
  (
    SELECT count(*) FROM (
      SELECT l.number
      FROM link l
      CROSS JOIN link_period p ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
      WHERE l.target = e.number AND l.kind IN (SELECT value FROM json_each(:resting))
      UNION
      SELECT l.number
      FROM link l
      CROSS JOIN link_period p ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
      WHERE l.source = e.number AND l.kind = 'supports'
      LIMIT :most
    )
  ) AS dependants
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value;
