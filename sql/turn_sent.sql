-- Part $3 went out as $4; with $5 on to the next.
SELECT fila_sent($1, $2, $3, $4, $5);
