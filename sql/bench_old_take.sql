-- What the old design takes when it wakes.
DELETE FROM fila_mensagens_old WHERE telefone = $1 RETURNING mensagem;
