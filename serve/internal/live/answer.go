package live

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
)

// waits is Conflict when a session's run waits for a person who can still answer: a prompt, which would close it, is not to throw that away unseen.
func (r *Runs) waits(ctx context.Context, session string) error {
	pending, err := agent.Pending(ctx, r.Journal(), session)
	if err != nil {
		return err
	}
	now := time.Now()
	pending = slices.DeleteFunc(pending, func(p journal.Pending) bool { return p.Expired(now) })
	if len(pending) == 0 {
		return nil
	}
	what := pending[0].ID
	if c := pending[0].Call; c != nil {
		what += " (" + c.Name + ")"
	}
	if more := len(pending) - 1; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	path := "/v1/sessions/" + url.PathEscape(session)
	return errdefs.Conflict.Errorf("serve: session %s waits for a person's answer to %s: answer it (POST %s/answers), or cancel its run (POST %s/cancel), and then say what is new", session, what, path, path)
}

// expect notes that a run may be about to go on; the function that it gives takes that back.
func (r *Runs) expect(session string) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.soon[session]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.soon[session]--; r.soon[session] == 0 {
			delete(r.soon, session)
		}
	}
}

// Answer answers what waits in a session, as [agent.Answer] does, and has the run go on here when nothing else of it waits for a person. A rule that can't be read is Validation.
func (r *Runs) Answer(ctx context.Context, session string, a journal.Answered) error {
	if a.Rule != "" {
		if err := new(permission.Grants).Approve(session, hook.Grant{Rule: a.Rule}); err != nil {
			return err
		}
	}
	done := r.expect(session)
	if err := agent.Answer(ctx, r.Journal(), session, a); err != nil {
		done()
		return err
	}
	run := r.Of(session)
	if run == nil {
		defer done()
		return r.goOn(ctx, session)
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		done()
		return nil
	}
	r.all.Add(1)
	r.mu.Unlock()
	go func() { // it may be on its way to be left, and not have seen the answer
		defer r.all.Done()
		defer done()
		<-run.done
		if err := r.goOn(context.WithoutCancel(ctx), session); err != nil {
			r.log.Warn("a run was answered, but does not go on", "session", session, "error", err)
		}
	}()
	return nil
}

// goOn resumes a run that waited for people, if none of them has still to answer.
func (r *Runs) goOn(ctx context.Context, session string) error {
	waits, err := agent.Pending(ctx, r.Journal(), session)
	if err != nil || len(waits) > 0 {
		return err
	}
	log, err := journal.Open(ctx, r.Journal(), session)
	if err != nil {
		return err
	}
	if st := log.State(); st.Run == "" || st.Status != string(agent.StatusInterrupted) {
		return nil // it is over, or somebody drives it
	}
	return r.Wake(ctx, session)
}

// Wake resumes the unfinished run of a session, unless somebody drives it, or there is none.
func (r *Runs) Wake(ctx context.Context, session string) error {
	_, err := r.Resume(context.WithoutCancel(ctx), session)
	if errdefs.Conflict.Is(err) || errdefs.NotFound.Is(err) || errdefs.NotAvailable.Is(err) {
		return nil // somebody else was faster, or the server stops: it can be resumed
	}
	return err
}
