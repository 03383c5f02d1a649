package main

import (
	"testing"

	"github.com/pawl-dev/pawl/bench/internal/peertest"
)

func TestEveryPeerAnswers(t *testing.T) { peertest.Run(t, peers) }
func TestThePageHasEveryPeerAndVersion(t *testing.T) {
	peertest.Page(t, peers, "../../README.md", "go.mod")
}
func TestTheProgramSaysWhichPeersItHas(t *testing.T) { peertest.Main(t, peers) }
