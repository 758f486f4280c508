package race_test

// The statements that sessions run, each answering one text.
const (
	pushOne = `SELECT statuses[1] FROM fila_push(ARRAY['clinic'], ARRAY[$1], ARRAY[$2], ARRAY[$2], ARRAY['text of ' || $1], ARRAY['text'],
		ARRAY[NULL], ARRAY[NULL], ARRAY[NULL], ARRAY[NULL]::timestamptz[], ARRAY[NULL], ARRAY[NULL])`
	pushMany = `SELECT array_to_string(statuses, ' ') FROM fila_push(
		array_fill('clinic'::text, ARRAY[cardinality($1::text[])]), $1, $2::text[], $2, $1, array_fill('text'::text, ARRAY[cardinality($1)]),
		array_fill(NULL::text, ARRAY[cardinality($1)]), array_fill(NULL::text, ARRAY[cardinality($1)]), array_fill(NULL::text, ARRAY[cardinality($1)]),
		array_fill(NULL::timestamptz, ARRAY[cardinality($1)]), array_fill(NULL::text, ARRAY[cardinality($1)]), array_fill(NULL::text, ARRAY[cardinality($1)]))`
	drainOne  = `SELECT verdict FROM fila_drain('clinic', ARRAY[$1], 'two', 100)`
	drainMany = `SELECT string_agg(verdict, ' ' ORDER BY phone) FROM fila_drain('clinic', $1::text[], 'two', 100)`
	claim     = `SELECT coalesce(string_agg(why || ' as ' || attempt, ' '), 'nothing') FROM fila_claim(ARRAY['clinic'], ARRAY[10], 'two', 100)`
	reply     = `SELECT verdict FROM fila_reply('clinic', $1, $2, 'a b', ARRAY['a', 'b'], false, true, 'one', 100)`
	send      = `SELECT fila_send($1, $2, $3)`
	sent      = `SELECT fila_sent($1, $2, $3, 'p', false)`
	fail      = `SELECT fila_fail($1, $2, $3, $4, $5, 'status 500', true, 0)`
	await     = `SELECT fila_await_reply($1, $2, 100)`
	interrupt = `SELECT fila_interrupt($1, $2)`
	confirm   = `SELECT fila_confirm('clinic', $1, $2)`
	renew     = `SELECT (count(*) FILTER (WHERE renewed))::text FROM fila_renew(ARRAY[$1]::bigint[], ARRAY[$2]::integer[], 100)`
	handBack  = `SELECT fila_hand_back(ARRAY[$1]::bigint[], ARRAY[$2]::integer[])::text`
	takeover  = `SELECT split_part(fila_takeover('clinic', $1, 60, 'rita', 'she asked'), ' ', 1)`
	suspend   = `SELECT fila_suspend('clinic', $1, 'rita', 'checking')`
	redrive   = `SELECT fila_redrive($1, 'rita', 'agent is back')`
	// What is not taken in company is left for its own call.
	advance = `SELECT coalesce((SELECT verdict FROM fila_advance(
		ARRAY[$1]::bigint[], ARRAY[$2]::integer[], ARRAY['a b'], ARRAY[$1, $1]::bigint[], ARRAY[1, 2], ARRAY['a', 'b'], NULL, NULL, NULL, NULL, 'one', 100)), 'apart')`
	advanceSent = `SELECT coalesce((SELECT verdict || CASE WHEN waits THEN ', more' ELSE '' END FROM fila_advance(
		NULL, NULL, NULL, NULL, NULL, NULL, ARRAY[$1]::bigint[], ARRAY[$2]::integer[], ARRAY[$3]::integer[], ARRAY['p'], 'one', 100)), 'apart')`
	adopt = `SELECT coalesce(string_agg(phone, ' '), 'nothing') FROM fila_adopt('clinic') AS phone`
)

func (s *scene) push(id, phone string) {
	s.Helper()
	s.exec(pushOne, id, phone)
}

// begin makes a turn of the messages, owned by instance "one".
func (s *scene) begin(phone string, ids ...string) (turn int64) {
	s.Helper()
	for _, id := range ids {
		s.push(id, phone)
	}
	s.pass(window + 1)
	err := s.pool.QueryRow(s.Context(), `SELECT turn_id FROM fila_drain('clinic', ARRAY[$1], 'one', 100)`, phone).Scan(&turn)
	if err != nil {
		s.Fatal(err)
	}
	return turn
}

// replied brings a new turn to the point where its first of two parts is going out.
func (s *scene) replied(phone, id string) (turn int64) {
	s.Helper()
	turn = s.begin(phone, id)
	s.exec(reply, turn, 1)
	return turn
}

// buried makes a turn and lets it die.
func (s *scene) buried(phone, id string) (turn int64) {
	s.Helper()
	turn = s.begin(phone, id)
	s.exec(fail, turn, 1, "agent", nil, "dead")
	return turn
}

func (s *scene) text(sql string, args ...any) (text string) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), sql, args...).Scan(&text); err != nil {
		s.Fatal(err)
	}
	return text
}
