package remote

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// provider is whose the part of an answer is that remembers the conversation with the agent.
const provider = "a2a"

// memory stands in the transcript, so that a fork, and a run that was taken back, remember what their transcript says.
type memory struct {
	Agent   string `json:"agent"` // its address
	Context string `json:"contextId"`
	Task    string `json:"taskId,omitempty"`
}

// rememberedContext is the conversation with the agent at an address that a transcript knows of, "" for none.
func rememberedContext(talk message.History, agent string) string {
	for i := talk.Len() - 1; i >= 0; i-- {
		m := talk.At(i)
		if m.Role() != message.RoleAssistant {
			continue
		}
		for o := range message.Of[message.Opaque](m) {
			var is memory
			if o.Provider == provider && json.Unmarshal([]byte(o.JSON), &is) == nil && is.Agent == agent {
				return is.Context
			}
		}
	}
	return ""
}

// answered puts the agent's answer into the main channel.
func answered(out journal.Board, m memory, ms []message.Part) journal.Board {
	if len(ms) == 0 {
		return out
	}
	if m.Context != "" {
		b, _ := json.Marshal(m) // strings always can
		ms = append(ms, message.Opaque{Provider: provider, JSON: string(b)})
	}
	if out.Append == nil {
		out.Append = map[string][]message.Message{}
	}
	out.Append[engine.MainChannel] = append(out.Append[engine.MainChannel], message.New(message.RoleAssistant, ms...))
	return out
}

// spoken is what a run has to say: what stands behind the last answer.
func spoken(talk message.History) ([]a2a.Part, error) {
	from := talk.Len()
	for from > 0 && talk.At(from-1).Role() == message.RoleUser {
		from--
	}
	var parts []a2a.Part
	for i := from; i < talk.Len(); i++ {
		for p := range talk.At(i).Parts() {
			switch p := p.(type) {
			case message.Text:
				if p.Text != "" {
					parts = append(parts, a2a.Text(p.Text))
				}
			case message.File:
				switch {
				case p.Data != "":
					parts = append(parts, a2a.Raw(p.MIME, p.Name, []byte(p.Data)))
				case p.URL != "":
					parts = append(parts, a2a.URL(p.MIME, p.Name, p.URL))
				default:
					return nil, errdefs.Validation.Errorf("remote: the file %q has neither bytes nor an address that an agent elsewhere could read", p.Name)
				}
			}
		}
	}
	if len(parts) == 0 {
		return nil, errdefs.Validation.Errorf("remote: nobody said anything: the main channel ends without a message of the user")
	}
	return parts, nil
}

// said is what an agent sent, as parts of a message. The pieces of a text that came in a stream are one text again.
func said(parts []a2a.Part) (out []message.Part) {
	for i := 0; i < len(parts); i++ {
		p := parts[i]
		kind := p.MediaType
		if !strings.Contains(kind, "/") {
			kind = "application/octet-stream"
		}
		switch p.Kind {
		case a2a.PartText:
			from := i
			for i+1 < len(parts) && parts[i+1].Kind == a2a.PartText {
				i++
			}
			if whole := text(parts[from : i+1]); whole != "" {
				out = append(out, message.Text{Text: whole})
			}
		case a2a.PartData:
			out = append(out, message.Text{Text: string(p.Data)})
		case a2a.PartRaw:
			out = append(out, message.File{MIME: kind, Name: p.Filename, Data: string(p.Raw)})
		case a2a.PartURL:
			if !strings.HasPrefix(p.URL, "https://") && !strings.HasPrefix(p.URL, "http://") {
				out = append(out, message.Text{Text: p.URL})
				continue
			}
			out = append(out, message.File{MIME: kind, Name: p.Filename, URL: p.URL})
		}
	}
	return out
}

// text is the text of parts.
func text(parts []a2a.Part) string {
	if len(parts) == 1 && parts[0].Kind == a2a.PartText {
		return parts[0].Text
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Kind == a2a.PartText {
			all.WriteString(p.Text)
		}
	}
	return all.String()
}

// retold is parts with another text: it stands in place of the first.
func retold(parts []a2a.Part, now string) []a2a.Part {
	rest := slices.DeleteFunc(slices.Clone(parts), func(p a2a.Part) bool { return p.Kind == a2a.PartText })
	return slices.Insert(rest, 0, a2a.Text(now))
}
