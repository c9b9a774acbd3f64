// Scenarios for lib/pq through database/sql. Usage: pq URL [default | binary]
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lib/pq"

	"windrow/drivers/transcript"
)

var (
	background = context.Background()
	say        = &transcript.Transcript{Fields: fields}
)

func fields(err error) any {
	var refused *pq.Error
	if errors.As(err, &refused) {
		return map[string]any{
			"severity": refused.Severity, "code": refused.Code, "message": refused.Message, "detail": refused.Detail, "hint": refused.Hint,
			"position": refused.Position, "where": refused.Where, "schema": refused.Schema, "table": refused.Table, "column": refused.Column,
			"type": refused.DataTypeName, "constraint": refused.Constraint, "file": refused.File, "line": refused.Line, "routine": refused.Routine,
		}
	}
	return err.Error()
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

type executor interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

func exec(e executor, name, text string, values ...any) {
	say.Step(name, func() (any, error) {
		result, err := e.ExecContext(background, text, values...)
		if err != nil {
			return nil, err
		}
		return result.RowsAffected()
	})
}

func query(e executor, name, text string, values ...any) {
	say.Step(name, func() (any, error) {
		rows, err := e.QueryContext(background, text, values...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		types := must(rows.ColumnTypes())
		columns := []any{}
		for _, column := range types {
			columns = append(columns, []any{column.Name(), column.DatabaseTypeName()})
		}
		told := []any{columns}
		for rows.Next() {
			row, into := make([]any, len(types)), make([]any, len(types))
			for n := range row {
				into[n] = &row[n]
			}
			if err := rows.Scan(into...); err != nil {
				return nil, err
			}
			told = append(told, row)
		}
		return told, rows.Err()
	})
}

func writes(c *sql.Conn) {
	exec(c, "parent", "INSERT INTO parent (id, name) VALUES ($1, $2)", 1, "one")
	query(c, "returning", "INSERT INTO child (parent_id, quantity) VALUES ($1, $2) RETURNING id", 1, 5)
	exec(c, "plain", "INSERT INTO child (parent_id, quantity) VALUES ($1, $2)", 1, 6)
	query(c, "lastval", "SELECT lastval()")
	for n := 1; n <= 30; n++ {
		exec(c, fmt.Sprint("insert ", n), "INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)", n, n, "it's")
	}
	for _, n := range []int{1, 99} {
		exec(c, fmt.Sprint("update ", n), "UPDATE plain SET a = a + $1 WHERE id = $2", 10, n)
		query(c, fmt.Sprint("returning ", n), "UPDATE plain SET a = a + $1 WHERE id = $2 RETURNING a, b", 10, n)
		exec(c, fmt.Sprint("delete ", n), "DELETE FROM plain WHERE id = $1", n)
		exec(c, fmt.Sprint("no parameters ", n), fmt.Sprintf("UPDATE plain SET a = 1 WHERE id = %d", n))
	}
	for n := 0; n < 2; n++ {
		query(c, fmt.Sprint("upsert ", n), "INSERT INTO counter AS k VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n", "u", 3)
		exec(c, fmt.Sprint("ignore ", n), "INSERT INTO counter VALUES ($1, $2) ON CONFLICT DO NOTHING", "w", 3)
	}
	insert := "INSERT INTO kinds (small, big, wide, exact, words, bytes, yes, at, docb, numbers, names, feeling) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING *"
	query(c, "kinds", insert, -3, int64(1)<<62, 0.1, "3.14", "\u00fc\\'", []byte{0, 255}, true, time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC), `{"a": 1}`,
		pq.Array([]int64{1, 2}), pq.Array([]string{"a", "b'"}), "ok")
	query(c, "nothing", insert, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil)
}

func refused(c *sql.Conn) {
	exec(c, "unique", "INSERT INTO parent (id, name) VALUES ($1, $2)", 2, "one")
	exec(c, "check", "INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, $1, $2, '2000-01-01')", 1, -1)
	exec(c, "foreign", "INSERT INTO child (parent_id) VALUES ($1)", 77)
	exec(c, "not null", "INSERT INTO parent (id, name) VALUES ($1, $2)", 3, nil)
	exec(c, "type", "INSERT INTO plain (id, a) VALUES ($1, $2)", 50, "abc")
	exec(c, "enum", "INSERT INTO kinds (feeling) VALUES ($1)", "angry")
	exec(c, "table", "INSERT INTO nowhere VALUES ($1)", 1)
	exec(c, "count", "INSERT INTO plain (id, a) VALUES ($1, $2)", 1)
	exec(c, "late", "INSERT INTO late VALUES ($1, $2)", 1, 999)
	exec(c, "refuse", "INSERT INTO noisy VALUES ($1, $2)", 3, "refuse")
	exec(c, "goes on", "INSERT INTO plain (id) VALUES ($1)", 51)
}

func transactions(c *sql.Conn) {
	tx := must(c.BeginTx(background, nil))
	exec(tx, "insert", "INSERT INTO plain (id) VALUES ($1)", 100)
	exec(tx, "savepoint", "SAVEPOINT s")
	exec(tx, "duplicate", "INSERT INTO plain (id) VALUES ($1)", 100)
	exec(tx, "failed", "SELECT 1")
	exec(tx, "back", "ROLLBACK TO s")
	say.Step("commit", func() (any, error) { return nil, tx.Commit() })
	tx = must(c.BeginTx(background, &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true}))
	exec(tx, "read only", "INSERT INTO plain (id) VALUES ($1)", 101)
	say.Step("commit of a failed one", func() (any, error) { return nil, tx.Commit() })
	tx = must(c.BeginTx(background, nil))
	copied := must(tx.Prepare(pq.CopyIn("plain", "id", "a", "b")))
	for n := 200; n < 230; n++ {
		must(copied.Exec(n, n, "copied"))
	}
	say.Step("copy", func() (any, error) { return must(copied.Exec()).RowsAffected() })
	say.Step("copy end", func() (any, error) { return nil, copied.Close() })
	say.Step("copy commit", func() (any, error) { return nil, tx.Commit() })
	exec(c, "script", "INSERT INTO plain (id) VALUES (300); INSERT INTO plain (id) VALUES (301)")
	exec(c, "bad script", "INSERT INTO plain (id) VALUES (302); INSERT INTO plain (id) VALUES (301)")
	query(c, "left", "SELECT count(*), max(id) FROM plain WHERE id >= 100")
}

func prepared(c *sql.Conn) {
	statement := must(c.PrepareContext(background, "INSERT INTO changing (id, a) VALUES ($1, $2)"))
	count := func(n int) {
		say.Step(fmt.Sprint("again ", n), func() (any, error) {
			result, err := statement.Exec(n, n)
			if err != nil {
				return nil, err
			}
			return result.RowsAffected()
		})
	}
	for n := range 12 {
		count(n)
	}
	count(3)
	exec(c, "alter", "ALTER TABLE changing ADD COLUMN more int")
	count(20)
	say.Step("close", func() (any, error) { return nil, statement.Close() })
}

func session(c *sql.Conn, url string) {
	exec(c, "zone", "SET TIME ZONE 'Asia/Tokyo'")
	query(c, "stamped", "INSERT INTO stamped (id, at) VALUES ($1, '2024-01-01') RETURNING zone, at", 1)
	exec(c, "reset", "RESET TIME ZONE")
	exec(c, "path", "SET search_path = other")
	query(c, "other", "INSERT INTO plain (id, b) VALUES ($1, $2) RETURNING *", 1, "other")
	exec(c, "reset path", "RESET search_path")
	exec(c, "large", "INSERT INTO plain (id, b) VALUES ($1, $2)", 500, strings.Repeat("x", 1_000_000))
	query(c, "large back", "SELECT length(b), md5(b) FROM plain WHERE id = 500")
	exec(c, "empty", "")
	say.Step("canceled", func() (any, error) {
		limited, stop := context.WithTimeout(background, 300*time.Millisecond)
		defer stop()
		_, err := c.ExecContext(limited, "SELECT pg_sleep(60)")
		return nil, err
	})
	listener := pq.NewListener(url, time.Second, time.Minute, nil)
	say.Step("listen", func() (any, error) { return nil, listener.Listen("bell") })
	again := sql.OpenDB(must(pq.NewConnector(url)))
	must(again.Exec("SELECT pg_notify('bell', 'ding')"))
	heard := <-listener.Notify
	say.Say("heard", "value", []string{heard.Channel, heard.Extra})
	listener.Close()
	seen := map[string]int{}
	for n := 2000; n < 2300; n++ {
		seen[fmt.Sprint("insert ", must(must(again.Exec("INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)", n, n, "loop")).RowsAffected()))]++
		seen[fmt.Sprint("update ", must(must(again.Exec("UPDATE plain SET a = a + 1 WHERE id = $1", n)).RowsAffected()))]++
	}
	say.Say("counts", "value", seen)
	again.Close()
}

func main() {
	url := os.Args[1] + "?sslmode=disable"
	if len(os.Args) > 2 && os.Args[2] == "binary" {
		url += "&binary_parameters=yes"
	}
	connector := must(pq.NewConnector(url))
	db := sql.OpenDB(pq.ConnectorWithNoticeHandler(connector, func(notice *pq.Error) { say.Say("notice", "notice", fields(notice)) }))
	c := must(db.Conn(background))
	say.Begin("schema")
	for number, block := range transcript.Blocks() {
		exec(c, fmt.Sprint("block ", number), block)
	}
	say.Begin("writes")
	writes(c)
	say.Begin("refused")
	refused(c)
	say.Begin("transactions")
	transactions(c)
	say.Begin("prepared")
	prepared(c)
	say.Begin("session")
	session(c, url)
}
