-- One page of a project's old turns, ended or dead, behind turn $3: how many went, where the page ended, whether more may be old.
SELECT gone, coalesce(last, $3), more FROM fila_forget_turns($1, $2, $3, $4);
