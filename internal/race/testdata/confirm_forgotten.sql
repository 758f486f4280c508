-- A newer message overtakes a turn that was confirmed.
SELECT pg_temp.edit('fila_overtaken', 't.confirmed_at IS NULL AND ', '');
