package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"fila/config"
)

func faults(t *testing.T, text string, env environment) []string {
	t.Helper()
	_, err := load(t, text, env)
	var invalid *config.Invalid
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an *Invalid for\n%s", err, text)
	}
	lines := make([]string, len(invalid.Faults))
	for i, fault := range invalid.Faults {
		lines[i] = fault.In("f")
	}
	return lines
}

// TestProjectFaults puts each line behind the least project, as line 6.
func TestProjectFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, want string }{
		{"mesage_debounce_seconds: 3", "mesage_debounce_seconds: unknown key; did you mean message_debounce_seconds?"},
		{"colour: red", "colour: unknown key; remove it"},
		{"retry: {atempts: 3}", "retry.atempts: unknown key; did you mean attempts?"},
		{`"two\nlines": 1`, `"two\nlines": unknown key; remove it`},
		{"message_debounce_seconds: 61", "message_debounce_seconds: must be at most 60, not 61"},
		{"message_debounce_seconds: -1", "message_debounce_seconds: must be at least 0, not -1"},
		{"message_debounce_seconds: dez", `message_debounce_seconds: must be a number of seconds, not "dez"`},
		{"message_debounce_seconds: '2'", `message_debounce_seconds: must be a number of seconds, not the text "2"; remove its quotes`},
		{"message_debounce_seconds: [2]", "message_debounce_seconds: must be a number of seconds, not a list"},
		{"max_wait_seconds: nan", `max_wait_seconds: must be a finite number of seconds, not nan`},
		{"max_wait_seconds: .inf", `max_wait_seconds: must be a number of seconds, not ".inf"`},
		{"max_wait_seconds: 1e999", `max_wait_seconds: must be a finite number of seconds, not "1e999"`},
		{"max_wait_seconds: 1e12", `max_wait_seconds: must be at most 315360000 seconds, not 1e12`},
		{"max_messages: 0", "max_messages: must be at least 1, not 0"},
		{"max_messages: 2.5", "max_messages: must be a whole number, not 2.5"},
		{"max_messages: 99999999999", "max_messages: must be between -2147483648 and 2147483647, not 99999999999"},
		{"supersede_limit: -1", "supersede_limit: must be at least 0, not -1"},
		{"concurrency: 0", "concurrency: must be at least 1, not 0"},
		{"during_turn: sometimes", `during_turn: must be queue, supersede or interrupt, not "sometimes"`},
		{"country: PT", `country: must be BR or "", not "PT"`},
		{"on_dead: explode", `on_dead: must be advance or suspend, not "explode"`},
		{"join: true", "join: must be a text; put it in quotes if it is one"},
		{"join: {a: b}", "join: must be a text, not a mapping"},
		{`join: "a\0b"`, "join: holds a NUL character or bytes that are not UTF-8; remove them"},
		{"join: !!str x", "join: YAML tags have no meaning here; remove the tag"},
		{"join: *none", `join: the alias "none" has no anchor; mark the value that is meant with &`},
		{"retry: 3", "retry: must be a mapping of keys to values, not a single value"},
		{"retry: {attempts: 0}", "retry.attempts: must be at least 1, not 0"},
		{"retry: {min_seconds: 61}", "retry.min_seconds: is over max_seconds (61 over 60); lower it or raise max_seconds"},
		{"retry: {max_seconds: -1}", "retry.max_seconds: must be at least 0, not -1"},
		{"adaptive: {min_seconds: 3, max_seconds: 2}", "adaptive.min_seconds: is over max_seconds (3 over 2); lower it or raise max_seconds"},
		{"adaptive: {max_seconds: 61}", "adaptive.max_seconds: must be at most 60, not 61"},
		{"fallback: {takeover: yes}", `fallback.takeover: must be true or false, not "yes"`},
		{"takeover: {messages: drop}", `takeover.messages: must be ignore or hold, not "drop"`},
		{"takeover: {minutes: x}", `takeover.minutes: must be a number of minutes, not "x"`},
		{"retention: {turns_days: -0.5}", "retention.turns_days: must be at least 0, not -0.5"},
		{"webhook: {paths: {telephone: a}}", "webhook.paths.telephone: unknown key; remove it"},
		{"webhook: {paths: {phones: a}}", "webhook.paths.phones: unknown key; did you mean phone?"},
		{"media_text: {timeout_seconds: 0}", "media_text.timeout_seconds: must be more than 0, not 0"},
		{"media_text: {kinds: [audio, smell]}", `media_text.kinds[1]: must be audio, image, video, document or sticker, not "smell"`},
		{"media_text: {kinds: audio}", "media_text.kinds: must be a list, not a single value"},
		{"filters: {allowed_teams: [~]}", `filters.allowed_teams[0]: has no value; write it, or "" for an empty text`},
		{"join: ${NOT_THERE}", "join: the environment variable NOT_THERE is not set; set it, or write $${ for a literal ${"},
		{"join: a${b-c}", "join: holds a ${ without a plain name and }; write ${NAME}, or $${ for a literal ${"},
		{"join: ${unclosed", "join: holds a ${ without a plain name and }; write ${NAME}, or $${ for a literal ${"},
		{"max_messages: ${WORD}", "max_messages: must be a whole number; look at what the environment fills in"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			t.Parallel()
			got := faults(t, least+"    "+tt.line+"\n", environment{"WORD": "hidden-word"})
			if want := []string{"f:6: projects.clinic." + tt.want}; !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestCallFaults(t *testing.T) {
	t.Parallel()
	const agent = "    agent: {url: http://h}\n"
	for _, tt := range []struct {
		name, lines string
		want        []string
	}{
		{"no agent", "    delivery: {type: log}\n", []string{"f:2: projects.c.agent.url: is required; write the address of the agent"}},
		{"no delivery", agent, []string{"f:2: projects.c.delivery.url: is required for type http; write the address it is reached at"}},
		{"nothing at all", "", []string{
			"f:2: projects.c.agent.url: is required; write the address of the agent",
			"f:2: projects.c.delivery.url: is required for type http; write the address it is reached at",
		}},
		{"an address of another kind", "    agent: {url: 'ftp://u:hidden-word@h'}\n    delivery: {type: none}\n", []string{
			`f:3: projects.c.agent.url: must be a whole http:// or https:// address, not "ftp://u:••••••@h"`,
		}},
		{"an address without host", "    agent: {url: 'http:///x'}\n    delivery: {type: none}\n", []string{
			`f:3: projects.c.agent.url: must be a whole http:// or https:// address, not "http:///x"`,
		}},
		{"reconcile without its address", "    agent: {url: http://h, on_unknown: reconcile}\n    delivery: {type: log, on_unknown: reconcile}\n", []string{
			"f:3: projects.c.agent.on_unknown: is reconcile, which needs reconcile_url; write it, or choose another",
			"f:4: projects.c.delivery.on_unknown: is reconcile, which needs reconcile_url; write it, or choose another",
		}},
		{"an unknown type", agent + "    delivery: {type: pigeon, account: {a: b}}\n", []string{
			`f:4: projects.c.delivery.type: must be http, log, none, meta, evolution, zapi, twilio, chatwoot or waha, not "pigeon"`,
		}},
		{"headers", "    agent: {url: http://h, headers: {a b: x, idempotency-key: x, upgrade: x, X-A: x, x-a: x, X-B: \"x\\ny\", X-C: ~}}\n    delivery: {type: log}\n", []string{
			`f:3: projects.c.agent.headers.X-C: has no value; write it, or "" for an empty text`,
			"f:3: projects.c.agent.headers.X-B: must not hold line breaks or control characters",
			`f:3: projects.c.agent.headers."a b": is not the name of a header; use letters, digits and dashes`,
			"f:3: projects.c.agent.headers.idempotency-key: is set by the service itself; remove it",
			"f:3: projects.c.agent.headers.upgrade: is set by the service itself; remove it",
			"f:3: projects.c.agent.headers.x-a: duplicate header; names differ in more than small and capital letters",
		}},
		{"signing secrets", "    agent: {url: http://h, signing_secret: whsec_hidden-word}\n    delivery: {type: log, signing_secret: whsec_}\n", []string{
			"f:3: projects.c.agent.signing_secret: begins with whsec_ and must be base64 behind it",
			"f:4: projects.c.delivery.signing_secret: begins with whsec_ and must be base64 behind it",
		}},
		{"parts", agent + "    delivery: {type: log, part_max_chars: 0, part_delay_seconds: -1, typing: 1, timeout_seconds: 0}\n", []string{
			"f:4: projects.c.delivery.part_max_chars: must be at least 1, not 0",
			"f:4: projects.c.delivery.part_delay_seconds: must be at least 0, not -1",
			"f:4: projects.c.delivery.typing: must be true or false, not 1",
			"f:4: projects.c.delivery.timeout_seconds: must be more than 0, not 0",
		}},
		{"an agent of the wrong kind", "    agent: http://h\n    delivery: {type: log}\n", []string{
			"f:3: projects.c.agent: must be a mapping of keys to values, not a single value",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := faults(t, "projects:\n  c:\n"+tt.lines, nil); !slices.Equal(got, tt.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	const at = "projects.c.delivery.account."
	for _, tt := range []struct{ delivery, want string }{
		{"type: meta, account: {phone_number_id: 1, access_token: a, version: v25.0}", ""},
		{"type: meta, account: {phone_number_id: 1, access_token: a, version: 25}", "f:4: " + at + `version: does not look like one; it must match ^v[0-9]+\.[0-9]+$`},
		{"type: meta, account: {phone_number_id: 1}", "f:4: " + at + "access_token: is required for type meta"},
		{"type: evolution, url: http://h, account: {instance: a, api_key: b, version: 2}", ""},
		{"type: evolution, url: http://h, account: {instance: a, api_key: b, version: 3}", "f:4: " + at + "version: does not look like one; it must match ^[12]$"},
		{"type: evolution, account: {instance: a, api_key: b}", "f:4: projects.c.delivery.url: is required for type evolution; write the address it is reached at"},
		{"type: zapi, account: {instance: a, token: b, client_token: c}", ""},
		{"type: zapi, account: {instance: a, token: b, clienttoken: c}", "f:4: " + at + "clienttoken: unknown key for type zapi; it knows instance, token, client_token"},
		{"type: twilio, account: {account_sid: a, auth_token: b, from: +55}", ""},
		{"type: twilio, account: {account_sid: a, auth_token: b, from: ''}", "f:4: " + at + "from: is required for type twilio"},
		{"type: chatwoot, url: http://h, account: {account_id: 1, api_access_token: b}", ""},
		{"type: waha, url: http://h", ""},
		{"type: http, url: http://h, account: {token: x}", "f:4: " + at + "token: unknown key for type http; it has no account, remove it"},
	} {
		t.Run(tt.delivery, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "projects:\n  c:\n    agent: {url: http://h}\n    delivery: {"+tt.delivery+"}\n", nil)
			var invalid *config.Invalid
			got := ""
			if errors.As(err, &invalid) {
				invalid.Path = "f"
				got = invalid.Error()
			}
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestTopFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		env        environment
		want       []string
	}{
		{"listen", "listen: 8080\n" + least, nil, []string{"f:1: listen: must be host:port with a port up to 65535, such as 127.0.0.1:8080, not 8080"}},
		{"port", "listen: localhost:99999\n" + least, nil, []string{`f:1: listen: must be host:port with a port up to 65535, such as 127.0.0.1:8080, not "localhost:99999"`}},
		{"log level", "log_level: loud\n" + least, nil, []string{`f:1: log_level: must be trace, debug, info, warn or error, not "loud"`}},
		{"database", "database_url: mysql://u:hidden-word@h/d\n" + least, nil, []string{"f:1: database_url: must begin with postgres:// or postgresql://, or be keyword=value pairs"}},
		{"token with a space", "admin_token: hidden-word x\n" + least, nil, []string{"f:1: admin_token: must not hold spaces or control characters"}},
		{"seconds", "sweep_seconds: 0\nlease_seconds: 0\nshutdown_seconds: -1\n" + least, nil, []string{
			"f:1: sweep_seconds: must be at least 0.05, not 0",
			"f:2: lease_seconds: must be at least 0.5, not 0",
			"f:3: shutdown_seconds: must be at least 0, not -1",
		}},
		{"duplicate keys", "demo: true\ndemo: false\n" + least + "    join: a\n    join: b\n", nil, []string{
			"f:2: demo: duplicate key; it stands on line 1 already, remove one",
			"f:9: projects.clinic.join: duplicate key; it stands on line 8 already, remove one",
		}},
		{"names of projects", "projects:\n  Clinic: {}\n", nil, []string{
			"f:2: projects.Clinic: a project's name is a small letter, then up to 39 small letters, digits or underscores",
		}},
		{"sorted by line", "lissten: x\n" + least + "    max_messages: 0\nsweep: 1\n", nil, []string{
			"f:1: lissten: unknown key; did you mean listen?",
			"f:7: projects.clinic.max_messages: must be at least 1, not 0",
			"f:8: sweep: unknown key; remove it",
		}},
		{"open to others", "listen: 0.0.0.0:80\n" + strings.ReplaceAll(least, "token: clinic-token", "join: x"), nil, []string{
			"f:1: admin_token: is required because listen (0.0.0.0:80) is not loopback; set it or FILA_ADMIN_TOKEN",
			"f:3: projects.clinic.token: is required because listen (0.0.0.0:80) is not loopback",
		}},
		{"open to others by an empty host", "admin_token: a\nlisten: ':80'\n" + strings.ReplaceAll(least, "token: clinic-token", "join: x"), nil, []string{
			"f:4: projects.clinic.token: is required because listen (:80) is not loopback",
		}},
		{"shared token", least + "  other: {token: clinic-token, agent: {url: http://h}, delivery: {type: log}}\n", nil, []string{
			"f:6: projects.other.token: is the same as projects.clinic.token; a token names one project, give each its own",
		}},
		{"the admin's token", least, environment{"FILA_ADMIN_TOKEN": "clinic-token"}, []string{
			"f:3: projects.clinic.token: is the same as admin_token; a token names one project, give each its own",
		}},
		{"overrides", least, environment{"FILA_LISTEN": "here", "FILA_LOG_LEVEL": "loud", "FILA_ADMIN_TOKEN": "hidden word", "CLINIC_MESSAGE_DEBOUNCE_SECONDS": "61"}, []string{
			`FILA_LISTEN: must be host:port with a port up to 65535, such as 127.0.0.1:8080, not "here"`,
			"FILA_ADMIN_TOKEN: must not hold spaces or control characters",
			`FILA_LOG_LEVEL: must be trace, debug, info, warn or error, not "loud"`,
			"CLINIC_MESSAGE_DEBOUNCE_SECONDS: must be at most 60, not 61",
		}},
		{"empty", "# nothing\n", nil, []string{"f:1: the file is empty; write at least one project under projects"}},
		{"a list", "- a\n", nil, []string{"f:1: must be a mapping of keys to values, not a list"}},
		{"two documents", least + "---\na: b\n", nil, []string{"f:7: a second document begins; keep one a file"}},
		{"unclosed", "projects: [", nil, []string{"f:1: not valid YAML: sequence end token ']' not found"}},
		{"bare name between braces", "projects: {clinic: {token: ${T}}}", nil, []string{
			"f:1: not valid YAML: ',' or '}' must be specified; between brackets write \"${NAME}\" with quotes",
		}},
		{"not UTF-8", "demo: true\njoin: \xff\n", nil, []string{"f:2: holds bytes that are not UTF-8; save the file as UTF-8"}},
		{"an alias of itself", "projects: {c: &a {<<: *a, agent: {url: http://h}, delivery: {type: log}}}", nil, []string{
			"f:1: projects.c: <<: brings in a mapping that itself has <<:; bring in plain mappings only",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := faults(t, tt.text, tt.env)
			if tt.name == "names of projects" {
				got = got[:1]
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if strings.Contains(strings.Join(got, ""), "hidden") {
				t.Errorf("a fault shows a secret: %q", got)
			}
		})
	}
}

func TestProjectNames(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"a": true, "clinic_2": true, "c" + strings.Repeat("x", 39): true,
		"Clinic": false, "9clinic": false, "_a": false, "a-b": false, "clínica": false, strings.Repeat("c", 41): false,
	} {
		_, err := load(t, "projects:\n  "+name+":\n    agent: {url: http://h}\n    delivery: {type: log}\n", nil)
		if good != (err == nil) {
			t.Errorf("%s: got %v, want good=%v", name, err, good)
		}
	}
}

func TestErrorIsOneLineAFault(t *testing.T) {
	t.Parallel()
	path := write(t, "lissten: x\n"+least+"    mesage_debounce_seconds: 3\n")
	_, err := config.Load(path, environment{}.lookup)
	want := path + ":1: lissten: unknown key; did you mean listen?\n" +
		path + ":7: projects.clinic.mesage_debounce_seconds: unknown key; did you mean message_debounce_seconds?"
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}
