// What the demo asks of the view of now, as an analyst would.

// name: demo_most_changed
// The files changed by most commits, with the last change.
MATCH (f:Node)-[:CAUSED_BY]->(c:Event)
RETURN f.text AS file, count(*) AS commits, max(c.occurred_at) AS last_changed
ORDER BY commits DESC, file LIMIT 5

// name: demo_led_to
// What stands because of what, whatever became of the cause.
MATCH (what:Node)-[:CAUSED_BY]->(why)
RETURN why.id AS why, why.standing AS standing, what.text AS what, what.valid_from AS since
ORDER BY since
