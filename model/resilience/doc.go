// Package resilience keeps model calls going when a provider doesn't: it tries again, turns to another model, and keeps to rates. Each
// piece stands around any [model.Model] and works alone; together, from the outside in:
//
//	m := resilience.Fallback(resilience.FallbackPolicy{},
//		model.Wrap(first, resilience.Retry(resilience.RetryPolicy{}), limiter.Middleware(), resilience.Timeouts(resilience.TimeoutPolicy{})),
//		model.Wrap(second, …),
//	)
//
// Each attempt then waits for the limiter and has its own timeouts, and another model is asked when one was tried in vain. A model
// made so goes wherever a model does.
//
// # What was shown stays
//
// Nothing is asked again once the handler of a stream was given text or reasoning: people would read two beginnings. Retry and
// Fallback have an option for consumers that can take words back, Restart. Such a consumer heeds [model.StreamResult].Void: what came
// before it is to be dropped. The loop does (deltas of an earlier attempt are void, event.Retry stands between them). A Void is
// given before each further attempt, also when nothing was shown, so that people learn why they wait. Complete shows nothing before its end.
//
// # What an error means
//
// The class of errdefs decides. An error without one counts as NotAvailable, or as Timeout when it is an expired deadline that was not
// the caller's; a stream that ends without its last piece is NotAvailable. Errors of the handler, and whatever comes once the caller's context
// has ended, are returned as they are, and nothing is made of them.
//
// All are safe for concurrent use, start no goroutine, and add no allocation to a delta.
package resilience
