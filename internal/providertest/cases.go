package providertest

import "github.com/pawl-dev/pawl/model"

// Case is a request of the matrix, for tests that ask another question of it than the matrix does.
type Case struct {
	Name    string
	Request model.Request
}

// Cases gives the requests of the matrix, but for those that are made of a provider's own reply.
func Cases() []Case {
	cases := make([]Case, len(requests))
	for i, r := range requests {
		cases[i] = Case{r.name, r.req()}
	}
	return cases
}
