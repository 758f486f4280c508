-- One page of idle conversations behind the one of project $1 and phone $2.
SELECT gone, coalesce(last_project, $1), coalesce(last_phone, $2), more FROM fila_forget_conversations($1, $2, $3);
