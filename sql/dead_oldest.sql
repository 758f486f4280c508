-- The dead turns of a project, or of all where $1 is null, those that wait for longest first.
SELECT t.id FROM turns t WHERE t.dead AND ($1::text IS NULL OR t.project = $1) ORDER BY t.first_at, t.id;
