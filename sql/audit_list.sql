-- What was last done to a conversation, and by whom, newest first. $1 project, $2 the conversation's key, $3 how many.
SELECT a.at, a.action, a.actor, a.turn_id::text, a.reason
FROM audit a
WHERE a.project = $1 AND a.phone = $2
ORDER BY a.id DESC
LIMIT $3;
