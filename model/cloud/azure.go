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

// AzureOpenAI says who calls Azure OpenAI, and where. What is empty is looked for.
type AzureOpenAI struct {
	Endpoint string // "https://NAME.openai.azure.com"; what stands behind the host, such as "/openai/v1", doesn't matter. "": AZURE_OPENAI_ENDPOINT

	// APIVersion asks in the older way, by the path of the deployment: "2024-10-21". "" is OPENAI_API_VERSION, or the v1 API, which has no versions; "preview" is the v1 API with what is not released.
	APIVersion string

	// Key is the resource's key, sent as the header api-key. Token gives access tokens of Entra ID; Tenant, Client and Secret are an application that asks for them itself. With none of them the first
	// counts that is there: AZURE_OPENAI_API_KEY; AZURE_TENANT_ID with AZURE_CLIENT_ID and AZURE_CLIENT_SECRET.
	Key                    string
	Token                  func(context.Context) (Token, error)
	Tenant, Client, Secret string

	Authority string // of Entra ID; "": AZURE_AUTHORITY_HOST, or "https://login.microsoftonline.com"
	Scope     string // what tokens are for; "": "https://cognitiveservices.azure.com/.default"
}

// Azure reaches the deployments of an Azure OpenAI resource, for openai.New and openai.NewResponses: the name is the deployment's. model.WithKey before it gives the key, model.WithBaseURL the endpoint.
func Azure(a AzureOpenAI) model.Option {
	return option("azure", func(e *model.Endpoint, t *transport) (string, error) {
		a := a // the option may be used again
		a.Key = cmp.Or(a.Key, e.Key)
		a.APIVersion = cmp.Or(a.APIVersion, os.Getenv("OPENAI_API_VERSION"))
		a.Scope = cmp.Or(a.Scope, "https://cognitiveservices.azure.com/.default")
		a.Authority = strings.TrimRight(cmp.Or(a.Authority, os.Getenv("AZURE_AUTHORITY_HOST"), "https://login.microsoftonline.com"), "/")
		if a.Key == "" && a.Token == nil && a.Secret == "" {
			if a.Key = os.Getenv("AZURE_OPENAI_API_KEY"); a.Key == "" {
				a.Tenant, a.Client, a.Secret = cmp.Or(a.Tenant, os.Getenv("AZURE_TENANT_ID")), cmp.Or(a.Client, os.Getenv("AZURE_CLIENT_ID")), os.Getenv("AZURE_CLIENT_SECRET")
			}
		}
		t.secrets.add(a.Key, a.Secret)
		t.service = &azure{t: t, azure: a, token: keep(func(ctx context.Context) (string, time.Time, error) { return a.fetch(ctx, t) })}
		endpoint := cmp.Or(a.Endpoint, e.BaseURL, os.Getenv("AZURE_OPENAI_ENDPOINT"))
		if endpoint == "" {
			return "", t.fail(errdefs.Validation, "no_endpoint", "no Azure OpenAI endpoint: set AZURE_OPENAI_ENDPOINT, such as https://NAME.openai.azure.com, or AzureOpenAI.Endpoint")
		}
		if scheme, rest, ok := strings.Cut(endpoint, "://"); ok {
			rest, _, _ = strings.Cut(rest, "/openai")
			endpoint = scheme + "://" + rest
		}
		return endpoint, nil
	})
}

// fetch gets an access token.
func (a AzureOpenAI) fetch(ctx context.Context, t *transport) (string, time.Time, error) {
	if a.Token != nil {
		token, err := a.Token(ctx)
		if err != nil {
			return "", time.Time{}, t.denied("no_token", "AzureOpenAI.Token gave none", err)
		}
		t.secrets.add(token.Value)
		return token.Value, token.Expires, nil
	}
	if a.Tenant == "" || a.Client == "" || a.Secret == "" {
		return "", time.Time{}, t.fail(errdefs.Unauthorized, "no_credentials", "no Azure credentials: set AZURE_OPENAI_API_KEY, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET")
	}
	token, err := t.exchange(ctx, a.Authority+"/"+url.PathEscape(a.Tenant)+"/oauth2/v2.0/token", url.Values{
		"grant_type": {"client_credentials"}, "client_id": {a.Client}, "client_secret": {a.Secret}, "scope": {a.Scope},
	})
	return token.Value, token.Expires, err
}

type azure struct {
	t     *transport
	azure AzureOpenAI
	token *kept[string]
}

func (z *azure) prepare(ctx context.Context, c *call) error {
	path, query := "/openai/v1"+c.path, url.Values{}
	switch version := z.azure.APIVersion; version {
	case "", "v1", "latest":
	case "preview":
		query.Set("api-version", version)
	default:
		query.Set("api-version", version)
		if path = "/openai" + c.path; c.path == "/chat/completions" {
			var says edit
			if _, err := says.apply(c.body); err != nil {
				return errdefs.Validation.Errorf("%s: the request: %w", z.t.vendor, err)
			}
			path = "/openai/deployments/" + url.PathEscape(says.model) + c.path
		}
	}
	if c.path != "/chat/completions" && c.path != "/responses" {
		return z.t.fail(errdefs.Validation, "other_protocol", "Azure OpenAI is reached by openai.New and openai.NewResponses, with the name of a deployment")
	}
	c.to(z.t.base, path, query.Encode())
	if z.azure.Key != "" {
		c.out.Header.Set("Api-Key", z.azure.Key)
		return nil
	}
	token, n, err := z.token.get(ctx, c.refused)
	if err != nil {
		return err
	}
	c.with = n
	c.out.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// translate has nothing to do: Azure answers as OpenAI does.
func (z *azure) translate(*call, *http.Response) error { return nil }
