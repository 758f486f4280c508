package postgres_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

// TestMigrateWithoutTheRightToMakeRoles leaves the roles to a DBA.
func TestMigrateWithoutTheRightToMakeRoles(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	as := func(address string, statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		for _, statement := range statements {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	as(server.URL("postgres"), `CREATE ROLE deployer LOGIN`, `CREATE DATABASE clinics OWNER deployer`)
	dba := server.URL("clinics")
	as(dba, `ALTER SCHEMA public OWNER TO deployer`)
	u, err := url.Parse(dba)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("deployer")
	if _, err := postgres.Migrate(t.Context(), u.String()); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dba)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var open int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_proc WHERE proname LIKE 'fila\_%' AND has_function_privilege('public', oid, 'EXECUTE')`).Scan(&open); err != nil || open != 0 {
		t.Errorf("%d functions are open to everyone (%v)", open, err)
	}
	as(dba, `SELECT fila_grant_roles()`, `SET ROLE fila_support`, `SELECT * FROM fila_overview`)
}
