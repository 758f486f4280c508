-- The claim does not raise the attempt: nothing tells the new owner from the old one.
SELECT pg_temp.edit('fila_claim', 'attempt = t.attempt + CASE WHEN b.why IN (''reconcile'', ''overdue'', ''held'') AND t.lease_until IS NULL THEN 0 ELSE 1 END', 'attempt = t.attempt');
