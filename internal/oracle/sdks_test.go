package oracle
import (
	_ "github.com/anthropics/anthropic-sdk-go"
	_ "github.com/openai/openai-go/v3"
	_ "github.com/openai/openai-go/v3/responses"
	_ "google.golang.org/genai"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/pawl-dev/pawl/internal/cassettes"
	_ "github.com/pawl-dev/pawl/internal/providertest"
	_ "github.com/pawl-dev/pawl/model/anthropic"
)
