package model

import "time"

// Rate is what a provider says, beside a reply or a refusal, of what the key may still ask for. The zero value says nothing. Figures are as they were
// when the answer began; calls that were under way are not in them.
type Rate struct {
	Requests Quota
	Tokens   Quota // input and output together; where a provider counts them apart, it is spent as soon as one of them is
}

// Quota is one limit. What the provider does not say is zero.
type Quota struct {
	Limit     int           // what the key may have, mostly in a minute
	Remaining int           // what is left of it; 0 also when it is Spent
	Spent     bool          // nothing is left
	Reset     time.Duration // from when the Response or Error was made until all of it is there again
}
