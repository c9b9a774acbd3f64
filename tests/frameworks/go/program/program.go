// Package program holds what programs for Go share: each of their steps prints one line of JSON and waits until the test has read it.
package program

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgconn"
)

var input = bufio.NewReader(os.Stdin)

// Step prints what a step gave.
func Step(name string, value any) {
	Must(json.NewEncoder(os.Stdout).Encode(map[string]any{name: value}))
	_, _ = input.ReadString('\n')
}

// Must ends the program if there is an error.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Name makes the name of a row that a worker writes.
func Name(prefix string, worker, turn int) string {
	return fmt.Sprintf("%s-%d-%d", prefix, worker, turn)
}

// Describe shows an error's types, and the server's fields that are the same in every run.
func Describe(err error) any {
	if err == nil {
		return "no error"
	}
	shown := map[string]any{}
	classes := []string{}
	for at := err; at != nil; at = errors.Unwrap(at) {
		classes = append(classes, fmt.Sprintf("%T", at))
	}
	shown["classes"] = classes
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		shown["state"], shown["constraint"], shown["table"] = refused.Code, refused.ConstraintName, refused.TableName
	}
	return shown
}
