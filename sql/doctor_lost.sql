-- How many of the newest $1 messages are lost, and how many were looked at. All of them would take minutes on a big ledger.
--
-- As an array they are few to the planner, which then looks each up by its key; of a range it would believe that it is a third of
-- the ledger, and read all turns.
SELECT
    (SELECT count(*) FROM fila_lost l WHERE l.id = ANY (newest.ids)), cardinality(newest.ids)
FROM (SELECT ARRAY(SELECT r.id FROM receipts r ORDER BY r.id DESC LIMIT $1) AS ids) newest;
