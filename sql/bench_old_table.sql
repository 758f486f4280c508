-- A queue as it was before: what a benchmark compares with.
CREATE TABLE fila_mensagens_old (
    id          bigserial PRIMARY KEY,
    id_mensagem text NOT NULL UNIQUE,
    telefone    text NOT NULL,
    mensagem    text NOT NULL,
    timestamp   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON fila_mensagens_old (telefone);
