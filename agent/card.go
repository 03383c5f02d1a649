package agent

// AgentCard describes an agent for discovery; a subset of A2A's, with its keys.
type AgentCard struct {
	Name               string            `json:"name"`
	Description        string            `json:"description,omitempty"`
	Skills             []Skill           `json:"skills,omitempty"`
	DefaultInputModes  []string          `json:"defaultInputModes,omitempty"` // media types
	DefaultOutputModes []string          `json:"defaultOutputModes,omitempty"`
	Capabilities       AgentCapabilities `json:"capabilities,omitempty"`
}

// AgentCapabilities declares what the place that serves the agent can do. It switches nothing on.
type AgentCapabilities struct {
	Streaming              bool `json:"streaming,omitempty"`
	PushNotifications      bool `json:"pushNotifications,omitempty"`
	StateTransitionHistory bool `json:"stateTransitionHistory,omitempty"`
}

// Skill is one thing that the agent can do.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Examples    []string `json:"examples,omitempty"`    // prompts that it can answer
	InputModes  []string `json:"inputModes,omitempty"`  // media types; empty: the card's default
	OutputModes []string `json:"outputModes,omitempty"` // likewise
}
