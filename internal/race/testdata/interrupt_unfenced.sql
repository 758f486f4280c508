-- A turn is given back by whoever once had it.
SELECT pg_temp.edit('fila_interrupt', ' OR t.attempt <> coalesce(p_attempt, t.attempt)', '');
