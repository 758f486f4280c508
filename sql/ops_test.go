package statement_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fila/internal/pgtest"
)

// operator runs files as an operator does.
type operator struct {
	testing.TB
	psql, url string
	// options of the session, as -c name=value.
	options string
}

func newOperator(t testing.TB) operator {
	t.Helper()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("no psql on this machine")
	}
	return operator{TB: t, psql: psql, url: pgtest.New(t)}
}

// run executes one file, with variables as name=value, and returns what psql printed.
func (o operator) run(file string, variables ...string) string {
	o.Helper()
	args := []string{"--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=" + file}
	for _, v := range variables {
		args = append(args, "--set="+v)
	}
	command := exec.CommandContext(o.Context(), o.psql, append(args, o.url)...)
	command.Env = append(os.Environ(), "PGOPTIONS="+o.options)
	said, err := command.CombinedOutput()
	if err != nil {
		o.Fatalf("%s %v: %v\n%s", file, variables, err, said)
	}
	return string(said)
}

func opsFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("ops/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files for operators (%v)", err)
	}
	return files
}

func TestOpsRun(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run("testdata/ledger.sql", "turns=50")
	for _, file := range opsFiles(t) {
		o.run(file)
		o.run(file, "project=one", "phone=5531980000000", "text=on", "messages=1000")
	}
	if said := o.run("ops/lost.sql"); !strings.Contains(said, "(0 rows)") {
		t.Errorf("lost: %s", said)
	}
}

// TestOpsStory reads one conversation in both forms of its number.
func TestOpsStory(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run("testdata/ledger.sql", "turns=50")
	for _, phone := range []string{"5531980000000", "+55 (31) 8000-0000"} {
		said := o.run("ops/story.sql", "project=one", "phone="+phone)
		for _, want := range []string{"message 1 ", "turn 1 began", "2 message(s), fired by ceiling", "turn 1, part 1", "sent after 1 attempt(s)", "turn 1 ended", "waiting", "suspend"} {
			if !strings.Contains(said, want) {
				t.Errorf("the story of %s lacks %q:\n%s", phone, want, said)
			}
		}
		if strings.Contains(said, "ultrassom") || strings.Contains(said, "Fazemos") {
			t.Errorf("the story shows text without being asked:\n%s", said)
		}
	}
	if said := o.run("ops/story.sql", "project=one", "phone=5531980000000", "text=on"); !strings.Contains(said, "Fazemos") {
		t.Errorf("the story with text lacks it:\n%s", said)
	}
	if said := o.run("ops/story.sql", "project=two", "phone=5531980000000"); !strings.Contains(said, "(0 rows)") {
		t.Errorf("the story of another project: %s", said)
	}
}

// TestOpsPlans looks at the plans of every file on a ledger of some size: what is asked about one project or phone reads no big
// table from end to end. FILA_OPS_TURNS=1000000 makes it a ledger of that many turns; the times are printed, not judged.
func TestOpsPlans(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	turns := os.Getenv("FILA_OPS_TURNS")
	if turns == "" {
		turns = "20000"
	}
	o.run("testdata/ledger.sql", "turns="+turns)
	scan := regexp.MustCompile(`Seq Scan on (turns|receipts|deliveries|conversations|audit)\b`)
	// By number alone a project without turns has the turns of all others read.
	whole := regexp.MustCompile(`turns_pkey on turns x\b`)
	for _, file := range opsFiles(t) {
		for _, variables := range [][]string{nil, {"project=one", "phone=5531980000000"}, {"project=without_turns"}} {
			started := time.Now()
			o.run(file, variables...)
			t.Logf("%-20s %-35s %s", filepath.Base(file), fmt.Sprint(variables), time.Since(started).Round(time.Millisecond))
			explained := o.explaining().run(file, variables...)
			if !strings.Contains(explained, "Query Text") {
				t.Fatalf("%s: no plan: %s", file, explained)
			}
			if found := whole.FindString(explained); found != "" && (filepath.Base(file) == "overview.sql" || slices.Contains(variables, "project=without_turns")) {
				t.Errorf("%s %v: %s\n%s", file, variables, found, explained)
			}
			if found := scan.FindString(explained); found != "" && variables != nil && takesProject(t, file) {
				t.Errorf("%s %v: %s\n%s", file, variables, found, explained)
			}
		}
	}
}

// takesProject tells whether a file may be asked about one project.
func takesProject(t testing.TB, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), ":'project'")
}

// explaining has every statement print its plan.
func (o operator) explaining() operator {
	o.options = "-c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0 -c client_min_messages=log"
	return o
}
