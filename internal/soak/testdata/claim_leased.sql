-- The claim takes turns whose lease still runs.
SELECT pg_temp.edit('fila_claim', 't.lease_until < clock_timestamp()', 't.lease_until < clock_timestamp() + interval ''1.9 seconds''');
