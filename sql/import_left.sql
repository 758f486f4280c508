-- What is still in the older table, and how much of it has no id and so no place in the order.
SELECT count(*), count(*) FILTER (WHERE o.id IS NULL) FROM "{table}" o;
