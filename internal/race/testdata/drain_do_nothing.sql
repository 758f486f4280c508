-- A conflict behind the DELETE is swallowed: the messages are gone and no turn has them.
SELECT pg_temp.edit('fila_drain', 'j.first_at, j.at
        RETURNING', 'j.first_at, j.at ON CONFLICT DO NOTHING
        RETURNING');
