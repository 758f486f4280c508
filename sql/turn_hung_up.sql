-- The call of a turn that was discarded meanwhile is over.
SELECT fila_hung_up($1);
