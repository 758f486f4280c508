-- The claim takes what it saw a moment ago, whatever has become of it.
SELECT pg_temp.edit('fila_claim', 'FOR NO KEY UPDATE OF c SKIP LOCKED', 'FOR NO KEY UPDATE OF c');
SELECT pg_temp.edit('fila_claim', 'WHERE t.id = b.id AND b.why IS NOT NULL', 'WHERE t.id = b.id');
