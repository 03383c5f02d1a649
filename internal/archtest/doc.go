// Package archtest holds the plan of the house against the code: which package may import which, what an engine's own path may do, how
// long the loop may be. It has tests only.
package archtest
