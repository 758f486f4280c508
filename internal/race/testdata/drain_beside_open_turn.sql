-- The drain does not look whether a turn is open, and the conflict that follows is swallowed.
SELECT pg_temp.edit('fila_drain', 'WHEN o.id IS NOT NULL THEN ''open''', '');
SELECT pg_temp.edit('fila_drain', 'j.first_at, j.at
        RETURNING', 'j.first_at, j.at ON CONFLICT DO NOTHING
        RETURNING');
