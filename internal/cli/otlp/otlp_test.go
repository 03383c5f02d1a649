package otlp_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/cli/otlp"
	"github.com/pawl-dev/pawl/internal/traced"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// said are the warnings of an Export.
type said struct {
	mu  sync.Mutex
	all []string
}

func (s *said) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, text)
}

// environment sets what is given and nothing else.
func environment(t *testing.T, set map[string]string) {
	t.Helper()
	for _, name := range []string{"ENDPOINT", "PROTOCOL", "TRACES_ENDPOINT", "METRICS_ENDPOINT", "LOGS_ENDPOINT", "TRACES_PROTOCOL"} {
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, "")
	}
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER", "OTEL_SDK_DISABLED", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"} {
		t.Setenv(name, "")
	}
	for name, value := range set {
		t.Setenv(name, value)
	}
}

// run is a run that is traced, of one span.
func run(t engine.Tracer) {
	_, done := t.TraceRun(context.Background(), engine.Run{ID: "r", AgentID: "a", Attempt: 1})
	done(nil)
}

func TestTheEnvironmentSaysWhatIsSentAndWhere(t *testing.T) {
	var mu sync.Mutex
	got := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if got[r.URL.Path]++; r.Header.Get("X-Key") != "k" || len(b) == 0 || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s: %v", r.URL.Path, r.Header)
		}
	}))
	defer s.Close()
	for name, c := range map[string]struct {
		set  map[string]string
		want string // the paths
	}{
		"nothing":         {nil, ""},
		"both":            {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL}, "/v1/traces /v1/metrics"},
		"no metrics":      {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL, "OTEL_METRICS_EXPORTER": "none"}, "/v1/traces"},
		"only traces":     {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": s.URL + "/own", "OTEL_TRACES_EXPORTER": "otlp"}, "/own"},
		"a path":          {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL + "/under", "OTEL_METRICS_EXPORTER": "none"}, "/under/v1/traces"},
		"nothing at all":  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL, "OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none"}, ""},
		"disabled":        {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL, "OTEL_SDK_DISABLED": "true"}, ""},
		"a wrong one off": {map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, c.set)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Key=k")
			clear(got)
			var w said
			x := otlp.New("pawl", "devel", w.warn)
			tracer, err := x.Tracer()
			if err != nil {
				t.Fatal(err)
			}
			if (tracer != nil) != (c.want != "") {
				t.Fatalf("a tracer: %v", tracer)
			}
			if tracer != nil {
				run(tracer)
			}
			x.Close()
			mu.Lock()
			defer mu.Unlock()
			for _, path := range strings.Fields(c.want) {
				if got[path] != 1 {
					t.Errorf("%v: want one %s", got, path)
				}
			}
			if len(got) != len(strings.Fields(c.want)) || len(w.all) > 0 {
				t.Errorf("%v, %q", got, w.all)
			}
		})
	}
}

func TestWhatIsNotOfferedIsWrongConfiguration(t *testing.T) {
	const to = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		set  map[string]string
		want string
	}{
		"exporter": {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, `OTEL_TRACES_EXPORTER is "zipkin": want otlp or none`},
		"protocol": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": to, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, `"http/json": set OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf or grpc`},
		"no URL":   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "127.0.0.1:4318"}, `OTEL_EXPORTER_OTLP_ENDPOINT is "127.0.0.1:4318": want a URL, such as http://127.0.0.1:4318`},
		"a secret": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://u:hunter2@no host"}, `OTEL_EXPORTER_OTLP_ENDPOINT is "…": want a URL`},
		"no host":  {map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "localhost:4318"}, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"},
		"grpc":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "want a URL"},
		"content":  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": to, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "bogus"}, `CAPTURE_MESSAGE_CONTENT is "bogus": want SPAN_ONLY`},
		"of one":   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": to, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "x"}, "traces"},
	} {
		environment(t, c.set)
		tracer, err := otlp.New("pawl", "devel", func(string) {}).Tracer()
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), c.want) || tracer != nil {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Where nothing says where, a collector on this machine gets it, without TLS.
func TestTheCollectorIsOnThisMachineByDefault(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:4318")
	if err != nil {
		t.Skip("somebody listens there:", err)
	}
	got := make(chan string, 10)
	s := &httptest.Server{Listener: l, Config: &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path })}}
	s.Start()
	defer s.Close()
	environment(t, map[string]string{"OTEL_TRACES_EXPORTER": "otlp"})
	var w said
	x := otlp.New("pawl", "devel", w.warn)
	tracer, err := x.Tracer()
	if err != nil {
		t.Fatal(err)
	}
	run(tracer)
	x.Close()
	select {
	case path := <-got:
		if path != "/v1/traces" {
			t.Error(path)
		}
	default:
		t.Errorf("nothing came: %q", w.all)
	}
}

// A collector that is away, or takes what comes and does not answer, costs the end 2 s at most, and a warning.
func TestACollectorThatIsAwayHoldsNobodyUp(t *testing.T) {
	if otlp.FlushTime != 2*time.Second {
		t.Errorf("the end waits for %v", otlp.FlushTime)
	}
	var asked atomic.Int32
	stop := make(chan struct{})
	deaf := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		<-stop
	}))
	defer func() {
		close(stop)
		deaf.Close()
	}()
	for name, c := range map[string]struct{ to, protocol string }{
		"refused": {"http://127.0.0.1:1", ""}, "refused, grpc": {"http://127.0.0.1:1", "grpc"}, "deaf": {deaf.URL, ""}, "no host": {"http://nowhere.invalid:4318", ""}, "silent, grpc": {silent(t), "grpc"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.to, "OTEL_EXPORTER_OTLP_PROTOCOL": c.protocol})
			var w said
			x := otlp.New("pawl", "devel", w.warn)
			x.SetFlushTime(100 * time.Millisecond)
			tracer, err := x.Tracer()
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for range 5000 { // more than there is room for
				run(tracer)
			}
			if took := time.Since(began); took > 5*time.Second { // who waits for a collector waits for 10 s, many times
				t.Errorf("runs were held up for %v", took)
			}
			began = time.Now()
			x.Close()
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the end was held up for %v", took)
			}
			waitForExporters(t)
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.all) != 1 || !strings.HasPrefix(w.all[0], "OpenTelemetry: not all could be sent: ") {
				t.Errorf("%q", w.all)
			}
		})
	}
	if asked.Load() == 0 {
		t.Error("nobody was asked")
	}
}

// waitForExporters waits until the library's goroutines of a closed Export have ended. Their
// late warnings go to the newest Export, which may be another test's. The library offers no way
// to wait for them, so waitForExporters polls.
func waitForExporters(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		all := stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(all, []byte("go.opentelemetry.io/otel/exporters/")) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("an exporter goes on:\n%s", all)
		}
	}
}

// silent is a place where connections are taken, and nothing is said.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

func TestTheCallersTraceIsInTheEnvironment(t *testing.T) {
	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	t.Setenv("TRACESTATE", "a=1")
	if parent, state := traced.Remote(otlp.Caller(context.Background())); !strings.HasPrefix(parent, "00-0af7") || state != "a=1" {
		t.Errorf("%q, %q", parent, state)
	}
	t.Setenv("TRACEPARENT", "nonsense")
	if parent, _ := traced.Remote(otlp.Caller(context.Background())); parent != "" {
		t.Error(parent)
	}
	// Without anybody to ask, nothing happens.
	var none *otlp.Export
	if tracer, err := none.Tracer(); tracer != nil || err != nil {
		t.Error(tracer, err)
	}
	none.Close()
}
