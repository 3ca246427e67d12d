-- Which things have a period with one of some numbers? One row for each, in no order.
--
-- Parameters: :first, the first number; :stop, the one after the last.
-- Columns: number, of the entity.
SELECT DISTINCT entity AS number FROM period WHERE number >= :first AND number < :stop;
