// Package transcript turns what a driver answers into lines of JSON, the same in every run.
package transcript

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Transcript writes one line for each step.
type Transcript struct {
	mutex    sync.Mutex
	scenario string
	// Fields gives an error's fields.
	Fields func(error) any
}

// Begin names the scenario of the steps that follow.
func (t *Transcript) Begin(scenario string) { t.scenario = scenario }

// Say writes one line.
func (t *Transcript) Say(step, what string, value any) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	line, err := json.Marshal(map[string]any{"scenario": t.scenario, "step": step, what: value})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// Step does something and says what came of it.
func (t *Transcript) Step(name string, action func() (any, error)) {
	value, err := action()
	if err != nil {
		t.Say(name, "error", t.Fields(err))
		return
	}
	t.Say(name, "value", Show(value))
}

// Show gives a value with its type where JSON has none for it.
func Show(value any) any {
	switch v := value.(type) {
	case nil, bool, string, int, int16, int32, int64:
		return v
	case []byte:
		if len(v) > 200 {
			return fmt.Sprintf("bytes:%d", len(v))
		}
		return fmt.Sprintf("bytes:%x", v)
	case time.Time:
		return "time:" + v.Format(time.RFC3339Nano)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint("float:", v)
		}
		return v
	case []any:
		shown := make([]any, len(v))
		for i, one := range v {
			shown[i] = Show(one)
		}
		return shown
	case [][]any:
		shown := make([]any, len(v))
		for i, one := range v {
			shown[i] = Show(one)
		}
		return shown
	case []string, []int64, map[string]int:
		return v
	}
	return fmt.Sprintf("%T:%v", value, value)
}

// Blocks gives the statements that every program creates its tables with. The folder is that of the schema.
func Blocks() []string {
	text, err := os.ReadFile(filepath.Join(os.Getenv("WINDROW_DRIVERS"), "schema.sql"))
	if err != nil {
		panic(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n\n")
}
