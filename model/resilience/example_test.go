package resilience_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
	"github.com/pawl-dev/pawl/model/scripted"
)

// Two models, each with retries, limits and timeouts of its own: what a Runtime is given as Options.Model.
func Example() {
	limiter := resilience.NewLimiter(resilience.LimiterPolicy{Requests: 1000, Tokens: 400_000}) // of one key: keep it, and share it
	steady := func(m model.Model) model.Model {
		return model.Wrap(m,
			resilience.Retry(resilience.RetryPolicy{Wait: time.Millisecond}),
			limiter.Middleware(),
			resilience.Timeouts(resilience.TimeoutPolicy{First: time.Minute}),
		)
	}
	down := scripted.New(scripted.Turn{Error: &scripted.Failure{Status: 529, Message: "Overloaded."}}, scripted.Turn{Error: &scripted.Failure{Status: 401, Message: "Who are you?"}})
	other := scripted.Script{Name: "other", Turns: []scripted.Turn{scripted.Text("I am here.")}}
	m := resilience.Fallback(resilience.FallbackPolicy{On: []*errdefs.Class{errdefs.NotAvailable, errdefs.Unauthorized}}, steady(down), steady(other.Model()))

	resp, err := m.Complete(context.Background(), model.Request{Messages: message.NewHistory(message.User("Is anybody there?"))})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %s\n", resp.By, resp.Message.Text())
	// Output: scripted/other: I am here.
}

// With Restart, what was shown before a failure is taken back by a Void.
func ExampleRetry() {
	flaky := scripted.New(
		scripted.Turn{Text: "The answer is", Error: &scripted.Failure{Status: 529, Message: "Overloaded.", MidStream: true}},
		scripted.Text("The answer is 42."),
	)
	m := resilience.Retry(resilience.RetryPolicy{Wait: time.Millisecond, Restart: true})(flaky)

	req := model.Request{Messages: message.NewHistory(message.User("What is it?"))}
	shown := ""
	err := m.CompleteStream(context.Background(), req, func(s model.StreamResult) error {
		if s.Void != nil {
			fmt.Printf("%q is void: %v\n", shown, s.Void)
			shown = ""
		}
		shown += s.Text
		return nil
	})
	fmt.Println(shown, err)
	// Output:
	// "The answer " is void: scripted: HTTP 529: Overloaded.
	// The answer is 42. <nil>
}
