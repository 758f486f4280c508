-- The agent goes on: project, phone, what becomes of the messages that waited (answer or discard), by.
SELECT fila_resume($1, $2, $3, $4);
