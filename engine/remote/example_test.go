package remote_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/remote"
	"github.com/pawl-dev/pawl/message"
)

func Example() {
	url, stop := greeter() // an agent elsewhere: any that speaks A2A
	defer stop()

	ctx := context.Background()
	client, err := a2a.Dial(ctx, url, a2a.WithBearer("a key of yours"))
	if err != nil {
		fmt.Println(err)
		return
	}
	eng, err := remote.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := agent.Run(ctx, agent.Agent{ID: "greeter"}, eng, agent.Request{Message: message.User("Ada")})
	fmt.Println(res.Text(), err)
	// Output: Hello Ada <nil>
}

// greeter is an agent that answers with one message.
func greeter() (url string, stop func()) {
	server := httptest.NewServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == a2a.CardPath {
			card, _ := a2a.MarshalCard(a2a.AgentCard{Name: "greeter", Interfaces: []a2a.Interface{{URL: server.URL, ProtocolBinding: a2a.BindingJSONRPC, ProtocolVersion: "1.0"}}})
			_, _ = w.Write(card)
			return
		}
		body, _ := io.ReadAll(r.Body)
		call, bad := a2a.ParseCall(body)
		var req a2a.SendRequest
		if bad != nil || a2a.V1.Unmarshal(call.Params, &req) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		hello := a2a.Message{ID: "1", Role: a2a.RoleAgent, Parts: []a2a.Part{a2a.Text("Hello " + req.Message.Parts[0].Text)}}
		answer, _ := a2a.V1.AppendResult(nil, call.ID, a2a.Event{Message: &hello})
		_, _ = w.Write(answer)
	})
	return server.URL, server.Close
}
