// Package catalog says what models can take and what they cost: context window, output limit, prices, kinds of input.
//
//	m, ok := catalog.Default().Lookup("anthropic/claude-opus-5-5")
//	micros, known := m.Cost(response.Usage)
//
// Units: windows and limits are tokens; prices are US dollars per million tokens; costs are millionths of a dollar, so that a
// price per million tokens is the cost of one token.
//
// What isn't known stays unknown: a limit is 0, a price nil, an ability [Unknown], and [Model.Cost] says known = false rather
// than 0. An unknown cost must never be counted as a free call.
//
// The figures ship in models.tsv. Each row names its source and the date that the source speaks for; vendors change prices, so a
// figure is no more than what that source said then. They are list prices of a vendor's own API for ordinary requests: no batch,
// priority or regional rates, no taxes, no contracts, no charges for tools such as web search. Cache writes are priced as the
// vendor's shortest-lived ones; longer-lived ones cost more. Audio input may cost more too. Where a price depends on the time of
// day, it is the higher one. Note tells what a row leaves out.
//
// For other prices and models, put your own over it with [Catalog.With], or read a file of the same format with [Parse].
package catalog
