package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/builtin"
)

func Example() {
	dir, err := os.MkdirTemp("", "project-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w, err := builtin.Open(dir)
	if err != nil {
		panic(err)
	}
	defer func() { _ = w.Close() }()
	tools, err := tool.NewSet(w.Tools()...)
	if err != nil {
		panic(err)
	}

	for _, c := range []message.ToolCall{
		{ID: "1", Name: "write", Input: `{"file_path":"notes/todo.txt","content":"buy milk\nread mail\n"}`},
		{ID: "2", Name: "edit", Input: `{"file_path":"notes/todo.txt","old_string":"milk","new_string":"bread"}`},
		{ID: "3", Name: "grep", Input: `{"pattern":"b\\w+d","output_mode":"content"}`},
		{ID: "4", Name: "read", Input: `{"file_path":"../secret"}`},
	} {
		input, err := tools.Check(c)
		if err != nil {
			panic(err)
		}
		t, _, _ := tools.Lookup(c.Name)
		res, err := t.Execute(context.Background(), json.RawMessage(input))
		if err != nil {
			fmt.Println(c.Name, "is refused")
			continue
		}
		fmt.Println(res.Content)
	}
	// Output:
	// created notes/todo.txt (2 lines)
	// edited notes/todo.txt (1 replacement)
	// --- a/notes/todo.txt
	// +++ b/notes/todo.txt
	// @@ -1,2 +1,2 @@
	// -buy milk
	// +buy bread
	//  read mail
	// notes/todo.txt:1:buy bread
	// read is refused
}
