package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
)

// Option shapes a tool made by [Func].
type Option func(*funcTool)

// ReadOnly marks a tool that changes nothing.
func ReadOnly(f *funcTool) { f.def.ReadOnly = true }

// Idempotent marks a tool that honours Call.Key.
func Idempotent(f *funcTool) { f.def.Idempotent = true }

// Destructive marks a tool that may take away what was there.
func Destructive(f *funcTool) { f.def.Destructive = true }

// OpenWorld marks a tool that reaches beyond this machine.
func OpenWorld(f *funcTool) { f.def.OpenWorld = true }

// Sequential marks a tool that has to run alone.
func Sequential(f *funcTool) { f.def.Sequential = true }

// RequiresApproval marks a tool that a person has to approve, call by call.
func RequiresApproval(f *funcTool) { f.def.RequiresApproval = true }

// Deferred marks a tool that models are not shown until they have searched for it: see [Definition].
func Deferred(f *funcTool) { f.def.Deferred = true }

// WithSchema replaces the inferred schema of the input by one that says more. Func panics if it is not valid.
func WithSchema(schema json.RawMessage) Option {
	return func(f *funcTool) { f.def.Schema = schema }
}

// WithCheck refuses input that fits the schema and that the tool would never take, such as a path that it doesn't reach: once hooks have no objection, and before a person is asked. The check may look at
// the world, as little of it as it can; what it lets pass Execute checks again. It is called with the input as Execute gets it, by several calls at once. Its error, which denies the call, is for the model.
func WithCheck(check func(ctx context.Context, input json.RawMessage) error) Option {
	return func(f *funcTool) { f.vet = check }
}

// WithAliases accepts other names for members of the input, such as {"working_directory": "workdir"}. They are replaced before the
// input is checked and before any hook sees it; a member given under both names is refused.
func WithAliases(aliases map[string]string) Option {
	return func(f *funcTool) { f.aliases = aliases }
}

// Func makes a tool of a function. The JSON Schema of the input is inferred from In (a struct or a map) once, here: fields are required unless
// they are pointers or tagged omitempty, `json` gives a field's name, `jsonschema` its description, and members that In doesn't
// have are refused. Input is checked against it before fn runs. Out is shown to the model: a string as it is, a [Result] whole,
// anything else as JSON. An error of fn becomes an error result with its text; a [Result] that comes with it is handed on.
//
// Func panics when In has no schema (a channel, a function) or isn't an object: a mistake in the program, found at its start.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) Tool {
	f := &funcTool{}
	f.def.Name, f.def.Description = name, description
	for _, o := range opts {
		o(f)
	}
	if f.def.Schema == nil {
		f.def.Schema = schemaOf[In](name)
	}
	check, err := compile(f.def.Schema)
	if err != nil {
		panic(fmt.Sprintf("tool: Func %s: schema: %v", name, err))
	}
	f.check, f.names = check, namesOf(f.def.Schema, f.aliases)
	flat := exact.FlatOf(reflect.TypeFor[In]())
	f.run = func(ctx context.Context, input json.RawMessage) (Result, error) {
		in, err := decode[In](flat, input)
		if err != nil {
			return Result{}, errdefs.Validation.Errorf("tool %s: input: %w", name, err)
		}
		out, err := fn(ctx, in)
		if err != nil {
			partial, _ := any(out).(Result) // what there was before it failed
			return partial, err
		}
		if s, ok := any(&out).(*string); ok { // the usual, which show would have on the heap
			return Result{Content: *s}, nil
		}
		return show(out)
	}
	return f
}

type funcTool struct {
	def     Definition
	aliases map[string]string
	check   *checker
	names   names
	vet     func(context.Context, json.RawMessage) error // nil: the schema says all
	run     func(context.Context, json.RawMessage) (Result, error)
}

func (f *funcTool) Definition() Definition { return f.def }

// Execute checks the input itself when nobody has: a tool may be used without an engine, or by another tool, whose call it then sees.
func (f *funcTool) Execute(ctx context.Context, input json.RawMessage) (Result, error) {
	if c := FromContext(ctx); c.ID == "" || !strings.EqualFold(c.Name, f.def.Name) {
		var err error
		if input, err = f.names.canonical(input); err == nil {
			err = f.check.check(input)
		}
		if err != nil {
			return Result{}, errdefs.Validation.Errorf("tool %s: %w", f.def.Name, err)
		}
	}
	return f.run(ctx, input)
}

func show(out any) (Result, error) {
	switch out := out.(type) {
	case string:
		return Result{Content: out}, nil
	case Result:
		return out, nil
	case nil:
		return Result{}, nil
	}
	b, err := marshal(out)
	return Result{Content: string(b)}, err
}

// marshal is json.Marshal without HTML escapes: models read it, browsers don't.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decode reads an input that is valid by its schema. flat may be nil.
func decode[In any](flat *exact.Flat, input json.RawMessage) (In, error) {
	in := new(In)
	if flat != nil {
		if flat.Read(input, reflect.ValueOf(in).Elem()) {
			return *in, nil
		}
		in = new(In)
	}
	err := json.Unmarshal(input, in)
	if err == nil {
		return *in, nil
	}
	plain := exact.Integers(input, err)
	if plain == nil {
		return *in, err
	}
	in = new(In)
	err = json.Unmarshal(plain, in)
	return *in, err
}

func schemaOf[In any](name string) json.RawMessage {
	s, err := infer[In]()
	if err == nil && s.Type != "object" {
		err = fmt.Errorf("the input must be a struct or a map, so that it is a JSON object")
	}
	if err == nil {
		tighten(s)
		var b []byte
		if b, err = marshal(s); err == nil {
			return b
		}
	}
	panic(fmt.Sprintf("tool: Func %s: %v", name, err))
}
