-- Which ids were first recorded on branches, deleted ones too? One row for each.
--
-- Columns: id.
SELECT DISTINCT a.id FROM all_entity a NOT INDEXED WHERE a.number >= 1099511627776;
