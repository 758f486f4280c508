-- Conversations are locked in the order in which their messages came.
SELECT pg_temp.edit('fila_push', 'ORDER BY k.project, k.phone
        ON CONFLICT', 'ORDER BY min(k.ord)
        ON CONFLICT');
