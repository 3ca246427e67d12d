-- When was the node or event of exactly this id first recorded, if that was after :tx? One row, or none.
--
-- Parameters: :id; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: tx, the instant at which it was recorded.
SELECT e.tx_from AS tx FROM entity e WHERE e.id = :id AND e.tx_from > :tx;
