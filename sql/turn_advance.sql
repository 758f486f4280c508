-- Steps of many turns in one commit: replies that go out at once, and parts that were the last ones.
SELECT turn_id, verdict, coalesce(waits, true) FROM fila_advance($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
