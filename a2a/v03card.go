package a2a

import "fmt"

// The shapes of 0.3 for cards.
type (
	card03 struct {
		ProtocolVersion      string                `json:"protocolVersion"`
		Name                 string                `json:"name"`
		Description          string                `json:"description"`
		URL                  string                `json:"url"`
		PreferredTransport   string                `json:"preferredTransport,omitempty"`
		AdditionalInterfaces []interface03         `json:"additionalInterfaces,omitempty"`
		IconURL              string                `json:"iconUrl,omitempty"`
		Provider             *Provider             `json:"provider,omitempty"`
		Version              string                `json:"version"`
		DocumentationURL     string                `json:"documentationUrl,omitempty"`
		Capabilities         capabilities03        `json:"capabilities"`
		SecuritySchemes      map[string]scheme03   `json:"securitySchemes,omitempty"`
		Security             []map[string][]string `json:"security,omitempty"`
		DefaultInputModes    []string              `json:"defaultInputModes"`
		DefaultOutputModes   []string              `json:"defaultOutputModes"`
		Skills               []skill03             `json:"skills"`
		ExtendedCard         bool                  `json:"supportsAuthenticatedExtendedCard,omitempty"`
		Signatures           []Signature           `json:"signatures,omitempty"`
	}
	interface03 struct {
		URL       string `json:"url"`
		Transport string `json:"transport"`
	}
	capabilities03 struct {
		Streaming         bool        `json:"streaming,omitempty"`
		PushNotifications bool        `json:"pushNotifications,omitempty"`
		Extensions        []Extension `json:"extensions,omitempty"`
	}
	skill03 struct {
		ID          string                `json:"id"`
		Name        string                `json:"name"`
		Description string                `json:"description"`
		Tags        []string              `json:"tags"`
		Examples    []string              `json:"examples,omitempty"`
		InputModes  []string              `json:"inputModes,omitempty"`
		OutputModes []string              `json:"outputModes,omitempty"`
		Security    []map[string][]string `json:"security,omitempty"`
	}
	scheme03 struct {
		Type             string      `json:"type"`
		Description      string      `json:"description,omitempty"`
		In               string      `json:"in,omitempty"`
		Name             string      `json:"name,omitempty"`
		Scheme           string      `json:"scheme,omitempty"`
		BearerFormat     string      `json:"bearerFormat,omitempty"`
		Flows            *OAuthFlows `json:"flows,omitempty"`
		MetadataURL      string      `json:"oauth2MetadataUrl,omitempty"`
		OpenIDConnectURL string      `json:"openIdConnectUrl,omitempty"`
	}
)

// old03 gives the interfaces that clients of 0.3 can use, a JSON-RPC one first if there is one; false: there is none.
func old03(all []Interface) ([]Interface, bool) {
	var out []Interface
	for _, i := range all {
		if v, err := ParseVersion(i.ProtocolVersion); err != nil || v != V03 {
			continue
		}
		if i.ProtocolBinding == BindingJSONRPC && len(out) > 0 && out[0].ProtocolBinding != BindingJSONRPC {
			out = append([]Interface{i}, out...)
			continue
		}
		out = append(out, i)
	}
	return out, len(out) > 0
}

func cardTo03(c AgentCard) (card03, error) {
	interfaces, ok := old03(c.Interfaces)
	if !ok {
		return card03{}, fmt.Errorf("no interface of the card speaks 0.3")
	}
	out := card03{
		ProtocolVersion: "0.3.0", Name: c.Name, Description: c.Description, URL: interfaces[0].URL, PreferredTransport: interfaces[0].ProtocolBinding,
		IconURL: c.IconURL, Provider: c.Provider, Version: c.Version, DocumentationURL: c.DocumentationURL,
		Capabilities:      capabilities03{c.Capabilities.Streaming, c.Capabilities.PushNotifications, c.Capabilities.Extensions},
		Security:          securityTo03(c.SecurityRequirements),
		DefaultInputModes: filled(c.DefaultInputModes), DefaultOutputModes: filled(c.DefaultOutputModes),
		Skills: []skill03{}, ExtendedCard: c.Capabilities.ExtendedAgentCard, Signatures: c.Signatures,
	}
	for _, i := range interfaces[1:] {
		out.AdditionalInterfaces = append(out.AdditionalInterfaces, interface03{i.URL, i.ProtocolBinding})
	}
	for _, s := range c.Skills {
		out.Skills = append(out.Skills, skill03{s.ID, s.Name, s.Description, filled(s.Tags), s.Examples, s.InputModes, s.OutputModes, securityTo03(s.SecurityRequirements)})
	}
	for name, s := range c.SecuritySchemes {
		old, err := schemeTo03(s)
		if err != nil {
			return out, fmt.Errorf("securitySchemes[%q]: %w", name, err)
		}
		if out.SecuritySchemes == nil {
			out.SecuritySchemes = map[string]scheme03{}
		}
		out.SecuritySchemes[name] = old
	}
	return out, nil
}

func cardFrom03(c card03) (AgentCard, error) {
	out := AgentCard{
		Name: c.Name, Description: c.Description, IconURL: c.IconURL, Provider: c.Provider, Version: c.Version, DocumentationURL: c.DocumentationURL,
		Capabilities:         Capabilities{c.Capabilities.Streaming, c.Capabilities.PushNotifications, c.Capabilities.Extensions, c.ExtendedCard},
		SecurityRequirements: securityFrom03(c.Security),
		DefaultInputModes:    c.DefaultInputModes, DefaultOutputModes: c.DefaultOutputModes, Signatures: c.Signatures,
	}
	if c.URL != "" {
		binding := c.PreferredTransport
		if binding == "" {
			binding = BindingJSONRPC
		}
		out.Interfaces = []Interface{{URL: c.URL, ProtocolBinding: binding, ProtocolVersion: c.ProtocolVersion}}
	}
	for _, i := range c.AdditionalInterfaces {
		one := Interface{URL: i.URL, ProtocolBinding: i.Transport, ProtocolVersion: c.ProtocolVersion}
		if len(out.Interfaces) > 0 && out.Interfaces[0] == one {
			continue // the specification has the first one listed once more
		}
		out.Interfaces = append(out.Interfaces, one)
	}
	for _, s := range c.Skills {
		out.Skills = append(out.Skills, Skill{s.ID, s.Name, s.Description, s.Tags, s.Examples, s.InputModes, s.OutputModes, securityFrom03(s.Security)})
	}
	for name, s := range c.SecuritySchemes {
		now, err := schemeFrom03(s)
		if err != nil {
			return out, fmt.Errorf("securitySchemes[%q]: %w", name, err)
		}
		if out.SecuritySchemes == nil {
			out.SecuritySchemes = map[string]SecurityScheme{}
		}
		out.SecuritySchemes[name] = now
	}
	return out, nil
}

func securityTo03(list []SecurityRequirement) []map[string][]string {
	var out []map[string][]string
	for _, r := range list {
		one := map[string][]string{}
		for name, scopes := range r {
			one[name] = filled(scopes)
		}
		out = append(out, one)
	}
	return out
}

func securityFrom03(list []map[string][]string) []SecurityRequirement {
	var out []SecurityRequirement
	for _, r := range list {
		one := SecurityRequirement{}
		for name, scopes := range r {
			one[name] = filled(scopes)
		}
		out = append(out, one)
	}
	return out
}

func schemeTo03(s SecurityScheme) (scheme03, error) {
	switch {
	case s.APIKey != nil:
		return scheme03{Type: "apiKey", Description: s.APIKey.Description, In: s.APIKey.Location, Name: s.APIKey.Name}, nil
	case s.HTTP != nil:
		return scheme03{Type: "http", Description: s.HTTP.Description, Scheme: s.HTTP.Scheme, BearerFormat: s.HTTP.BearerFormat}, nil
	case s.OAuth2 != nil:
		flows := s.OAuth2.Flows
		flows.DeviceCode = nil
		return scheme03{Type: "oauth2", Description: s.OAuth2.Description, Flows: &flows, MetadataURL: s.OAuth2.MetadataURL}, nil
	case s.OpenIDConnect != nil:
		return scheme03{Type: "openIdConnect", Description: s.OpenIDConnect.Description, OpenIDConnectURL: s.OpenIDConnect.URL}, nil
	case s.MutualTLS != nil:
		return scheme03{Type: "mutualTLS", Description: s.MutualTLS.Description}, nil
	}
	return scheme03{}, fmt.Errorf("a scheme with nothing in it")
}

func schemeFrom03(s scheme03) (SecurityScheme, error) {
	switch s.Type {
	case "apiKey":
		return SecurityScheme{APIKey: &APIKeyScheme{s.Description, s.In, s.Name}}, nil
	case "http":
		return SecurityScheme{HTTP: &HTTPScheme{s.Description, s.Scheme, s.BearerFormat}}, nil
	case "oauth2":
		out := &OAuth2Scheme{Description: s.Description, MetadataURL: s.MetadataURL}
		if s.Flows != nil {
			out.Flows = *s.Flows
		}
		return SecurityScheme{OAuth2: out}, nil
	case "openIdConnect":
		return SecurityScheme{OpenIDConnect: &OpenIDConnectScheme{s.Description, s.OpenIDConnectURL}}, nil
	case "mutualTLS":
		return SecurityScheme{MutualTLS: &MutualTLSScheme{s.Description}}, nil
	}
	return SecurityScheme{}, fmt.Errorf("%.40q is no type of a scheme", s.Type)
}
