package permission_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
)

// ExampleNew_audit keeps every decision in a file, one JSON object a line. What can't be written down is denied.
func ExampleNew_audit() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file, err := os.OpenFile(filepath.Join(dir, "audit.jsonl"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = file.Close() }()
	var mu sync.Mutex // runs beside each other are judged at the same time
	lines := json.NewEncoder(file)
	permissions, err := permission.New(permission.Config{
		Dir:  dir,
		Deny: []string{"Bash(git push:*)"},
		Audit: func(_ context.Context, j permission.Judgment) {
			mu.Lock()
			defer mu.Unlock()
			if err := lines.Encode(j); err != nil {
				panic(err)
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, command := range []string{"git push", "ls"} {
		use := &hook.ToolUse{Where: hook.Where{Session: "s1", Run: "r1"}, Call: message.ToolCall{ID: fmt.Sprint("c", i+1), Name: "bash", Input: fmt.Sprintf(`{"command":%q}`, command)}}
		hook.Judge(context.Background(), []hook.Middleware{permissions}, use, nil)
	}

	_, _ = file.Seek(0, 0)
	for r := bufio.NewScanner(file); r.Scan(); {
		var j permission.Judgment
		if err := json.Unmarshal(r.Bytes(), &j); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(!j.Time.IsZero(), j.Session, j.Call, string(j.Input), j.Verdict, j.Rule, j.Mode)
	}
	// Output:
	// true s1 c1 {"command":"git push"} deny Bash(git push:*) default
	// true s1 c2 {"command":"ls"} allow  default
}
