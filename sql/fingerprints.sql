-- Which events have a fingerprint? One row for each of which the text of its content has one, in the order in which they were first known.
--
-- Columns: number, of the event; id; data, its content, and the CRC-32 of that.
SELECT e.number, e.id, b.data, b.checksum
FROM entity e
CROSS JOIN version v ON v.number = (SELECT min(each.number) FROM version each WHERE each.entity = e.number)
CROSS JOIN body b ON b.number = v.body AND instr(b.data, CAST('"fingerprint":"' AS BLOB)) > 0
WHERE e.is_event
ORDER BY e.number;
