package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

const (
	together = 4           // children at a time
	patience = time.Minute // with a child
	secondly = 5           // at every so many points the resume is killed too
	sampled  = 6           // with -short or -race: of so many points one is tried
	enough   = 50          // problems of a scenario: the rest would say the same
)

// Matrix plays each scenario as a subtest, once undisturbed and then once for each kill point; the package says what it checks.
// With -short or -race it tries a sample of the points. On systems without SIGKILL it skips.
func Matrix(t *testing.T, scenarios ...Scenario) {
	t.Helper()
	serve(scenarios)
	if !canDie {
		t.Skip("there is no SIGKILL on this system")
	}
	var all report
	child := pattern(t.Name())
	for i := range scenarios {
		s := &scenarios[i]
		t.Run(s.Name, func(t *testing.T) {
			r, err := inspect(t.Context(), child, t.TempDir(), s, testing.Short() || raced, enough)
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
	points         int // cases with a kill
	repeated, lost int
	problems       []string // in words
}

func (r report) String() string {
	return fmt.Sprintf("kill points: %d, repeated: %d, lost: %d", r.points, r.repeated, r.lost)
}

func (r report) plus(o report) report {
	return report{r.points + o.points, r.repeated + o.repeated, r.lost + o.lost, append(r.problems, o.problems...)}
}

// death is where a case is to be killed.
type death struct {
	life  int
	point string
	// likely: after a kill among effects that run side by side, not every resume has the same points left.
	likely bool
}

// matrix is one scenario under inspection.
type matrix struct {
	s    *Scenario
	dir  string
	test string // the -test.run of the children
	want *past  // undisturbed

	mu     sync.Mutex
	report report
}

// pattern is a -test.run that runs one test and nothing else.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// inspect tries the kill points of a scenario, until it has enough problems. An error means that the inspection itself failed: a point was not reached, a child broke.
func inspect(ctx context.Context, test, dir string, s *Scenario, short bool, enough int) (report, error) {
	m := &matrix{s: s, dir: dir, test: test}
	want, err := m.play(ctx, "undisturbed", false)
	if err != nil {
		return m.report, err
	}
	m.want = want
	m.take("undisturbed", want.verdict(want, s))
	var points []death
	for _, l := range want.record {
		if l.Point != "" {
			points = append(points, death{life: l.Life, point: l.Point})
		}
	}
	if len(points) == 0 {
		return m.report, errdefs.Validation.Errorf("crashtest: %s has no points", s.Name)
	}
	err = m.each(ctx, len(points), func(ctx context.Context, i int) error {
		if short && i%sampled != 0 || m.problems() >= enough {
			return nil
		}
		return m.kill(ctx, i, points[i])
	})
	return m.report, err
}

// each does n jobs, some at a time, and gives the first error.
func (m *matrix) each(ctx context.Context, n int, job func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	slots := make(chan struct{}, together)
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

// kill tries one point and, at some, another one in the life that follows.
func (m *matrix) kill(ctx context.Context, i int, at death) error {
	early := i%2 == 1 // a person may also answer while nobody is there
	name := fmt.Sprintf("%d killed %s in life %d", i, at.point, at.life)
	got, err := m.play(ctx, name, early, at)
	if err != nil {
		return err
	}
	m.take(name, m.want.verdict(got, m.s))
	next := got.points(at.life + 1)
	if i%secondly != 0 || len(next) == 0 {
		return nil
	}
	again := death{life: at.life + 1, point: next[i*7%len(next)], likely: true}
	name += fmt.Sprintf(", then %s", again.point)
	if got, err = m.play(ctx, name, early, at, again); err != nil {
		return err
	}
	m.take(name, m.want.verdict(got, m.s))
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
	kills  int
	last   *found
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

// play runs children until the session is done, and answers what they ask. early answers even if the child that asked was killed.
func (m *matrix) play(ctx context.Context, name string, early bool, deaths ...death) (*past, error) {
	dir, err := os.MkdirTemp(m.dir, "case")
	if err != nil {
		return nil, err
	}
	h := &past{}
	most := 4 + len(m.s.prompts()) + 2*len(deaths)
	if m.want != nil {
		most += m.want.lives
	}
	for done := false; !done; {
		if h.lives++; h.lives > most {
			return nil, errdefs.NoProgress.Errorf("crashtest: %s: %s: it takes more than %d processes", m.s.Name, name, most)
		}
		pl := plan{Scenario: m.s.Name, Dir: dir, Life: h.lives}
		likely := false
		if len(deaths) > 0 && deaths[0].life == h.lives {
			pl.Die, likely, deaths = deaths[0].point, deaths[0].likely, deaths[1:]
		}
		code, err := m.spawn(ctx, pl)
		switch {
		case err != nil:
			return nil, fmt.Errorf("crashtest: %s: %s: life %d: %w", m.s.Name, name, h.lives, err)
		case code == exitKilled:
			h.kills++
		case pl.Die != "" && !likely:
			return nil, errdefs.Validation.Errorf("crashtest: %s: %s: it never came to the point: is the scenario the same in every process?", m.s.Name, name)
		}
		if done = code == exitDone; code == exitParked || early && !done {
			if err := m.answer(ctx, dir); err != nil {
				return nil, fmt.Errorf("crashtest: %s: %s: answer: %w", m.s.Name, name, err)
			}
		}
	}
	if h.record, err = readRecord(dir); err != nil {
		return nil, err
	}
	if h.last, err = m.look(ctx, dir); err != nil {
		return nil, err
	}
	return h, os.RemoveAll(dir)
}

// spawn runs one life to its end. It is an error if the child broke, or died where it had not to.
func (m *matrix) spawn(ctx context.Context, pl plan) (code int, err error) {
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
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("it did not end: %w: %s", ctx.Err(), out.Bytes())
	case cmd.ProcessState == nil:
		return 0, err
	}
	code, dead := cmd.ProcessState.ExitCode(), killed(cmd.ProcessState)
	switch {
	case dead && pl.Die != "":
		return exitKilled, nil
	case dead:
		return 0, errdefs.Internal.Errorf("somebody else killed it: %s", out.Bytes())
	case code != exitDone && code != exitParked:
		return 0, errdefs.Internal.Errorf("it failed (%v): %s", cmd.ProcessState, out.Bytes())
	}
	return code, nil
}

// answer answers what is pending, from here: another process than the one that asked.
func (m *matrix) answer(ctx context.Context, dir string) error {
	store, err := m.s.open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	log, err := journal.Open(ctx, store, mainSession)
	if err != nil {
		return err
	}
	for _, q := range log.State().Pending {
		if err := log.Answer(ctx, m.s.answer(q)); err != nil {
			return err
		}
	}
	return nil
}

func (m *matrix) look(ctx context.Context, dir string) (*found, error) {
	store, err := m.s.open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	return look(ctx, m.s, store)
}
