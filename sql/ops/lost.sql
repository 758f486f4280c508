-- Accepted messages that are in no fate, of the last 5,000. Always empty; a row here is an alarm. Further back, which takes
-- longer: psql -v messages=10000000 -f lost.sql
\if :{?messages}
\else
    \set messages 5000
\endif
SELECT l.project, l.id, l.phone, l.received_at
FROM fila_lost l
WHERE l.id > (SELECT coalesce(max(r.id), 0) - :messages FROM receipts r)
LIMIT 200;
