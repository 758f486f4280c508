-- The agent's time is over for a turn that has its reply.
SELECT pg_temp.edit('fila_fail', 'OR (p_stage = ''agent'' AND t.stage <> ''agent'')', '');
