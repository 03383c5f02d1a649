package crashtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/journal/postgres"
)

// PostgreSQL keeps each case in a schema of its own, in the database that dsn names. The parent makes the database and hands its address to
// its children: see [Shared].
func PostgreSQL(dsn string) Opener {
	return func(ctx context.Context, dir string) (Store, error) {
		name := caseName(dir)
		s, err := postgres.Open(ctx, dsn+" application_name="+name, postgres.WithSchema(name))
		if err != nil {
			return nil, err
		}
		return unleased{s}, nil
	}
}

// OnPostgreSQL plays scenarios on it.
func OnPostgreSQL(dsn string, scenarios ...Scenario) []Scenario {
	out := On("PostgreSQL", PostgreSQL(dsn), scenarios...)
	for i := range out {
		out[i].Settle = func(ctx context.Context, dir string) error { return settle(ctx, dsn, dir) }
	}
	return out
}

func caseName(dir string) string { return strings.ToLower(filepath.Base(dir)) }

// settle waits until the server has noticed that the case's last process is gone. A backend whose client died goes on until it has something to
// say to it, so that what it was told to commit may come to be after the death of who told it. Pawl's fence makes that harmless, but the next
// process could not say what there was when it began.
func settle(ctx context.Context, dsn, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("crashtest: %w", err)
	}
	for n := 1; n > 0 && err == nil; {
		err = c.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", caseName(dir)).Scan(&n)
	}
	return errors.Join(err, c.Close(ctx))
}

// unleased is a store whose leases do nothing: PostgreSQL can't tell that the holder of one died, and to wait for its end at every point would
// take hours.
type unleased struct{ *postgres.Store }

// Lease does nothing.
func (unleased) Lease(context.Context, string, string, time.Time) error { return nil }
