-- One page of what was kept of erased receipts for long enough.
SELECT gone, more FROM fila_forget_erased($1);
