-- Forgets a patient, and answers how many rows of what that were: project, phone, by.
SELECT fila_erase($1, $2, $3);
