package fence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// Tools that run in this process open connections by the policy too.
func ExampleDial() {
	d := fence.Dial(sandbox.Policy{Network: sandbox.Network{All: true}})
	_, err := d.DialContext(context.Background(), "tcp", "169.254.169.254:80")
	fmt.Println(errors.Is(err, errdefs.PolicyDenied))
	fmt.Println(err)
	// Output:
	// true
	// sandbox: dial 169.254.169.254:80: 169.254.169.254 is the link's, or a cloud's metadata: to allow it, add the address to sandbox.network.hosts in the settings (Network.Hosts of the policy)
}
