-- The agent will call back within $3 seconds.
SELECT fila_await_reply($1, $2, $3);
