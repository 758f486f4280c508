-- Settles a turn without an answer: turn, by, reason, project (null: any).
SELECT fila_discard($1, $2, $3, $4);
