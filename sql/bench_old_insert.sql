-- One row with an id as long as Meta's and a random phone, of which $1 are the last digits.
INSERT INTO fila_mensagens_old (id_mensagem, telefone, mensagem)
VALUES ('wamid.' || md5(random()::text), '55319' || (10000000 + $1::integer), 'queria saber sobre ultrassom');
