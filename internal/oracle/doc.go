// Package oracle holds Pawl's own clients against the SDKs of the vendors. It is a module of its own, so that these SDKs are nobody's
// dependency but the tests' here, and it has nothing but tests.
//
// The same bytes have to mean the same. A reply, of the providers' fixtures or recorded, is served to the vendor's client and to ours,
// whole and as a stream, and what each made of it is compared field by field. A request that we send is read strictly by the vendor's
// types and sent again by the vendor's client, which may lose nothing of it; and the main ones are written by hand in the vendor's
// types, too. Where the two mean to differ, a table says so, with the reason, and a line that no case needs any more is a failure.
//
// OpenAI's client is one of package serve's, too: answers, streams and errors there have to be those of a chat completion.
package oracle
