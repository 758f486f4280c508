-- A resolved delivery sends the turn back to the agent, which is asked for a second reply.
SELECT pg_temp.edit('fila_resolve', 'state = ''retrying'', next_attempt_at', 'state = ''retrying'', stage = ''agent'', next_attempt_at');
