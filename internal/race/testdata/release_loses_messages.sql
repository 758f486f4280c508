-- A release drops what was held for it.
SELECT pg_temp.edit('fila_release', 'UPDATE conversations SET mode = ''agent''',
    'DELETE FROM fila_mensagens WHERE projeto = p_project AND telefone = c.phone; UPDATE conversations SET mode = ''agent''');
