-- The messages of a superseded turn do not come back to the queue.
SELECT pg_temp.edit('fila_supersede', 'FROM unnest(t.message_ids) WITH ORDINALITY AS n (number, place)', 'FROM unnest(t.message_ids[2:]) WITH ORDINALITY AS n (number, place)');
