-- When each turn's burst was due.
SELECT t.id, t.due_at FROM turns t;
