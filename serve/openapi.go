package serve

import (
	_ "embed"
	"net/http"

	"github.com/pawl-dev/pawl/serve/internal/web"
)

// openAPI says what there is. A test holds it to the routes, to what is read of requests, and to what is answered.
//
//go:embed openapi.json
var openAPI []byte

func document(w http.ResponseWriter, _ *http.Request) {
	web.Bytes(w, http.StatusOK, "application/json", openAPI)
}
