package askuser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"

	"github.com/muesli/cancelreader"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
)

// Deny reaches nobody: every question is declined, and the model goes on as it thinks best.
func Deny() Interactor { return deny{} }

type deny struct{}

func (deny) Ask(context.Context, Question) (Answer, error) {
	return Answer{Declined: true, Text: "nobody is there to answer. Go on as you think best, and say what you assumed."}, nil
}

// Journal asks through the run: whoever its host reaches answers at once, and when that is nobody the question is pending on record, and the run parks. It is
// answered with agent.Answer or pawl answer; approving it says yes, rejecting it declines.
func Journal() Interactor { return onRecord{} }

type onRecord struct{}

func (onRecord) Ask(ctx context.Context, q Question) (Answer, error) {
	in, ok := engine.InsideOf(ctx)
	if !ok || in.Run.Log == nil {
		return Answer{}, errdefs.NotAvailable.Errorf("askuser: there is no run to ask through")
	}
	var p engine.Prompt
	p.Prompt = q.String()
	reply, err := in.Ask(ctx, p)
	a := Answer{Text: reply.Text, Declined: !reply.Approved}
	if reply.Approved && a.Text == "" && q.Kind == Confirm && q.Default == "" {
		a.Text = "yes"
	}
	return a, err
}

// Terminal asks at a terminal: it writes the question to out, and reads a line from in. An answer that makes no sense is asked for again, twice. One question is
// put at a time. Reading ends with the context where in is a file that can be waited on (a terminal or a pipe); of any other reader, a line that comes too late
// answers the next question. The end of in declines.
func Terminal(in io.Reader, out io.Writer) Interactor {
	return &terminal{in: in, out: out, turn: make(chan struct{}, 1)}
}

type terminal struct {
	in   io.Reader
	out  io.Writer
	turn chan struct{}

	mu   sync.Mutex
	late chan line // of a reader that can't be stopped: what is being read
}

type line struct {
	text string
	err  error
}

func (t *terminal) Ask(ctx context.Context, q Question) (Answer, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	for tries := 0; ; tries++ {
		if _, err := fmt.Fprintf(t.out, "? %s\n> ", visible(q.String())); err != nil {
			return Answer{}, errdefs.NotAvailable.Errorf("askuser: terminal: %w", err)
		}
		text, err := t.read(ctx)
		switch {
		case errors.Is(err, io.EOF) && text == "":
			return Answer{Declined: true}, nil
		case err != nil && !errors.Is(err, io.EOF):
			return Answer{}, err
		case tries == 2 || q.understands(text):
			return Answer{Text: text}, nil
		}
		fmt.Fprintln(t.out, "Please answer the question as it is put.")
	}
}

// understands reports whether the answer is one to a question that is not open.
func (q Question) understands(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" {
		text = q.Default
	}
	switch q.Kind {
	case Confirm:
		_, ok := yes(text)
		return ok
	case Select, MultiSelect:
		_, ok := q.choose(text)
		return ok
	case Input:
	}
	return true
}

// visible keeps a model's words from acting on the terminal.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// read reads a line, until ctx ends.
func (t *terminal) read(ctx context.Context) (string, error) {
	if f, ok := t.in.(*os.File); ok {
		if r, err := cancelreader.NewReader(f); err == nil {
			defer func() { _ = r.Close() }() // of what it waits with; the file stays open
			defer context.AfterFunc(ctx, func() { r.Cancel() })()
			text, err := readLine(r)
			if errors.Is(err, cancelreader.ErrCanceled) {
				err = ctx.Err()
			}
			return text, err
		}
	}
	t.mu.Lock()
	lines := t.late
	if lines == nil {
		lines = make(chan line, 1)
		t.late = lines
		go func() { // there is no way to stop it: it waits for one line, and no longer
			text, err := readLine(t.in)
			lines <- line{text, err}
		}()
	}
	t.mu.Unlock()
	select {
	case l := <-lines:
		t.mu.Lock()
		t.late = nil
		t.mu.Unlock()
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// longest is how long a line may be, in bytes.
const longest = 64 << 10

// readLine reads up to a line break, and not a byte further: what was typed ahead is for whoever reads next.
func readLine(r io.Reader) (string, error) {
	var b strings.Builder
	one := make([]byte, 1)
	for b.Len() < longest {
		n, err := r.Read(one)
		if n == 1 {
			if one[0] == '\n' {
				break
			}
			b.WriteByte(one[0])
		}
		if err != nil {
			return strings.ToValidUTF8(b.String(), "\uFFFD"), err
		}
	}
	return strings.ToValidUTF8(strings.TrimSuffix(b.String(), "\r"), "\uFFFD"), nil
}
