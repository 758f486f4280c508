-- What the sweep found: wakeup, foreign, turn, overdue, and for each project the page's end.
SELECT kind, project, phone, found FROM fila_sweep($1, $2, $3);
