-- Tables of ours without autovacuum, and how many partitions the queue has: a query on the whole of it locks each, with its indexes.
SELECT
    coalesce((
        SELECT string_agg(c.relname, ', ' ORDER BY c.relname)
        FROM pg_class c
        WHERE c.relnamespace = ANY (current_schemas(false)::regnamespace[])
            AND (c.relname IN ('receipts', 'conversations', 'turns', 'deliveries') OR c.relname LIKE 'fila\_mensagens\_%')
            -- The value is kept as somebody typed it: false, off, no, 0.
            AND EXISTS (
                SELECT FROM pg_options_to_table(c.reloptions) o
                WHERE o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean
            )
    ), ''),
    (SELECT count(*) FROM pg_inherits i WHERE i.inhparent = 'fila_mensagens'::regclass)::integer;
