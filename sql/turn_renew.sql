-- The sign of life of the turns that run here; those that do not come back are no longer ours.
SELECT turn_id, interrupted, renewed FROM fila_renew($1, $2, $3);
