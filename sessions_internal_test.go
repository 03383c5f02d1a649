package pawl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// weigh counts the elements of all maps and slices that can be reached from a Runtime, but for its journal, its model and the project's files: whatever is kept by session weighs there, in whichever package.
func weigh(r *Runtime) (n int) {
	seen := map[uintptr]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if v.Pointer() == reflect.ValueOf(r.opts.Journal).Pointer() { // what sessions hold leads there, too
				return
			}
			if v.IsNil() || seen[v.Pointer()] {
				return
			}
			seen[v.Pointer()] = true
			walk(v.Elem())
		case reflect.Interface:
			walk(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if name := v.Type().Field(i).Name; v.Type() == reflect.TypeFor[Options]() && (name == "Journal" || name == "Model" || name == "Host") {
					continue
				}
				walk(v.Field(i))
			}
		case reflect.Map:
			n += v.Len()
			for i := v.MapRange(); i.Next(); {
				walk(i.Key())
				walk(i.Value())
			}
		case reflect.Slice:
			if n += v.Len(); v.Type().Elem().Kind() != reflect.Uint8 {
				for i := range v.Len() {
					walk(v.Index(i))
				}
			}
		default:
		}
	}
	walk(reflect.ValueOf(r))
	return n
}

// once makes one call in each run.
type once struct{}

func (once) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	if req.Messages.Last().Role() == message.RoleTool {
		return &model.Response{Message: message.Assistant("done")}, nil
	}
	return &model.Response{Message: message.Assistant("", message.ToolCall{ID: fmt.Sprintf("c%d", req.Messages.Len()), Name: "look", Input: `{}`})}, nil
}

func (m once) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := m.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func TestWhatIsHeldOfSessionsHasABound(t *testing.T) {
	const sessions, most = 5000, 10
	grants := &permission.Grants{}
	looks := 0
	rt, err := New(t.Context(), Options{
		Model: once{}, NoProject: true, NoBuiltins: true, Journal: journal.Memory(), MaxSessions: most, Permissions: permission.Config{Grants: grants},
		Tools: []tool.Tool{tool.Func("look", "", func(context.Context, struct{}) (string, error) { looks++; return "", nil }, tool.ReadOnly)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	run := func(i int) {
		session := fmt.Sprintf("s%d", i)
		if i%5 == 0 {
			session = "" // a new one, named after its run
		}
		res, err := rt.Run(t.Context(), Request{Prompt: "go", SessionID: session})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{res.ContextID, res.ContextID + "/c1"} { // of a task, too
			if err := grants.Approve(name, hook.Grant{Rule: "Read"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 2 * most {
		run(i)
	}
	if len(rt.held) != most {
		t.Error(len(rt.held))
	}
	before := weigh(rt)
	for i := 2 * most; i < sessions; i++ {
		run(i)
	}
	if after := weigh(rt); after > before+most { // no more than at the beginning, give or take an element
		t.Errorf("after %d sessions %d elements are held, %d after %d", sessions, after, before, 2*most)
	}
	if len(rt.queues)+len(rt.inside) != 0 || looks != sessions {
		t.Error(len(rt.queues), len(rt.inside), looks)
	}
}

func TestAThousandSessionsAreHeldUnlessTheOptionsSayOtherwise(t *testing.T) {
	for most, want := range map[int]int{0: 1000, 3: 3} {
		rt, err := New(t.Context(), Options{Model: once{}, NoProject: true, NoBuiltins: true, Journal: journal.Memory(), MaxSessions: most})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want + 5 {
			if _, err := rt.Run(t.Context(), Request{Prompt: "go", SessionID: fmt.Sprintf("s%d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		if len(rt.held) != want {
			t.Errorf("with MaxSessions %d, %d sessions are held", most, len(rt.held))
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCloseDoesNotWaitForEverForWhatAToolStillUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := New(t.Context(), Options{Model: once{}, NoProject: true, NoBuiltins: true, Journal: journal.Memory(), CloseTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		rt.own(func() error { <-hold; return nil }) // as a workspace waits for the calls of its tools
		began := time.Now()
		err = rt.Close()
		if !errdefs.Timeout.Is(err) || time.Since(began) != time.Minute || !errors.Is(rt.Close(), err) {
			t.Error(err, time.Since(began))
		}
		close(hold)
	})
}
