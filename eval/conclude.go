package eval

import (
	"fmt"
	"maps"
	"slices"
)

// concludeCase reckons a case, and says what is wrong with it.
func (r *runner) concludeCase(i int, samples []SampleReport) []Problem {
	c := r.suite.Cases[i]
	rep := &CaseReport{Name: c.Name, Tags: c.Tags, Samples: samples}
	for _, by := range r.suite.scorers(c) {
		st := Stat{Scorer: nameOf(by)}
		for _, s := range samples {
			for _, sc := range s.Scores {
				if sc.Scorer == st.Scorer {
					st.add(sc.Score)
				}
			}
		}
		st.settle(by)
		rep.Scores = append(rep.Scores, st)
	}
	for _, s := range samples {
		if len(s.Errors) > 0 {
			rep.errors++
		}
	}
	problems := r.compare(rep, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cases[i] = rep
	return problems
}

// compare looks for what of a case makes the test fail. Errors count over all cases, unless none are allowed.
func (r *runner) compare(rep *CaseReport, c Case) (all []Problem) {
	tell := func(kind Kind, scorer, format string, args ...any) {
		all = append(all, Problem{kind, rep.Name, scorer, fmt.Sprintf(format, args...)})
	}
	if rep.errors > 0 {
		kind := KindError
		if r.suite.MaxErrors > 0 {
			kind = KindNote
		}
		tell(kind, "", "of %d of %d samples not all could be said: %s", rep.errors, len(rep.Samples), clip(rep.firstError(), 500))
	}
	base, known := r.known(c)
	if r.suite.Update {
		for i := range rep.Scores {
			st := &rep.Scores[i]
			if was, ok := base.Scores[st.Scorer]; ok && st.Passed*was.Of < was.Passed*st.Of {
				st.Was = &was
				tell(KindNote, st.Scorer, "%s: the baseline is written with %s, where it had %d/%d", st.Scorer, st.counts(), was.Passed, was.Of)
			}
		}
		return all
	}
	if r.base != nil && !known {
		why := "is not in the baseline"
		if _, there := r.base.Cases[rep.Name]; there {
			why = "has other words than in the baseline"
		}
		tell(KindNote, "", "the case %s, so that it is judged without: write the baseline anew with %s=1", why, UpdateEnv)
	}
	_, level := levels(1, r.pairs)
	for i := range rep.Scores {
		st := &rep.Scores[i]
		was, compared := base.Scores[st.Scorer]
		if compared {
			ch := change{st.Passed, st.Of, was.Passed, was.Of}
			p := chance([]change{ch})
			st.Was, st.Chance, st.changes = &was, &p, []change{ch}
		}
		if least, asked := r.passRate(compared); asked && st.Of > 0 && st.Rate.Value < least-1e-9 {
			tell(KindLow, st.Scorer, "%s: %s passed (%s, 95 %% interval %s), at least %s is asked for: %s", st.Scorer, st.counts(), percent(st.Rate.Value), st.Rate.span(), percent(least), clip(st.why, 500))
		}
		switch {
		case !compared:
		case st.Of == 0 && was.Of > 0 && rep.errors == 0:
			tell(KindBaseline, st.Scorer, "%s: nothing was scored, and the baseline has %d/%d: correct the case, or write the baseline anew with %s=1", st.Scorer, was.Passed, was.Of, UpdateEnv)
		case r.suite.Strict && st.Of > 0 && st.Passed*was.Of < was.Passed*st.Of:
			tell(KindRegression, st.Scorer, "%s: %s passed, and the baseline has %d/%d: %s", st.Scorer, st.counts(), was.Passed, was.Of, clip(st.why, 500))
		case !r.suite.Strict && *st.Chance <= level:
			tell(KindRegression, st.Scorer, "%s: %s passed, and the baseline has %d/%d; by chance it would be so few with a probability of %s: %s", st.Scorer, st.counts(), was.Passed, was.Of, percent(*st.Chance), clip(st.why, 500))
		}
	}
	for _, scorer := range slices.Sorted(maps.Keys(base.Scores)) {
		if !slices.ContainsFunc(rep.Scores, func(s Stat) bool { return s.Scorer == scorer }) {
			tell(KindBaseline, scorer, "the baseline has scores of %q, which scores the case no more: put it back, or write the baseline anew with %s=1", scorer, UpdateEnv)
		}
	}
	return all
}

// known is what the baseline has of a case, if its words are the same.
func (r *runner) known(c Case) (BaselineCase, bool) {
	if r.base == nil {
		return BaselineCase{}, false
	}
	was, ok := r.base.Cases[c.Name]
	if hash, err := c.hash(); !ok || err != nil || hash != was.Hash {
		return BaselineCase{}, false
	}
	return was, true
}

// passRate is what share of repeats a scorer has to pass, if any is asked for.
func (r *runner) passRate(compared bool) (float64, bool) {
	switch p := r.suite.PassRate; {
	case p < 0:
		return 0, false
	case p == 0:
		return 1, !compared
	default:
		return p, true
	}
}

// compared counts the scorers, and the pairs of a case and a scorer, that can be compared with the baseline. It goes by the suite, so that a case is judged alike whether it is run alone or with the others.
func (r *runner) compared() (scorers, pairs int) {
	names := map[string]bool{}
	for _, c := range r.suite.Cases {
		was, _ := r.known(c)
		for _, by := range r.suite.scorers(c) {
			if _, ok := was.Scores[nameOf(by)]; ok {
				names[nameOf(by)] = true
				pairs++
			}
		}
	}
	return len(names), pairs
}

// conclude reckons all cases together, writes what is to be written, and says what is wrong.
func (r *runner) conclude() (*Report, error) {
	rep := &Report{Version: Version, Suite: r.suite.Name, Repeats: r.suite.Repeats, Scores: []Stat{}, Cases: []CaseReport{}, Cost: new(int64)}
	for i, c := range r.cases {
		if c == nil {
			continue
		}
		rep.Cases = append(rep.Cases, *c)
		rep.Errors += c.errors
		rep.Samples += len(c.Samples)
		for _, s := range c.Samples {
			rep.Usage = rep.Usage.Add(s.Usage)
			if s.Cost == nil || rep.Cost == nil {
				rep.Cost = nil
			} else {
				*rep.Cost += *s.Cost
			}
		}
		rep.Problems = append(rep.Problems, r.compare(&rep.Cases[len(rep.Cases)-1], r.suite.Cases[i])...)
	}
	r.together(rep)
	if len(rep.Cases) == 0 { // a pattern of -run left all of them out
		return rep, nil
	}
	r.judge(rep)
	var err error
	if r.suite.Update {
		err = r.update(rep)
	}
	if err == nil && r.suite.ReportDir != "" {
		err = rep.Write(r.suite.ReportDir)
	}
	return rep, err
}

// together adds up what scorers said of the cases.
func (r *runner) together(rep *Report) {
	at := map[string]int{}
	by := map[string]Scorer{}
	for _, c := range r.suite.Cases {
		for _, s := range r.suite.scorers(c) {
			by[nameOf(s)] = s
		}
	}
	for _, c := range rep.Cases {
		for _, st := range c.Scores {
			i, ok := at[st.Scorer]
			if !ok {
				i = len(rep.Scores)
				at[st.Scorer] = i
				rep.Scores = append(rep.Scores, Stat{Scorer: st.Scorer})
			}
			sum := &rep.Scores[i]
			sum.Passed, sum.Of, sum.Skipped, sum.sum = sum.Passed+st.Passed, sum.Of+st.Of, sum.Skipped+st.Skipped, sum.sum+st.sum
			sum.changes = append(sum.changes, st.changes...)
			if w := st.Was; w != nil {
				if sum.Was == nil {
					sum.Was = &Tally{}
				}
				sum.Was.Mean = (sum.Was.Mean*float64(sum.Was.Of) + w.Mean*float64(w.Of)) / float64(max(1, sum.Was.Of+w.Of))
				sum.Was.Passed, sum.Was.Of = sum.Was.Passed+w.Passed, sum.Was.Of+w.Of
			}
		}
	}
	for i := range rep.Scores {
		st := &rep.Scores[i]
		st.settle(by[st.Scorer])
		if st.Was != nil {
			p := chance(st.changes)
			st.Chance = &p
		}
	}
}

// judge looks for what of all cases together makes the test fail.
func (r *runner) judge(rep *Report) {
	tell := func(kind Kind, scorer, format string, args ...any) {
		rep.Problems = append(rep.Problems, Problem{Kind: kind, Scorer: scorer, Text: fmt.Sprintf(format, args...)})
	}
	if most := r.suite.MaxErrors; most > 0 && float64(rep.Errors) > most*float64(rep.Samples) {
		tell(KindError, "", "of %d of %d samples not all could be said, at most %s is allowed", rep.Errors, rep.Samples, percent(most))
	}
	if r.suite.Update || r.base == nil {
		return
	}
	level, _ := levels(r.scorers, 1)
	for _, st := range rep.Scores {
		if st.Chance != nil && !r.suite.Strict && *st.Chance <= level {
			passed, of := 0, 0 // of the cases that the baseline has
			for _, c := range st.changes {
				passed, of = passed+c.passed, of+c.of
			}
			tell(KindRegression, st.Scorer, "%s: over all cases of the baseline %d/%d passed, and it has %d/%d; by chance it would be so few with a probability of %s", st.Scorer, passed, of, st.Was.Passed, st.Was.Of, percent(*st.Chance))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.base.Cases)) {
		if !slices.ContainsFunc(r.suite.Cases, func(c Case) bool { return c.Name == name }) {
			tell(KindBaseline, "", "the baseline has the case %q, and the suite has it no more: put it back, or write the baseline anew with %s=1", name, UpdateEnv)
		}
	}
}

// update writes the baseline: what was run without an error, and what the file has of the rest that the suite still has.
func (r *runner) update(rep *Report) error {
	next := &Baseline{Version: Version, Suite: r.suite.Name, Cases: map[string]BaselineCase{}}
	for i, c := range r.suite.Cases {
		if r.base != nil {
			if was, ok := r.base.Cases[c.Name]; ok {
				next.Cases[c.Name] = was
			}
		}
		if ran := r.cases[i]; ran == nil || ran.errors > 0 {
			continue
		}
		hash, err := c.hash()
		if err != nil {
			return err
		}
		now := BaselineCase{Hash: hash, Scores: map[string]Tally{}}
		for _, st := range r.cases[i].Scores {
			if st.Of > 0 {
				now.Scores[st.Scorer] = st.tally()
			}
		}
		next.Cases[c.Name] = now
	}
	if err := next.write(r.suite.Baseline); err != nil {
		return err
	}
	rep.Updated = true
	return nil
}
