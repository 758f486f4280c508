-- The window ends a little early.
SELECT pg_temp.edit('fila_due', '+ p.debounce', '+ p.debounce * 0.8');
