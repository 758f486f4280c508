-- Where the server's time goes, by function: calls and milliseconds in the function itself. Empty unless track_functions says otherwise.
SELECT f.funcname, f.calls, f.self_time
FROM pg_stat_user_functions f
WHERE f.schemaname = ANY (current_schemas(false))
ORDER BY f.self_time DESC
LIMIT 15;
