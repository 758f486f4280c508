-- The call of a turn that was discarded meanwhile is over: turn, and the attempt that made the call.
SELECT fila_hung_up($1, $2);
