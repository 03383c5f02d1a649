// Program conversation has one turn of a pack's conversation, kept in a journal.
package main

func main() {}
