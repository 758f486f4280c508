-- A shutdown gives its turns away at once.
SELECT fila_hand_back($1, $2);
