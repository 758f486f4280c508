-- The sign of life is taken from whoever once had the turn.
SELECT pg_temp.edit('fila_renew', 'AND t.attempt = m.attempt', '');
