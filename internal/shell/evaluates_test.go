package shell_test

import (
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/internal/shell"
)

func TestWhatIsEvaluatedAndNoNumberIsSaid(t *testing.T) {
	for _, c := range []struct {
		script string
		want   []string
	}{
		{"i=1; echo $((i + 1)); ((i++)); [[ $i -eq 2 ]]; a[i]=1; echo ${a[i]} ${x:i}", nil},
		{"for ((i=0; i<3; i++)); do echo $((i * 2)); done", nil},
		{`x=' 12 '; y=0x1f; z=16#ff; echo $((x+y+z)) $(($(wc -l) + $(date +%s) + $# + RANDOM))`, nil},
		{"echo $((FOO))", []string{"FOO"}},
		{"x=y; echo $((x))", []string{"x"}},
		{"echo $(($1 + 1))", nil}, // a command has no parameters
		{"[[ $(cat f) -gt 1 ]]", []string{"$(cat f)"}},
		{"a['b']=1", []string{"'b'"}},
		{"x='a[1]'; echo ${!x}", []string{"${!x}"}},
		{"x=y; echo ${!x} ${!x*} ${!a[@]}", nil},
	} {
		s, err := shell.Read(c.script, shell.Options{Dir: "/"})
		if err != nil || !slices.Equal(s.Evaluates, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.script, s.Evaluates, err, c.want)
		}
	}
}

// To bash it is a letter like any other.
func TestACarriageReturnIsNoSpace(t *testing.T) {
	for _, script := range []string{"ls\r#;rm x", "ls \\\r\nrm x", "cat <<E\r\nE\necho '\nE\r\nrm x\n#'"} {
		s, err := shell.Read(script, shell.Options{Dir: "/"})
		if err != nil || len(s.Doubts) == 0 || !slices.ContainsFunc(s.Commands, func(c shell.Command) bool { return c.Name == "rm" }) {
			t.Errorf("%q: %+v, %v", script, s, err)
		}
	}
}

func TestWhatSetsAVariableUnseenIsAmongTheAssignments(t *testing.T) {
	for _, script := range []string{"echo $((P=5))", "[[ $((P=5)) ]]", "a[P=5]=1", "P=(x)", "P[0]=x", "echo $((P[x]=5))", ": {P}>f", "coproc P { ls; }", "echo ${x:P=1}"} {
		s, err := shell.Read(script, shell.Options{Dir: "/"})
		if err != nil || !slices.ContainsFunc(s.Assigns, func(a shell.Assign) bool { return a.Name == "P" }) {
			t.Errorf("%q: %+v, %v", script, s.Assigns, err)
		}
	}
}
