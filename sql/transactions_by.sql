-- When was anything recorded? One row for each instant by :tx, in order.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC.
-- Columns: at.
SELECT DISTINCT o.tx AS at FROM done o WHERE o.tx <= :tx ORDER BY o.tx;
