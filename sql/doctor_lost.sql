-- How many of the newest $1 messages are lost, and how many were looked at. All of them would take minutes on a big ledger.
WITH newest AS MATERIALIZED (
    SELECT min(r.id) AS first, count(*) AS looked FROM (SELECT id FROM receipts ORDER BY id DESC LIMIT $1) r
)
SELECT (SELECT count(*) FROM fila_lost l WHERE l.id >= (SELECT n.first FROM newest n)), n.looked FROM newest n;
