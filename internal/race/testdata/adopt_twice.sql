-- A row of another program stays although its id is known already.
SELECT pg_temp.edit('fila_adopt', 'kept := FOUND AND why IS NULL;', 'kept := why IS NULL;');
