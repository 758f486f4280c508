-- A superseded turn does not give back what it held.
SELECT pg_temp.edit('fila_supersede', 'UPDATE conversations SET', 'DELETE FROM fila_mensagens q WHERE q.projeto = t.project AND q.telefone = t.phone AND q.superseded; UPDATE conversations SET');
