-- The claim does not raise the attempt: nothing tells the new owner from the old one.
SELECT pg_temp.edit('fila_claim', 'THEN 0 ELSE 1 END', 'THEN 0 ELSE 0 END');
