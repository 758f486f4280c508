-- An agent that calls back settles the turn although a call to it is still under way.
SELECT pg_temp.edit('fila_reply', 'calling := t.lease_until', 'calling := NULL');
