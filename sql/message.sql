-- When did a message happen, in which thread, and was it authorized? One row; none for what is no message.
--
-- Parameters: :entity, its number.
-- Columns: at; thread; authorized.
SELECT m.at, m.thread, m.authorized
FROM version v
CROSS JOIN message m ON m.version = v.number
WHERE v.entity = :entity AND m.authorized IS NOT NULL
ORDER BY v.number
LIMIT 1;
