package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model/catalog"
)

func modelsCommand(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "models [FILTER]", Short: "The catalogue of models: windows, limits, prices, what they take",
		Long: `Lists the models that pawl knows: context window and output limit in tokens, prices in US dollars per million
tokens that go in and come out, and what a model takes or does. A + behind a price: longer prompts cost more
(--json says from where on). A ? behind what it takes: nothing is known about it. An empty field is unknown,
too.

With FILTER, those whose name, or another name of theirs, has it in it, in capitals or not; also the one that
--model FILTER would be. A model that is not listed can be used all the same: only its price is not known.`,
		Example: "  pawl models\n  pawl models gemini/\n  pawl models opus --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("want one filter at most, got %d: see pawl models --help", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			filter := strings.Join(args, "")
			models := known(catalog.Default(), filter)
			if len(models) == 0 {
				return &exitError{exitFailed, errdefs.NotFound.Errorf("no model of the catalogue has %q in its name: pawl models lists all", filter)}
			}
			if asJSON {
				return modelLines(s.out, models)
			}
			return modelTable(s.out, models, time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, with all that is known")
	return cmd
}

// known gives the models that a filter finds, in the order of the catalogue.
func known(c *catalog.Catalog, filter string) (found []catalog.Model) {
	has := func(name string) bool { return strings.Contains(strings.ToLower(name), strings.ToLower(filter)) }
	meant, _ := c.Lookup(filter)
	for m := range c.All() {
		if has(m.Name) || slices.ContainsFunc(m.Aliases, has) || m.Name == meant.Name {
			found = append(found, m)
		}
	}
	return found
}

func modelTable(w io.Writer, models []catalog.Model, now time.Time) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "MODEL\tWINDOW\tOUTPUT\t$/M IN\t$/M OUT\tTAKES")
	for _, m := range models {
		in, out := "", ""
		if p := m.Price; p != nil && !m.Expired(now) {
			in, out = price(p.Input), price(p.Output)
			if len(p.Tiers) > 0 {
				in, out = in+"+", out+"+"
			}
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, count(m.Window), count(m.MaxOutput), in, out, takes(m))
	}
	return tab.Flush()
}

func price(dollars float64) string { return strconv.FormatFloat(dollars, 'f', -1, 64) }

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// takes names what a model takes or does, and with a question mark what may be.
func takes(m catalog.Model) string {
	var all []string
	for _, can := range []struct {
		name string
		is   catalog.Support
	}{{"images", m.Images}, {"documents", m.Documents}, {"reasoning", m.Reasoning}} {
		switch can.is {
		case catalog.Yes:
			all = append(all, can.name)
		case catalog.Unknown:
			all = append(all, can.name+"?")
		}
	}
	return strings.Join(all, ", ")
}

// modelLine is one line of models --json. What is unknown is null.
type modelLine struct {
	Name      string     `json:"name"`
	Aliases   []string   `json:"aliases"`
	Window    *int       `json:"window"`
	MaxOutput *int       `json:"max_output"`
	Price     *priceLine `json:"price"`
	Images    *bool      `json:"images"`
	Documents *bool      `json:"documents"`
	Reasoning *bool      `json:"reasoning"`
	Source    string     `json:"source"`
	Date      string     `json:"date"`
	Note      string     `json:"note"`
}

type priceLine struct {
	rates
	Tiers []tierLine `json:"tiers"`
	Until *string    `json:"until"`
}

type tierLine struct {
	Over int `json:"over"`
	rates
}

type rates struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
}

func modelLines(w io.Writer, models []catalog.Model) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, m := range models {
		l := modelLine{
			Name: m.Name, Aliases: append([]string{}, m.Aliases...), Window: unlessZero(m.Window), MaxOutput: unlessZero(m.MaxOutput),
			Images: support(m.Images), Documents: support(m.Documents), Reasoning: support(m.Reasoning), Source: m.Source, Date: m.Date, Note: m.Note,
		}
		if p := m.Price; p != nil {
			l.Price = &priceLine{rates: rates{&p.Input, &p.Output, p.CacheRead, p.CacheWrite}, Tiers: []tierLine{}, Until: unlessZero(m.Until)}
			for _, t := range p.Tiers {
				l.Price.Tiers = append(l.Price.Tiers, tierLine{t.Over, rates{t.Input, t.Output, t.CacheRead, t.CacheWrite}})
			}
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

func unlessZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func support(s catalog.Support) *bool {
	if s == catalog.Unknown {
		return nil
	}
	return new(s == catalog.Yes)
}
