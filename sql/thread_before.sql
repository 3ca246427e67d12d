-- Which messages of a thread hold at a coordinate, and happened before a message or at its instant, itself included? At most so many, the latest first; of one instant in the order of their numbers.
--
-- Parameters: :thread; :at and :entity, when the message happened and its number; :most, how many (NULL: all); :valid and :tx, the coordinate.
-- Columns: number, of the period; entity; at.
SELECT p.number, m.entity, m.at
FROM message m
CROSS JOIN period p ON p.number = m.period AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
WHERE m.thread = :thread AND m.at <= :at AND (m.at < :at OR m.entity <= :entity)
ORDER BY m.at DESC, m.entity DESC
LIMIT coalesce(:most, -1);
