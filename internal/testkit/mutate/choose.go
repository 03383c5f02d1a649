package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strconv"
)

// candidates are the mutations of a package, divided by whether a test reaches them.
type candidates struct {
	pkg               *source
	statements        int
	coveredStatements int
	covered           []*mutation
	uncovered         int // mutations that no test reaches
}

// divide counts what tests reach of a package.
func divide(p *source, reached reach) *candidates {
	c := &candidates{pkg: p}
	hit := map[int]bool{}
	for _, packages := range reached {
		maps.Copy(hit, packages[p.ImportPath])
	}
	for _, f := range p.files {
		for _, b := range f.blocks {
			c.statements += b.statements
			if hit[b.index] {
				c.coveredStatements += b.statements
			}
		}
	}
	for _, m := range findMutations(p) {
		switch block := m.file.blockAt(m.cover); {
		case block >= 0 && hit[block]:
			c.covered = append(c.covered, m)
		case block >= 0:
			c.uncovered++
		}
	}
	return c
}

// shares divides n among packages in proportion to their covered statements, by the method
// of the largest remainder.
func shares(n int, packages []*candidates) []int {
	total := 0
	for _, c := range packages {
		total += c.coveredStatements
	}
	counts := make([]int, len(packages))
	if total == 0 {
		return counts
	}
	order := make([]int, len(packages))
	rest := n
	for i, c := range packages {
		counts[i] = n * c.coveredStatements / total
		rest -= counts[i]
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(n*packages[b].coveredStatements%total, n*packages[a].coveredStatements%total)
	})
	for _, i := range order[:rest] {
		counts[i]++
	}
	return counts
}

// choose picks count mutations of a package that compile, at most one per line. It orders
// them by a hash of the seed and of what they change, not of where they stand, so that an
// edit elsewhere in a file does not change the choice. It returns how many did not compile.
func (c *checker) choose(of *candidates, count int, seed string) ([]*mutation, int) {
	rank(of.covered, seed)
	type line struct {
		file *file
		line int
	}
	used := map[line]bool{}
	var chosen []*mutation
	broken := 0
	next := of.covered
	for len(chosen) < count && len(next) > 0 {
		var batch []*mutation
		for len(next) > 0 && len(chosen)+len(batch) < count {
			m := next[0]
			next = next[1:]
			if at := (line{m.file, m.Line}); !used[at] {
				used[at] = true
				batch = append(batch, m)
			}
		}
		valid := c.valid(of.pkg, chosen, batch)
		broken += len(batch) - len(valid)
		chosen = append(chosen, valid...)
	}
	return chosen, broken
}

// valid returns the mutations of a batch that compile together with the chosen ones. It
// tries all at once, and one by one only if that fails.
func (c *checker) valid(p *source, chosen, batch []*mutation) []*mutation {
	if c.compiles(p, slices.Concat(chosen, batch)) {
		return batch
	}
	var valid []*mutation
	for _, m := range batch {
		if c.compiles(p, slices.Concat(chosen, valid, []*mutation{m})) {
			valid = append(valid, m)
		}
	}
	return valid
}

func (c *checker) compiles(p *source, mutations []*mutation) bool {
	texts := map[*file]string{}
	for f, list := range byFile(mutations) {
		texts[f] = mutated(c.module, f, list, func(*mutation) int { return 1 })
	}
	return c.check(p, &types.Info{}, texts) == nil
}

// rank orders mutations at random, but the same for the same seed.
func rank(mutations []*mutation, seed string) {
	keys := map[*mutation]string{}
	seen := map[string]int{}
	for _, m := range mutations {
		what := fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s", m.Function, m.Kind, m.Original, m.Mutated, m.text)
		seen[what]++
		sum := sha256.Sum256([]byte(seed + "\x00" + what + "\x00" + strconv.Itoa(seen[what])))
		keys[m] = string(sum[:])
	}
	slices.SortFunc(mutations, func(a, b *mutation) int { return cmp.Compare(keys[a], keys[b]) })
}

func byFile(mutations []*mutation) map[*file][]*mutation {
	files := map[*file][]*mutation{}
	for _, m := range mutations {
		files[m.file] = append(files[m.file], m)
	}
	return files
}

// mutated returns a file with all mutations in it, each behind its number.
func mutated(m *module, f *file, mutations []*mutation, number func(*mutation) int) string {
	wraps := []wrap{importRuntime(m, f)}
	var swaps []swap
	for _, mutation := range mutations {
		w, s := mutation.schema(strconv.Itoa(number(mutation)))
		wraps, swaps = append(wraps, w...), append(swaps, s...)
	}
	return rewrite(f.text, wraps, swaps)
}
