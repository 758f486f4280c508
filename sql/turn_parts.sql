-- The parts of a turn's reply in order; text and state of each.
SELECT d.part, d.text, d.state
FROM deliveries d
WHERE d.turn_id = $1 AND d.part > 0
ORDER BY d.part;
