-- Why a conversation stands where it stands, a line a fact: project, phone.
SELECT explanation FROM fila_explain($1, $2);
