-- Leaves a trace of an export: project, the conversation's key, by.
INSERT INTO audit (project, phone, action, actor) VALUES ($1, $2, 'export', $3);
