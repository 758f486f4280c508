-- How the fallback text of a dead turn fared.
SELECT fila_fallback_sent($1, $2, $3);
