// Package blackbox tests Pawl from outside, as its users meet it.
//
// It knows the built program, its HTTP surfaces and journals, and the public packages
// through the small programs in testdata/programs. It imports no package of the module
// outside internal/testkit, so any change inside the module leaves it compiling.
//
// The contract is docs/cli.md. Each test case is a row that quotes the words it holds, and
// TestContract compares the rows with the tables of the page.
package blackbox
