-- A reply is taken from whoever once had the turn.
SELECT pg_temp.edit('fila_reply', 'OR t.attempt <> coalesce(p_attempt, t.attempt) ', '');
