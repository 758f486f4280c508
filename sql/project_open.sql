-- A project of this instance: its numbers, and its table when it is new.
SELECT fila_open_project($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17);
