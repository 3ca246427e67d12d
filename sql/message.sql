-- When did a message happen, in which thread, and was it authorized? One row for each period of it; none for what is no message.
--
-- Parameters: :entity, its number.
-- Columns: number, of the period; at; thread; authorized.
SELECT p.number, m.at, m.thread, m.authorized
FROM period p
CROSS JOIN message m ON m.period = p.number
WHERE p.entity = :entity AND m.authorized IS NOT NULL;
