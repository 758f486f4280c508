-- The fallback text that was laid down when the turn died, if one was.
SELECT d.text FROM deliveries d WHERE d.turn_id = $1 AND d.part = 0 AND d.state = 'sending';
