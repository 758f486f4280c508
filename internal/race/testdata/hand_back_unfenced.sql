-- A turn is given away by whoever once had it.
SELECT pg_temp.edit('fila_hand_back', 'AND t.attempt = mine.attempt', '');
