-- $1 conversations of one message each that wait for an hour, and one more that is overdue since an hour.
WITH parked AS MATERIALIZED (
    SELECT nextval('fila_mensagens_id_seq') AS id, '55318' || 10000000 + n AS phone, clock_timestamp() + CASE n WHEN 0 THEN interval '-1 h' ELSE interval '1 h' END AS at
    FROM generate_series(0, $1::integer) n
), conversation AS (
    INSERT INTO conversations (project, phone, address) SELECT 'parked', p.phone, p.phone FROM parked p
), receipt AS (
    INSERT INTO receipts (id, project, message_id, phone, status) SELECT p.id, 'parked', 'wamid.HBgNNTUzMTk5OTk5MDAwMRUCABIYF' || p.id, p.phone, 'queued' FROM parked p
)
INSERT INTO fila_mensagens (id, projeto, id_mensagem, telefone, mensagem, timestamp, registered)
SELECT p.id, 'parked', 'wamid.HBgNNTUzMTk5OTk5MDAwMRUCABIYF' || p.id, p.phone, 'queria saber sobre ultrassom', p.at, true FROM parked p;
