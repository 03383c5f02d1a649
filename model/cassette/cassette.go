package cassette

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// The ways to call a model.
const (
	callComplete = "complete"
	callStream   = "stream"
)

// Option changes how a cassette is recorded or played. Give the same ones to both.
type Option func(*options)

type options struct {
	scrub  []func(string) string
	any    bool
	ignore []string
}

func optionsOf(opts []Option) (o options) {
	for _, f := range opts {
		f(&o)
	}
	return o
}

// Scrub adds rules to those that every cassette has: each is given every text on its own (what is said, names, ids, addresses, values of
// headers), in requests and replies, and gives what stands for it. It has to give the same for the same text, since a replay compares
// scrubbed requests, and is called by several goroutines at once.
func Scrub(rules ...func(text string) string) Option {
	return func(o *options) { o.scrub = append(o.scrub, rules...) }
}

// AnyOrder has a replay give each request the first exchange left that was recorded for this very request, wherever it stands, instead of
// the next one. Programs that call models side by side need it.
func AnyOrder() Option { return func(o *options) { o.any = true } }

// Recorder is a model that records the calls of another one. Make it with [Record]. Safe for concurrent use.
type Recorder struct {
	m     model.Model
	scrub *scrubber
	tape  *tape
	caps  model.Capabilities

	earlier []*recorded // guarded by tape.mu
}

// Record gives a model that passes calls to m and writes each, when it is over, to file. A file that is there already is errdefs.Conflict:
// nothing is recorded over. Call Close at the end.
func Record(m model.Model, file string, opts ...Option) (*Recorder, error) {
	o := optionsOf(opts)
	caps, says := model.CapabilitiesOf(m)
	r := &Recorder{m: m, scrub: newScrubber(o.scrub), caps: caps}
	h := head{Cassette: version, Kind: ofModel}
	if says {
		h.Model = newCapabilities(caps)
	} else {
		r.caps = everything(file)
	}
	var err error
	if r.tape, err = create(file, h); err != nil {
		return nil, err
	}
	return r, nil
}

// Capabilities gives those of the model, or everything when it says nothing of itself.
func (r *Recorder) Capabilities() model.Capabilities { return r.caps }

// Complete passes the call on. When it can't be recorded it fails, whatever the model said.
func (r *Recorder) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	a, err := newAsked(callComplete, req, r.scrub)
	if err != nil {
		return nil, err
	}
	n, err := r.tape.begin()
	if err != nil {
		return nil, err
	}
	x := &exchange{Exchange: n, Call: callComplete}
	reply, err := r.m.Complete(ctx, req)
	if wrong := r.write(ctx, x, a, reply, err); wrong != nil {
		return nil, wrong
	}
	return reply, err
}

// CompleteStream passes the call on, piece by piece. When it can't be recorded it fails behind the last one.
func (r *Recorder) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	a, err := newAsked(callStream, req, r.scrub)
	if err != nil {
		return err
	}
	n, err := r.tape.begin()
	if err != nil {
		return err
	}
	x := &exchange{Exchange: n, Call: callStream}
	var reply *model.Response
	err = r.m.CompleteStream(ctx, req, func(p model.StreamResult) error {
		if !p.Held && (!p.Final || p.Text != "" || p.Reasoning != "" || p.Input != "") { // a limit on this side is not the model's
			said := piece{Text: p.Text, Reasoning: p.Reasoning, Input: p.Input, Tool: p.Tool, Call: p.Call}
			if p.Void != nil {
				said.Void = newErrorDoc(nil, p.Void, r.scrub)
			}
			x.Stream = append(x.Stream, said)
		}
		if p.Final {
			reply = p.Response
		}
		err := cb(p)
		x.Stopped = err != nil
		return err
	})
	failed := err
	if x.Stopped {
		failed = nil // it is the handler's own, which a replay gets from its handler
	}
	if wrong := r.write(ctx, x, a, reply, failed); wrong != nil {
		return errors.Join(wrong, err)
	}
	return err
}

// write records an exchange that is over.
func (r *Recorder) write(ctx context.Context, x *exchange, a *asked, reply *model.Response, err error) error {
	if err != nil {
		x.Error = newErrorDoc(ctx.Err(), err, r.scrub)
		reply = nil
	}
	if reply == nil && err == nil && !x.Stopped {
		return r.tape.end(x.Exchange, nil, errdefs.Internal.Errorf("cassette: record: the model gave neither a reply nor an error"))
	}
	x.Response = newResponseDoc(reply, r.scrub)
	x.Stream = scrubStream(x.Stream, r.scrub)
	return r.tape.end(x.Exchange, func() []byte {
		x.Request = a.after(r.earlier)
		r.earlier = append(r.earlier, &recorded{n: x.Exchange, asked: a})
		return mustJSON(x)
	}, nil)
}

// scrubStream looks for secrets in what the pieces say together: the bounds between them fall anywhere. Where there is one, all of that text, that
// reasoning or that call's input stands in the first piece of it.
func scrubStream(pieces []piece, s *scrubber) []piece {
	said := map[lane]*strings.Builder{}
	for i := range pieces {
		for of, text := range pieces[i].lanes() {
			if said[of] == nil {
				said[of] = &strings.Builder{}
			}
			_, _ = said[of].WriteString(*text)
		}
	}
	clean := map[lane]string{}
	for of, all := range said {
		if t := s.text(all.String()); t != all.String() {
			clean[of] = t
		}
	}
	if len(clean) == 0 {
		return pieces
	}
	out := []piece{}
	for _, p := range pieces {
		empty := p == piece{}
		for of, text := range p.lanes() {
			if all, ok := clean[of]; ok {
				*text, clean[of] = all, ""
			}
		}
		if p.Input == "" {
			p.Tool, p.Call = "", 0
		}
		if empty || p != (piece{}) {
			out = append(out, p)
		}
	}
	return out
}

// lane is what the pieces of one kind make together; of inputs, those of one call.
type lane struct {
	kind string
	call int
}

// lanes yields the texts that p has.
func (p *piece) lanes() iter.Seq2[lane, *string] {
	return func(yield func(lane, *string) bool) {
		for _, l := range [...]struct {
			of   lane
			text *string
		}{{lane{"text", 0}, &p.Text}, {lane{"reasoning", 0}, &p.Reasoning}, {lane{"input", p.Call}, &p.Input}} {
			if *l.text != "" && !yield(l.of, l.text) {
				return
			}
		}
	}
}

// Close ends the recording. It says what could not be written, and which calls were not over: it waits for none. Calls after it, and after anything that
// could not be written, fail and are not passed on.
func (r *Recorder) Close() error { return r.tape.close() }

// Player is a model that says what was recorded. Make it with [Open]. Safe for concurrent use.
type Player struct {
	reel  *reel
	scrub *scrubber
	caps  model.Capabilities
}

// Open reads a file that [Record] wrote, all of it. A file that is not there is errdefs.NotFound, one that can't be understood Validation.
func Open(file string, opts ...Option) (*Player, error) {
	o := optionsOf(opts)
	h, docs, err := read(file, ofModel)
	if err != nil {
		return nil, err
	}
	p := &Player{scrub: newScrubber(o.scrub), caps: everything(file)}
	if h.Model != nil {
		if p.caps, err = readCapabilities(h.Model); err != nil {
			return nil, errdefs.Validation.Errorf("cassette: open: %s: model: %w", file, err)
		}
	}
	takes, err := exchanges(docs)
	if err != nil {
		return nil, errdefs.Validation.Errorf("cassette: open: %s: %w", file, err)
	}
	p.reel = newReel(file, o.any, takes)
	return p, nil
}

func exchanges(docs []document) (takes []take, err error) {
	earlier := map[int]*recorded{}
	for _, d := range docs {
		r, err := readExchange(d, earlier)
		if err != nil {
			return nil, inLine(d.line, err)
		}
		earlier[d.number] = r
		takes = append(takes, r)
	}
	return takes, nil
}

// Capabilities gives those of the model that was recorded, or everything when it said nothing of itself.
func (p *Player) Capabilities() model.Capabilities { return p.caps }

// Complete gives the reply, or the error, of the exchange that is next. A request that was not recorded is errdefs.Validation.
func (p *Player) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	r, err := p.next(ctx, callComplete, req)
	if err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.response(), nil
}

// CompleteStream gives the pieces of the exchange that is next, without pauses, and then its reply or its error.
func (p *Player) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := p.next(ctx, callStream, req)
	if err != nil {
		return err
	}
	for _, piece := range r.x.Stream {
		if err := ctx.Err(); err != nil {
			return err
		}
		said := model.StreamResult{Text: piece.Text, Reasoning: piece.Reasoning, Input: piece.Input, Tool: piece.Tool, Call: piece.Call}
		if piece.Void != nil {
			said.Void, _ = piece.Void.restore() // it could be when it was read
		}
		if err := cb(said); err != nil {
			return err
		}
	}
	if r.err != nil {
		return r.err
	}
	if r.reply == nil {
		return errdefs.Validation.Errorf("cassette: replay: %s: exchange %d ends here, where its handler stopped it: record it anew if the program has to hear more", p.reel.name, r.n)
	}
	return cb(model.StreamResult{Final: true, Response: r.response()})
}

// response gives the reply, which is the caller's own.
func (r *recorded) response() *model.Response {
	reply := *r.reply
	return &reply
}

func (p *Player) next(ctx context.Context, call string, req model.Request) (*recorded, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := newAsked(call, req, p.scrub)
	if err != nil {
		return nil, err
	}
	t, err := p.reel.next(a)
	if err != nil {
		return nil, err
	}
	return t.(*recorded), nil
}

// Done says what a program owes to the file: the first request that was none of the recorded ones, and which exchanges were not played. Nil:
// it asked for all of them, and for nothing else.
func (p *Player) Done() error { return p.reel.end() }

// everything is what a model can do that says nothing of itself.
func everything(file string) model.Capabilities {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	c := model.Capabilities{Name: "cassette/" + name, Provider: "cassette"}
	for _, can := range abilities(&c) {
		*can.has = true
	}
	c.Reasoning = model.ReasoningLevels()
	c.ProviderTools = []string{model.WebSearch, model.WebFetch, model.CodeExecution}
	return c
}

type ability struct {
	name string
	has  *bool
}

func abilities(c *model.Capabilities) []ability {
	return []ability{
		{"tools", &c.Tools},
		{"images", &c.Images},
		{"documents", &c.Documents},
		{"audio", &c.Audio},
		{"schema", &c.Schema},
		{"top_k", &c.TopK},
		{"seed", &c.Seed},
		{"stop", &c.Stop},
		{"max_tokens", &c.MaxTokens},
		{"penalties", &c.Penalties},
	}
}

type capabilitiesDoc struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider"`
	Files    string   `json:"files,omitempty"`
	Can      []string `json:"can"`

	Reasoning     []model.ReasoningLevel `json:"reasoning,omitempty"`
	ProviderTools []string               `json:"provider_tools,omitempty"`
}

func newCapabilities(c model.Capabilities) []byte {
	doc := capabilitiesDoc{Name: c.Name, Provider: c.Provider, Files: c.Files, Can: []string{}, Reasoning: c.Reasoning, ProviderTools: c.ProviderTools}
	for _, can := range abilities(&c) {
		if *can.has {
			doc.Can = append(doc.Can, can.name)
		}
	}
	return mustJSON(doc)
}

func readCapabilities(raw []byte) (c model.Capabilities, err error) {
	var doc capabilitiesDoc
	if err := decode(raw, &doc); err != nil {
		return c, err
	}
	c.Name, c.Provider, c.Files, c.Reasoning, c.ProviderTools = doc.Name, doc.Provider, doc.Files, doc.Reasoning, doc.ProviderTools
	known := map[string]*bool{}
	for _, can := range abilities(&c) {
		known[can.name] = can.has
	}
	for _, name := range doc.Can {
		if known[name] == nil {
			return c, errdefs.Validation.Errorf("can: %q is nothing that this version knows", name)
		}
		*known[name] = true
	}
	return c, nil
}
