// Package steady stands around models that are opened by name: by a Runtime, a Conversation, or the program.
package steady

import (
	"sync"

	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
)

// Retries is how often a call that failed for a reason that may pass is tried again, where nobody says otherwise.
const Retries = 3

// MaxRetries is the most that somebody may say.
const MaxRetries = 100

// budgets are the retries that the process may make, by provider: however many models are opened, an outage multiplies no calls.
var budgets sync.Map // of *resilience.RetryBudget

// Around puts retries, as many as that, and timeouts around m, with the defaults of package resilience. What was shown is never begun again. Scripted
// models stay as they are: what they fail with is what somebody wants to see.
func Around(m model.Model, retries int) model.Model {
	c, _ := model.CapabilitiesOf(m)
	if c.Provider == "scripted" {
		return m
	}
	budget, _ := budgets.LoadOrStore(c.Provider, new(resilience.RetryBudget))
	return model.Wrap(m,
		resilience.Retry(resilience.RetryPolicy{Attempts: retries + 1, Budget: budget.(*resilience.RetryBudget)}),
		resilience.Timeouts(resilience.TimeoutPolicy{}),
	)
}
