-- Every project that rows may be kept of, also those that left the configuration.
SELECT name FROM projects ORDER BY name;
