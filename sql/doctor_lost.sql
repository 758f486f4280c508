-- How many of the newest $1 messages are lost, and how many were looked at. All of them would take minutes on a big ledger.
SELECT count(*), least($1, (SELECT coalesce(max(r.id), 0) FROM receipts r))
FROM fila_lost l
WHERE l.id > (SELECT coalesce(max(r.id), 0) - $1 FROM receipts r);
