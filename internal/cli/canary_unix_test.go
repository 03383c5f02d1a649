//go:build unix

package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

// canaries are secrets that are told from everything else, by what they stand for.
type canaries struct {
	t    *testing.T
	all  map[string]string
	seen []string // what there was to look at
}

func (c *canaries) plant(name string) string {
	b := make([]byte, 12)
	_, _ = rand.Read(b)
	c.all[name] = "canary" + hex.EncodeToString(b) // no maker's form: it is not known by its looks
	return c.all[name]
}

// look looks for all of them, as they are, in base64, and as hexadecimal digits.
func (c *canaries) look(where string, b []byte) {
	c.t.Helper()
	c.seen = append(c.seen, where)
	for name, secret := range c.all {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))[:32], hex.EncodeToString([]byte(secret))} {
			if at := bytes.Index(b, []byte(form)); at >= 0 {
				c.t.Errorf("%s holds the secret of %s: …%q…", where, name, b[max(0, at-200):min(len(b), at+60)])
			}
		}
	}
}

// files looks into each file below dir but those that hold secrets by design.
func (c *canaries) files(dir string, design map[string]string) {
	c.t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		for part := range design {
			if strings.Contains(path, part) {
				return nil
			}
		}
		b, err := os.ReadFile(path)
		c.look(path, b)
		return err
	})
	if err != nil {
		c.t.Error(err)
	}
}

// rows looks into each row of each table of a database.
func (c *canaries) rows(dsn string) {
	c.t.Helper()
	ctx := c.t.Context()
	db, err := pgx.Connect(ctx, dsn)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = db.Close(ctx) }()
	list := func(query string) []string {
		rows, err := db.Query(ctx, query)
		if err != nil {
			c.t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			c.t.Fatal(err)
		}
		return all
	}
	n := 0
	for _, table := range list(`SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables WHERE schemaname NOT LIKE 'pg!_%' ESCAPE '!' AND schemaname <> 'information_schema'`) {
		for _, row := range list("SELECT t::text FROM " + table + " t") {
			b := []byte(row)
			for _, bytea := range regexp.MustCompile(`\\x([0-9a-f]{2,})`).FindAllStringSubmatch(row, -1) {
				raw, _ := hex.DecodeString(bytea[1])
				b = append(b, raw...)
			}
			c.look("a row of "+table, b)
			n++
		}
	}
	if n == 0 {
		c.t.Error("there are no rows to look at")
	}
}

// echo is a server that refuses everybody, and says what it was sent: as providers and gateways do. It speaks no protocol well enough to be worked with.
func echo(t *testing.T, status int) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said := "refused: " + r.URL.String()
		for name, values := range r.Header {
			said += fmt.Sprintf(" %s: %s", name, values)
		}
		if strings.HasSuffix(r.URL.Path, "/token") {
			said += " " + string(body)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "message": said, "error_description": said, "error": map[string]any{"type": "authentication_error", "code": said, "status": "UNAUTHENTICATED", "message": said}})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// sink is a collector of OpenTelemetry that keeps the bodies of what it was sent; their headers hold what opens it.
func sink(t *testing.T) (at string, sent func() []byte) {
	var mu sync.Mutex
	var all []byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, b...)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Clone(all)
	}
}

// Secrets are where their owners put them, and nowhere else: not in a journal, a log, a trace, an error, an event or a page. By design they stand
//
//   - in the files that a person wrote them into (.agents/settings.json), and where what is in such a file is shown to be approved (pawl trust, and the refusal to run before that): variables are for what is secret;
//   - in a login's file (pawl mcp login) and in those of push notifications that clients of A2A asked for, which only their owner can read: they are sent from there;
//   - in the environment of what a person gave them to: settings' env to commands, an MCP server's own to that server. A command that prints its environment has printed it, and the journal has what it printed. Without a
//     sandbox (--no-sandbox) that is the whole environment of the program.
func TestNoSecretStandsWhereNobodyPutIt(t *testing.T) {
	t.Parallel()
	pawl, w := binary(t), newWorld(t)
	c := &canaries{t: t, all: map[string]string{}}
	home, temp, state := t.TempDir(), t.TempDir(), t.TempDir()
	otel, sent := sink(t)
	refuses, breaks := echo(t, http.StatusUnauthorized), echo(t, http.StatusBadRequest)
	auth := httptest.NewServer(nil) // of an MCP server whose token can't be had: it says what it was sent
	defer auth.Close()
	tokenError := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		user, pass, _ := r.BasicAuth()
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_client", "error_description": string(body) + user + pass + r.Header.Get("Authorization")})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/token", tokenError)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"resource": %q, "authorization_servers": [%q]}`, auth.URL+"/mcp", auth.URL)
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": %q, "token_endpoint": %q, "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"], "grant_types_supported": ["client_credentials"]}`, auth.URL, auth.URL+"/authorize", auth.URL+"/token")
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+auth.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	auth.Config.Handler = mux

	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HOME=") && !strings.HasPrefix(v, "TMPDIR=") {
			env = append(env, v)
		}
	}
	env = append(env, "HOME="+home, "TMPDIR="+temp, "XDG_STATE_HOME="+state, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "AZURE_OPENAI_ENDPOINT="+refuses, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE",
		"OTEL_EXPORTER_OTLP_ENDPOINT="+otel, "OTEL_EXPORTER_OTLP_HEADERS=x-otel-token="+c.plant("the collector"), "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT", "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental")
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "AZURE_OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"PAWL_TOKEN", "GITHUB_TOKEN", "DB_PASSWORD", "WIKI_HEADER", "DIES_SECRET", "DIES_TOKEN", "OAUTH_SECRET", "URL_TOKEN",
	} {
		env = append(env, name+"="+c.plant("the variable "+name))
	}
	token := c.all["the variable PAWL_TOKEN"]
	w.settings(`{
  "env": {"DEPLOY_TOKEN": "` + c.plant("the settings' env") + `"},
  "retries": 0,
  "mcpServers": {
    "wiki": {"url": "` + refuses + `/mcp?token=${URL_TOKEN}", "headers": {"X-Wiki": "${WIKI_HEADER}", "Authorization": "Bearer ` + c.plant("a literal header") + `"}},
    "slow": {"url": "` + breaks + `/mcp", "headers": {"X-Wiki": "${WIKI_HEADER}"}},
    "login": {"url": "` + auth.URL + `/mcp", "oauth": {"clientId": "ci", "clientSecret": "${OAUTH_SECRET}", "grant": "client_credentials"}},
    "dies": {"command": "sh", "args": ["-c", "echo \"cannot start with $DIES_KEY $LITERAL_KEY and $0\" >&2; echo $DIES_KEY; exit 1", "${DIES_TOKEN}"], "env": {"DIES_KEY": "${DIES_SECRET}", "LITERAL_KEY": "` + c.plant("an MCP server's env") + `"}}
  }}`)
	design := map[string]string{
		".agents/settings.json": "a person wrote them there", "journal.db.push/": "from there they are sent", "/.cache/": "caches of tools",
	}

	n := 0
	do := func(want int, args ...string) string {
		t.Helper()
		n++
		cmd := exec.CommandContext(t.Context(), pawl, args...)
		cmd.Env, cmd.Dir = env, w.dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); want >= 0 && code != want {
			t.Errorf("%q: exit %d, want %d\n%s", args, code, want, out)
		}
		c.look(fmt.Sprintf("the output of command %d, %.60q", n, args), out)
		return string(out)
	}
	script := w.file("s.yaml", `
turns:
  - tool_calls: [{id: c1, name: bash, input: {command: "echo $DB_PASSWORD $OPENAI_API_KEY $GITHUB_TOKEN $PAWL_TOKEN; env | grep -v DEPLOY_TOKEN; cat /proc/$PPID/environ; exit 3"}}, {id: c2, name: read, input: {path: "none"}}, {id: c3, name: mcp__wiki__x, input: {}}]
  - text: "Done."
`)
	plain := w.file("plain.yaml", `turns: [{tool_calls: [{id: c1, name: bash, input: {command: "exit 3"}}]}, {text: "Done."}]`)
	base := []string{"--trust", "--dir", w.dir, "--journal", w.journal}
	run := func(args ...string) []string { return append(append([]string{"run"}, args...), base...) }
	do(exitCompleted, run("--session", "ok", "--model", "scripted/"+script, "--allow", "Bash", "go")...)
	do(exitCompleted, run("--session", "json", "--json", "--model", "scripted/"+script, "--allow", "Bash", "go")...)
	do(exitCompleted, run("--session", "bare", "--no-sandbox", "--model", "scripted/"+plain, "--allow", "Bash", "go")...)
	for _, m := range []string{"anthropic/a", "openai/a", "openai-responses/a", "gemini/a", "bedrock/anthropic.a", "azure/a", "azure-responses/a"} {
		for status, at := range map[string]string{"401": refuses, "400": breaks} {
			name := strings.ReplaceAll(m, "/", "-") + status
			do(exitFailed, run("--session", name, "--json", "--model", m, "--base-url", at, "go")...)
			do(-1, run("--session", name+"t", "--model", m, "--base-url", at, "go")...)
		}
	}
	do(-1, run("--session", "req", "--model", "scripted/"+script, "--mcp", "again="+refuses+"/mcp?api_key="+c.plant("an address of --mcp"), "go")...)
	do(-1, "mcp", "list", "--trust", "--dir", w.dir)
	do(-1, "mcp", "list", "--json", "--trust", "--dir", w.dir)
	do(-1, "mcp", "login", "--no-browser", "--trust", "--dir", w.dir, "wiki")
	do(-1, "doctor", "--dir", w.dir)
	do(-1, "doctor", "--json", "--dir", w.dir)
	do(-1, "models")
	do(-1, "permissions", "--dir", w.dir)
	do(-1, "trust", "--list", "--dir", w.dir)
	for _, s := range []string{"ok", "openai-a401", "bare"} {
		do(exitCompleted, "sessions", "show", s, "--journal", w.journal)
		do(exitCompleted, "sessions", "export", s, "--journal", w.journal)
	}
	do(exitCompleted, "sessions", "list", "--journal", w.journal)
	do(-1, "replay", "ok", "--journal", w.journal, "--model", "scripted/"+script)

	// Journals whose addresses have a password: those that answer, and those that don't.
	for _, dsn := range []string{"postgres://user:" + c.plant("a journal's address") + "@127.0.0.1:1/db?connect_timeout=2", "postgres://user:" + c.all["a journal's address"] + "@127.0.0.1:x/db", "postgres://user:" + c.all["a journal's address"] + "@127.0.0.1:1/db?sslmode=nonsense", "host=127.0.0.1 password=" + c.all["a journal's address"]} {
		do(exitUsage, "run", "--trust", "--dir", w.dir, "--model", "scripted/"+script, "--journal", dsn, "go")
		do(exitUsage, "sessions", "list", "--journal", dsn)
	}

	// A server: wrong tokens, runs, clients of A2A with credentials for what is to be told to them.
	s := serves(t, pawl, env, append([]string{"--model", "scripted/" + script, "--allow", "Bash", "--push-host", "127.0.0.1"}, base...)...)
	ask := func(method, path, body string, header ...string) int {
		t.Helper()
		res := s.open(method, path, body, header...)
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		c.look(method+" "+path, append(b, fmt.Sprint(res.Header)...))
		return res.StatusCode
	}
	bearer := []string{"Authorization", "Bearer " + token}
	wrong := c.plant("a wrong token")
	for _, path := range []string{"/v1/runs", "/v1/sessions", "/", "/a2a", "/nowhere", "/v1/chat/completions", "/agui"} {
		if code := ask("POST", path, `{}`, "Authorization", "Bearer "+wrong); code < 400 {
			t.Errorf("%s: %d", path, code)
		}
		ask("GET", path, "", bearer...)
	}
	if code := ask("POST", "/v1/runs", `{"prompt":"Do it.","session":"served"}`, bearer...); code != 202 {
		t.Fatalf("a run: %d", code)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		res := s.open("GET", "/v1/sessions/served", "", bearer...)
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if c.look("GET /v1/sessions/served", b); bytes.Contains(b, []byte(`"completed"`)) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run of the server is not done: %s", b)
		}
	}
	push := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"go"}]},"configuration":{"returnImmediately":false,"taskPushNotificationConfig":{"url":"` + refuses + `/hook","token":"` + c.plant("a push token") + `","authentication":{"scheme":"Bearer","credentials":"` + c.plant("push credentials") + `"}}}}}`
	if code := ask("POST", "/a2a", push, append(bearer, "A2A-Version", "1.0")...); code != 200 {
		t.Errorf("%d", code)
	}
	_ = s.cmd.Process.Signal(os.Interrupt)
	_ = s.cmd.Wait()
	c.look("the server's log", s.err.Bytes())

	if !pgtest.Absent() { // the rows of a server that was reached with a password
		bare := pgtest.DSN(t)
		words := url.Values{}
		for word := range strings.FieldsSeq(bare) {
			name, value, _ := strings.Cut(word, "=")
			words.Set(name, value)
		}
		dsn := "postgres:///?password=" + c.plant("a database's password") + "&" + words.Encode()
		do(exitCompleted, "run", "--trust", "--json", "--dir", w.dir, "--model", "scripted/"+script, "--allow", "Bash", "--journal", dsn, "--session", "pg", "go")
		do(exitCompleted, "sessions", "export", "pg", "--journal", dsn)
		c.rows(bare)
	}
	c.files(w.dir, design)
	c.files(filepath.Dir(strings.TrimPrefix(w.journal, "sqlite:")), design)
	c.files(state, design)
	c.files(home, design)
	c.files(temp, design)
	c.look("what the collector got", sent())
	for _, want := range []string{"journal.db", "the server's log"} {
		if !strings.Contains(strings.Join(c.seen, "\n"), want) {
			t.Errorf("%s was not looked at", want)
		}
	}
	if len(sent()) < 1000 || !bytes.Contains(sent(), []byte("execute_tool")) {
		t.Errorf("the collector got %d bytes", len(sent()))
	}
}
