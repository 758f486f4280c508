-- The database's time, by which every age is told.
SELECT clock_timestamp();
