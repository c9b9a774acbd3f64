// Scenarios for pgx. Usage: pgx URL [cache_statement | cache_describe | describe_exec | exec | simple_protocol | crowd]
package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"windrow/drivers/transcript"
)

var (
	background = context.Background()
	say        = &transcript.Transcript{Fields: fields}
)

func fields(err error) any {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "deadline exceeded"
	}
	return err.Error()
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func settings(url, mode string) *pgx.ConnConfig {
	config := must(pgx.ParseConfig(url))
	if mode != "crowd" {
		query := must(pgx.ParseConfig(url + "?default_query_exec_mode=" + mode))
		config.DefaultQueryExecMode = query.DefaultQueryExecMode
	}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { say.Say("notice", "notice", notice) }
	return config
}

type program struct {
	url, mode string
	c         *pgx.Conn
}

// run executes and gives the tag, the columns and the rows.
func run(c interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}, sql string, values ...any) (any, error) {
	rows, err := c.Query(background, sql, values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns := []any{}
	for _, f := range rows.FieldDescriptions() {
		columns = append(columns, []any{f.Name, int64(f.DataTypeOID), int64(f.Format), int64(f.TypeModifier)})
	}
	told := []any{}
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return nil, err
		}
		told = append(told, row)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return []any{rows.CommandTag().String(), columns, told}, nil
}

// exec executes and gives the tag.
func (p *program) exec(sql string, values ...any) (any, error) {
	tag, err := p.c.Exec(background, sql, values...)
	return tag.String(), err
}

func (p *program) step(name, sql string, values ...any) {
	say.Step(name, func() (any, error) { return p.exec(sql, values...) })
}

func (p *program) query(name, sql string, values ...any) {
	say.Step(name, func() (any, error) { return run(p.c, sql, values...) })
}

func (p *program) schema() {
	for number, block := range transcript.Blocks() {
		p.step(fmt.Sprint("block ", number), block)
	}
}

var kinds = []struct {
	name  string
	value any
}{
	{"small", int16(-3)}, {"whole", 70000}, {"big", int64(1) << 62}, {"single", float32(1.5)}, {"wide", 0.1},
	{"exact", pgtype.Numeric{Int: big.NewInt(3141593), Exp: -6, Valid: true}}, {"words", "it's \\ \u00fc\u4e2d\n"}, {"short", "sh"},
	{"padded", "p"}, {"bytes", []byte{0, 1, 255}}, {"yes", true}, {"day", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)},
	{"clock", pgtype.Time{Microseconds: 3723000004, Valid: true}}, {"local_at", time.Date(2000, 1, 2, 3, 4, 5, 6000, time.UTC)},
	{"at", time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC)}, {"span", pgtype.Interval{Days: 3, Microseconds: 4, Valid: true}},
	{"tag", "00000000-0000-0000-0000-000000000005"}, {"doc", map[string]any{"a": 1}}, {"docb", []byte(`[1, null]`)},
	{"numbers", []int32{1, 2, 3}}, {"names", []string{"a", "b'c", "\\"}}, {"feeling", "ok"}, {"address", netip.MustParsePrefix("10.0.0.0/8")},
	{"above", 5},
}

func (p *program) kinds() {
	names, marks, values, nothing := []string{}, []string{}, []any{}, []any{}
	for n, kind := range kinds {
		names, marks = append(names, kind.name), append(marks, fmt.Sprint("$", n+1))
		values, nothing = append(values, kind.value), append(nothing, nil)
		sql := fmt.Sprintf("INSERT INTO kinds (%s) VALUES ($1)", kind.name)
		p.step("only "+kind.name, sql, kind.value)
		p.query("returned "+kind.name, sql+" RETURNING id, "+kind.name, kind.value)
	}
	sql := fmt.Sprintf("INSERT INTO kinds (%s) VALUES (%s)", strings.Join(names, ", "), strings.Join(marks, ", "))
	p.step("row", sql, values...)
	p.query("returned", sql+" RETURNING *", values...)
	p.step("nothing", sql, nothing...)
	p.query("read", "SELECT * FROM kinds ORDER BY id")
}

func (p *program) writes() {
	p.step("parent", "INSERT INTO parent (id, name) VALUES ($1, $2)", 1, "one")
	p.query("returning", "INSERT INTO child (parent_id, quantity) VALUES ($1, $2) RETURNING id", 1, 5)
	p.step("plain", "INSERT INTO child (parent_id, quantity) VALUES ($1, $2)", 1, 6)
	p.query("lastval", "SELECT lastval()")
	for n := 1; n <= 5; n++ {
		p.step(fmt.Sprint("insert ", n), "INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)", n, n, "it's")
	}
	for _, n := range []int{1, 99} {
		p.step(fmt.Sprint("update ", n), "UPDATE plain SET a = a + $1 WHERE id = $2", 10, n)
		p.query(fmt.Sprint("returning ", n), "UPDATE plain SET a = a + $1 WHERE id = $2 RETURNING a, b", 10, n)
		p.step(fmt.Sprint("delete ", n), "DELETE FROM plain WHERE id = $1", n)
	}
	for n := 0; n < 2; n++ {
		p.query(fmt.Sprint("upsert ", n), "INSERT INTO counter AS k VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n", "u", 3)
		p.step(fmt.Sprint("ignore ", n), "INSERT INTO counter VALUES ($1, $2) ON CONFLICT DO NOTHING", "w", 3)
	}
	p.step("named", "INSERT INTO plain (id, b) VALUES (@id, @b)", pgx.NamedArgs{"id": 6, "b": "named"})
}

func (p *program) refused() {
	for _, one := range []struct {
		name, sql string
		values    []any
	}{
		{"unique", "INSERT INTO parent (id, name) VALUES ($1, $2)", []any{2, "one"}},
		{"primary", "INSERT INTO parent (id, name) VALUES ($1, $2)", []any{1, "two"}},
		{"check", "INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, $1, $2, '2000-01-01')", []any{1, -1}},
		{"foreign", "INSERT INTO child (parent_id) VALUES ($1)", []any{77}},
		{"not null", "INSERT INTO parent (id, name) VALUES ($1, $2)", []any{3, nil}},
		{"too long", "INSERT INTO child (parent_id, label) VALUES ($1, $2)", []any{1, "xxxxxxxxxxx"}},
		{"enum", "INSERT INTO kinds (feeling) VALUES ($1)", []any{"angry"}},
		{"domain", "INSERT INTO kinds (above) VALUES ($1)", []any{0}},
		{"type", "INSERT INTO plain (id, a) VALUES ($1, $2)", []any{50, "abc"}},
		{"table", "INSERT INTO nowhere VALUES ($1)", []any{1}},
		{"column", "INSERT INTO plain (nothing) VALUES ($1)", []any{1}},
		{"syntax", "INSERT INTO plain (id VALUES ($1)", []any{1}},
		{"late", "INSERT INTO late VALUES ($1, $2)", []any{1, 999}},
		{"word", "INSERT INTO noisy VALUES ($1, $2)", []any{1, "word"}},
		{"warn", "INSERT INTO noisy VALUES ($1, $2)", []any{2, "warn"}},
		{"refuse", "INSERT INTO noisy VALUES ($1, $2)", []any{3, "refuse"}},
		{"goes on", "INSERT INTO plain (id) VALUES ($1)", []any{51}},
	} {
		p.step(one.name, one.sql, one.values...)
	}
}

func (p *program) transactions() {
	tx := must(p.c.Begin(background))
	say.Step("insert", func() (any, error) { return run(tx, "INSERT INTO plain (id) VALUES ($1)", 100) })
	inner := must(tx.Begin(background))
	say.Step("duplicate", func() (any, error) { return run(inner, "INSERT INTO plain (id) VALUES ($1)", 100) })
	say.Step("failed", func() (any, error) { return run(inner, "SELECT 1") })
	say.Step("back", func() (any, error) { return nil, inner.Rollback(background) })
	say.Step("again", func() (any, error) { return run(tx, "INSERT INTO plain (id) VALUES ($1)", 101) })
	say.Step("commit", func() (any, error) { return nil, tx.Commit(background) })
	tx = must(p.c.BeginTx(background, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly}))
	say.Step("read only", func() (any, error) { return run(tx, "INSERT INTO plain (id) VALUES ($1)", 102) })
	say.Step("commit failed", func() (any, error) { return nil, tx.Commit(background) })
	tx = must(p.c.Begin(background))
	say.Step("late", func() (any, error) { return run(tx, "INSERT INTO late VALUES ($1, $2)", 2, 999) })
	say.Step("commit late", func() (any, error) { return nil, tx.Commit(background) })
	p.step("script", "INSERT INTO plain (id) VALUES (103); INSERT INTO plain (id) VALUES (104)")
	p.query("left", "SELECT id FROM plain WHERE id >= 100 ORDER BY id")
}

func (p *program) batches() {
	send := func(name string, fill func(*pgx.Batch)) {
		say.Step(name, func() (any, error) {
			batch := &pgx.Batch{}
			fill(batch)
			told := []any{}
			results := p.c.SendBatch(background, batch)
			for range batch.Len() {
				tag, err := results.Exec()
				if err != nil {
					told = append(told, fmt.Sprint(fields(err)))
				} else {
					told = append(told, tag.String())
				}
			}
			err := results.Close()
			return append(told, err != nil), nil
		})
	}
	send("good", func(b *pgx.Batch) {
		for n := 200; n < 240; n++ {
			b.Queue("INSERT INTO plain (id, a) VALUES ($1, $2)", n, n)
		}
		b.Queue("UPDATE plain SET a = 0 WHERE id = $1", 200)
		b.Queue("DELETE FROM plain WHERE id = $1", 201)
	})
	send("one bad", func(b *pgx.Batch) {
		b.Queue("INSERT INTO plain (id, a) VALUES ($1, $2)", 250, 1)
		b.Queue("INSERT INTO plain (id, a) VALUES ($1, $2)", 200, 1)
		b.Queue("INSERT INTO plain (id, a) VALUES ($1, $2)", 251, 1)
	})
	send("one", func(b *pgx.Batch) { b.Queue("INSERT INTO plain (id, a) VALUES ($1, $2)", 260, 1) })
	copied := func(name string, rows [][]any) {
		say.Step(name, func() (any, error) {
			return p.c.CopyFrom(background, pgx.Identifier{"plain"}, []string{"id", "a", "b"}, pgx.CopyFromRows(rows))
		})
	}
	copied("copy", [][]any{{300, 1, "c"}, {301, 2, nil}})
	copied("copy bad", [][]any{{302, 1, "c"}, {300, 2, nil}})
	p.query("left", "SELECT count(*), sum(a) FROM plain WHERE id >= 200")
	p.pipeline()
}

// pipeline sends Syncs between statements of one pipeline: each is a transaction of its own.
func (p *program) pipeline() {
	pipeline := p.c.PgConn().StartPipeline(background)
	text := func(n int) [][]byte { return [][]byte{[]byte(fmt.Sprint(n))} }
	for _, n := range []int{400, 400, 401, 402} {
		pipeline.SendQueryParams("INSERT INTO plain (id) VALUES ($1) RETURNING id", text(n), nil, nil, nil)
		if err := pipeline.Sync(); err != nil {
			panic(err)
		}
	}
	told := []any{}
	for synced := 0; synced < 4; {
		result, err := pipeline.GetResults()
		switch r := result.(type) {
		case *pgconn.ResultReader:
			read := r.Read()
			told = append(told, read.CommandTag.String(), len(read.Rows), read.Err != nil)
		case *pgconn.PipelineSync:
			synced++
			told = append(told, "synced")
		default:
			told = append(told, fmt.Sprint(fields(err)))
		}
	}
	say.Step("pipeline", func() (any, error) { return told, pipeline.Close() })
}

func (p *program) prepared() {
	_, err := p.c.Prepare(background, "mine", "INSERT INTO changing (id, a) VALUES ($1, $2)")
	say.Step("prepare", func() (any, error) { return nil, err })
	for n := 0; n < 8; n++ {
		p.step(fmt.Sprint("mine ", n), "mine", n, n)
		p.query(fmt.Sprint("read ", n), "SELECT * FROM changing WHERE id = $1", n)
	}
	p.step("alter", "ALTER TABLE changing ADD COLUMN more int")
	p.step("mine after", "mine", 20, 1)
	p.query("stale", "SELECT * FROM changing WHERE id = $1", 1)
	p.query("fresh", "SELECT * FROM changing WHERE id = $1", 2)
	say.Step("deallocate", func() (any, error) { return nil, p.c.Deallocate(background, "mine") })
	p.step("mine again", "mine", 30, 1)
}

func (p *program) session() {
	p.step("listen", "LISTEN bell")
	other := must(pgx.ConnectConfig(background, settings(p.url, p.mode)))
	must(other.Exec(background, "NOTIFY bell, 'ding'"))
	say.Step("heard", func() (any, error) {
		heard, err := p.c.WaitForNotification(background)
		if err != nil {
			return nil, err
		}
		return []any{heard.Channel, heard.Payload, heard.PID == other.PgConn().PID()}[:2], nil
	})
	p.query("lock", "SELECT pg_advisory_lock(1)")
	say.Step("locked", func() (any, error) { return run(other, "SELECT pg_try_advisory_lock(1)") })
	p.query("unlock", "SELECT pg_advisory_unlock(1)")
	other.Close(background)
	p.step("unlisten", "UNLISTEN *")
	p.step("zone", "SET TIME ZONE 'Asia/Tokyo'")
	p.query("stamped", "INSERT INTO stamped (id) VALUES ($1) RETURNING zone", 1)
	say.Step("reported", func() (any, error) { return p.c.PgConn().ParameterStatus("TimeZone"), nil })
	p.step("role", "SET ROLE windrow_guest")
	p.query("guest", "INSERT INTO stamped (id) VALUES ($1) RETURNING who", 2)
	p.step("denied", "INSERT INTO plain (id) VALUES ($1)", 500)
	p.step("reset role", "RESET ROLE")
	p.step("path", "SET search_path = other")
	p.query("other", "INSERT INTO plain (id, b) VALUES ($1, $2) RETURNING *", 1, "other")
	p.step("reset all", "RESET ALL")
	p.step("public", "INSERT INTO plain (id, b) VALUES ($1, $2)", 501, "public")
	p.step("temp", "CREATE TEMP TABLE passing (id int)")
	p.step("into temp", "INSERT INTO passing VALUES ($1)", 1)
	p.step("large", "INSERT INTO plain (id, b) VALUES ($1, $2)", 502, strings.Repeat("x", 1_000_000))
	p.query("large back", "SELECT length(b), md5(b) FROM plain WHERE id = 502")
	p.step("empty", "")
	p.step("timeout", "SET statement_timeout = 150")
	p.query("slow", "SELECT pg_sleep(60)::text")
	p.step("reset timeout", "RESET statement_timeout")
	say.Step("many", func() (any, error) {
		rows, err := p.c.Query(background, "SELECT n FROM generate_series(1, 10000) n")
		if err != nil {
			return nil, err
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[int])
		return len(all), err
	})
	say.Step("canceled", func() (any, error) {
		timer := time.AfterFunc(300*time.Millisecond, func() {
			if err := p.c.PgConn().CancelRequest(background); err != nil {
				panic(err)
			}
		})
		defer timer.Stop()
		return run(p.c, "SELECT pg_sleep(60)::text")
	})
	p.step("goes on", "INSERT INTO plain (id) VALUES ($1)", 503)
}

func (p *program) loop() {
	p.c = must(pgx.ConnectConfig(background, settings(p.url, p.mode)))
	seen := map[string]int{}
	for n := 2000; n < 2300; n++ {
		seen[must(p.exec("INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)", n, n, "loop")).(string)]++
		seen[must(p.exec("UPDATE plain SET a = a + 1 WHERE id = $1", n)).(string)]++
	}
	say.Say("counts", "value", seen)
}

func (p *program) together() {
	must(p.exec("INSERT INTO counter VALUES ('shared', 0), ('last', -1)"))
	config := must(pgxpool.ParseConfig(p.url + "?pool_max_conns=32"))
	pool := must(pgxpool.NewWithConfig(background, config))
	var group sync.WaitGroup
	won := make([]int64, 32)
	for number := range 32 {
		group.Go(func() {
			for n := range 50 {
				must(pool.Exec(background, "INSERT INTO plain (id, a) VALUES ($1, $2)", 10_000+number*100+n, n))
				must(pool.Exec(background, "UPDATE counter SET n = n + 1 WHERE name = $1", "shared"))
				_, err := pool.Exec(background, "INSERT INTO claimed (key, owner) VALUES ($1, 0)", n)
				var refused *pgconn.PgError
				if err == nil {
					won[0+number]++
				} else if !errors.As(err, &refused) || refused.Detail != fmt.Sprintf("Key (key)=(%d) already exists.", n) {
					panic(err)
				}
				// Compare and set: one of all succeeds for each step.
				won[number] += 1000 * must(pool.Exec(background, "UPDATE counter SET n = $1 WHERE name = 'last' AND n = $2", n, n-1)).RowsAffected()
			}
		})
	}
	group.Wait()
	pool.Close()
	keys, steps := int64(0), int64(0)
	for _, one := range won {
		keys, steps = keys+one%1000, steps+one/1000
	}
	p.query("counter", "SELECT n FROM counter WHERE name = 'shared'")
	p.query("rows", "SELECT count(*), sum(a) FROM plain WHERE id >= 10000")
	say.Say("won", "value", keys)
	say.Say("as many steps as the counter shows", "value", must(pgx.CollectExactlyOneRow(must(p.c.Query(background, "SELECT n + 1 FROM counter WHERE name = 'last'")), pgx.RowTo[int64])) == steps)
	p.step("forget", "UPDATE counter SET n = 0 WHERE name = 'last'")
}

func main() {
	url, mode := os.Args[1], "cache_statement"
	if len(os.Args) > 2 {
		mode = os.Args[2]
	}
	p := &program{url: url, mode: mode, c: must(pgx.ConnectConfig(background, settings(url, mode)))}
	scenarios := []struct {
		name string
		play func()
	}{
		{"schema", p.schema}, {"kinds", p.kinds}, {"writes", p.writes}, {"refused", p.refused}, {"transactions", p.transactions},
		{"batches", p.batches}, {"prepared", p.prepared}, {"session", p.session}, {"loop", p.loop}, {"together", p.together},
	}
	for _, scenario := range scenarios {
		if mode == "crowd" && scenario.name != "schema" && scenario.name != "together" || mode != "crowd" && scenario.name == "together" {
			continue
		}
		say.Begin(scenario.name)
		scenario.play()
	}
	if err := p.c.Close(background); err != nil {
		panic(err)
	}
}
