// Package agui has AG-UI 1.0 as it stands on the wire: what a front end sends to run an agent, and a run's events in the words of that protocol.
package agui

// Version is the protocol's that is spoken here.
const Version = "1.0"
