-- A person has the conversation from now on: project, phone, minutes (null: the project's), by, reason.
SELECT fila_takeover($1, $2, $3, $4, $5);
