package a2a_test

import (
	"fmt"

	"github.com/pawl-dev/pawl/a2a"
)

// A request of a client of 0.3, and an answer to it. Of 1.0, only the version is another.
func Example() {
	version, err := a2a.ParseVersion("") // of the header A2A-Version
	if err != nil {
		fmt.Println(err)
		return
	}
	call, bad := a2a.ParseCall([]byte(`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}]}}}`))
	if bad != nil {
		fmt.Println(bad)
		return
	}
	op, _ := version.Operation(call.Method)
	var req a2a.SendRequest
	if err := version.Unmarshal(call.Params, &req); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(op, req.Message.Role, req.Message.Parts[0].Text)

	task := &a2a.Task{ID: "t1", ContextID: "c1", Status: a2a.TaskStatus{State: a2a.StateWorking}}
	answer, err := version.AppendResult(nil, call.ID, a2a.Event{Task: task})
	fmt.Println(string(answer), err)
	// Output:
	// SendMessage ROLE_USER hi
	// {"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t1","contextId":"c1","status":{"state":"working"}}} <nil>
}
