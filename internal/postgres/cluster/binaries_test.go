package cluster

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// install makes a folder of programs that answer like Postgres of that version.
func install(t *testing.T, folder, version string, programs ...string) string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", program, version)
		if err := os.WriteFile(filepath.Join(folder, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	both := []string{"initdb", "postgres"}
	old := install(t, filepath.Join(root, "lib/9.6/bin"), "9.6.24", both...)
	v14 := install(t, filepath.Join(root, "lib/14/bin"), "14.2 (Debian 14.2-1)", both...)
	v18 := install(t, filepath.Join(root, "lib/18/bin"), "18beta1", both...)
	client := install(t, filepath.Join(root, "client"), "17.1", "psql", "postgres")
	v16 := install(t, filepath.Join(root, "path"), "16.4", both...)
	broken := install(t, filepath.Join(root, "broken"), "", both...)
	pattern := filepath.Join(root, "lib/*/bin")
	pgConfig := filepath.Join(root, "pg_config")
	if err := os.WriteFile(pgConfig, []byte("#!/bin/sh\necho "+v14+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		name   string
		places places
		wanted int
		want   string
	}{
		{"the newest of a pattern", places{patterns: []string{pattern}}, 0, v18},
		{"the version wanted", places{patterns: []string{pattern}}, 14, v14},
		{"another when the one wanted is not there", places{patterns: []string{pattern}}, 15, v18},
		{"the PATH before the pattern", places{folders: []string{v16}, patterns: []string{pattern}}, 0, v16},
		{"not a client's folder", places{folders: []string{client, v14}}, 0, v14},
		{"not an old one", places{folders: []string{old, v14}}, 0, v14},
		{"not a broken one", places{folders: []string{broken, v14}}, 0, v14},
		{"where pg_config points", places{pgConfig: pgConfig, patterns: []string{pattern}}, 0, v14},
		{"a pg_config that fails", places{pgConfig: "/bin/false", patterns: []string{pattern}}, 0, v18},
		{"the named folder before all", places{named: v14, folders: []string{v16}}, 16, v14},
		{"no relative folder", places{folders: []string{"", ".", v14}}, 0, v14},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.places.find(t.Context(), tt.wanted)
			if err != nil || got.Folder != tt.want {
				t.Errorf("got %v, %v; want %s", got, err, tt.want)
			}
		})
	}

	t.Run("none", func(t *testing.T) {
		t.Parallel()
		_, err := places{folders: []string{old, client}}.find(t.Context(), 0)
		if !errors.Is(err, ErrNoBinaries) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	})
	for name, folder := range map[string]string{"old": old, "client": client, "missing": root} {
		t.Run("a named folder that will not do: "+name, func(t *testing.T) {
			t.Parallel()
			_, err := places{named: folder, folders: []string{v16}}.find(t.Context(), 0)
			if err == nil || errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "FILA_POSTGRES_BIN") {
				t.Errorf("got %v, want an error that names FILA_POSTGRES_BIN", err)
			}
		})
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	var calls int
	archive := archiveOf(t, install(t, filepath.Join(t.TempDir(), "bin"), "18.3", "initdb", "postgres", "pg_ctl"))
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, ".jar") {
			http.NotFound(w, r)
			return
		}
		calls++
		_, _ = w.Write(archive)
	}))
	t.Cleanup(repository.Close)
	folder := filepath.Join(t.TempDir(), "binaries")

	for range 2 {
		got, err := download(t.Context(), folder, repository.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got.Major != 18 || !strings.HasPrefix(got.Folder, folder) {
			t.Errorf("got %v", got)
		}
	}
	if calls != 1 {
		t.Errorf("downloaded %d times, want once", calls)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if info, err := os.Stat(filepath.Join(folder, downloadVersion, "bin", "postgres")); err != nil || info.Mode().Perm()&0o005 != 0o005 {
		t.Errorf("not every user may run the program: %v, %v", info, err)
	}
}

func TestDownloadFails(t *testing.T) {
	t.Parallel()
	empty := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(empty.Close)
	folder := t.TempDir()
	if _, err := download(t.Context(), folder, empty.URL); err == nil || !strings.Contains(err.Error(), empty.URL) {
		t.Errorf("got %v, want an error that names the repository", err)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// archiveOf packs a bin folder as the repository does: a tar.xz in a zip.
func archiveOf(t *testing.T, bin string) []byte {
	t.Helper()
	xz, err := exec.LookPath("xz")
	if err != nil {
		t.Skip("no program xz to make an archive with")
	}
	var unpacked, packed, zipped bytes.Buffer
	writer := tar.NewWriter(&unpacked)
	if err := writer.AddFS(os.DirFS(filepath.Dir(bin))); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(xz, "--compress", "--stdout")
	cmd.Stdin, cmd.Stdout = &unpacked, &packed
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	jar := zip.NewWriter(&zipped)
	entry, err := jar.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(packed.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := jar.Close(); err != nil {
		t.Fatal(err)
	}
	return zipped.Bytes()
}
