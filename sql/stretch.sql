-- Which stretch of valid time around an instant has nothing that begins, ends or happens in it, of all that was ever recorded? One row.
--
-- Parameters: :valid, the instant, in microseconds since 1970-01-01 UTC.
-- Columns: since, the last such time that is not after :valid, and until, the first that is (NULL: there is none).
WITH
turn (begun, ended, begins, ends) AS MATERIALIZED (
  SELECT
    max(p.valid_from) FILTER (WHERE p.valid_from <= :valid), max(p.valid_to) FILTER (WHERE p.valid_to <= :valid),
    min(p.valid_from) FILTER (WHERE p.valid_from > :valid), min(p.valid_to) FILTER (WHERE p.valid_to > :valid)
  FROM period p
  UNION ALL
  SELECT
    max(p.valid_from) FILTER (WHERE p.valid_from <= :valid), max(p.valid_to) FILTER (WHERE p.valid_to <= :valid),
    min(p.valid_from) FILTER (WHERE p.valid_from > :valid), min(p.valid_to) FILTER (WHERE p.valid_to > :valid)
  FROM link_period p
  UNION ALL
  SELECT
    max(p.valid_from) FILTER (WHERE p.valid_from <= :valid), max(p.valid_to) FILTER (WHERE p.valid_to <= :valid),
    min(p.valid_from) FILTER (WHERE p.valid_from > :valid), min(p.valid_to) FILTER (WHERE p.valid_to > :valid)
  FROM absence p
  UNION ALL
  SELECT
    max(p.valid_from) FILTER (WHERE p.valid_from <= :valid), max(p.valid_to) FILTER (WHERE p.valid_to <= :valid),
    min(p.valid_from) FILTER (WHERE p.valid_from > :valid), min(p.valid_to) FILTER (WHERE p.valid_to > :valid)
  FROM shaky p
  UNION ALL
  SELECT max(h.occurred_at) FILTER (WHERE h.occurred_at <= :valid), NULL, min(h.occurred_at) FILTER (WHERE h.occurred_at > :valid), NULL
  FROM occurrence h
)
SELECT
  (SELECT max(at) FROM (SELECT turn.begun AS at FROM turn UNION ALL SELECT turn.ended FROM turn)) AS since,
  (SELECT min(at) FROM (SELECT turn.begins AS at FROM turn UNION ALL SELECT turn.ends FROM turn)) AS until;
