package catalog

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// columns is the header of a file.
var columns = [...]string{
	"name", "aliases", "window", "max_output", "input", "output", "cache_read", "cache_write", "tiers",
	"images", "documents", "reasoning", "source", "date", "until", "note",
}

// Parse reads a file of models: fields separated by tabs, a header with the names of the columns, one row a model. Lines that are
// empty or begin with # don't count. An empty field is unknown; empty fields at the end of a row may be missing.
//
//	name         provider/id
//	aliases      further ids of that provider, separated by commas
//	window       tokens
//	max_output   tokens
//	input        dollars per million tokens, to six decimals; goes with output
//	output       likewise
//	cache_read   likewise
//	cache_write  likewise
//	tiers        >200000:4/18/0.4/- ...: input, output, cache_read, cache_write of a prompt of more than 200000 tokens, - for an
//	             unknown one; >200000:? when nothing is known but that there is a tier; more tiers after a space, in rising order
//	images       y or n
//	documents    y or n
//	reasoning    y or n
//	source       text
//	date         YYYY-MM or YYYY-MM-DD
//	until        YYYY-MM-DD
//	note         text
//
// An error is of the class [errdefs.Validation] and begins with "catalog: NAME:LINE:".
func Parse(name string, data []byte) (*Catalog, error) {
	var (
		models []Model
		header bool
		taken  = make(map[string]int) // the line of each name and alias
		n      int
	)
	fail := func(err error) (*Catalog, error) {
		return nil, errdefs.Validation.Errorf("catalog: %s:%d: %w", name, n, err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		n++
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if !header {
			if want := strings.Join(columns[:], "\t"); line != want {
				return fail(fmt.Errorf("the first row has to be the header %q", want))
			}
			header = true
			continue
		}
		m, err := parseModel(line)
		if err != nil {
			return fail(err)
		}
		if err := claim(taken, m, n); err != nil {
			return fail(err)
		}
		models = append(models, m)
	}
	return newCatalog(models), nil
}

// claim notes the names of m, and fails when another line has one of them.
func claim(taken map[string]int, m Model, line int) error {
	names := []string{key(m)}
	for _, alias := range m.Aliases {
		names = append(names, aliasKey(m, alias))
	}
	for _, k := range names {
		if before, ok := taken[k]; ok {
			return fmt.Errorf("%s is already in line %d", k, before)
		}
		taken[k] = line
	}
	return nil
}

func parseModel(line string) (Model, error) {
	fields := strings.Split(line, "\t")
	if len(fields) > len(columns) {
		return Model{}, fmt.Errorf("%d fields, want %d", len(fields), len(columns))
	}
	r := row{fields: fields}
	m := Model{
		Name: r.next(), Aliases: r.aliases(), Window: r.tokens(), MaxOutput: r.tokens(), Price: r.price(),
		Images: r.support(), Documents: r.support(), Reasoning: r.support(),
		Source: r.next(), Date: r.date(time.DateOnly, "2006-01"), Until: r.date(time.DateOnly), Note: r.next(),
	}
	switch provider, id, _ := strings.Cut(m.Name, "/"); {
	case r.err != nil:
		return Model{}, r.err
	case provider == "" || id == "" || !plain(m.Name):
		return Model{}, fmt.Errorf("name: %q is not of the form provider/id", m.Name)
	case m.Window > 0 && m.MaxOutput > m.Window:
		return Model{}, fmt.Errorf("max_output: %d is more than the window, %d", m.MaxOutput, m.Window)
	}
	return m, nil
}

// row reads the fields of a line in order and keeps the first error.
type row struct {
	fields []string
	at     int
	err    error
}

func (r *row) next() string {
	r.at++
	if r.at > len(r.fields) {
		return ""
	}
	return r.fields[r.at-1]
}

func (r *row) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(columns[r.at-1]+": "+format, args...)
	}
}

func (r *row) aliases() []string {
	s := r.next()
	if s == "" {
		return nil
	}
	list := strings.Split(s, ",")
	for _, alias := range list {
		if alias == "" || !plain(alias) {
			r.fail("%q is not an id", alias)
		}
	}
	return list
}

func (r *row) tokens() int {
	s := r.next()
	if s == "" {
		return 0
	}
	n, err := count(s)
	if err != nil {
		r.fail("%w", err)
	}
	return n
}

func (r *row) support() Support {
	switch s := r.next(); s {
	case "y":
		return Yes
	case "n":
		return No
	case "":
	default:
		r.fail("%q is neither y nor n", s)
	}
	return Unknown
}

func (r *row) date(layouts ...string) string {
	s := r.next()
	for _, layout := range layouts {
		if _, err := time.Parse(layout, s); err == nil {
			return s
		}
	}
	if s != "" {
		r.fail("%q is not a date", s)
	}
	return s
}

// price reads the five columns of it.
func (r *row) price() *Price {
	input, output, read, write, tiers := r.dollars(), r.dollars(), r.dollars(), r.dollars(), r.tiers()
	if input != nil && output != nil {
		return &Price{Input: *input, Output: *output, CacheRead: read, CacheWrite: write, Tiers: tiers}
	}
	if r.err == nil && (input != nil || output != nil || read != nil || write != nil || tiers != nil) {
		r.err = errors.New("a price needs both input and output")
	}
	return nil
}

func (r *row) dollars() *float64 {
	s := r.next()
	if s == "" {
		return nil
	}
	f, err := rate(s)
	if err != nil {
		r.fail("%w", err)
	}
	return f
}

func (r *row) tiers() []Tier {
	var list []Tier
	for s := range strings.FieldsSeq(r.next()) {
		t, err := parseTier(s)
		if err == nil && len(list) > 0 && t.Over <= list[len(list)-1].Over {
			err = fmt.Errorf("%q is not over the tier before it", s)
		}
		if err != nil {
			r.fail("%w", err)
		}
		list = append(list, t)
	}
	return list
}

func parseTier(s string) (t Tier, err error) {
	over, rates, ok := strings.Cut(strings.TrimPrefix(s, ">"), ":")
	parts := strings.Split(rates, "/")
	if s[0] != '>' || !ok || rates != "?" && len(parts) != 4 {
		return t, fmt.Errorf("%q is neither >TOKENS:INPUT/OUTPUT/READ/WRITE nor >TOKENS:?", s)
	}
	if t.Over, err = count(over); err != nil || rates == "?" {
		return t, err
	}
	for i, to := range []**float64{&t.Input, &t.Output, &t.CacheRead, &t.CacheWrite} {
		if parts[i] == "-" {
			continue
		}
		if *to, err = rate(parts[i]); err != nil {
			return t, err
		}
	}
	return t, nil
}

func count(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n <= 0 || s[0] == '+' {
		return 0, fmt.Errorf("%q is not a number of tokens", s)
	}
	return int(n), nil
}

func rate(s string) (*float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789.") != "" || f > maxPrice || math.Abs(f*perDollar-math.Round(f*perDollar)) > 1e-3 {
		return nil, fmt.Errorf("%q is not a price in dollars, with at most six decimals", s)
	}
	return &f, nil
}

// plain reports whether s has only visible ASCII characters, and none that separates fields.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' })
}
