package cloud

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// Vertex reaches models at Google's Vertex AI: Claude models for anthropic.New ("claude-sonnet-4-5@20250929") by rawPredict and streamRawPredict, Gemini models for gemini.New by generateContent
// and streamGenerateContent, each under the project and location of g, with an access token.
func Vertex(g GCP) model.Option {
	return option("vertex", func(e *model.Endpoint, t *transport) (string, error) {
		g := g // the option may be used again
		g.BaseURL = cmp.Or(g.BaseURL, e.BaseURL)
		g.Location = cmp.Or(g.Location, os.Getenv("GOOGLE_CLOUD_LOCATION"), "global")
		t.service = &vertex{t: t, gcp: g, grant: keep(func(ctx context.Context) (grant, time.Time, error) { return g.fetch(ctx, t) })}
		if e.Key != "" {
			return "", t.fail(errdefs.Validation, "other_key", "Vertex AI is asked with access tokens, not with a key: leave the key out")
		}
		if !label(g.Location) {
			return "", t.fail(errdefs.Validation, "location", "the location is none: set GOOGLE_CLOUD_LOCATION, such as europe-west1 or global, or GCP.Location")
		}
		return cmp.Or(g.BaseURL, "https://"+vertexHost(g.Location)), nil
	})
}

func vertexHost(location string) string {
	switch location {
	case "global":
		return "aiplatform.googleapis.com"
	case "us", "eu":
		return "aiplatform." + location + ".rep.googleapis.com"
	}
	return location + "-aiplatform.googleapis.com"
}

type vertex struct {
	t     *transport
	gcp   GCP
	grant *kept[grant]
}

func (v *vertex) prepare(ctx context.Context, c *call) error {
	h := c.out.Header
	publisher, model := "google", ""
	query := c.out.URL.RawQuery
	switch name, gemini := strings.CutPrefix(c.path, "/models/"); {
	case gemini:
		model = name // with the verb, escaped as it has to be
	case c.path == "/v1/messages":
		change := edit{add: `"anthropic_version":"vertex-2023-10-16"`, drop: []string{"model", "anthropic_version"}}
		var err error
		if c.body, err = change.apply(c.body); err != nil {
			return errdefs.Validation.Errorf("%s: the request: %w", v.t.vendor, err)
		}
		h.Del("Anthropic-Version")
		publisher, query = "anthropic", ""
		model = url.PathEscape(change.model) + ":rawPredict"
		if c.stream = change.stream; c.stream {
			model = url.PathEscape(change.model) + ":streamRawPredict"
		}
	default:
		return v.t.fail(errdefs.Validation, "other_protocol", "Vertex AI is reached by gemini.New, with the name of a Gemini model, or by anthropic.New, with that of a Claude model, which it counts no tokens for this way")
	}
	g, n, err := v.grant.get(ctx, c.refused)
	if err != nil {
		return err
	}
	c.with = n
	project := cmp.Or(v.gcp.project(), g.project, g.quota)
	if project == "" {
		return v.t.fail(errdefs.Validation, "no_project", "no Google Cloud project: set GOOGLE_CLOUD_PROJECT or GCP.Project")
	}
	h.Set("Authorization", "Bearer "+g.token)
	if g.quota != "" {
		h.Set("X-Goog-User-Project", g.quota)
	}
	c.to(v.t.base, "/v1/projects/"+url.PathEscape(project)+"/locations/"+v.gcp.Location+"/publishers/"+publisher+"/models/"+model, query)
	return nil
}

// translate has nothing to do: what Vertex AI answers is what the protocols have, but for Google's own errors, which both read.
func (v *vertex) translate(*call, *http.Response) error { return nil }
