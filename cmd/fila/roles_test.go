package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// login makes a role that may log in and is a member of another, and returns its name and the database's URL for it.
func (o operator) login(member string) (role, address string) {
	o.Helper()
	role = "fila_test_" + strings.ToLower(rand.Text())
	o.exec(fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD 'segredo'`, role))
	o.Cleanup(func() {
		if _, err := o.pool.Exec(context.Background(), fmt.Sprintf(`DROP OWNED BY %s; DROP ROLE %[1]s`, role), pgx.QueryExecModeSimpleProtocol); err != nil {
			o.Error(err)
		}
	})
	if member != "" {
		o.exec(fmt.Sprintf(`GRANT %s TO %s`, member, role))
	}
	u, err := url.Parse(o.url)
	if err != nil {
		o.Fatal(err)
	}
	u.User = url.UserPassword(role, "segredo")
	return role, u.String()
}

// may tries statements as a role: those it may run, and those it may not.
func (o operator) may(address string, allowed, refused []string) {
	o.Helper()
	conn, err := pgx.Connect(o.Context(), address)
	if err != nil {
		o.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range allowed {
		if _, err := conn.Exec(o.Context(), statement); err != nil {
			o.Errorf("%s: %v", statement, err)
		}
	}
	for _, statement := range refused {
		if _, err := conn.Exec(o.Context(), statement); err == nil || !strings.Contains(err.Error(), "42501") {
			o.Errorf("%s: %v, want permission denied", statement, err)
		}
	}
}

func TestTheSupportReadsNoText(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.dead("clinic", phone, "tenho uma dúvida")
	o.push("clinic", phone, "alô")
	_, address := o.login("fila_support")
	o.may(address, []string{
		`SELECT * FROM fila_overview`, `SELECT * FROM fila_lost`, `SELECT * FROM fila_explain('clinic', '` + phone + `')`,
		`SELECT id, telefone, timestamp FROM fila_mensagens`, `SELECT id, state, errors FROM turns`, `SELECT * FROM audit`,
	}, []string{
		`SELECT mensagem FROM fila_mensagens`, `SELECT mensagem FROM fila_mensagens_clinic`, `SELECT text FROM turns`, `SELECT messages FROM turns`,
		`SELECT reply FROM turns`, `SELECT contact_name FROM conversations`, `SELECT text FROM deliveries`, `SELECT * FROM turns`,
		`SELECT fila_takeover('clinic', '` + phone + `', 60, 'x', 'y')`, `SELECT fila_erase('clinic', '` + phone + `', 'x')`, `DELETE FROM receipts`,
		`UPDATE conversations SET mode = 'human'`, `SELECT fila_grant_feeder('clinic', 'postgres')`,
	})
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("no psql on this machine")
	}
	files, err := filepath.Glob("../../sql/ops/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files for operators (%v)", err)
	}
	for _, file := range files {
		said, err := exec.CommandContext(t.Context(), psql, "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--set=project=clinic", "--set=phone="+phone, "--file="+file, address).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", file, err, said)
		}
		if strings.Contains(string(said), "dúvida") {
			t.Errorf("%s shows text:\n%s", file, said)
		}
	}
}

func TestAFeederWritesIntoOneQueue(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	role, address := o.login("")
	o.exec(`SELECT fila_grant_feeder('clinic', $1)`, role)
	o.may(address, []string{
		`INSERT INTO fila_mensagens_clinic (telefone, mensagem) VALUES ('` + phone + `', 'oi')`,
		`INSERT INTO fila_mensagens_clinic (id_mensagem, telefone, mensagem, timestamp) VALUES ('a', '` + phone + `', 'tudo bem?', now())`,
	}, []string{
		`INSERT INTO fila_mensagens_other (telefone, mensagem) VALUES ('` + phone + `', 'oi')`,
		`INSERT INTO fila_mensagens (projeto, telefone, mensagem) VALUES ('clinic', '` + phone + `', 'oi')`,
		`INSERT INTO fila_mensagens_clinic (telefone, mensagem, registered) VALUES ('` + phone + `', 'oi', true)`,
		`INSERT INTO fila_mensagens_clinic (id, telefone, mensagem) VALUES (1, '` + phone + `', 'oi')`,
		`SELECT * FROM fila_mensagens_clinic`, `DELETE FROM fila_mensagens_clinic`, `SELECT * FROM turns`, `SELECT * FROM projects`,
		`SELECT fila_takeover('clinic', '` + phone + `', 60, 'x', 'y')`, `SELECT fila_grant_roles()`,
	})
	if got := lookUp[string](o, `SELECT body FROM fila_drain('clinic', ARRAY[$1], 'here', 30)`, phone); got != "oi tudo bem?" {
		t.Errorf("the turn reads %q", got)
	}
}

// TestAServiceThatOwnsNothing opens a new project and answers in it without being allowed to change the schema.
func TestAServiceThatOwnsNothing(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	_, address := o.login("fila_service")
	o.may(address, nil, []string{`CREATE TABLE mine (n int)`, `ALTER TABLE turns ADD COLUMN n int`, `DROP TABLE receipts`, `TRUNCATE audit`})

	delivered := make(chan string, 1)
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/agent" {
			_, _ = io.WriteString(w, `{"reply": "olá"}`)
			return
		}
		var part struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&part); err != nil {
			t.Error(err)
		}
		delivered <- part.Text
	}))
	defer outside.Close()
	listen := o.serve(map[string]string{"FILA_DATABASE_URL": address, "FILA_LISTEN": "127.0.0.1:0", "FILA_CONFIG": file(t, fmt.Sprintf(`
projects:
  brandnew:
    message_debounce_seconds: 0
    agent: {url: "%[1]s/agent"}
    delivery: {url: "%[1]s/delivery"}
`, outside.URL))}, "--no-migrate")

	for _, path := range []string{"/readyz", "/metrics", "/"} {
		if status, _ := o.get(listen + path); status != http.StatusOK {
			t.Errorf("%s answers %d", path, status)
		}
	}
	response, err := http.Post(listen+"/v1/projects/brandnew/messages", "application/json", strings.NewReader(`{"phone": "`+phone+`", "text": "oi"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		t.Fatalf("the message is answered %d", response.StatusCode)
	}
	if text := <-delivered; text != "olá" {
		t.Errorf("delivered %q", text)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, listen+"/v1/projects/brandnew/conversations/"+phone, nil)
	if err != nil {
		t.Fatal(err)
	}
	erased, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer erased.Body.Close()
	if erased.StatusCode != http.StatusOK {
		t.Errorf("the erasure is answered %d", erased.StatusCode)
	}
}

// serve runs the service until the test ends, and returns its address once it is ready.
func (o operator) serve(env map[string]string, args ...string) string {
	o.Helper()
	reader, writer := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
		code := run(ctx, append([]string{"serve"}, args...), strings.NewReader(""), io.Discard, writer, lookup)
		_ = writer.Close()
		ended <- code
	}()
	o.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			o.Errorf("the service ended with %d", code)
		}
	})
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			var line struct{ Message, Listen string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "ready" {
				ready <- "http://" + line.Listen
			} else if strings.Contains(lines.Text(), `"error"`) {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
		}
	}()
	address, ok := <-ready
	if !ok {
		o.Fatal("the service ended before it was ready")
	}
	return address
}

func (o operator) get(address string) (int, string) {
	o.Helper()
	response, err := http.Get(address)
	if err != nil {
		o.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		o.Fatal(err)
	}
	return response.StatusCode, string(body)
}
