-- A resolved delivery sends the turn back to the agent, which is asked for a second reply.
SELECT pg_temp.edit('fila_go_on', 'reconcile_since = NULL,', 'stage = ''agent'', reconcile_since = NULL,');
