-- Projects that are not among $1 and still have messages waiting or turns open.
SELECT
    p.name,
    (SELECT count(*) FROM fila_mensagens q WHERE q.projeto = p.name) AS waiting,
    (SELECT count(*) FROM turns t WHERE t.project = p.name AND t.open) AS open_turns
FROM projects p
WHERE p.name <> ALL ($1::text[]) AND (
    EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = p.name)
    OR EXISTS (SELECT FROM turns t WHERE t.project = p.name AND t.open)
);
