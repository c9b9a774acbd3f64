// What an application does itself if it gathers rows: a queue, and one goroutine that writes what
// has arrived as one INSERT. Measures it beside single-row INSERTs, directly and through Windrow.
//
// usage: thirty URL_OF_POSTGRESQL URL_OF_WINDROW [CLIENTS [SECONDS [ROUNDS]]]
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

type row struct {
	device  string
	celsius float64
	done    chan error
}

// gather writes all queued rows at once, up to 1,000. An error is that of all rows of the statement:
// which one was wrong is not found out.
func gather(ctx context.Context, pool *pgxpool.Pool, queue chan row) {
	const sql = "INSERT INTO thirty (device, celsius) SELECT * FROM unnest($1::text[], $2::float8[])"
	for first := range queue {
		rows := []row{first}
		for len(rows) < 1000 && len(queue) > 0 {
			rows = append(rows, <-queue)
		}
		var devices []string
		var celsius []float64
		for _, r := range rows {
			devices, celsius = append(devices, r.device), append(celsius, r.celsius)
		}
		_, err := pool.Exec(ctx, sql, devices, celsius)
		for _, r := range rows {
			r.done <- err
		}
	}
}

// rate lets clients write one row after the other, and returns the rows a second.
func rate(clients int, time_ time.Duration, write func(client int) error) float64 {
	var rows atomic.Int64
	var stop atomic.Bool
	ended := make(chan bool)
	for client := range clients {
		go func() {
			for !stop.Load() {
				must(write(client))
				rows.Add(1)
			}
			ended <- true
		}()
	}
	time.Sleep(time_ / 4) // warm-up
	before, start := rows.Load(), time.Now()
	time.Sleep(time_)
	count, took := rows.Load()-before, time.Since(start)
	stop.Store(true)
	for range clients {
		<-ended
	}
	return float64(count) / took.Seconds()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(at, otherwise int) int {
	if len(os.Args) <= at {
		return otherwise
	}
	n, err := strconv.Atoi(os.Args[at])
	must(err)
	return n
}

func connect(ctx context.Context, url string, connections int) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig(url)
	must(err)
	config.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	must(err)
	return pool
}

func main() {
	ctx := context.Background()
	clients, seconds, rounds := number(3, 64), number(4, 3), number(5, 3)
	direct, windrow := connect(ctx, os.Args[1], clients), connect(ctx, os.Args[2], clients)
	one := connect(ctx, os.Args[1], 1)
	const table = "CREATE TABLE IF NOT EXISTS thirty (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, device text, celsius float8)"
	_, err := direct.Exec(ctx, table)
	must(err)
	queue := make(chan row, 1000)
	go gather(ctx, one, queue)

	const sql = "INSERT INTO thirty (device, celsius) VALUES ($1, $2)"
	single := func(pool *pgxpool.Pool) func(int) error {
		return func(client int) error {
			_, err := pool.Exec(ctx, sql, fmt.Sprint("d", client), 21.5)
			return err
		}
	}
	done := make([]chan error, clients)
	for client := range done {
		done[client] = make(chan error)
	}
	gathered := func(client int) error {
		queue <- row{fmt.Sprint("d", client), 21.5, done[client]}
		return <-done[client]
	}
	ways := []struct {
		name  string
		write func(int) error
	}{{"direct", single(direct)}, {"windrow", single(windrow)}, {"thirty lines", gathered}}
	rates := make([][]float64, len(ways))
	for range rounds {
		for i, way := range ways {
			rates[i] = append(rates[i], rate(clients, time.Duration(seconds)*time.Second, way.write))
		}
	}
	for i, way := range ways {
		slices.Sort(rates[i])
		median := rates[i][rounds/2]
		fmt.Printf("%-12s %8.0f rows a second, %.2f of direct\n", way.name, median, median/rates[0][rounds/2])
	}
}
