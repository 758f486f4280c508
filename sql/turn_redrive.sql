-- A dead turn begins again: turn, by, reason, project (null: any), whether also behind a later answer.
SELECT fila_redrive($1, $2, $3, $4, $5);
