package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const (
	downloadVersion    = string(embeddedpostgres.V18)
	downloadRepository = "https://repo1.maven.org/maven2"
)

// download returns the binaries kept in folder, having got them from the
// repository the first time.
func download(ctx context.Context, folder, repository string) (Binaries, error) {
	kept := filepath.Join(folder, downloadVersion)
	if found, err := inspect(ctx, filepath.Join(kept, "bin")); err == nil {
		return found, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Binaries{}, fmt.Errorf("make a folder for Postgres's binaries: %w", err)
	}
	aside, err := os.MkdirTemp(folder, "new-")
	if err != nil {
		return Binaries{}, fmt.Errorf("make a folder for Postgres's binaries: %w", err)
	}
	defer os.RemoveAll(aside)
	if err := fetch(ctx, aside, repository); err != nil {
		return Binaries{}, err
	}
	// Only what is complete gets the name under which it is looked for.
	if err := os.RemoveAll(kept); err != nil {
		return Binaries{}, fmt.Errorf("remove broken binaries: %w", err)
	}
	if err := os.Rename(filepath.Join(aside, "postgres"), kept); err != nil {
		return Binaries{}, fmt.Errorf("put Postgres's binaries in their place: %w", err)
	}
	return inspect(ctx, filepath.Join(kept, "bin"))
}

// fetch downloads and unpacks into folder/postgres. The library does both only on
// the way to a server of its own, which it cannot run as root; a data folder that
// is none makes it stop there, and its error then is no matter.
func fetch(ctx context.Context, folder, repository string) error {
	unpacked, nothing := filepath.Join(folder, "postgres"), filepath.Join(folder, "nothing")
	if err := os.Mkdir(nothing, 0o700); err != nil {
		return fmt.Errorf("make a folder for Postgres's binaries: %w", err)
	}
	major := fmt.Appendf(nil, "%d\n", int(numberIn(downloadVersion)))
	if err := os.WriteFile(filepath.Join(nothing, "PG_VERSION"), major, 0o600); err != nil {
		return fmt.Errorf("prepare the download of Postgres: %w", err)
	}
	config := embeddedpostgres.DefaultConfig().Version(embeddedpostgres.PostgresVersion(downloadVersion)).
		CachePath(filepath.Join(folder, "archive")).RuntimePath(unpacked).DataPath(nothing).
		Port(0).StartTimeout(time.Second).Logger(io.Discard).BinaryRepositoryURL(repository)

	failed := make(chan error, 1)
	go func() { failed <- embeddedpostgres.NewDatabase(config).Start() }()
	select {
	case err := <-failed:
		if _, missing := inspect(ctx, filepath.Join(unpacked, "bin")); missing != nil {
			return fmt.Errorf("get Postgres from %s: %w", repository, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("get Postgres from %s: %w", repository, context.Cause(ctx))
	}
}
