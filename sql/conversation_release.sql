-- The agent has the conversation again: project, phone, by.
SELECT fila_release($1, $2, $3);
