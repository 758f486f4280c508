-- How much there is to import.
SELECT count(*) FROM "{table}";
