package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/pawl-dev/pawl/bench/internal/child"
)

// Peer is a system that somebody else's library makes.
type Peer struct {
	Wire string // which it speaks: "anthropic", or "chat" for OpenAI's Chat Completions
	New  func(*Task) (System, error)
}

// Peers are the systems of a program beside which Pawl is measured, by name.
type Peers map[string]Peer

// Described is what a program says of a peer that it has.
type Described struct {
	Name string `json:"name"`
	Wire string `json:"wire"`
}

const asPeers = "peers"

// Main is such a program's main: "peers" prints which ones it has, and "run" measures one of them, as [Main] does.
func (p Peers) Main(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == asPeers:
		all := make([]Described, 0, len(p))
		for _, name := range slices.Sorted(maps.Keys(p)) {
			all = append(all, Described{name, p[name].Wire})
		}
		return json.NewEncoder(out).Encode(all)
	case len(args) > 0 && args[0] == "run":
		return Main(ctx, args[1:], p.Systems(), out)
	}
	return fmt.Errorf("want %s, or run and its flags; ./scripts/bench turns -peers runs this program", asPeers)
}

// Systems are the same without their wires.
func (p Peers) Systems() Systems {
	all := Systems{}
	for name, peer := range p {
		all[name] = peer.New
	}
	return all
}

// PeersOf asks a program which peers it has.
func PeersOf(ctx context.Context, program string) (all []Described, err error) {
	out, err := child.Run(ctx, program, asPeers)
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	return all, nil
}
