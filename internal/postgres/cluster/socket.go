package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser  = "postgres"
	socketPort = "5432" // a part of the socket's name; nothing listens on a port
	// socketLimit is the longest path of a socket that every Unix takes: 107
	// bytes on Linux, 103 on macOS.
	socketLimit = 103
)

// socketFolder returns the folder of the socket, made and closed to others: own
// when its path can serve as an address, else one in the folder for temporary
// files, named after the cluster's so that it is found again.
func socketFolder(own, cluster string, a account) (string, error) {
	if servesAsAddress(own) {
		return own, a.own(own)
	}
	sum := sha256.Sum256([]byte(cluster))
	name := "fila-" + hex.EncodeToString(sum[:6])
	path := filepath.Join(os.TempDir(), name)
	if !servesAsAddress(path) {
		path = filepath.Join("/tmp", name)
	}
	return path, a.own(path)
}

// servesAsAddress says whether a folder can be named as a host: lists of hosts
// are split at commas.
func servesAsAddress(folder string) bool {
	return len(filepath.Join(folder, ".s.PGSQL."+socketPort)) <= socketLimit && !strings.ContainsRune(folder, ',')
}

// quoteDirectory writes a path as an item of one of Postgres's lists.
func quoteDirectory(path string) string { return `"` + strings.ReplaceAll(path, `"`, `""`) + `"` }

func socketURL(folder, database string) string {
	address := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database}
	address.RawQuery = url.Values{"host": {folder}, "port": {socketPort}, "sslmode": {"disable"}}.Encode()
	return address.String()
}

// Running returns the address of the server that another process runs in folder,
// if there is one and it answers.
func Running(ctx context.Context, folder string) (url string, ok bool) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", false
	}
	_, socket, err := readNote(filepath.Join(absolute, lockName))
	if err != nil || socket == "" {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	url = socketURL(socket, "postgres")
	return url, ping(ctx, url) == nil
}

// ping asks a server for a first answer.
func ping(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return conn.Ping(ctx)
}
