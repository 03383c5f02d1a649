// Command mutate checks the tests. It makes small mutations in the product code, one at a
// time, and reports those that no quick test notices.
//
//	mutate -n 40 -in journal,engine/...
//
// It works in four steps:
//
//   - It builds the quick tests with a counter in every block of the product packages and
//     runs them, to learn which tests reach a line. Lines that no test reaches are counted.
//   - It chooses mutations by a seed, spread over the packages in proportion to covered
//     statements.
//   - It builds every test binary that reaches one of them, once, with all mutations in it.
//     PAWL_MUTANT activates one when a process starts (mutant schemata). Without one, all
//     tests have to pass.
//   - It runs, for each mutation, the tests that reach it, until one fails.
//
// The working tree is not written to: the texts go into an overlay of the build. Programs
// that tests build with the go command are not mutated.
//
// The exit status is 0, or 1 if the share of survivors grew against -baseline, or 2 if the
// run could not be made.
//
// The existing tools were no choice. Gremlins builds a module anew for each mutation and runs
// either the tests of one package or all, takes no sample, and drops no statements. go-mutesting
// and ooze build anew, too. Here one build serves hundreds of mutations.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

type options struct {
	dir, in, seed, json, baseline, skip string
	count, atOnce                       int
	budget                              time.Duration
	list, fresh                         bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

func newOptions(args []string, log io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&o.dir, "dir", ".", "directory of the module")
	flags.StringVar(&o.in, "in", "", "only these packages, such as 'journal,engine/...'")
	flags.StringVar(&o.skip, "skip", "", "expression for the names of tests that do not run, as go test -skip")
	flags.StringVar(&o.seed, "seed", "1", "any text; the same one chooses the same mutations")
	flags.StringVar(&o.json, "json", "", "file to write the report to")
	flags.StringVar(&o.baseline, "baseline", "", "earlier report; exit with 1 if the share of survivors of a group grew")
	flags.IntVar(&o.count, "n", 200, "how many mutations")
	flags.IntVar(&o.atOnce, "p", 2, "how many test binaries run at once")
	flags.DurationVar(&o.budget, "budget", time.Minute, "for each mutation: duration of the tests that may run")
	flags.BoolVar(&o.list, "list", false, "print the chosen mutations and run nothing on them")
	flags.BoolVar(&o.fresh, "fresh", false, "run all tests to learn what they reach, also unchanged ones")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 || o.count < 1 || o.atOnce < 1 {
		return nil, fmt.Errorf("mutate: use flags only, with -n and -p of at least 1")
	}
	return o, nil
}

// run returns the exit status.
func run(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	o, err := newOptions(args, log)
	if err != nil {
		return 2, err
	}
	var baseline *report
	if o.baseline != "" {
		if baseline, err = readReport(o.baseline); err != nil {
			return 2, err
		}
	}
	rep, err := o.run(ctx, log)
	if err != nil {
		return 2, err
	}
	if o.json != "" {
		if err := rep.write(o.json); err != nil {
			return 2, err
		}
	}
	if o.list {
		rep.list(out)
		return 0, nil
	}
	rep.print(out)
	if baseline == nil {
		return 0, nil
	}
	grown := rep.compare(baseline)
	for _, line := range grown {
		fmt.Fprintln(out, "more survive than before:", line)
	}
	return min(len(grown), 1), nil
}

// run chooses mutations and, unless they are only listed, tries them.
func (o *options) run(ctx context.Context, log io.Writer) (rep *report, err error) {
	m, err := loadModule(ctx, o.dir)
	if err != nil {
		return nil, err
	}
	targets, err := m.selected(o.in, m.product())
	if err != nil {
		return nil, err
	}
	r, err := newRunner(ctx, m, o, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := r.close(); err == nil {
			err = closeErr
		}
	}()
	check, err := newChecker(m)
	if err != nil {
		return nil, err
	}
	packages, reached, err := o.measure(ctx, r, check, targets)
	if err != nil {
		return nil, err
	}
	rep = &report{Seed: o.seed}
	mutants := o.choose(check, packages, reached, rep)
	if !o.list && len(mutants) > 0 {
		rep.LeftOut, err = o.try(ctx, r, mutants)
	}
	for _, mu := range mutants {
		rep.Mutants = append(rep.Mutants, newMutantReport(m, mu))
		for i := range rep.Packages {
			if rep.Packages[i].Package == mu.pkg.name {
				rep.Packages[i].count(mu.Result)
			}
		}
	}
	return rep, err
}

// selected returns the packages of a list that the patterns of -in select. Empty patterns
// select all.
func (m *module) selected(patterns string, paths []string) ([]string, error) {
	if patterns == "" {
		return paths, nil
	}
	used := map[string]bool{}
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern = strings.TrimPrefix(strings.TrimSpace(pattern), "./")
		below, recursive := strings.CutSuffix(pattern, "/...")
		found := false
		for _, path := range paths {
			name := m.name(path)
			if name == pattern || recursive && (name == below || strings.HasPrefix(name, below+"/")) {
				used[path], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("mutate: -in %s: no package to choose has this path", pattern)
		}
	}
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !used[path] }), nil
}

// measure learns which tests reach which blocks of the targets.
func (o *options) measure(ctx context.Context, r *runner, check *checker, targets []string) ([]*candidates, reach, error) {
	var sources []*source
	texts := map[string]string{}
	for _, path := range targets {
		p, err := check.load(path)
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, p)
		if blocks := findBlocks(p); blocks > 0 {
			for file, text := range measured(r.module, p, blocks) {
				texts[file] = text
			}
		}
	}
	testers := r.module.testers(targets)
	r.logf("counting what the tests of %d packages reach in %d packages", len(testers), len(targets))
	reached, err := r.measure(ctx, testers, texts)
	if err != nil {
		return nil, nil, err
	}
	var packages []*candidates
	for _, p := range sources {
		packages = append(packages, divide(p, reached))
	}
	return packages, reached, nil
}

// choose picks the mutations and begins the report.
func (o *options) choose(check *checker, packages []*candidates, reached reach, rep *report) []*mutant {
	var mutants []*mutant
	for i, count := range shares(o.count, packages) {
		c := packages[i]
		chosen, invalid := check.choose(c, count, o.seed)
		for _, mu := range chosen {
			covering := reached.covers(mu.pkg.ImportPath, mu.file.blockAt(mu.cover))
			mutants = append(mutants, &mutant{mutation: mu, Number: len(mutants) + 1, covering: covering})
		}
		rep.Packages = append(rep.Packages, packageReport{
			Package: c.pkg.name, Statements: c.statements, CoveredStatements: c.coveredStatements,
			NotCovered: c.uncovered, Invalid: invalid,
		})
	}
	return mutants
}

// try builds the tests with all mutations in them and runs them for each one. It returns the
// tests that it left out.
func (o *options) try(ctx context.Context, r *runner, mutants []*mutant) ([]string, error) {
	numbers := map[*mutation]int{}
	files := map[*file][]*mutation{}
	needed := map[string]bool{}
	for _, mu := range mutants {
		numbers[mu.mutation] = mu.Number
		files[mu.file] = append(files[mu.file], mu.mutation)
		for _, p := range mu.covering {
			needed[p] = true
		}
	}
	texts := map[string]string{}
	for f, list := range files {
		texts[f.path] = mutated(r.module, f, list, func(mu *mutation) int { return numbers[mu] })
	}
	var testers []string
	for _, p := range r.module.testers(r.module.product()) {
		if needed[p] {
			testers = append(testers, p)
		}
	}
	r.logf("building the tests of %d packages with %d mutations", len(testers), len(mutants))
	binaries, err := r.build(ctx, "mutated", testers, texts)
	if err != nil {
		return nil, err
	}
	r.logf("running them without an active mutation")
	leftOut, err := r.checkUnmutated(ctx, binaries)
	if err != nil {
		return nil, err
	}
	return leftOut, r.judge(ctx, mutants, binaries, o.budget)
}
