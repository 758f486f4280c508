-- The process that serves this connection, as the server itself says.
SELECT pg_backend_pid();
