package conversation

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"fila/internal/pgtest"
)

var keys = []struct{ phone, country, want string }{
	{"5531999990001", "BR", "5531999990001"},
	{"553199990001", "BR", "5531999990001"},
	{"553199990001", "", "553199990001"},
	{"+55 (31) 99999-0001", "BR", "5531999990001"},
	{"[55] 31 9999-0001", "BR", "5531999990001"},
	{"551133330001", "BR", "551133330001"},
	{"5511333300012", "BR", "5511333300012"},
	{"5531899990001", "BR", "5531899990001"},
	{"351912345678", "BR", "351912345678"},
	{"12025550123", "BR", "12025550123"},
	{"  5531999990001@s.whatsapp.net ", "BR", "5531999990001@s.whatsapp.net"},
	{"553199990001@s.whatsapp.net", "BR", "553199990001@s.whatsapp.net"},
	{"111222333444555@lid", "BR", "111222333444555@lid"},
	{"BR.1A2B3C", "BR", "BR.1A2B3C"},
	{"55-31-9", "BR", "55319"},
	{"", "BR", ""},
	{"   ", "BR", ""},
	{"+() -", "BR", ""},
	{"\t", "BR", "\t"},
	{"5531９９９９0001", "BR", "5531９９９９0001"},
	{"553199990001\n", "BR", "553199990001\n"},
}

func TestKey(t *testing.T) {
	t.Parallel()
	for _, tt := range keys {
		if got := Key(tt.phone, tt.country); got != tt.want {
			t.Errorf("Key(%q, %q): want %q, got %q", tt.phone, tt.country, tt.want, got)
		}
	}
}

func TestKeyIsTheDatabasesRule(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	same := func(t rapid.TB, phone, country string) {
		var want string
		if err := conn.QueryRow(ctx, "SELECT fila_key($1, $2)", phone, country).Scan(&want); err != nil {
			t.Fatalf("fila_key(%q, %q): %v", phone, country, err)
		}
		if got := Key(phone, country); got != want {
			t.Fatalf("Key(%q, %q) is %q, fila_key says %q", phone, country, got, want)
		}
	}
	for _, tt := range keys {
		same(t, tt.phone, tt.country)
	}
	country := rapid.SampledFrom([]string{"BR", "", "PT"})
	phone := rapid.OneOf(
		rapid.StringMatching(`\+?55 ?\(?[0-9]{2}\)? ?9?[5-9][0-9]{3}-?[0-9]{4}`),
		rapid.StringOfN(rapid.RuneFrom([]rune("0123456789+-()[] ")), 0, 16, -1),
		rapid.Map(rapid.StringN(0, 20, 60), func(s string) string { return strings.ReplaceAll(s, "\x00", "") }),
	)
	rapid.Check(t, func(rt *rapid.T) { same(rt, phone.Draw(rt, "phone"), country.Draw(rt, "country")) })
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"120363000000000001@g.us":         Group,
		"5531999990001-1414141414@g.us":   Group,
		"120363000000000001-group":        Group,
		" 120363000000000001@G.US ":       Group,
		"status@broadcast":                Broadcast,
		"1774@broadcast":                  Broadcast,
		"1774-broadcast":                  Broadcast,
		"120363000000000009@newsletter":   Newsletter,
		"5531999990001":                   "",
		"5531999990001@s.whatsapp.net":    "",
		"111222333@lid":                   "",
		"+55 (31) 99999-0001":             "",
		"newsletter":                      "",
		"g.us":                            "",
		"5531999990001@broadcast.invalid": "",
	}
	for identifier, want := range tests {
		if got := Ignored(identifier); got != want {
			t.Errorf("Ignored(%q): want %q, got %q", identifier, want, got)
		}
	}
}
