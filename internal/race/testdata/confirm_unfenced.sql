-- An effect is confirmed to whoever once had the turn.
SELECT pg_temp.edit('fila_confirm', 'OR t.attempt <> coalesce(p_attempt, t.attempt) ', '');
