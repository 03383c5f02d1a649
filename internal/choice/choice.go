// Package choice understands answers of people that have to be one of several choices.
package choice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// Tries is how often a person is asked, all in all, for an answer that is one of the choices.
const Tries = 10

// Check is errdefs.Validation unless there are two or more choices, each its own in any case, and on one line.
func Check(among []string) error {
	if len(among) < 2 {
		return errdefs.Validation.Errorf("choices: want two or more, or none")
	}
	for i, c := range among {
		same := func(other string) bool { return strings.EqualFold(strings.TrimSpace(other), strings.TrimSpace(c)) }
		if strings.TrimSpace(c) == "" || slices.ContainsFunc(among[:i], same) || strings.ContainsAny(c, "\n\r") {
			return errdefs.Validation.Errorf("choices: %q: want each its own, on one line", c)
		}
	}
	return nil
}

// Of understands a choice by itself, in any case, and by its number. Without choices every answer is one, as it stands.
func Of(among []string, said string) (string, bool) {
	if len(among) == 0 {
		return said, true
	}
	said = strings.TrimSpace(said)
	for _, c := range among {
		if strings.EqualFold(strings.TrimSpace(c), said) {
			return c, true
		}
	}
	for i, c := range among {
		if strings.TrimSuffix(said, ".") == strconv.Itoa(i+1) {
			return c, true
		}
	}
	return "", false
}

// Prompt is a question with its choices, each on a line with its number.
func Prompt(question string, among []string) string {
	var b strings.Builder
	b.WriteString(question)
	for i, c := range among {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, c)
	}
	return b.String()
}

// Again is the question after an answer that is none of them.
func Again(question string, among []string, said string) string {
	return Prompt(fmt.Sprintf("%q is none of the choices: answer by one of them, or by its number. %s", said, question), among)
}

// None is what is made of an answer that is none of them after all tries.
func None(said string) error { return errdefs.Validation.Errorf("%q is none of the choices", said) }
