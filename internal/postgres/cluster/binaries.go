package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrNoBinaries says that no usable Postgres is installed, and what to do.
var ErrNoBinaries = errors.New("no Postgres 14 or newer on this machine: install it " +
	"(Debian, Ubuntu: apt install postgresql; Fedora: dnf install postgresql-server; macOS: brew install postgresql@17) " +
	"or set FILA_DATABASE_URL to a server of yours")

const oldestMajor = 14

// Binaries are the programs of one Postgres installation.
type Binaries struct {
	Folder string // holds initdb and postgres
	Major  int    // such as 17
}

func (b Binaries) path(program string) string { return filepath.Join(b.Folder, program) }

// Find looks for the newest installed Postgres: in the folder that
// FILA_POSTGRES_BIN names, on the PATH, where pg_config points, and where
// Debian, Fedora, Homebrew and Postgres.app put it; the first of these places
// that has one wins. It wraps [ErrNoBinaries] when none has; a
// FILA_POSTGRES_BIN that cannot be used is an error of its own.
func Find(ctx context.Context) (Binaries, error) { return localPlaces().find(ctx, 0) }

// places are where binaries may be, likeliest first.
type places struct {
	named    string // must have them, when not empty
	folders  []string
	pgConfig string   // asked for its --bindir, when not empty
	patterns []string // of each the highest version first
}

func localPlaces() places {
	pgConfig, _ := exec.LookPath("pg_config")
	return places{
		named:    os.Getenv("FILA_POSTGRES_BIN"),
		folders:  filepath.SplitList(os.Getenv("PATH")),
		pgConfig: pgConfig,
		patterns: []string{
			"/usr/lib/postgresql/*/bin",
			"/opt/homebrew/opt/postgresql*/bin",
			"/usr/local/opt/postgresql*/bin",
			"/Applications/Postgres.app/Contents/Versions/*/bin",
			"/usr/pgsql-*/bin",
		},
	}
}

// find returns the first installation of the wanted version, else the first of
// all; wanted is 0 when any will do.
func (p places) find(ctx context.Context, wanted int) (Binaries, error) {
	if p.named != "" {
		found, err := inspect(ctx, p.named)
		if err != nil {
			return Binaries{}, fmt.Errorf("FILA_POSTGRES_BIN: %w", err)
		}
		return found, nil
	}
	var first Binaries
	for _, folder := range p.candidates(ctx) {
		if !filepath.IsAbs(folder) {
			continue // an empty or relative part of the PATH: whatever folder we happen to be in
		}
		found, err := inspect(ctx, folder)
		if err != nil {
			continue // most candidates are not there; what is missing in the end is said once
		}
		if wanted == 0 || found.Major == wanted {
			return found, nil
		}
		if first == (Binaries{}) {
			first = found
		}
	}
	if first == (Binaries{}) {
		return first, ErrNoBinaries
	}
	return first, nil
}

func (p places) candidates(ctx context.Context) []string {
	all := slices.Clone(p.folders)
	if p.pgConfig != "" {
		if out, err := exec.CommandContext(ctx, p.pgConfig, "--bindir").Output(); err == nil {
			all = append(all, strings.TrimSpace(string(out)))
		}
	}
	for _, pattern := range p.patterns {
		folders, _ := filepath.Glob(pattern)
		slices.SortStableFunc(folders, func(a, b string) int { return cmp.Compare(versionOf(b), versionOf(a)) })
		all = append(all, folders...)
	}
	return all
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// numberIn returns the first number in a text, 0 when there is none.
func numberIn(text string) float64 {
	value, _ := strconv.ParseFloat(number.FindString(text), 64)
	return value
}

// versionOf returns the version in a path such as /usr/lib/postgresql/17/bin: its
// last number.
func versionOf(path string) float64 {
	all := number.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	return numberIn(all[len(all)-1])
}

// inspect returns the binaries in a folder, or why they cannot be used.
func inspect(ctx context.Context, folder string) (Binaries, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{Folder: folder}
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(b.path(program)); err != nil {
			return Binaries{}, fmt.Errorf("%s has no program %s: name the bin folder of a Postgres server", folder, program)
		}
	}
	out, err := exec.CommandContext(ctx, b.path("postgres"), "--version").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("ask %s for its version: %w", b.path("postgres"), err)
	}
	// "postgres (PostgreSQL) 15.18 (Debian …)", "postgres (PostgreSQL) 18beta1"
	_, version, _ := strings.Cut(string(out), "(PostgreSQL) ")
	b.Major = int(numberIn(version))
	if b.Major < oldestMajor {
		return Binaries{}, fmt.Errorf("%s has %q: Postgres %d or newer is needed", folder, strings.TrimSpace(string(out)), oldestMajor)
	}
	return b, nil
}
