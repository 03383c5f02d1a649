package hook

import (
	"context"
	"regexp"
	"strings"

	"github.com/pawl-dev/pawl/internal/secret"
	"github.com/pawl-dev/pawl/message"
)

// Redacted stands where Redact took something out.
const Redacted = secret.Redacted

// Secrets match what must not reach a model or a journal by accident: private keys, and the keys and tokens of well-known services, by the forms that their makers publish. They
// find no passwords: these have no form.
var Secrets = secret.Patterns()

// Redact replaces what patterns match in the results of tools, their text files included, before the model, the journal and later hooks see them. Without patterns it takes
// [Secrets]. What a tool writes while it runs goes to who watches as it is; so does what a provider did itself (message.ProviderCall), which is a part of the reply.
func Redact(patterns ...*regexp.Regexp) Middleware {
	if len(patterns) == 0 {
		patterns = Secrets
	}
	clean := func(s string) string {
		for _, p := range patterns {
			s = p.ReplaceAllLiteralString(s, Redacted)
		}
		return s
	}
	return Middleware{Name: "redact", PostToolUse: func(_ context.Context, u *ToolUse) error {
		u.Result.Content = clean(u.Result.Content)
		var files []message.File // the tool's own slice stays
		for i, f := range u.Result.Files {
			if !strings.HasPrefix(f.MIME, "text/") && f.MIME != "application/json" {
				continue
			}
			if data := clean(f.Data); data != f.Data {
				if files == nil {
					files = append(files, u.Result.Files...)
				}
				files[i].Data, files[i].Hash, files[i].Provider, files[i].ID = data, "", "", ""
			}
		}
		if files != nil {
			u.Result.Files = files
		}
		return nil
	}}
}
