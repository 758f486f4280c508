-- The window starts again if anything waits in it; the conversation's key.
SELECT CASE WHEN moved THEN 'window restarted' ELSE 'nothing waits' END, (SELECT fila_key($2, p.country) FROM projects p WHERE p.name = $1)
FROM fila_typing($1, $2) AS moved;
