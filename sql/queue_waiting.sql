-- Every conversation that waits, and in how many seconds its window is over by the queue alone: read once, when an
-- instance starts or when its windows change.
SELECT
    q.projeto,
    q.telefone,
    extract(epoch FROM
        least(max(q.timestamp) + max(p.debounce), min(q.timestamp) + max(p.max_wait)) - clock_timestamp()
    )::double precision AS due_in,
    extract(epoch FROM clock_timestamp() - min(q.timestamp))::double precision AS first_ago,
    count(*)::integer AS messages
FROM fila_mensagens q
JOIN projects p ON p.name = q.projeto
WHERE q.projeto = ANY ($1::text[])
GROUP BY q.projeto, q.telefone;
