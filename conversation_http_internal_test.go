package pawl

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/sandbox"
)

func TestHandlersThatMayReachTheSameShareATransport(t *testing.T) {
	var all transports
	hosts := func(names ...string) sandbox.Network { return sandbox.Network{Hosts: names} }
	a := all.to(hosts("a", "b"))
	if all.to(hosts("b", "a", "b")) != a {
		t.Error("the order of hosts makes another one")
	}
	for _, other := range []sandbox.Network{hosts("a"), hosts("a", "b", "c"), hosts("a,b"), {All: true}, {All: true, Hosts: []string{"a", "b"}}} {
		if all.to(other) == a {
			t.Errorf("%+v has the connections of another", other)
		}
	}
	seldom := all.to(hosts("seldom"))
	for i := range 2 * maxTransports {
		all.to(hosts(fmt.Sprint(i)))
		if all.to(hosts("a", "b")) != a {
			t.Fatal("what is used is gone")
		}
	}
	if len(all.kept) != maxTransports || all.to(hosts("seldom")) == seldom {
		t.Errorf("%d are kept, want %d", len(all.kept), maxTransports)
	}
}
