-- What autovacuum would have done since. Not of tables that are still empty: it would not have come to those.
VACUUM (ANALYZE) conversations, receipts, fila_mensagens;
