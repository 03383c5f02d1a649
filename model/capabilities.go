package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// Capabilities is what a model can do. Asking for more fails with errdefs.Validation before any call.
type Capabilities struct {
	Name      string // provider/name, the catalogue's key
	Provider  string // the wire format, as in message.Origin
	Files     string // who keeps the files that are sent by ID, as in message.File.Provider; "": Provider
	Tools     bool
	Images    bool // image files in user messages
	Documents bool // PDF and text files in user messages
	Audio     bool // sound files in user messages
	Schema    bool // Request.Output in the provider's native mode
	TopK      bool
	Seed      bool
	Stop      bool
	MaxTokens bool // an output limit can be set
	Penalties bool // Settings.FrequencyPenalty and PresencePenalty

	Reasoning     []ReasoningLevel // what Settings.Reasoning may be, from least to most; read-only
	ProviderTools []string         // names of tools that it can run itself; read-only
}

// Describer is implemented by models that know their capabilities; any other one is taken to be able to do all.
type Describer interface{ Capabilities() Capabilities }

// CapabilitiesOf gives what m says of itself; ok is false when it says nothing.
func CapabilitiesOf(m Model) (c Capabilities, ok bool) {
	if d, is := As[Describer](m); is {
		return d.Capabilities(), true
	}
	return c, false
}

// Admit fails with errdefs.Validation, naming everything at once, when req asks for what c cannot do. Files are looked for in
// messages only, and not where [message.History.HasFiles] says that there is none.
func (c Capabilities) Admit(req Request) error {
	var no lacking
	no.want(len(req.Tools) > 0, c.Tools, "tools")
	no.want(len(req.Output) > 0, c.Schema, "an output schema")
	no.want(req.TopK != nil, c.TopK, "top_k")
	no.want(req.Seed != nil, c.Seed, "a seed")
	no.want(len(req.Stop) > 0, c.Stop, "stop sequences")
	no.want(req.MaxTokens > 0, c.MaxTokens, "an output limit")
	no.want(req.FrequencyPenalty != nil, c.Penalties, "frequency_penalty")
	no.want(req.PresencePenalty != nil, c.Penalties, "presence_penalty")
	if req.Reasoning != ReasoningDefault && !slices.Contains(c.Reasoning, req.Reasoning) {
		no = append(no, c.reasoning(req.Reasoning)) // words that cost something, and only then
	}
	for _, t := range req.ProviderTools {
		if !slices.Contains(c.ProviderTools, t.Name) {
			no = append(no, c.providerTool(t.Name))
		}
	}
	if req.Messages.HasFiles() {
		no = append(no, c.filesIn(req.Messages)...)
	}
	if len(no) == 0 {
		return nil
	}
	return errdefs.Validation.Errorf("%s can't do %s: leave it out or use another model", c.Name, strings.Join(no, ", "))
}

// lacking is what of a request a model can't do.
type lacking []string

func (l *lacking) want(asked, can bool, what string) {
	if asked && !can {
		*l = append(*l, what)
	}
}

// filesIn are the files of all messages that can't be sent.
func (c Capabilities) filesIn(h message.History) (no lacking) {
	for i, m := range h.All() {
		if m.HasFiles() {
			no = append(no, c.filesOf(m, i+1)...)
		}
	}
	return no
}

// filesOf are the files of a message that can't be sent.
func (c Capabilities) filesOf(m message.Message, number int) (no lacking) {
	for f := range message.Of[message.File](m) {
		if !c.takes(f) {
			no = append(no, c.file(f)+fmt.Sprintf(" (message %d)", number))
		}
	}
	for r := range message.Of[message.ToolResult](m) {
		for _, f := range r.Files {
			if !c.takes(f) {
				no = append(no, c.file(f)+fmt.Sprintf(" (result of %s, message %d)", r.Name, number))
			}
		}
	}
	return no
}

// Takes reports whether files of that type can be sent.
func (c Capabilities) Takes(mime string) bool {
	switch kind, _, _ := strings.Cut(mime, "/"); {
	case kind == "image":
		return c.Images
	case kind == "audio":
		return c.Audio
	case kind == "text", mime == "application/pdf":
		return c.Documents
	}
	return false
}

// takes reports whether f can be sent: what another provider keeps, and nobody else has, can't.
func (c Capabilities) takes(f message.File) bool { return c.Takes(f.MIME) && !c.elsewhere(f) }

func (c Capabilities) elsewhere(f message.File) bool {
	return f.ID != "" && f.Provider != cmp.Or(c.Files, c.Provider) && f.Data == "" && f.URL == "" && f.Hash == ""
}

func (c Capabilities) file(f message.File) string {
	if c.elsewhere(f) {
		return fmt.Sprintf("a file that only %s keeps", f.Provider)
	}
	return fmt.Sprintf("a file of type %q", f.MIME)
}

func (c Capabilities) reasoning(l ReasoningLevel) string {
	what := fmt.Sprintf("reasoning %q", string(l))
	if len(c.Reasoning) > 0 {
		what += fmt.Sprintf(" (of %q)", c.Reasoning)
	}
	return what
}

func (c Capabilities) providerTool(name string) string {
	what := fmt.Sprintf("a tool %q that it runs itself", name)
	if len(c.ProviderTools) > 0 {
		what += fmt.Sprintf(" (of %q)", c.ProviderTools)
	}
	return what
}
