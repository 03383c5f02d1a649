package sandbox_test

import (
	"fmt"

	"github.com/pawl-dev/pawl/sandbox"
)

// A policy that somebody below is given can only be narrower.
func ExamplePolicy_Within() {
	outer := sandbox.Policy{Root: "/project", Network: sandbox.Network{Hosts: []string{"*.example.com"}}}
	inner := sandbox.Policy{Root: "/project/docs", Write: []string{"/etc"}, Network: sandbox.Network{All: true}}
	p := inner.Within(outer)
	fmt.Println(p.Root, p.Write, p.Network.All, p.Network.Hosts)
	// Output: /project/docs [] false [*.example.com]
}
