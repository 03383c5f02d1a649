package shell

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/process"
)

// Whatever a hook writes, it is an answer, or fails closed; a refusal is never taken for anything else.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"continue":false,"stopReason":"s","decision":"block","reason":"r","systemMessage":"m","suppressOutput":true}`, "", 0)
	f.Add(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","updatedInput":{"a":1},"additionalContext":"c","updatedToolOutput":[1]}}`, "", 0)
	f.Add("plain words", "errors", 0)
	f.Add(`{"decision":"approve"}`, "no", 2)
	f.Add(`{"decision":"perhaps"}`, "", 1)
	f.Add("\x00\xff{", "\x00", 137)
	f.Fuzz(func(t *testing.T, stdout, stderr string, code int) {
		for _, e := range events {
			h := &handler{Hook: Hook{Event: e}, name: "h"}
			r := ran{End: process.End{Code: code}}
			_, _ = r.stdout.Write([]byte(stdout))
			_, _ = r.stderr.Write([]byte(stderr))
			short := func(s string) {
				if n := utf8.RuneCountInString(s); n > textLimit+len("\n[cut off after 10000 characters]") || !utf8.ValidString(s) {
					t.Errorf("%d characters, valid: %v", n, utf8.ValidString(s))
				}
			}
			a := h.answer(r, func(NoticeKind, string) {})
			short(a.reason)
			short(a.context)
			short(a.ending)
			if a.verdict < hook.Continue || a.verdict > hook.Deny || a.err != nil && (a.verdict != hook.Continue || a.input != "" || a.output != nil || a.ends) {
				t.Errorf("%+v", a)
			}
			if code == 2 && e == PreToolUse && a.verdict != hook.Deny {
				t.Error("exit code 2 does not refuse")
			}
			trimmed := strings.TrimSpace(stdout)
			if code == 0 && strings.HasPrefix(trimmed, "{") && !json.Valid([]byte(trimmed)) && a.err == nil {
				t.Errorf("%q is taken for an answer", stdout)
			}
			if a.input != "" && !json.Valid([]byte(a.input)) {
				t.Errorf("input %q", a.input)
			}
		}
	})
}
