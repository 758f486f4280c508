-- An erasure keeps no digest: a repetition is a new message.
SELECT pg_temp.edit('fila_erase', 'WHERE known.id <> ''''', 'WHERE false');
