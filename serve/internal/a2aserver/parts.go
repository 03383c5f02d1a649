package a2aserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"path"
	"strings"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/message"
)

// modes are media types, and ranges of them.
type modes []string

// take reports whether a media type is among them.
func (m modes) take(kind string) bool {
	kind = bare(kind)
	for _, have := range m {
		if matches(bare(have), kind) {
			return true
		}
	}
	return false
}

// meet reports whether a type among them is one that a client accepts: whoever names none accepts all.
func (m modes) meet(accepted []string) bool {
	if len(accepted) == 0 {
		return true
	}
	for _, a := range accepted {
		for _, have := range m {
			if matches(bare(a), bare(have)) || matches(bare(have), bare(a)) {
				return true
			}
		}
	}
	return false
}

// matches reports whether a type is in a range, which may be a type itself.
func matches(within, kind string) bool {
	group, all := strings.CutSuffix(within, "/*")
	return within == kind || within == "*/*" || all && strings.HasPrefix(kind, group+"/")
}

// bare is a media type without its parameters, in lower case.
func bare(kind string) string {
	kind, _, _ = strings.Cut(kind, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// origin of the first text of a message keeps the id that the client gave it, so that he finds his own messages in a task's history.
const origin = "a2a"

type extra struct {
	ID string `json:"messageId"`
}

// message is what a client says, for the agent: text as it is, JSON as text, files as files.
func (s *Server) message(m a2a.Message) (message.Message, error) {
	if m.Role != a2a.RoleUser {
		return message.Message{}, a2a.Errorf(a2a.CodeInvalidParams, "message.role: what is said to an agent is a user's")
	}
	var parts []message.Part
	noted := false
	say := func(text string) {
		t := message.Text{Text: text}
		if !noted {
			b, _ := json.Marshal(extra{m.ID}) //nolint:errchkjson // a string
			t.Provider, t.Extra, noted = origin, string(b), true
		}
		parts = append(parts, t)
	}
	for i, p := range m.Parts {
		kind := p.MediaType
		switch p.Kind {
		case a2a.PartText:
			kind = "text/plain"
			say(p.Text)
		case a2a.PartData:
			kind = "application/json"
			var b bytes.Buffer
			if err := json.Compact(&b, p.Data); err != nil {
				return message.Message{}, a2a.Errorf(a2a.CodeInvalidParams, "message.parts[%d].data: %v", i, err)
			}
			say(b.String())
		case a2a.PartRaw, a2a.PartURL:
			if kind == "" {
				kind = mime.TypeByExtension(path.Ext(p.Filename))
			}
			if kind = bare(kind); kind == "" {
				kind = "application/octet-stream"
			}
			parts = append(parts, message.File{MIME: kind, Name: p.Filename, Data: string(p.Raw), URL: p.URL})
		}
		if !s.in.take(kind) {
			return message.Message{}, a2a.Errorf(a2a.CodeContentTypeNotSupported, "message.parts[%d] is of type %.80q: this agent takes %s", i, kind, strings.Join(s.in, ", "))
		}
	}
	out := message.New(message.RoleUser, parts...)
	if out.Blank() {
		return out, a2a.Errorf(a2a.CodeInvalidParams, "message.parts: nothing is said")
	}
	if err := out.CheckFiles(); err != nil {
		return out, a2a.Errorf(a2a.CodeInvalidParams, "message.parts: %v", err)
	}
	return out, nil
}

// partsOf is what a message says, for a client, and the id that the client gave it, if it was one of his.
func partsOf(m message.Message) (parts []a2a.Part, id string) {
	for p := range m.Parts() {
		switch p := p.(type) {
		case message.Text:
			var e extra
			if p.Provider == origin && exact.Unmarshal([]byte(p.Extra), &e) == nil {
				id = e.ID
			}
			if p.Text != "" {
				parts = append(parts, a2a.Text(p.Text))
			}
		case message.File:
			parts = append(parts, fileOf(p)...)
		}
	}
	return parts, id
}

// fileOf is a file, for a client; nothing when only a provider has it.
func fileOf(f message.File) []a2a.Part {
	switch {
	case f.Data != "":
		return []a2a.Part{a2a.Raw(f.MIME, f.Name, []byte(f.Data))}
	case strings.HasPrefix(f.URL, "data:"):
		if _, data, ok := strings.Cut(f.URL, ";base64,"); ok {
			if raw, err := base64.StdEncoding.DecodeString(data); err == nil {
				return []a2a.Part{a2a.Raw(f.MIME, f.Name, raw)}
			}
		}
	case f.URL != "":
		return []a2a.Part{a2a.URL(f.MIME, f.Name, f.URL)}
	}
	return nil
}
