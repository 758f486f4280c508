-- One message of the old design.
INSERT INTO fila_mensagens_old (id_mensagem, telefone, mensagem) VALUES ($1, $2, $3);
