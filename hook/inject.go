package hook

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/pawl-dev/pawl/message"
)

// Inject puts a message of the user's in front of the transcript, once a session: it stays in the transcript, and the prefix that a provider caches does not move. When parts
// differ from those that an earlier run of the session injected under this name, the new ones take their place. Text parts lose their Origin; a message without text gets its name
// as text.
func Inject(name string, parts ...message.Part) Middleware {
	quoted, _ := json.Marshal(name) // a string always marshals
	origin := message.Origin{Provider: "pawl", Extra: isInjected + string(quoted) + "}"}
	marked := make([]message.Part, 0, len(parts)+1)
	first := true
	for _, p := range parts {
		if t, ok := p.(message.Text); ok {
			if t.Origin = (message.Origin{}); first {
				t.Origin, first = origin, false
			}
			p = t
		}
		marked = append(marked, p)
	}
	if first { // nothing to know it by
		marked = append(marked, message.Text{Text: "(" + name + ")", Origin: origin})
	}
	ours := message.New(message.RoleUser, marked...)
	return Middleware{Name: name, PreGeneration: func(_ context.Context, g *Generation) error {
		for i, m := range g.Messages.All() {
			by := injectedBy(m)
			if by == "" { // they all stand in front
				break
			}
			if by != origin.Extra {
				continue
			}
			if string(m.AppendJSON(nil)) != string(ours.AppendJSON(nil)) {
				g.Messages = g.Messages.Slice(0, i).Append(ours).Append(g.Messages.Slice(i+1, g.Messages.Len()).Messages()...)
			}
			return nil
		}
		g.Messages = message.NewHistory(ours).Append(g.Messages.Messages()...)
		return nil
	}}
}

const isInjected = `{"inject":`

// injectedBy gives the mark of an injected message, "" for any other.
func injectedBy(m message.Message) string {
	if m.Role() == message.RoleUser {
		for t := range message.Of[message.Text](m) {
			if t.Provider == "pawl" && strings.HasPrefix(t.Extra, isInjected) {
				return t.Extra
			}
		}
	}
	return ""
}
