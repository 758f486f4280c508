-- The age, in seconds, of the oldest row of each class that retention deletes, 0 where there is none. Numbers follow time: the
-- lowest one is the oldest, but for the dead, who are few.
SELECT 'receipts', coalesce((SELECT extract(epoch FROM clock_timestamp() - r.received_at) FROM receipts r ORDER BY r.id LIMIT 1), 0)::double precision
UNION ALL
SELECT 'turns', coalesce((SELECT extract(epoch FROM clock_timestamp() - t.drained_at) FROM turns t WHERE NOT t.open AND NOT t.dead ORDER BY t.id LIMIT 1), 0)::double precision
UNION ALL
SELECT 'dead', coalesce((SELECT extract(epoch FROM clock_timestamp() - min(t.first_at)) FROM turns t WHERE t.dead), 0)::double precision;
