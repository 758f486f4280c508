-- Projects that left the configuration take no more messages.
UPDATE projects SET active = false, updated_at = clock_timestamp()
WHERE name = ANY ($1::text[]) AND active;
