-- When does anything begin or end that is believed? One row for each, in order.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC.
-- Columns: at.
SELECT p.valid_from AS at FROM period p WHERE p.tx_from <= :tx AND p.tx_to > :tx
UNION
SELECT p.valid_to FROM period p WHERE p.tx_from <= :tx AND p.tx_to > :tx
UNION
SELECT p.valid_from FROM link_period p WHERE p.tx_from <= :tx AND p.tx_to > :tx
UNION
SELECT p.valid_to FROM link_period p WHERE p.tx_from <= :tx AND p.tx_to > :tx
ORDER BY at;
