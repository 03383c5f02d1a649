package cassette

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
)

// version is that of the file's format. What it means is in the package's documentation.
const version = 1

// The kinds of files.
const (
	ofModel = "model"
	ofHTTP  = "http"
)

// head is a file's first document.
type head struct {
	Cassette int             `json:"cassette"` // the version
	Kind     string          `json:"kind"`
	Model    json.RawMessage `json:"model,omitempty"` // its capabilities
}

// tape is a file that is written, document by document.
type tape struct {
	name string

	mu    sync.Mutex
	f     *os.File
	begun int
	open  map[int]bool // the exchanges that are not over
	err   error        // the first one; nothing is written behind it
}

// create makes a file. One that is there stays as it is.
func create(name string, h head) (*tape, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the caller names the file
	if errors.Is(err, fs.ErrExist) {
		return nil, errdefs.Conflict.Errorf("cassette: record: %s is there already: remove it to record it anew", name)
	}
	if err != nil {
		return nil, errdefs.NotAvailable.Errorf("cassette: record: %w", err)
	}
	t := &tape{name: name, f: f, open: map[int]bool{}}
	t.write(mustJSON(h))
	if t.err != nil {
		return nil, errors.Join(t.err, f.Close())
	}
	return t, nil
}

// begin gives an exchange its number. Where nothing can be recorded any more none begins: it may cost money, and for nothing.
func (t *tape) begin() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return 0, t.err
	}
	t.begun++
	t.open[t.begun] = true
	return t.begun, nil
}

// end writes an exchange, made by doc under the lock, or notes why it can't be.
func (t *tape) end(number int, doc func() []byte, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, number)
	if err != nil {
		t.fail(err)
	} else {
		t.write(doc())
	}
	return t.err
}

// write appends a document, in one go. t.mu is held, or nobody else has t yet.
func (t *tape) write(raw []byte) {
	if t.err != nil {
		return
	}
	if _, err := t.f.Write(append(appendReadable(nil, raw, 0), '\n')); err != nil {
		t.fail(errdefs.NotAvailable.Errorf("cassette: record: %w", err))
	}
}

func (t *tape) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *tape) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) > 0 {
		t.fail(errdefs.Conflict.Errorf("cassette: record: %s was closed before exchange %s was over: wait for all calls, and close the bodies of all answers", t.name, listed(slices.Sorted(maps.Keys(t.open)))))
		clear(t.open)
	}
	if err := t.f.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		t.fail(errdefs.NotAvailable.Errorf("cassette: record: %w", err))
	}
	err := t.err
	t.fail(errdefs.Conflict.Errorf("cassette: record: %s is closed", t.name))
	return err
}

// document is one exchange of a file, compact.
type document struct {
	number int
	line   int // where it begins
	raw    []byte
}

// read gives a file's head and its exchanges, in the order of the file.
func read(name, kind string) (h head, docs []document, err error) {
	data, err := os.ReadFile(name) //nolint:gosec // the caller names the file
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil, errdefs.NotFound.Errorf("cassette: open: %w", err)
	}
	if err != nil {
		return h, nil, errdefs.Validation.Errorf("cassette: open: %w", err)
	}
	if h, docs, err = parse(data, kind); err != nil {
		err = errdefs.Validation.Errorf("cassette: open: %s: %w", name, err)
	}
	return h, docs, err
}

func parse(data []byte, kind string) (h head, docs []document, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	for n := 0; ; n++ {
		at := int(d.InputOffset())
		line := 1 + bytes.Count(data[:at], []byte{'\n'}) + bytes.Count(data[at:len(data)-len(bytes.TrimLeft(data[at:], " \t\r\n"))], []byte{'\n'})
		if len(bytes.TrimSpace(data[at:])) == 0 {
			if n == 0 {
				err = errors.New("it is empty")
			}
			return h, docs, err
		}
		var raw json.RawMessage
		if err = d.Decode(&raw); err != nil {
			return h, nil, inLine(line, errdefs.Validation.Errorf("not JSON, or cut off: %w", err))
		}
		plain, err := appendPlain(nil, raw)
		switch {
		case err != nil:
		case n == 0:
			h, err = parseHead(plain, kind)
		default:
			var number int
			if number, err = strconv.Atoi(string(wire.Get(plain, "exchange"))); err == nil && number < 1 {
				err = errors.New("exchanges are counted from 1")
			}
			if err != nil {
				err = errdefs.Validation.Errorf("no exchange: its number: %w", err)
			}
			if slices.ContainsFunc(docs, func(d document) bool { return d.number == number }) {
				err = errdefs.Validation.Errorf("exchange %d is there twice", number)
			}
			docs = append(docs, document{number, line, plain})
		}
		if err != nil {
			return h, nil, inLine(line, err)
		}
	}
}

func parseHead(raw []byte, kind string) (h head, err error) {
	if err := json.Unmarshal(raw, &h); err != nil || h.Cassette == 0 {
		return h, errdefs.Validation.Errorf(`no cassette: it has to begin with {"cassette": %d, "kind": %q}`, version, kind)
	}
	if h.Cassette != version {
		return h, errdefs.Validation.Errorf("its version is %d: this one reads %d", h.Cassette, version)
	}
	if h.Kind != kind {
		return h, errdefs.Validation.Errorf("it is a cassette of kind %q, not %q: Open is for models, OpenHTTP for HTTP clients", h.Kind, kind)
	}
	return h, nil
}

func inLine(line int, err error) error {
	return errdefs.Validation.Errorf("the document in line %d: %w", line, err)
}

// decode reads a document into v; a member that v does not have is an error, for it would have no effect.
func decode(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// mustJSON is compact JSON of what can't fail; raw messages keep their bytes.
func mustJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // our own structs, of strings, numbers and JSON
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// reel is a file that is played: which exchange is next, and what went wrong.
type reel struct {
	name  string
	any   bool   // in any order
	takes []take // by number
	mu    sync.Mutex
	done  []bool
	err   error // the first request that was none of the recorded ones
}

// take is an exchange that can be compared with a request.
type take interface {
	number() int
	// compare looks for the first difference to a request; same is how far they agree, in bytes or so.
	compare(asked any) (d difference, same int)
}

func newReel(name string, anyOrder bool, takes []take) *reel {
	slices.SortFunc(takes, func(a, b take) int { return cmp.Compare(a.number(), b.number()) })
	return &reel{name: name, any: anyOrder, takes: takes, done: make([]bool, len(takes))}
}

// next takes the exchange that a request gets. One that differs uses nothing up.
func (r *reel) next(asked any) (take, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var nearest difference
	which, most := -1, -1
	for i, t := range r.takes {
		if r.done[i] {
			continue
		}
		d, same := t.compare(asked)
		if d.none() {
			r.done[i] = true
			return t, nil
		}
		if same > most {
			nearest, which, most = d, i, same
		}
		if !r.any {
			break
		}
	}
	err := errdefs.Validation.Errorf("cassette: replay: %s: all of its %d exchanges were played: record it anew if the program has to ask more", r.name, len(r.takes))
	switch {
	case which >= 0 && r.any:
		err = errdefs.Validation.Errorf("cassette: replay: %s: no exchange that is left has this request; the nearest, exchange %d, differs at %v", r.name, r.takes[which].number(), nearest)
	case which >= 0:
		err = errdefs.Validation.Errorf("cassette: replay: %s: the request differs from that of exchange %d at %v", r.name, r.takes[which].number(), nearest)
	}
	if r.err == nil {
		r.err = err
	}
	return nil, err
}

// end gives what [Player.Done] does.
func (r *reel) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []int
	for i, t := range r.takes {
		if !r.done[i] {
			left = append(left, t.number())
		}
	}
	if len(left) == 0 {
		return r.err
	}
	return errors.Join(r.err, errdefs.Validation.Errorf("cassette: replay: %s: not played: exchange %s of %d", r.name, listed(left), len(r.takes)))
}

// listed names exchanges.
func listed(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}
