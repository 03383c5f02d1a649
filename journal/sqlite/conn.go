package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	engine "modernc.org/sqlite"
)

// conn is the connection that writes: the driver's, without database/sql around it, whose pool, locks and conversions take as long as SQLite does for what is
// as small as an append. One goroutine uses it at a time. Its errors are SQLite's.
//
// No context reaches SQLite from here: one caller's cancel must not undo what its neighbours write.
type conn struct {
	driver.Conn
	args       []driver.NamedValue // of the statement under way
	statements int64               // that were executed, for tests
}

func dial(dsn string) (*conn, error) {
	c, err := engine.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	raw, err := c.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return &conn{Conn: raw}, nil
}

// run executes statements that nobody prepared, and gives nothing back.
func (c *conn) run(query string) error {
	_, err := c.Conn.(driver.ExecerContext).ExecContext(context.Background(), query, nil)
	return err
}

// ask puts the one row of a query that nobody prepared where to points to.
func (c *conn) ask(query string, to ...any) error {
	stmt, err := c.Prepare(query)
	if err != nil {
		return err
	}
	row, err := c.row(stmt)
	if err == nil {
		err = row.Scan(to...)
	}
	return errors.Join(err, stmt.Close())
}

// exec executes a prepared statement.
func (c *conn) exec(stmt driver.Stmt, args ...driver.Value) (driver.Result, error) {
	return stmt.(driver.StmtExecContext).ExecContext(context.Background(), c.named(args))
}

// do is exec for one whose result says nothing.
func (c *conn) do(stmt driver.Stmt, args ...driver.Value) error {
	_, err := c.exec(stmt, args...)
	return err
}

// row gives the first row of a prepared query; nil when there is none.
func (c *conn) row(stmt driver.Stmt, args ...driver.Value) (first values, err error) {
	err = c.rows(stmt, func(row values) error { first = row; return io.EOF }, args...)
	return first, err
}

// rows calls each with every row of a prepared query, until each gives io.EOF.
func (c *conn) rows(stmt driver.Stmt, each func(values) error, args ...driver.Value) (err error) {
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(context.Background(), c.named(args))
	if err != nil {
		return err
	}
	defer func() {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		err = errors.Join(err, rows.Close())
	}()
	row := make(values, len(rows.Columns()))
	for {
		if err := rows.Next(row); err != nil {
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// named is args as the driver takes them, until the next call.
func (c *conn) named(args []driver.Value) []driver.NamedValue {
	c.statements++
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// values is a row as the driver gives it. Its bytes are the reader's.
type values []driver.Value

// Scan puts the row where to points to.
func (v values) Scan(to ...any) error {
	if len(to) != len(v) {
		return fmt.Errorf("a row of %d values, %d are asked for", len(v), len(to))
	}
	for i, p := range to {
		ok := false
		switch p := p.(type) {
		case *int64:
			*p, ok = v[i].(int64)
		case *bool:
			var n int64
			n, ok = v[i].(int64)
			*p = n != 0
		case *string:
			*p, ok = v[i].(string)
		case *[]byte:
			*p, ok = v[i].([]byte)
		}
		if !ok {
			return fmt.Errorf("value %d of a row is a %T, a %T is asked for", i+1, v[i], p)
		}
	}
	return nil
}
