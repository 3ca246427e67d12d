-- Which events are in a trace, or were before they were evicted? One row for each that may be, in the order in which they were first known.
--
-- Parameters: :first, the number of the first entity to be looked at.
-- Columns: number, of the event; period, the number of its first period; id; data, what it says (NULL where it was forgotten), and its CRC-32 (-1: it is missing); place, what the
-- operation that evicted it has kept, and the CRC-32 of that (NULL: there is none).
SELECT e.number, p.number AS period, e.id, b.data, coalesce(b.checksum, -1) AS checksum, kept.data AS place, kept.checksum AS place_checksum
FROM entity e
CROSS JOIN period p ON p.number = (SELECT min(each.number) FROM period each WHERE each.entity = e.number)
CROSS JOIN version v ON v.number = (SELECT min(each.number) FROM version each WHERE each.entity = e.number)
LEFT JOIN body b ON b.number = v.body
LEFT JOIN forgotten f ON f.entity = e.number
LEFT JOIN operation o ON o.number = f.operation
LEFT JOIN body kept ON kept.number = o.body
WHERE e.number >= :first AND e.is_event
  AND (instr(b.data, CAST('"trace_id":"' AS BLOB)) > 0 OR f.entity IS NOT NULL)
ORDER BY e.number;
