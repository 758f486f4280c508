-- Rows of other programs become messages like any other; the phones that have work now.
SELECT phone FROM fila_adopt($1) AS phone;
