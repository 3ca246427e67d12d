-- Which versions hold at a coordinate, over which time around :valid do the same ones, and what is planned? One row. It reads all periods.
--
-- Parameters: :valid and :tx, the coordinate.
-- Columns: entities and versions, two JSON arrays, a place for each; begun and ended, the last beginning and the last end of a period up to :valid;
-- begins and ends, the first ones after it (NULL: there is none); plans, a JSON object of the versions that begin after :valid and :tx, with the thing of each.
SELECT
  json_group_array(p.entity) FILTER (WHERE p.valid_from <= :valid AND p.valid_to > :valid) AS entities,
  json_group_array(p.version) FILTER (WHERE p.valid_from <= :valid AND p.valid_to > :valid) AS versions,
  max(p.valid_from) FILTER (WHERE p.valid_from <= :valid) AS begun, max(p.valid_to) FILTER (WHERE p.valid_to <= :valid) AS ended,
  min(p.valid_from) FILTER (WHERE p.valid_from > :valid) AS begins, min(p.valid_to) FILTER (WHERE p.valid_to > :valid) AS ends,
  json_group_object(p.version, p.entity) FILTER (WHERE p.valid_from > max(:valid, :tx)) AS plans
FROM period p
WHERE p.tx_from <= :tx AND p.tx_to > :tx;
