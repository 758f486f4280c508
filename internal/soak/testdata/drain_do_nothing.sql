-- The drain meets the open turn only behind the DELETE, and swallows the conflict.
SELECT pg_temp.edit('fila_drain', 'WHEN o.id IS NOT NULL THEN ''open''', 'WHEN false THEN ''open''');
SELECT pg_temp.edit('fila_drain', 'j.first_at, j.at
        RETURNING', 'j.first_at, j.at ON CONFLICT DO NOTHING
        RETURNING');
