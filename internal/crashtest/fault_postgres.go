package crashtest

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

// CutSocket cuts all connections to PostgreSQL, and refuses new ones.
func CutSocket(dsn string) Fault { return between(dsn, "a cut socket", (*proxy).cut) }

// LostAnswer lets the next request to PostgreSQL through and cuts its connection when it is answered. The store can't know what became of it; and
// whatever it is asked next goes well.
func LostAnswer(dsn string) Fault { return between(dsn, "a lost answer", (*proxy).lose) }

// between makes a fault of what a proxy does between the store and its server. dsn begins with the directory of a Unix socket, as pgtest's do.
func between(dsn, name string, begin func(*proxy)) Fault {
	var here atomic.Pointer[proxy] // of the child's only store
	return Fault{
		Name: name, Names: postgresNames(dsn),
		Open: func(ctx context.Context, dir string) (Store, error) {
			socket, rest := address(dsn)
			p, err := newProxy(socket)
			if err != nil {
				return nil, err
			}
			at := p.listener.Addr().(*net.TCPAddr)
			s, err := PostgreSQL(fmt.Sprintf("host=%v port=%d %s", at.IP, at.Port, rest))(ctx, dir)
			if err != nil {
				p.close()
				return nil, err
			}
			here.Store(p)
			return proxied{s, p}, nil
		},
		Begin: func(string) error {
			begin(here.Load())
			return nil
		},
	}
}

// proxied is a store behind a proxy of its own.
type proxied struct {
	Store
	proxy *proxy
}

func (s proxied) Close() error {
	defer s.proxy.close()
	return s.Store.Close()
}

// KilledServer kills the whole server, which is for this alone, and starts it again for the next process. In children server is nil.
func KilledServer(server *pgtest.Server, dsn string) Fault {
	return Fault{
		Name: "a killed server", Names: postgresNames(dsn), Alone: true,
		Break: func() error { return server.Crash() },
		Mend:  func(string) error { return server.Recover() },
	}
}

func postgresNames(dsn string) func(string) []string {
	database := "?"
	if c, err := pgx.ParseConfig(dsn); err == nil {
		database = c.Database
	}
	return func(string) []string { return []string{"journal/postgres: ", database + " at "} }
}
