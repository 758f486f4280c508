package webhook

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"fila/internal/api/entry"
	"fila/internal/pgtest"
	"fila/internal/queue"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// read decodes and accepts a body as the entrance does.
func read(body string, project Project) ([]queue.Message, error) {
	r, err := decode(entry.Repair([]byte(body)))
	if err != nil {
		return nil, err
	}
	return accept(r, "clinic", project, noon)
}

func one(t *testing.T, body string) queue.Message {
	t.Helper()
	messages, err := read(body, Project{Country: "BR"})
	if err != nil || len(messages) != 1 {
		t.Fatalf("%s: got %d messages, %v", body, len(messages), err)
	}
	return messages[0]
}

func TestFaults(t *testing.T) {
	t.Parallel()
	with := func(more string) string { return `{"id":"x","phone":"5531999990001","text":"oi",` + more + `}` }
	tests := map[string]struct {
		body   string
		status int
		detail string
	}{
		"empty":                    {``, 400, "the body is empty; send a message as JSON"},
		"white space":              {" \n", 400, "the body is empty; send a message as JSON"},
		"a string":                 {`"oi"`, 400, "the body is neither a message (an object) nor an array of messages"},
		"a number":                 {`5`, 400, "the body is neither a message (an object) nor an array of messages"},
		"null":                     {`null`, 400, "the body is neither a message (an object) nor an array of messages"},
		"broken":                   {`{`, 400, "the body is not JSON behind byte"},
		"cut off":                  {`{"phone": "5531999990001", "text": "oi"`, 400, "the body is not JSON behind byte"},
		"an array cut off":         {`[{"phone":"1","text":"oi"}`, 400, "the body is not JSON behind byte"},
		"an array without commas":  {`[{"phone":"1","text":"a"}{}]`, 400, "the body is not JSON behind byte"},
		"two documents":            {with(`"a":1`) + `{}`, 400, "the body is not JSON behind byte"},
		"an array and more":        {`[]]`, 400, "the body is not JSON behind byte"},
		"NUL as a byte":            {"{\"phone\":\"1\x00\"}", 400, "the body is not JSON behind byte"},
		"an array of numbers":      {`[5]`, 422, "message 1 of the array: a message must be an object"},
		"too many":                 {"[" + strings.Repeat(`{"phone":"1","text":"a"},`, 1000) + `{"phone":"1","text":"a"}]`, 422, "more than 1000 messages; send them in several requests"},
		"no phone":                 {`{"text":"oi"}`, 422, "phone is missing; give the identifier of who wrote"},
		"an empty phone":           {`{"phone":"","text":"oi"}`, 422, "phone is missing; give the identifier of who wrote"},
		"a blank phone":            {`{"phone":" \t ","text":"oi"}`, 422, "phone is missing; give the identifier of who wrote"},
		"a phone without digits":   {`{"phone":"+() -","text":"oi"}`, 422, "phone is missing; give the identifier of who wrote"},
		"a phone that is NUL":      {`{"phone":"\u0000","text":"oi"}`, 422, "phone is missing; give the identifier of who wrote"},
		"null as phone":            {`{"phone":null,"text":"oi"}`, 422, "phone is missing; give the identifier of who wrote"},
		"a number as phone":        {`{"phone":5531999990001,"text":"oi"}`, 422, "phone must be a string"},
		"a long phone":             {`{"phone":"` + strings.Repeat("a", 257) + `","text":"oi"}`, 422, "phone is over 256 bytes"},
		"the second of an array":   {`[` + with(`"a":1`) + `,{"text":"oi"}]`, 422, "message 2 of the array: phone is missing; give the identifier of who wrote"},
		"no content":               {`{"phone":"1"}`, 422, "text and media are both empty; give one of them"},
		"empty content":            {`{"phone":"1","text":"","media":{"url":""}}`, 422, "text and media are both empty; give one of them"},
		"text that is NUL":         {`{"phone":"1","text":"\u0000"}`, 422, "text and media are both empty; give one of them"},
		"a number as text":         {`{"phone":"1","text":5}`, 422, "text must be a string"},
		"an object as id":          {with(`"id":{"a":1}`), 422, "id must be a string or a whole number"},
		"an array as id":           {with(`"id":[1]`), 422, "id must be a string or a whole number"},
		"true as id":               {with(`"id":true`), 422, "id must be a string or a whole number"},
		"a fraction as id":         {with(`"id":1.5`), 422, "id must be a string or a whole number"},
		"a huge number as id":      {with(`"id":1e400`), 422, "id must be a string or a whole number"},
		"a vague number as id":     {with(`"id":1e20`), 422, "id must be a string or a whole number"},
		"a long id":                {with(`"id":"` + strings.Repeat("é", 129) + `"`), 422, "id is over 256 bytes"},
		"an unknown kind":          {with(`"kind":"poll"`), 422, "kind is not known; give one of text, image"},
		"a number as kind":         {with(`"kind":1`), 422, "kind must be a string"},
		"sent yesterday":           {with(`"sent_at":"ontem"`), 422, "sent_at must be a time as RFC 3339 writes it"},
		"sent without a zone":      {with(`"sent_at":"2026-03-01T12:00:00"`), 422, "sent_at must be a time as RFC 3339 writes it"},
		"sent in the year 0":       {with(`"sent_at":"0000-01-01T00:00:00Z"`), 422, "sent_at must be a time as RFC 3339 writes it"},
		"sent at a number":         {with(`"sent_at":1772366400`), 422, "sent_at must be a string"},
		"metadata as text":         {with(`"metadata":"x"`), 422, "metadata must be an object"},
		"metadata as array":        {with(`"metadata":[1]`), 422, "metadata must be an object"},
		"metadata too large":       {with(`"metadata":{"a":[1e400000]}`), 422, "metadata holds a number that is too long or too large; send it as a string"},
		"media as text":            {with(`"media":"https://exemplo.invalid/a.jpg"`), 422, "media must be an object with url, mime_type and file_name"},
		"a number as media's url":  {with(`"media":{"url":5}`), 422, "media.url must be a string"},
		"yes as from_me":           {with(`"from_me":"sim"`), 422, "from_me must be true or false"},
		"a number as contact_name": {with(`"contact_name":5`), 422, "contact_name must be a string"},
		"a number as session_id":   {with(`"session_id":5`), 422, "session_id must be a string"},
		"an object as team":        {with(`"team":{}`), 422, "team must be a string"},
		"an object as status":      {with(`"status":{}`), 422, "status must be a string"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := read(tt.body, Project{})
			var p *entry.Problem
			if !errors.As(err, &p) || p.Status != tt.status || !strings.HasPrefix(p.Detail, tt.detail) {
				t.Errorf("want %d %q, got %+v", tt.status, tt.detail, p)
			}
		})
	}
}

func TestProblemNamesFieldAndPlace(t *testing.T) {
	t.Parallel()
	_, err := read(`[{"phone":"1","text":"a"},{"phone":"1","text":5}]`, Project{})
	var p *entry.Problem
	if !errors.As(err, &p) || p.Members["field"] != "text" || p.Members["index"] != 1 {
		t.Errorf("got %+v", p)
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	got := one(t, `{"id":"wamid.A","phone":"+55 (31) 9999-0001","text":"oi\u0000 <b>","contact_name":"Mari\u0000na","session_id":"s-9","kind":"image",
		"media":{"url":"https://exemplo.invalid/a.jpg","mime_type":null,"other":1},"sent_at":"2026-03-01t11:59:59.25-03:00","metadata": {"a\u0000b":"c\u0000d"} ,"unknown":{"x":[1]}}`)
	if got.SentAt == nil || !got.SentAt.Equal(time.Date(2026, 3, 1, 14, 59, 59, 250e6, time.UTC)) {
		t.Errorf("sent_at: got %v", got.SentAt)
	}
	got.SentAt = nil
	want := queue.Message{
		Project: "clinic", ID: "wamid.A", Phone: "5531999990001", Address: "+55 (31) 9999-0001", Text: "oi <b>", Kind: "image", ContactName: "Marina",
		SessionID: "s-9", Media: json.RawMessage(`{"url":"https://exemplo.invalid/a.jpg","mime_type":null,"file_name":null}`), Metadata: json.RawMessage(`{"ab":"cd"}`),
	}
	if a, b := encoded(t, got), encoded(t, want); a != b {
		t.Errorf("want\n%s, got\n%s", b, a)
	}
	least := one(t, `{"phone":"1","text":"oi","id":null,"kind":"","media":null,"metadata":null,"sent_at":"","from_me":null}`)
	if a, b := encoded(t, least), encoded(t, queue.Message{Project: "clinic", Phone: "1", Address: "1", Text: "oi", Kind: "text"}); a != b {
		t.Errorf("least: want\n%s, got\n%s", b, a)
	}
}

func encoded(t *testing.T, m queue.Message) string {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestIDs(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`"9001"`: "9001", `9001`: "9001", `9001.0`: "9001", `9.001e3`: "9001", `-5`: "-5", `-0`: "0", `0.0`: "0", `-0.0`: "0", `""`: "", `null`: "", `" a "`: " a ",
		`123456789012345678901234567890`: "123456789012345678901234567890", `"a\u0000b"`: "ab", `"\u00e9"`: "é",
	}
	for given, want := range tests {
		if got := one(t, `{"phone":"1","text":"oi","id":`+given+`}`).ID; got != want {
			t.Errorf("%s: want %q, got %q", given, want, got)
		}
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	tests := []struct{ kind, mime, file, want string }{
		{"image", "", "a.jpg", "[imagem]"},
		{"audio", "", "", "[áudio]"},
		{"video", "", "", "[vídeo]"},
		{"document", "", "exame.pdf", "[documento: exame.pdf]"},
		{"document", "", " exame\n de  sangue.pdf ", "[documento: exame de sangue.pdf]"},
		{"document", "application/pdf", "", "[documento]"},
		{"sticker", "", "", "[figurinha]"},
		{"location", "", "", "[localização]"},
		{"contact", "", "", "[contato]"},
		{"text", "image/png", "", "[imagem]"},
		{"unsupported", "audio/ogg", "", "[áudio]"},
		{"button", "application/pdf", "a.pdf", "[documento: a.pdf]"},
		{"list", "", "", "[documento]"},
	}
	for _, tt := range tests {
		body, err := json.Marshal(map[string]any{"phone": "1", "kind": tt.kind, "media": map[string]string{"url": "u", "mime_type": tt.mime, "file_name": tt.file}})
		if err != nil {
			t.Fatal(err)
		}
		if got := one(t, string(body)).Text; got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
	if got := one(t, `{"phone":"1","kind":"image","text":"legenda","media":{"url":"u"}}`).Text; got != "legenda" {
		t.Errorf("caption: got %s", got)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	teams := Filters{AllowedTeams: []string{"bot"}, IgnoredStatuses: []string{"resolved"}}
	aged := Filters{MaxAge: time.Hour}
	tests := map[string]struct {
		filters Filters
		phone   string
		more    string
		want    string
	}{
		"a person":                     {Filters{}, "1", ``, ""},
		"a group":                      {Filters{}, "1@g.us", ``, "group"},
		"a group that is let in":       {Filters{Groups: true}, "1@g.us", ``, ""},
		"a story all the same":         {Filters{Groups: true}, "status@broadcast", ``, "broadcast"},
		"a newsletter":                 {Filters{Groups: true}, "1@newsletter", ``, "newsletter"},
		"the clinic":                   {Filters{}, "1", `,"from_me":true`, "from_me"},
		"the clinic in a group":        {Filters{}, "1-group", `,"from_me":true`, "group"},
		"the clinic long ago":          {aged, "1", `,"from_me":true,"sent_at":"2026-03-01T10:59:59Z"`, "too_old"},
		"the clinic, another team":     {teams, "1", `,"from_me":true,"team":"recepcao"`, "from_me"},
		"another team":                 {teams, "1", `,"team":"recepcao"`, "team"},
		"no team":                      {teams, "1", ``, "team"},
		"the team":                     {teams, "1", `,"team":"bot"`, ""},
		"the team, but resolved":       {teams, "1", `,"team":"bot","status":"resolved"`, "status"},
		"the team, and another status": {teams, "1", `,"team":"bot","status":"pending"`, ""},
		"old":                          {aged, "1", `,"sent_at":"2026-03-01T10:59:59Z"`, "too_old"},
		"old, in another zone":         {aged, "1", `,"sent_at":"2026-03-01T07:59:59-03:00"`, "too_old"},
		"just in time":                 {aged, "1", `,"sent_at":"2026-03-01T11:00:00Z"`, ""},
		"from the future":              {aged, "1", `,"sent_at":"2031-01-01T00:00:00Z"`, ""},
		"from another century":         {aged, "1", `,"sent_at":"0001-01-01T00:00:00Z"`, "too_old"},
		"any age":                      {Filters{}, "1", `,"sent_at":"1990-01-01T00:00:00Z"`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages, err := read(`{"phone":"`+tt.phone+`","text":"oi"`+tt.more+`}`, Project{Filters: tt.filters})
			if err != nil || messages[0].Ignored != tt.want {
				t.Errorf("want %q, got %+v, %v", tt.want, messages, err)
			}
		})
	}
}

func TestStorableIsWhatPostgresStores(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tests := map[string]bool{
		`{"a":1}`: true, `{"a":-0.5e-3,"b":[true,false,null,"1e400000"]}`: true, `{"a":"\"1e400000"}`: true,
		`{"a":1e15000}`: true, `{"a":1e-15000}`: true, `{"a":` + strings.Repeat("9", 990) + `e15000}`: true, `{"a":0.` + strings.Repeat("9", 990) + `e-15000}`: true,
		`{"a":1e400000}`: false, `{"a":1E+400000}`: false, `{"a":1e-400000}`: false, `{"a":` + strings.Repeat("9", 1001) + `}`: false,
		`{"a":[[1e999999999999999999999]]}`: false,
	}
	for text, want := range tests {
		if got := storable([]byte(text)); got != want {
			t.Errorf("%.40s: want %v, got %v", text, want, got)
		}
		_, err := conn.Exec(ctx, `SELECT $1::text::jsonb`, text)
		if want && err != nil {
			t.Errorf("%.40s: Postgres does not store it: %v", text, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"id":9.001e3,"phone":"+55 (31) 9999-0001","text":"oi\u0000\ud83d","media":{"url":"u"},"metadata":{"a":1e5}}`, `[{"phone":"1","text":"a"},5]`,
		`[[`, "{\"phone\":\"\xff\"}", `{"phone":"1@g.us","text":"a","sent_at":"2026-03-01T12:00:00Z","from_me":true}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		messages, err := read(string(body), Project{Country: "BR"})
		var p *entry.Problem
		if err != nil && (!errors.As(err, &p) || p.Status != 400 && p.Status != 422) {
			t.Fatalf("want a problem, got %v", err)
		}
		for _, m := range messages {
			for _, text := range []string{m.ID, m.Phone, m.Address, m.Text, m.ContactName, m.SessionID, string(m.Media), string(m.Metadata)} {
				if strings.Contains(text, "\x00") || !utf8.ValidString(text) {
					t.Fatalf("cannot be stored: %q", text)
				}
			}
			if m.Phone == "" || m.Text == "" || len(m.ID) > maxIdentifier {
				t.Fatalf("accepted: %+v", m)
			}
			if m.Metadata != nil && !json.Valid(m.Metadata) || strings.Contains(strconv.Quote(string(m.Metadata)), `\\u0000`) && !strings.Contains(string(m.Metadata), `\\`) {
				t.Fatalf("metadata: %q", m.Metadata)
			}
		}
	})
}
