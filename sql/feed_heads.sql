-- What did some transactions change, on whatever line? One row for each line of the chain, in order.
--
-- Parameters: :since and :until, the instants of the first and of the last transaction.
-- Columns: tx; head.
SELECT tx, head FROM chain WHERE tx >= :since AND tx <= :until ORDER BY number;
