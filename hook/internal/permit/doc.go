// Package permit reads permission rules and says which calls they are about. package hook/permission decides by it.
//
// A rule is compiled once, by [World.Parse]. A call is read once, by [World.Read], into what it reaches: files that it reads and writes, URLs, the
// commands of a script. Rules that refuse look at what is reached, whatever tool reaches it, and bind when any name of it matches
// ([Rule.Binds]); rules that permit have to match all of it ([Rule.Allows], [World.AllowsScript]).
package permit
