package hook

import (
	"context"
	"regexp"
	"strings"

	"github.com/pawl-dev/pawl/message"
)

// Redacted stands where Redact took something out.
const Redacted = "[redacted]"

// Secrets match what must not reach a model or a journal by accident: private keys, and the keys and tokens of well-known services, by the forms that their makers publish. They
// find no passwords: these have no form.
var Secrets = []*regexp.Regexp{
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`),                                  // AWS access key ids
	regexp.MustCompile(`\bgh[pousr]_[0-9A-Za-z]{36,255}\b`),                            // GitHub
	regexp.MustCompile(`\bgithub_pat_[0-9A-Za-z_]{22,255}\b`),                          // GitHub, fine-grained
	regexp.MustCompile(`\bglpat-[0-9A-Za-z_-]{20,}`),                                   // GitLab
	regexp.MustCompile(`\bxox[abeoprs]-[0-9A-Za-z-]{10,}`),                             // Slack
	regexp.MustCompile(`\bsk-(ant-|proj-|live-)?[0-9A-Za-z_-]{20,}`),                   // Anthropic, OpenAI
	regexp.MustCompile(`\b[rs]k_(live|test)_[0-9A-Za-z]{16,}`),                         // Stripe
	regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`),                                      // Google
	regexp.MustCompile(`\bnpm_[0-9A-Za-z]{36}\b`),                                      // npm
	regexp.MustCompile(`\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]+`), // JSON web tokens
}

// Redact replaces what patterns match in the results of tools, their text files included, before the model, the journal and later hooks see them. Without patterns it takes
// [Secrets]. What a tool writes while it runs goes to who watches as it is.
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
				files[i].Data, files[i].Hash = data, ""
			}
		}
		if files != nil {
			u.Result.Files = files
		}
		return nil
	}}
}
