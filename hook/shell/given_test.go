//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/shell"
)

func TestAnExitCodeDecides(t *testing.T) {
	t.Parallel()
	deny := `{"decision":"block","reason":"by JSON"}`
	allow := `{"decision":"approve","reason":"by JSON"}`
	for name, c := range map[string]struct {
		command string
		want    hook.Decision
		warns   string
	}{
		"0 without output":               {"exit 0", hook.Decision{}, ""},
		"0 with words":                   {"echo hello", hook.Decision{}, ""},
		"0 with a JSON text":             {`echo '"deny"'`, hook.Decision{}, ""},
		"0 with an answer":               {says(deny), hook.Denied("by JSON"), ""},
		"0 with words on stderr":         {"echo deny >&2", hook.Decision{}, ""},
		"2 refuses, for stderr's reason": {"echo 'not on' >&2; echo Sundays >&2; exit 2", hook.Denied("not on\nSundays"), ""},
		"2 with JSON: it doesn't count":  {says(allow) + "; echo no >&2; exit 2", hook.Denied("no"), ""},
		"2 without a reason":             {"exit 2", hook.Denied("The hook h refuses this call."), ""},
		"1 decides nothing":              {"echo oops >&2; exit 1", hook.Decision{}, "exit code 1, which decides nothing (2 refuses): oops"},
		"1 with an answer":               {says(deny) + "; exit 1", hook.Decision{}, "exit code 1"},
		"a program that is not there":    {"no-such-command-here", hook.Denied("The hook h did not give its answer, so the call is refused: its program could not be started (exit code 127)"), "exit code 127"},
		"126 likewise":                   {"exit 126", hook.Denied("The hook h did not give its answer, so the call is refused: its program could not be started (exit code 126)"), "exit code 126"},
		"255 decides nothing":            {"exit 255", hook.Decision{}, "exit code 255, which decides nothing (2 refuses)"},
		"a signal denies":                {"kill -KILL $$", hook.Denied("The hook h did not give its answer, so the call is refused: it was killed by SIGKILL"), "killed by SIGKILL"},
		"and that of its command":        {"sh -c 'kill -SEGV $$'; exit $?", hook.Denied("The hook h did not give its answer, so the call is refused: it was killed by signal 11"), "signal 11"},
	} {
		t.Run(name, func(t *testing.T) {
			b := shells(t, pre(c.command))
			if diff := cmp.Diff(c.want, b.judge(t, use("c", "ls"))); diff != "" {
				t.Error(diff)
			}
			if w := strings.Join(b.notices(shell.NoticeWarning), "\n"); (w != "") != (c.warns != "") || !strings.Contains(w, c.warns) {
				t.Errorf("warns %q, want %q", w, c.warns)
			}
		})
	}
}

func TestAnAnswerDecidesInEitherSpelling(t *testing.T) {
	t.Parallel()
	special := func(members string) string {
		return `{"hookSpecificOutput":{"hookEventName":"PreToolUse",` + members + `}}`
	}
	for name, c := range map[string]struct {
		json string
		want hook.Decision
	}{
		"nothing":                       {`{}`, hook.Decision{}},
		"approve":                       {`{"decision":"approve","reason":"r"}`, hook.Allowed("r")},
		"allow":                         {`{"decision":"allow"}`, hook.Allowed("")},
		"block":                         {`{"decision":"block","reason":"r"}`, hook.Denied("r")},
		"deny, in capitals":             {`{"decision":"Deny","reason":"r"}`, hook.Denied("r")},
		"block without a reason":        {`{"decision":"block"}`, hook.Denied("The hook h refuses this call.")},
		"ask":                           {`{"decision":"ask","reason":"r"}`, hook.Asking("r")},
		"no decision":                   {`{"decision":null,"hookSpecificOutput":null}`, hook.Decision{}},
		"an empty one":                  {`{"decision":"","reason":"r"}`, hook.Decision{Reason: ""}},
		"permission: allow":             {special(`"permissionDecision":"allow","permissionDecisionReason":"r"`), hook.Allowed("r")},
		"permission: deny":              {special(`"permissionDecision":"deny","permissionDecisionReason":"r"`), hook.Denied("r")},
		"permission: ask":               {special(`"permissionDecision":"ask","permissionDecisionReason":"r"`), hook.Asking("r")},
		"permission: defer is ask":      {special(`"permissionDecision":"defer","permissionDecisionReason":"r"`), hook.Asking("r")},
		"without the event's name":      {`{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"r"}}`, hook.Denied("r")},
		"both: the stricter":            {`{"decision":"approve","reason":"a","hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"d"}}`, hook.Denied("d")},
		"both, the other way round":     {`{"decision":"block","reason":"a","hookSpecificOutput":{"permissionDecision":"allow","permissionDecisionReason":"d"}}`, hook.Denied("a")},
		"the other one's reason":        {`{"reason":"a","hookSpecificOutput":{"permissionDecision":"deny"}}`, hook.Denied("a")},
		"additional context":            {special(`"additionalContext":"main is frozen"`), hook.Decision{Context: "main is frozen"}},
		"with a denial":                 {special(`"permissionDecision":"deny","permissionDecisionReason":"r","additionalContext":"c"`), hook.Decision{Verdict: hook.Deny, Reason: "r", Context: "c"}},
		"white space around":            {"\n\n  {\"decision\":\"block\",\"reason\":\"r\"}\n\n", hook.Denied("r")},
		"what nobody knows":             {`{"decision":"block","reason":"r","novelty":{"a":[1]}}`, hook.Denied("r")},
		"continue":                      {`{"continue":true}`, hook.Decision{}},
		"continue: false denies":        {`{"continue":false,"stopReason":"enough"}`, hook.Denied("enough")},
		"whatever else is said":         {`{"continue":false,"decision":"approve"}`, hook.Denied("the hook h ended the run")},
		"a decision that is none":       {`{"decision":"perhaps"}`, no(`its decision is "perhaps": want approve, allow, block, deny or ask`)},
		"a permission that is none":     {special(`"permissionDecision":"block"`), hook.Denied("The hook h refuses this call.")},
		"nor is this":                   {special(`"permissionDecision":"maybe"`), no(`its permissionDecision is "maybe": want allow, deny, ask or defer`)},
		"continue as text":              {`{"continue":"false"}`, no("its continue is of the type string: want bool")},
		"a decision that is no text":    {`{"decision":{"block":true}}`, no("its decision is of the type object: want string")},
		"broken JSON":                   {`{"decision":"block","reason":"he said "no""}`, no("invalid character 'n' after object key:value pair")},
		"half of it":                    {`{"decision":"block"`, no("unexpected end of JSON input")},
		"two answers":                   {`{"decision":"approve"}{"decision":"block"}`, no("invalid character '{' after top-level value")},
		"of another event":              {`{"hookSpecificOutput":{"hookEventName":"PostToolUse"}}`, no(`its hookEventName is "PostToolUse", not "PreToolUse"`)},
		"what is longer than an answer": {`{"reason":"` + strings.Repeat("x", 1<<20) + `"}`, no("it is longer than 1048576 bytes")},
	} {
		t.Run(name, func(t *testing.T) {
			b := shells(t, pre("cat answer"))
			if err := os.WriteFile(filepath.Join(b.dir, "answer"), []byte(c.json), 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, b.judge(t, use("c", "ls"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// no is the denial for an answer that is none.
func no(why string) hook.Decision {
	return hook.Denied("The hook h did not give its answer, so the call is refused: what it wrote begins like an answer in JSON and is none: " + why)
}

func TestTextsAreCutOffAfterTenThousandCharactersAndSayIt(t *testing.T) {
	t.Parallel()
	long, note := strings.Repeat("é", 10_001), strings.Repeat("é", 10_000)+"\n[cut off after 10000 characters]"
	b := shells(t, pre("cat answer"), pre("cat words >&2; exit 2"))
	answer, _ := json.Marshal(map[string]any{
		"decision": "ask", "reason": long, "systemMessage": long,
		"hookSpecificOutput": map[string]any{"additionalContext": long, "updatedInput": map[string]string{"command": long}},
	})
	for name, text := range map[string]string{"answer": string(answer), "words": strings.Repeat("é", 10_000)} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := b.judge(t, use("c", "ls"))
	if d.Reason != strings.Repeat("é", 10_000) || d.Context != note {
		t.Error(len(d.Reason), len(d.Context))
	}
	if m := b.notices(shell.NoticeMessage); len(m) != 1 || m[0] != note {
		t.Error(len(m))
	}
	b = shells(t, pre("cat answer"))
	if err := os.WriteFile(filepath.Join(b.dir, "answer"), answer, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := b.judge(t, use("c", "ls")); d.Reason != note || d.Input != `{"command":"`+long+`"}` {
		t.Error("an input is no text to be cut:", len(d.Reason), len(d.Input))
	}
}

func TestPeopleAreToldWhatHooksSay(t *testing.T) {
	t.Parallel()
	loud, quiet := pre(says(`{"systemMessage":"look out"}`)), pre(says(`{"systemMessage":"psst","suppressOutput":true}`))
	loud.StatusMessage = "looking"
	end := shell.Hook{Event: shell.SessionEnd, Name: "h", Command: says(`{"decision":"block","reason":"stay","hookSpecificOutput":{"additionalContext":"c","updatedInput":{},"updatedToolOutput":"x"}}`)}
	b := shells(t, loud, end)
	b.judge(t, use("c", "ls"))
	want := []shell.Notice{
		{Where: where, Event: shell.PreToolUse, Hook: "h", Kind: shell.NoticeStatus, Text: "looking"},
		{Where: where, Event: shell.PreToolUse, Hook: "h", Kind: shell.NoticeOutput, Text: `{"systemMessage":"look out"}`},
		{Where: where, Event: shell.PreToolUse, Hook: "h", Kind: shell.NoticeMessage, Text: "look out"},
	}
	if diff := cmp.Diff(want, b.told); diff != "" {
		t.Error(diff)
	}
	if got := b.told[2].String(); got != "PreToolUse hook h: look out" {
		t.Error(got)
	}
	if _, err := b.Fire(t.Context(), shell.SessionEnd, where, shell.SessionPayload{Reason: "other"}); err != nil {
		t.Error(err)
	}
	wants := []string{"updatedInput has no effect but in PreToolUse", "updatedToolOutput has no effect but in PostToolUse", "there is nothing to refuse in SessionEnd: stay", "no model hears additionalContext after SessionEnd"}
	if diff := cmp.Diff(wants, b.notices(shell.NoticeWarning)); diff != "" {
		t.Error(diff)
	}
	b = shells(t, quiet)
	b.judge(t, use("c", "ls"))
	if out := b.notices(shell.NoticeOutput); out != nil || len(b.notices(shell.NoticeMessage)) != 1 {
		t.Error(out)
	}
}

func TestANotifyThatPanicsHurtsNobody(t *testing.T) {
	t.Parallel()
	s, err := shell.New(shell.Options{Dir: t.TempDir(), Notify: func(context.Context, shell.Notice) { panic("boom") }}, pre("echo no >&2; exit 2"), pre("exit 1"), pre("echo out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	if d := hook.Judge(t.Context(), []hook.Middleware{s.Middleware()}, use("c", "ls"), nil); d != hook.Denied("no") {
		t.Error(d)
	}
}
