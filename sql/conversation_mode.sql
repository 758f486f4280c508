-- Who has a conversation now: agent, human or suspended. $1 project, $2 the conversation's key.
SELECT fila_mode(c.mode, c.until) FROM conversations c WHERE c.project = $1 AND c.phone = $2;
