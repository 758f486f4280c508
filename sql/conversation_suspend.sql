-- Nobody answers; messages gather: project, phone, by, reason.
SELECT fila_suspend($1, $2, $3, $4);
