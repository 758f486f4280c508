package config_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"fila/config"
)

// FuzzLoad: whatever the file holds, Load returns a configuration that prints, or faults with their lines.
func FuzzLoad(f *testing.F) {
	for _, path := range []string{"fila.yaml", "testdata/every_key.yaml"} {
		f.Add([]byte(read(f, path)))
	}
	for _, seed := range []string{
		"", "- a", "a: &a *a", "projects: {c: &x {<<: *x}}", "projects: [", "? a\n: b", "listen: ${X", "a: !!binary x",
		`{"projects": {"c": {"agent": {"url": "http://h"}, "delivery": {"type": "waha", "account": {"session": null}}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "fila.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path, environment{"X": "1"}.lookup)
		if err == nil {
			if err := c.Print(io.Discard); err != nil {
				t.Errorf("print: %v", err)
			}
			return
		}
		var invalid *config.Invalid
		if !errors.As(err, &invalid) || len(invalid.Faults) == 0 {
			t.Errorf("got %#v, want an *Invalid with faults", err)
		}
	})
}
