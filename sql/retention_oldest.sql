-- The age, in seconds, of the oldest row of each class that retention deletes, 0 where there is none. Numbers follow time: the
-- lowest one is the oldest, of the dead the lowest one of a project.
SELECT 'receipts', coalesce((SELECT extract(epoch FROM clock_timestamp() - r.received_at) FROM receipts r ORDER BY r.id LIMIT 1), 0)::double precision
UNION ALL
SELECT 'turns', coalesce((SELECT extract(epoch FROM clock_timestamp() - t.drained_at) FROM turns t WHERE NOT t.open AND NOT t.dead ORDER BY t.id LIMIT 1), 0)::double precision
UNION ALL
SELECT 'dead', coalesce(extract(epoch FROM clock_timestamp() - min(d.first_at)), 0)::double precision
FROM projects p
CROSS JOIN LATERAL (SELECT t.first_at FROM turns t WHERE t.project = p.name AND t.dead ORDER BY t.project, t.id LIMIT 1) d;
