-- A twin that came in between goes unnoticed: both pushes store their row.
SELECT pg_temp.edit('fila_push', 'IF recorded <> expected THEN', 'IF false THEN');
