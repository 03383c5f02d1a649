package sandbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/errdefs"
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

// Tools that run in this process open connections by the policy too.
func ExampleDial() {
	d := sandbox.Dial(sandbox.Policy{Network: sandbox.Network{All: true}})
	_, err := d.DialContext(context.Background(), "tcp", "169.254.169.254:80")
	fmt.Println(errors.Is(err, errdefs.PolicyDenied))
	fmt.Println(err)
	// Output:
	// true
	// sandbox: dial 169.254.169.254:80: 169.254.169.254 is the link's, or a cloud's metadata: to allow it, add the address to sandbox.network.hosts in the settings (Network.Hosts of the policy)
}
