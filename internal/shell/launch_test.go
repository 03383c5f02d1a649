package shell_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/shell"
)

func TestWordsOfAnUnknownProgramAreReadAsACommandOnlyWhenAsked(t *testing.T) {
	o := options
	o.Plain = func(name string) bool { return name == "plain" }
	for command, want := range map[string]string{
		`zz -n 5 rm -rf x`:           "zz -n 5 rm -rf x; zz > rm -rf x",
		`zz -x /bin/rm -- -rf x`:     "zz -x /bin/rm -- -rf x; zz > rm -rf x; zz > rm -- -rf x",
		`zz /usr/bin/foo a`:          "zz /usr/bin/foo a; zz > foo a",
		`zz -u sh rm x`:              "zz -u sh rm x; zz > sh rm x; zz > rm x",
		`zz --exec='rm -rf x'`:       "zz --exec=rm -rf x; zz > rm -rf x",
		`zz nohup zy rm x`:           "zz nohup zy rm x; zz > nohup zy rm x; zz > nohup > zy rm x; zz > rm x",
		`zz -m 'rm -rf x'`:           "zz -m rm -rf x",
		`zz rm`:                      "zz rm",
		`plain rm -rf x`:             "plain rm -rf x",
		`man rm -rf x`:               "man rm -rf x",
		`zz "$UNKNOWN" a; zz 'r'* x`: "zz ? a; zz r*~ x",
	} {
		s, err := shell.Read(command, o)
		if got := shown(s); err != nil || got != want {
			t.Errorf("%s\n\tgot  %s\n\twant %s\n\t%v", command, got, want, err)
		}
		if s, _ := shell.Read(command, options); strings.Contains(shown(s), ">") {
			t.Errorf("without Plain, %s guesses: %s", command, shown(s))
		}
	}
}

func TestAProgramThatStartsAnotherIsRead(t *testing.T) {
	for command, want := range map[string]string{
		`bwrap --bind / / --setenv A b --chdir x -- rm y`: "bwrap --bind / / --setenv A b --chdir x -- rm y; bwrap > rm y",
		`start-stop-daemon -S -x /bin/rm -- y`:            "start-stop-daemon -S -x /bin/rm -- y; start-stop-daemon > rm y",
		`faketime -f now rm y`:                            "faketime -f now rm y; faketime > rm y",
		`ssh-agent -s`:                                    "ssh-agent -s",
	} {
		if s, err := shell.Read(command, options); err != nil || shown(s) != want {
			t.Errorf("%s\n\tgot  %s\n\twant %s\n\t%v", command, shown(s), want, err)
		}
	}
}

func TestGuessesInGuessesAreBounded(t *testing.T) {
	o := options
	o.Plain = func(string) bool { return false }
	s, err := shell.Read(strings.Repeat("zz nohup ", 400)+"rm x", o)
	if err != nil || len(s.Commands) > 4000 {
		t.Error(len(s.Commands), err)
	}
}
