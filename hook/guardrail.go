package hook

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/message"
)

// Guardrail checks what a user says and what a model answers; either may be nil. An error of input ends the run before the first model call. An error of reply sends the model
// back to work with that error as the reason, at most 3 times a run; then the reply stands, and an agent.Decider may drop it. A panic of reply drops nothing: it is journaled, like the error
// of any PostGeneration hook. Who has to see the words before they are shown wraps the model: see model.Middleware.
func Guardrail(name string, input, reply func(ctx context.Context, text string) error) Middleware {
	m := Middleware{Name: name}
	if input != nil {
		m.PreGeneration = func(ctx context.Context, g *Generation) error {
			if last := g.Messages.Last(); last.Role() == message.RoleUser {
				return input(ctx, last.Text())
			}
			return nil
		}
	}
	if reply != nil {
		m.PostGeneration = func(ctx context.Context, g *Generation) error {
			if g.Response == nil {
				return nil
			}
			if err := reply(ctx, g.Response.Message.Text()); err != nil {
				if ctx.Err() != nil {
					return err
				}
				g.Again(fmt.Sprintf("Your answer was not accepted: %v. Please correct it.", err))
			}
			return nil
		}
	}
	return m
}
