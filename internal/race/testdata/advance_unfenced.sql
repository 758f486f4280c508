-- A reply, or that the last part is out, is taken in company from whoever once had the turn.
SELECT pg_temp.edit('fila_advance', 't.attempt = r.attempt AND ', '');
SELECT pg_temp.edit('fila_advance', 't.attempt = s.attempt AND ', '');
