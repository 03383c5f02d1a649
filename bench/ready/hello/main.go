// Command hello does nothing: what any program takes.
package main

func main() {}
