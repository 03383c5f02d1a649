// Scale says what runs on Temporal cost in the database, in Temporal and in memory, for a number of workers and of sessions, and where it breaks first.
package main

func main() {}
