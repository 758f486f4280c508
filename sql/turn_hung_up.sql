-- The call is over of a turn that ended meanwhile, or whose reply was called back: turn, and the attempt that made the call.
SELECT fila_hung_up($1, $2);
