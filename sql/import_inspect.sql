-- What is known of a table to be imported, no row where there is none: its kind, whether it is one of our own queue's, and its
-- columns with the category of their type (N numbers, S texts, D moments). $1 is its quoted name.
SELECT
    c.relkind::text,
    c.oid = 'fila_mensagens'::regclass
        OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND i.inhparent = 'fila_mensagens'::regclass),
    ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
    ARRAY(
        SELECT y.typcategory::text FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
    )
FROM pg_class c
WHERE c.oid = to_regclass($1);
