package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/raced"
)

const (
	together = 4           // children at a time
	patience = time.Minute // with a child
	secondly = 5           // at every so many points the resume is killed too
	sampled  = 29          // with -short or -race: of so many points one is tried,
	sparsely = 17          // and of so many where there are faults, or another store
)

// Matrix plays each scenario as a subtest, once undisturbed and then once for each kill point; the package says what it checks.
// With -short or -race it tries a sample of the points. On systems without SIGKILL it skips.
func Matrix(t *testing.T, scenarios ...Scenario) {
	t.Helper()
	try(t, nil, scenarios)
}

// Faults is [Matrix] with a store that fails in place of a process that is killed.
func Faults(t *testing.T, fault Fault, scenarios ...Scenario) {
	t.Helper()
	try(t, &fault, scenarios)
}

func try(t *testing.T, fault *Fault, scenarios []Scenario) {
	t.Helper()
	serve(fault, scenarios)
	if !canDie {
		t.Skip("there is no SIGKILL on this system")
	}
	all := report{fault: fault}
	child := pattern(t.Name())
	for i := range scenarios {
		s := &scenarios[i]
		t.Run(s.Name, func(t *testing.T) {
			r, err := inspect(t.Context(), child, t.TempDir(), fault, s, effort{short: testing.Short() || raced.Enabled, enough: 50})
			for _, problem := range r.problems {
				t.Error(problem)
			}
			if err != nil {
				t.Error(err)
			}
			t.Logf("%s: %v", s.Name, r)
			all = all.plus(r)
		})
	}
	t.Logf("total: %v", all)
}

// report is what came of a scenario.
type report struct {
	fault          *Fault
	points         int // cases with a death
	repeated, lost int
	problems       []string // in words
}

func (r report) String() string {
	what := "kill points"
	if r.fault != nil {
		what = r.fault.Name + ": fault points"
	}
	return fmt.Sprintf("%s: %d, repeated: %d, lost: %d", what, r.points, r.repeated, r.lost)
}

func (r report) plus(o report) report {
	return report{r.fault, r.points + o.points, r.repeated + o.repeated, r.lost + o.lost, append(r.problems, o.problems...)}
}

// death is where a process of a case is to be killed, or its store to fail.
type death struct {
	life  int
	point string
	fault bool
	// likely: after a death among effects that run side by side, not every process has the same points left.
	likely bool
}

// how says what happens there.
func (d death) how() string {
	if d.fault {
		return "failing"
	}
	return "killed"
}

// matrix is one scenario under inspection.
type matrix struct {
	s     *Scenario
	fault *Fault // nil: it is killed
	dir   string
	test  string // the -test.run of the children
	effort
	want *past // undisturbed

	mu     sync.Mutex
	report report
	met    map[string]bool // points that were come to, in any life of any case so far
}

// effort is how far an inspection goes.
type effort struct {
	short  bool // a sample is tried
	all    bool // all points are, also where one stands for several
	enough int  // problems of a scenario: the rest would say the same
}

// pattern is a -test.run that runs one test and nothing else.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// inspect tries the points of a scenario, until it has enough problems. An error means that the inspection itself failed: a point was not reached, a child broke.
func inspect(ctx context.Context, test, dir string, fault *Fault, s *Scenario, e effort) (report, error) {
	m := &matrix{s: s, fault: fault, dir: dir, test: test, effort: e, report: report{fault: fault}, met: map[string]bool{}}
	want, err := m.play(ctx, "undisturbed", false)
	if err != nil {
		return m.report, err
	}
	m.want = want
	m.take("undisturbed", want.verdict(want, m))
	var points []death
	moved := true
	for _, l := range want.record {
		moved = moved || l.Own || l.Append != nil || l.Use != nil || l.Found != nil || l.Answer != nil
		if l.Point == "" {
			continue
		}
		m.met[l.Point] = true
		if moved || e.all || fault.all(s) {
			points = append(points, death{life: l.Life, point: l.Point, fault: fault != nil})
		}
		moved = false
	}
	if len(points) == 0 {
		return m.report, errdefs.Validation.Errorf("crashtest: %s has no points", s.Name)
	}
	every, lanes := fault.pace(s, e.short)
	err = each(ctx, len(points), lanes, func(ctx context.Context, i int) error {
		if i%every != every/2 || m.problems() >= e.enough {
			return nil
		}
		return m.kill(ctx, i/every, points[i])
	})
	return m.report, err
}

// each does n jobs, some at a time, and gives the first error.
func each(ctx context.Context, n, lanes int, job func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	slots := make(chan struct{}, lanes)
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := job(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// kill tries a point, the i-th of those that are tried, and at some another one in the life that follows.
func (m *matrix) kill(ctx context.Context, i int, at death) error {
	early := i%2 == 1 // a person may also answer while nobody is there
	name := fmt.Sprintf("%d %s %s in life %d", i, at.how(), at.point, at.life)
	got, err := m.play(ctx, name, early, at)
	if err != nil {
		return err
	}
	m.take(name, m.want.verdict(got, m))
	if !at.fault {
		if err := m.beyond(ctx, name, early, got, at); err != nil {
			return err
		}
	}
	next := got.points(at.life + 1)
	if i%secondly != 0 || len(next) == 0 {
		return nil
	}
	again := death{life: at.life + 1, point: next[i*7%len(next)], fault: at.fault && i%2 == 0, likely: true}
	name += fmt.Sprintf(", then %s %s", again.how(), again.point)
	if got, err = m.play(ctx, name, early, at, again); err != nil {
		return err
	}
	m.take(name, m.want.verdict(got, m))
	return nil
}

// beyond tries the points that only a resume has, such as a question about a call of unknown outcome, or its second run, each once for a scenario.
// Those that only the resume of such a case has are tried too, three deaths deep.
func (m *matrix) beyond(ctx context.Context, name string, early bool, h *past, deaths ...death) error {
	for life := deaths[len(deaths)-1].life + 1; life <= h.lives && len(deaths) < 3; life++ {
		for _, point := range h.points(life) {
			if m.knows(point) || m.problems() >= m.enough {
				continue
			}
			all := append(slices.Clip(deaths), death{life: life, point: point, likely: true})
			name := fmt.Sprintf("%s, then killed %s in life %d", name, point, life)
			got, err := m.play(ctx, name, early, all...)
			if err != nil {
				return err
			}
			m.take(name, m.want.verdict(got, m))
			if err := m.beyond(ctx, name, early, got, all...); err != nil {
				return err
			}
		}
	}
	return nil
}

// knows reports whether a point was come to before, and notes it.
func (m *matrix) knows(point string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.met[point] = true }()
	return m.met[point]
}

func (m *matrix) take(name string, v verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name != "undisturbed" {
		m.report.points++
	}
	m.report.repeated += len(v.repeated)
	m.report.lost += len(v.lost)
	for _, p := range slices.Concat(v.repeated, v.lost) {
		m.report.problems = append(m.report.problems, fmt.Sprintf("%s: %s: %s", m.s.Name, name, p))
	}
}

func (m *matrix) problems() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.report.problems)
}

// past is a case that is over.
type past struct {
	record []line
	lives  int
	deaths int
	dir    string
	last   *found
	runs   map[string]int // of Scenario.Runs
}

// points are those of one life.
func (h *past) points(life int) (names []string) {
	for _, l := range h.record {
		if l.Life == life && l.Point != "" {
			names = append(names, l.Point)
		}
	}
	return names
}

// fell reports whether the store failed in a life.
func (h *past) fell(life int) bool {
	return slices.ContainsFunc(h.record, func(l line) bool { return l.Life == life && l.Fault != "" })
}

// play runs children until the session is done, and answers what they ask. early answers even if the child that asked died.
func (m *matrix) play(ctx context.Context, name string, early bool, deaths ...death) (h *past, err error) {
	dir, err := os.MkdirTemp(m.dir, "case")
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*past, error) { return nil, fmt.Errorf("crashtest: %s: %s: %w", m.s.Name, name, err) }
	if err := m.fault.before(dir); err != nil {
		return fail(err)
	}
	defer func() {
		if after := errors.Join(m.fault.after(dir), os.RemoveAll(dir)); err == nil {
			err = after
		}
	}()
	h = &past{dir: dir}
	most := 4 + len(m.s.prompts()) + 2*len(deaths)
	if m.want != nil {
		most += m.want.lives
	}
	for done := false; !done; {
		if h.lives++; h.lives > most {
			return fail(errdefs.NoProgress.Errorf("it takes more than %d processes", most))
		}
		pl := plan{Scenario: m.s.Name, Dir: dir, Life: h.lives}
		likely := false
		if len(deaths) > 0 && deaths[0].life == h.lives {
			pl.Die, pl.Fault, likely, deaths = deaths[0].point, deaths[0].fault, deaths[0].likely, deaths[1:]
		}
		code, err := m.spawn(ctx, pl, h)
		switch {
		case err != nil:
			return fail(fmt.Errorf("life %d: %w", h.lives, err))
		case code == exitKilled, h.fell(h.lives):
			if h.deaths++; m.s.Settle != nil {
				err = m.s.Settle(ctx, dir)
			}
		case pl.Die != "" && !likely:
			err = errdefs.Validation.Errorf("it never came to the point: is the scenario the same in every process?")
		}
		if done = code == exitDone; err == nil && (code == exitParked || early && !done) {
			err = m.answer(ctx, dir, h)
		}
		if err != nil {
			return fail(err)
		}
	}
	if h.last, err = m.look(ctx, dir); err != nil {
		return fail(err)
	}
	if m.s.Runs != nil {
		if h.runs, err = m.s.Runs(dir); err != nil {
			return fail(err)
		}
	}
	return h, nil
}

// spawn runs one life to its end, adds what it tells to the record, and mends what it broke. It is an error if the child broke, or died where
// it had not to.
func (m *matrix) spawn(ctx context.Context, pl plan, h *past) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	b, err := json.Marshal(pl)
	if err != nil {
		return 0, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "-test.run="+m.test) //nolint:gosec // this very program
	cmd.Env, cmd.Dir = append(os.Environ(), variable+"="+string(b)), filepath.Dir(pl.Dir)
	cmd.Stdout, cmd.Stderr = &out, &out
	err = m.attend(cmd, pl, h, cancel)
	switch {
	case ctx.Err() != nil && err == nil:
		return 0, fmt.Errorf("it did not end: %w: %s", context.Cause(ctx), out.Bytes())
	case err != nil:
		return 0, fmt.Errorf("%w: %s", err, out.Bytes())
	}
	code, dead := cmd.ProcessState.ExitCode(), killed(cmd.ProcessState)
	switch {
	case dead && pl.Die != "" && !pl.Fault:
		return exitKilled, nil
	case dead:
		return 0, errdefs.Internal.Errorf("somebody else killed it: %s", out.Bytes())
	case code != exitDone && code != exitParked && code != exitFailed:
		return 0, errdefs.Internal.Errorf("it failed (%v): %s", cmd.ProcessState, out.Bytes())
	}
	return code, nil
}

// attend starts a child and hears it to its end. How that was is in cmd.ProcessState.
func (m *matrix) attend(cmd *exec.Cmd, pl plan, h *past, end func()) error {
	hear, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = hear.Close() }()
	cmd.ExtraFiles = []*os.File{tell}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err = errors.Join(err, tell.Close()); err != nil {
		return err
	}
	broken := false
	err = readRecord(hear, func(l line) error {
		h.record = append(h.record, l)
		if l.Fault == "" {
			return nil
		}
		broken = true
		return m.fault.happen(in)
	})
	if err != nil {
		end() // it would tell on, to nobody
	}
	_ = cmd.Wait() // its error is in the state
	if broken {
		err = errors.Join(err, m.fault.mend(pl.Dir))
	}
	return err
}

// answer answers what is pending, from here: another process than the one that asked.
func (m *matrix) answer(ctx context.Context, dir string, h *past) error {
	store, err := m.fault.opener(m.s)(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	pending, err := agent.Pending(ctx, store, mainSession)
	if err != nil {
		return err
	}
	for _, q := range pending {
		a := m.s.answer(q)
		if err := agent.Answer(ctx, store, mainSession, a); err != nil {
			return err
		}
		h.record = append(h.record, line{Life: h.lives, Answer: &answer{q.Asked, a}})
	}
	return nil
}

func (m *matrix) look(ctx context.Context, dir string) (*found, error) {
	store, err := m.fault.opener(m.s)(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	return look(ctx, m.s, store)
}
