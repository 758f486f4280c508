-- One page of old receipts behind receipt $1.
SELECT gone, coalesce(last, $1), more FROM fila_forget_receipts($1, $2);
