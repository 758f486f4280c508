-- The fence begins anew with a redrive: a late writer of the first attempt is let in again.
SELECT pg_temp.edit('fila_redrive', 'agent_failures = 0,', 'attempt = 1, agent_failures = 0,');
