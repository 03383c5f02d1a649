package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
)

const (
	patience = time.Minute // with a child
	secondly = 5           // at every so many points the resume is killed too
)

// Matrix plays each scenario as a subtest, once undisturbed and then once for each kill point;
// the package says what it checks. Only the whole suite tries every point: see [Fault.effort].
// On systems without SIGKILL it skips.
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
	e := fault.effort(slices.ContainsFunc(scenarios, func(s Scenario) bool { return s.Open != nil }))
	all := report{fault: fault}
	for _, m := range prepare(t, fault, scenarios, e) {
		t.Run(m.s.Name, func(t *testing.T) {
			err := m.inspect(t.Context())
			for _, problem := range m.report.problems {
				t.Error(problem)
			}
			if err != nil {
				t.Error(err)
			}
			t.Logf("%s: %v", m.s.Name, m.report)
			all = all.plus(m.report)
		})
	}
	t.Logf("total: %v", all)
}

// prepare plays the chosen scenarios undisturbed, and chooses the points that are tried.
func prepare(t *testing.T, fault *Fault, scenarios []Scenario, e effort) []*matrix {
	t.Helper()
	dir := t.TempDir()
	cs := &children{test: pattern(t.Name()), dir: dir, env: sharedBy(t), most: 2 * fault.lanes()}
	t.Cleanup(func() {
		if err := cs.close(); err != nil {
			t.Error(err)
		}
	})
	var ms []*matrix
	resumes := &names{}
	for _, s := range e.chosen(scenarios) {
		m := &matrix{s: s, fault: fault, dir: dir, children: cs, effort: e, report: report{fault: fault}, met: &names{}}
		if e.points > 0 {
			m.met, m.kinds = resumes, true
		}
		ms = append(ms, m)
	}
	_ = each(t.Context(), len(ms), fault.lanes(), func(ctx context.Context, i int) error {
		ms[i].err = ms[i].undisturbed(ctx) // told by the scenario's subtest
		return nil
	})
	if e.points > 0 {
		points := make([][]death, len(ms))
		for i, m := range ms {
			points[i] = m.points
		}
		tried := 0
		for i, sampled := range e.sample(points) {
			ms[i].points, ms[i].first = sampled, tried
			tried += len(sampled)
		}
	}
	return ms
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
	s        *Scenario
	fault    *Fault // nil: it is killed
	dir      string
	children *children
	effort   effort
	err      error   // of the undisturbed case
	want     *past   // undisturbed
	points   []death // that are tried
	first    int     // the number of the first of them, in a sample of all scenarios
	met      *names  // points that were come to, in any life of any case so far,
	kinds    bool    // or what kinds of them were, in any scenario

	mu     sync.Mutex
	report report
}

// names is a set that is filled by several goroutines.
type names struct{ m sync.Map }

// add reports whether a name is new.
func (n *names) add(name string) bool {
	_, known := n.m.LoadOrStore(name, true)
	return !known
}

// pattern is a -test.run that runs one test and nothing else.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// undisturbed plays the scenario once without any death, and finds its points. An error means
// that the inspection itself failed.
func (m *matrix) undisturbed(ctx context.Context) (err error) {
	if m.want, err = m.play(ctx, "undisturbed", false); err != nil {
		return err
	}
	m.take("undisturbed", m.want.verdict(m.want, m))
	moved := true
	for _, l := range m.want.record {
		moved = moved || l.Own || l.Append != nil || l.Use != nil || l.Found != nil || l.Answer != nil
		if l.Point == "" {
			continue
		}
		m.meets(l.Point)
		if moved || m.effort.all || m.fault.all(m.s) {
			m.points = append(m.points, death{life: l.Life, point: l.Point, fault: m.fault != nil})
		}
		moved = false
	}
	if len(m.points) == 0 {
		return errdefs.Validation.Errorf("crashtest: %s has no points", m.s.Name)
	}
	if every := m.fault.every(); every > 1 && m.effort.points == 0 {
		kept := m.points[:0]
		for i, p := range m.points {
			if i%every == every/2 {
				kept = append(kept, p)
			}
		}
		m.points = kept
	}
	return nil
}

// inspect tries the points, until there are enough problems. An error means that the
// inspection itself failed: a point was not reached, a child broke.
func (m *matrix) inspect(ctx context.Context) error {
	if m.err != nil {
		return m.err
	}
	return each(ctx, len(m.points), m.fault.lanes(), func(ctx context.Context, i int) error {
		if m.problems() >= m.effort.problems {
			return nil
		}
		return m.kill(ctx, m.first+i, m.points[i])
	})
}

// meets notes that a point was come to, and reports whether it is a new one.
func (m *matrix) meets(point string) bool {
	if m.kinds {
		point = kindOf(point)
	}
	return m.met.add(point)
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
			if !m.meets(point) || m.problems() >= m.effort.problems {
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

// spawn has a child play one life, appends the child's record to the history, and repairs the
// store that a fault broke. It returns an error if the child failed or died unexpectedly.
func (m *matrix) spawn(ctx context.Context, pl plan, h *past) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := m.children.take(ctx, pl.Dir)
	if err != nil {
		return 0, err
	}
	code, broken, err := m.attend(c, pl, h)
	switch {
	case code != 0 && err == nil && pl.Die != "": // it did not come to the point, and might yet
		return code, c.dismiss()
	case code != 0 && err == nil:
		return code, m.children.keep(c)
	}
	if err != nil {
		_ = c.cmd.Process.Kill() // nobody reads its record any more
	}
	err = errors.Join(err, c.end())
	if broken {
		err = errors.Join(err, m.fault.mend(pl.Dir))
	}
	code, dead := c.cmd.ProcessState.ExitCode(), killed(c.cmd.ProcessState)
	switch {
	case ctx.Err() != nil && err == nil:
		return 0, fmt.Errorf("it did not end: %w: %s", context.Cause(ctx), c.out.Bytes())
	case err != nil:
		return 0, fmt.Errorf("%w: %s", err, c.out.Bytes())
	case dead && pl.Die != "" && !pl.Fault:
		return exitKilled, nil
	case dead:
		return 0, errdefs.Internal.Errorf("somebody else killed it: %s", c.out.Bytes())
	case code != exitDone && code != exitParked && code != exitFailed:
		return 0, errdefs.Internal.Errorf("it failed (%v): %s", c.cmd.ProcessState, c.out.Bytes())
	}
	return code, nil
}

// attend tells a child its plan and hears it until the life is over. The code is 0 if the
// process is, too.
func (m *matrix) attend(c *child, pl plan, h *past) (code int, broken bool, err error) {
	if err := c.plan(pl); err != nil {
		return 0, false, err
	}
	code, err = c.record.life(func(l line) error {
		h.record = append(h.record, l)
		if l.Fault == "" {
			return nil
		}
		broken = true
		return m.fault.happen(c.in)
	})
	return code, broken, err
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
