-- The oldest rows of an older queue go to the end of ours, in their order, as rows of another program: the next sweep takes
-- them up. Whatever is deleted there is inserted here, by one statement. $1 project, $2 how many. How many went, and how many of
-- these the sweep will record as ignored, since they have no phone or no text, or one that is too long.
--
-- A moment of no date (infinity) counts as none: ours refuses it, and one such row would keep all others back.
WITH oldest AS (
    SELECT o.id FROM "{table}" o WHERE o.id IS NOT NULL ORDER BY o.id LIMIT $2 FOR UPDATE
), taken AS (
    DELETE FROM "{table}" o USING oldest WHERE o.id = oldest.id
    RETURNING o.id, o.id_mensagem::text, o.telefone::text, o.mensagem::text, o.timestamp::timestamptz
), moved AS (
    INSERT INTO fila_mensagens (projeto, id_mensagem, telefone, mensagem, timestamp)
    SELECT
        $1, coalesce(t.id_mensagem, ''), coalesce(t.telefone, ''), coalesce(t.mensagem, ''),
        CASE WHEN isfinite(t.timestamp) THEN t.timestamp ELSE clock_timestamp() END
    FROM taken t
    ORDER BY t.id
    RETURNING id_mensagem, telefone, mensagem
)
SELECT
    count(*),
    count(*) FILTER (
        WHERE m.mensagem = '' OR octet_length(m.id_mensagem) > 256 OR octet_length(fila_key(m.telefone, p.country)) NOT BETWEEN 1 AND 256
    )
FROM moved m
JOIN projects p ON p.name = $1;
