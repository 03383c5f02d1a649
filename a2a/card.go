package a2a

// An AgentCard describes an agent to its clients.
type AgentCard struct {
	Name                 string                    `json:"name"`
	Description          string                    `json:"description"`
	Interfaces           []Interface               `json:"supportedInterfaces"` // the first is preferred
	Provider             *Provider                 `json:"provider,omitempty"`
	Version              string                    `json:"version"` // the agent's own
	DocumentationURL     string                    `json:"documentationUrl,omitempty"`
	IconURL              string                    `json:"iconUrl,omitempty"`
	Capabilities         Capabilities              `json:"capabilities"`
	SecuritySchemes      map[string]SecurityScheme `json:"securitySchemes,omitempty"`
	SecurityRequirements []SecurityRequirement     `json:"securityRequirements,omitempty"` // one of them is enough
	DefaultInputModes    []string                  `json:"defaultInputModes"`              // media types
	DefaultOutputModes   []string                  `json:"defaultOutputModes"`
	Skills               []Skill                   `json:"skills"`
	Signatures           []Signature               `json:"signatures,omitempty"` // passed on, not verified
}

// An Interface is an address at which an agent is reached, and how.
type Interface struct {
	URL             string `json:"url"`
	ProtocolBinding string `json:"protocolBinding"` // BindingJSONRPC, or one that this package does not speak
	Tenant          string `json:"tenant,omitempty"`
	ProtocolVersion string `json:"protocolVersion"` // see ParseVersion
}

// Select gives the interface that this package speaks, and in which version: the first of 1.0 by JSON-RPC, or else the first of 0.3. Which of
// them the agent prefers does not matter between versions: 1.0 says more. False: there is none.
func (c *AgentCard) Select() (Interface, Version, bool) {
	var found Interface
	var version Version
	for _, i := range c.Interfaces {
		v, err := ParseVersion(i.ProtocolVersion)
		if i.ProtocolBinding != BindingJSONRPC || err != nil {
			continue
		}
		if version == "" || version == V03 && v == V1 {
			found, version = i, v
		}
	}
	return found, version, version != ""
}

// A Provider is whose agent it is.
type Provider struct {
	URL          string `json:"url"`
	Organization string `json:"organization"`
}

// Capabilities are what an agent can do beyond the least.
type Capabilities struct {
	Streaming         bool        `json:"streaming,omitempty"`
	PushNotifications bool        `json:"pushNotifications,omitempty"`
	Extensions        []Extension `json:"extensions,omitempty"`
	ExtendedAgentCard bool        `json:"extendedAgentCard,omitempty"`
}

// An Extension is a protocol beside this one that an agent speaks.
type Extension struct {
	URI         string         `json:"uri"`
	Description string         `json:"description,omitempty"`
	Required    bool           `json:"required,omitempty"` // clients have to speak it, too
	Params      map[string]any `json:"params,omitempty"`
}

// A Skill is one thing that an agent can do.
type Skill struct {
	ID                   string                `json:"id"`
	Name                 string                `json:"name"`
	Description          string                `json:"description"`
	Tags                 []string              `json:"tags"`
	Examples             []string              `json:"examples,omitempty"`
	InputModes           []string              `json:"inputModes,omitempty"` // in place of the agent's defaults
	OutputModes          []string              `json:"outputModes,omitempty"`
	SecurityRequirements []SecurityRequirement `json:"securityRequirements,omitempty"`
}

// A Signature is a JSON Web Signature of a card.
type Signature struct {
	Protected string         `json:"protected"`
	Signature string         `json:"signature"`
	Header    map[string]any `json:"header,omitempty"`
}

// A SecurityRequirement has the scopes that are needed of each scheme, all of which a client has to satisfy.
type SecurityRequirement map[string][]string

// A SecurityScheme is a way to authenticate. Exactly one field is set.
type SecurityScheme struct {
	APIKey        *APIKeyScheme        `json:"apiKeySecurityScheme,omitempty"`
	HTTP          *HTTPScheme          `json:"httpAuthSecurityScheme,omitempty"`
	OAuth2        *OAuth2Scheme        `json:"oauth2SecurityScheme,omitempty"`
	OpenIDConnect *OpenIDConnectScheme `json:"openIdConnectSecurityScheme,omitempty"`
	MutualTLS     *MutualTLSScheme     `json:"mtlsSecurityScheme,omitempty"`
}

// An APIKeyScheme is a key in a header, a query or a cookie.
type APIKeyScheme struct {
	Description string `json:"description,omitempty"`
	Location    string `json:"location"` // "header", "query" or "cookie"
	Name        string `json:"name"`
}

// An HTTPScheme is a scheme of the Authorization header.
type HTTPScheme struct {
	Description  string `json:"description,omitempty"`
	Scheme       string `json:"scheme"` // as Bearer
	BearerFormat string `json:"bearerFormat,omitempty"`
}

// An OAuth2Scheme is OAuth 2.0.
type OAuth2Scheme struct {
	Description string     `json:"description,omitempty"`
	Flows       OAuthFlows `json:"flows"`
	MetadataURL string     `json:"oauth2MetadataUrl,omitempty"`
}

// OAuthFlows are the flows that a server takes: one in 1.0, any number in 0.3, which has no device codes.
type OAuthFlows struct {
	AuthorizationCode *OAuthFlow `json:"authorizationCode,omitempty"`
	ClientCredentials *OAuthFlow `json:"clientCredentials,omitempty"`
	Implicit          *OAuthFlow `json:"implicit,omitempty"`
	Password          *OAuthFlow `json:"password,omitempty"`
	DeviceCode        *OAuthFlow `json:"deviceCode,omitempty"`
}

// An OAuthFlow has the addresses of a flow: those that it needs.
type OAuthFlow struct {
	AuthorizationURL       string            `json:"authorizationUrl,omitempty"`
	DeviceAuthorizationURL string            `json:"deviceAuthorizationUrl,omitempty"`
	TokenURL               string            `json:"tokenUrl,omitempty"`
	RefreshURL             string            `json:"refreshUrl,omitempty"`
	Scopes                 map[string]string `json:"scopes"`
	PKCERequired           bool              `json:"pkceRequired,omitempty"` // 1.0 only
}

// An OpenIDConnectScheme is OpenID Connect.
type OpenIDConnectScheme struct {
	Description string `json:"description,omitempty"`
	URL         string `json:"openIdConnectUrl"`
}

// A MutualTLSScheme is a certificate of the client's.
type MutualTLSScheme struct {
	Description string `json:"description,omitempty"`
}
