-- Which bodies were recorded by an instant? One row, or none.
--
-- Parameters: :tx.
-- Columns: number, of the first body that was not.
SELECT first_body + bodies AS number FROM chain WHERE tx <= :tx ORDER BY tx DESC, part DESC LIMIT 1;
