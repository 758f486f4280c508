-- The oldest rows of an older queue go to the end of ours, in their order, as rows of another program: the next sweep takes
-- them up. Whatever is deleted there is inserted here, by one statement. $1 project, $2 how many.
WITH oldest AS (
    SELECT o.id FROM "{table}" o ORDER BY o.id LIMIT $2 FOR UPDATE
), taken AS (
    DELETE FROM "{table}" o USING oldest WHERE o.id = oldest.id
    RETURNING o.id, o.id_mensagem::text, o.telefone::text, o.mensagem::text, o.timestamp::timestamptz
)
INSERT INTO fila_mensagens (projeto, id_mensagem, telefone, mensagem, timestamp)
SELECT $1, coalesce(t.id_mensagem, ''), coalesce(t.telefone, ''), coalesce(t.mensagem, ''), coalesce(t.timestamp, clock_timestamp())
FROM taken t
ORDER BY t.id;
