package pack

import (
	"encoding/json"
	"regexp"

	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack/guard"
)

// Pack is a file that was read and found right. It does not change: treat its fields, and all below them, as read-only. Safe for concurrent use.
//
// Values of any type (defaults, examples, parameters) are what JSON gives: string, bool, int, float64, []any, map[string]any or nil.
type Pack struct {
	Schema         string             `json:"$schema"`
	ID             string             `json:"id"`
	Name           string             `json:"name"`
	Version        string             `json:"version"`
	Description    string             `json:"description"`
	TemplateEngine TemplateEngine     `json:"template_engine"`
	Prompts        map[string]*Prompt `json:"prompts"`
	Fragments      map[string]string  `json:"fragments"`
	Tools          map[string]Tool    `json:"tools"`
	Metadata       Metadata           `json:"metadata"`
	Compilation    *Compilation       `json:"compilation"`
	Evals          []Eval             `json:"evals"`
	Workflow       *Workflow          `json:"workflow"`
	Agents         *Agents            `json:"agents"`
	Skills         []Skill            `json:"skills"` // as they are written; see [Pack.LoadedSkills]

	File     string    `json:"-"` // absolute; "" when it came as bytes. Paths in the pack start at its directory
	Warnings []Problem `json:"-"` // what of it has no effect, or not the one that somebody may expect

	loaded []LoadedSkill
}

// TemplateEngine says how templates are written. Here it is {{variable}} in any case.
type TemplateEngine struct {
	Version  string   `json:"version"`
	Syntax   string   `json:"syntax"`
	Features []string `json:"features"`
}

// Metadata is for catalogues.
type Metadata struct {
	Domain       string         `json:"domain"`
	Language     string         `json:"language"` // ISO 639-1
	Tags         []string       `json:"tags"`
	CostEstimate *CostEstimate  `json:"cost_estimate"`
	Extra        map[string]any `json:"*"`
}

// CostEstimate is in US dollars, for one use.
type CostEstimate struct {
	Min   *float64       `json:"min_cost_usd"`
	Max   *float64       `json:"max_cost_usd"`
	Avg   *float64       `json:"avg_cost_usd"`
	Extra map[string]any `json:"*"`
}

// Compilation is what made the file.
type Compilation struct {
	CompiledWith string         `json:"compiled_with"`
	CreatedAt    string         `json:"created_at"` // RFC 3339
	Schema       string         `json:"schema"`
	Source       string         `json:"source"`
	Extra        map[string]any `json:"*"`
}

// Prompt is one way to talk. [Prompt.Render] makes its system prompt.
type Prompt struct {
	ID             string                   `json:"id"` // the same as its key
	Name           string                   `json:"name"`
	Description    string                   `json:"description"`
	Version        string                   `json:"version"`
	SystemTemplate string                   `json:"system_template"`
	Variables      []Variable               `json:"variables"`
	Tools          []string                 `json:"tools"` // names of the pack's tools, and of its agents; see [Pack.ToolsOf], [Pack.AgentsOf]
	ToolPolicy     ToolPolicy               `json:"tool_policy"`
	Pipeline       *Pipeline                `json:"pipeline"`
	Parameters     Parameters               `json:"parameters"` // see [Prompt.ParametersFor]
	Validators     []Validator              `json:"validators"` // see [Prompt.Guards]
	Evals          []Eval                   `json:"evals"`
	TestedModels   []TestedModel            `json:"tested_models"`
	ModelOverrides map[string]ModelOverride `json:"model_overrides"`
	Media          *Media                   `json:"media"`

	template  template            // of SystemTemplate
	overrides map[string]template // of the models that have another one
	guards    []*guard.Guard
}

// Variable is a variable of a template.
type Variable struct {
	Name        string      `json:"name"`
	Type        string      `json:"type"` // string, number, integer, boolean, array or object; values of any other type are not checked
	Required    bool        `json:"required"`
	Default     any         `json:"default"` // nil: none
	Description string      `json:"description"`
	Example     any         `json:"example"`
	Validation  *Validation `json:"validation"`
	Binding     *Binding    `json:"binding"`

	pattern *regexp.Regexp // of Validation
}

// Validation says what a variable's values have to be like. Lengths are of strings, in characters.
type Validation struct {
	Pattern   string   `json:"pattern"` // RE2, anywhere in the text
	MinLength *int     `json:"min_length"`
	MaxLength *int     `json:"max_length"`
	Minimum   *float64 `json:"minimum"`
	Maximum   *float64 `json:"maximum"`
	Enum      []any    `json:"enum"`
}

// Binding says where a variable's value comes from by itself.
type Binding struct {
	Kind         string `json:"kind"`
	Field        string `json:"field"`
	AutoPopulate bool   `json:"auto_populate"`
	Filter       string `json:"filter"`
}

// Tool is a tool that prompts may use. What it does when it is called is the program's.
type Tool struct {
	Name        string          `json:"name"` // the same as its key
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema of an object; nil: it takes nothing
}

// Model gives the tool as models are told of it.
func (t Tool) Model() model.Tool {
	schema := t.Parameters
	if schema == nil {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return model.Tool{Name: t.Name, Description: t.Description, Schema: schema}
}

// ToolPolicy says how a prompt's tools may be used. A prompt without one has the defaults.
type ToolPolicy struct {
	ToolChoice          string   `json:"tool_choice"`             // auto (default), required or none
	MaxRounds           int      `json:"max_rounds"`              // model calls that may lead to tool calls, in one turn: 5
	MaxToolCallsPerTurn int      `json:"max_tool_calls_per_turn"` // 10
	Blocklist           []string `json:"blocklist"`               // tools that may not be used, whatever Tools says
}

func (t *ToolPolicy) defaults() {
	*t = ToolPolicy{ToolChoice: "auto", MaxRounds: 5, MaxToolCallsPerTurn: 10}
}

// Choice is ToolChoice as models take it.
func (t ToolPolicy) Choice() model.ToolChoice {
	switch t.ToolChoice {
	case "required":
		return model.ToolsRequired
	case "none":
		return model.ToolsNone
	}
	return model.ToolsAuto
}

// Pipeline is the order of a runtime's own stages.
type Pipeline struct {
	Stages     []string     `json:"stages"`
	Middleware []Middleware `json:"middleware"`
}

// Middleware is a part of a Pipeline.
type Middleware struct {
	Type   string         `json:"type"`
	Config map[string]any `json:"config"`
}

// Parameters say how a model answers; what is nil is the model's own.
type Parameters struct {
	Temperature      *float64 `json:"temperature"`
	MaxTokens        *int     `json:"max_tokens"`
	TopP             *float64 `json:"top_p"`
	TopK             *int     `json:"top_k"` // 0: no limit, also where a prompt's own is overridden
	FrequencyPenalty *float64 `json:"frequency_penalty"`
	PresencePenalty  *float64 `json:"presence_penalty"`
}

// over gives p where it says something, and base elsewhere.
func (p Parameters) over(base Parameters) Parameters {
	return Parameters{
		first(p.Temperature, base.Temperature), first(p.MaxTokens, base.MaxTokens), first(p.TopP, base.TopP), first(p.TopK, base.TopK),
		first(p.FrequencyPenalty, base.FrequencyPenalty), first(p.PresencePenalty, base.PresencePenalty),
	}
}

func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// Settings gives the parameters as models take them. A penalty of 0 is none: a model that has no penalties takes it, too.
func (p Parameters) Settings() model.Settings {
	s := model.Settings{Temperature: p.Temperature, TopP: p.TopP}
	if p.MaxTokens != nil {
		s.MaxTokens = *p.MaxTokens
	}
	if p.TopK != nil && *p.TopK > 0 {
		s.TopK = p.TopK
	}
	if p.FrequencyPenalty != nil && *p.FrequencyPenalty != 0 {
		s.FrequencyPenalty = p.FrequencyPenalty
	}
	if p.PresencePenalty != nil && *p.PresencePenalty != 0 {
		s.PresencePenalty = p.PresencePenalty
	}
	return s
}

// Validator is a rule for replies, or for what users say.
type Validator struct {
	Type            string         `json:"type"`
	Enabled         bool           `json:"enabled"` // true
	Message         string         `json:"message"` // what a user is shown in place of what is blocked
	FailOnViolation bool           `json:"fail_on_violation"`
	Params          map[string]any `json:"params"`
}

func (v *Validator) defaults() { v.Enabled = true }

func (v Validator) config() guard.Config {
	return guard.Config{Type: v.Type, Params: v.Params, Message: v.Message, FailOnViolation: v.FailOnViolation}
}

// TestedModel is what somebody found out about a prompt with a model.
type TestedModel struct {
	Provider     string   `json:"provider"`
	Model        string   `json:"model"`
	Date         string   `json:"date"` // YYYY-MM-DD
	SuccessRate  *float64 `json:"success_rate"`
	AvgTokens    *float64 `json:"avg_tokens"`
	AvgCost      *float64 `json:"avg_cost"` // US dollars
	AvgLatencyMS *float64 `json:"avg_latency_ms"`
	Notes        string   `json:"notes"`
}

// ModelOverride is what is different for a model.
type ModelOverride struct {
	Prefix         string     `json:"system_template_prefix"`
	Suffix         string     `json:"system_template_suffix"`
	SystemTemplate string     `json:"system_template"` // in place of the prompt's; "": that one
	Parameters     Parameters `json:"parameters"`      // each that is given, in place of the prompt's
}

// Media says which files users may send.
type Media struct {
	Enabled        bool                  `json:"enabled"`
	SupportedTypes []string              `json:"supported_types"` // image, audio, video, document, or a name in Other; empty: each that is configured
	Image          *ImageMedia           `json:"image"`
	Audio          *SoundMedia           `json:"audio"`
	Video          *SoundMedia           `json:"video"`
	Document       *DocumentMedia        `json:"document"`
	Examples       []MediaExample        `json:"examples"`
	Other          map[string]OtherMedia `json:"*"`
}

// ImageMedia are the limits of images; 0 and nil: none.
type ImageMedia struct {
	MaxSizeMB      int      `json:"max_size_mb"` // MiB
	AllowedFormats []string `json:"allowed_formats"`
	DefaultDetail  string   `json:"default_detail"` // "auto"
	RequireCaption bool     `json:"require_caption"`
	MaxPerMessage  int      `json:"max_images_per_msg"`
}

func (i *ImageMedia) defaults() { i.DefaultDetail = "auto" }

// SoundMedia are the limits of audio and video files.
type SoundMedia struct {
	MaxSizeMB       int      `json:"max_size_mb"`
	AllowedFormats  []string `json:"allowed_formats"`
	MaxDurationSec  int      `json:"max_duration_sec"`
	RequireMetadata bool     `json:"require_metadata"`
}

// DocumentMedia are the limits of documents.
type DocumentMedia struct {
	MaxSizeMB       int      `json:"max_size_mb"`
	AllowedFormats  []string `json:"allowed_formats"`
	MaxPages        int      `json:"max_pages"`
	RequireMetadata bool     `json:"require_metadata"`
	ExtractionMode  string   `json:"extraction_mode"` // text (default), structured or raw
}

func (d *DocumentMedia) defaults() { d.ExtractionMode = "text" }

// OtherMedia are the limits of files of another type.
type OtherMedia struct {
	MaxSizeMB        int            `json:"max_size_mb"`
	AllowedFormats   []string       `json:"allowed_formats"`
	RequireMetadata  bool           `json:"require_metadata"`
	ValidationParams map[string]any `json:"validation_params"`
	Extra            map[string]any `json:"*"`
}

// MediaExample is an example of a message with files.
type MediaExample struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Role        string        `json:"role"`
	Parts       []ContentPart `json:"parts"`
}

// ContentPart is a part of a MediaExample.
type ContentPart struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	Media *MediaReference `json:"media"`
}

// MediaReference is a file, by its path, its address or its bytes.
type MediaReference struct {
	FilePath string `json:"file_path"`
	URL      string `json:"url"`
	Base64   string `json:"base64"`
	MIMEType string `json:"mime_type"`
	Detail   string `json:"detail"`
	Caption  string `json:"caption"`
}

// Eval says how replies are rated.
type Eval struct {
	ID               string         `json:"id"`
	Description      string         `json:"description"`
	Type             string         `json:"type"`
	Trigger          string         `json:"trigger"`
	SamplePercentage float64        `json:"sample_percentage"` // 5
	Enabled          bool           `json:"enabled"`           // true
	Params           map[string]any `json:"params"`
	Metric           *Metric        `json:"metric"`
	Threshold        *Threshold     `json:"threshold"`
	Message          string         `json:"message"`
	When             map[string]any `json:"when"`
	Groups           []string       `json:"groups"`
}

func (e *Eval) defaults() { e.Enabled, e.SamplePercentage = true, 5 }

// Metric is what an Eval's results are called where they are measured.
type Metric struct {
	Name  string         `json:"name"`
	Type  string         `json:"type"`
	Range *Range         `json:"range"`
	Extra map[string]any `json:"*"`
}

// Range bounds a Metric.
type Range struct {
	Min   *float64       `json:"min"`
	Max   *float64       `json:"max"`
	Extra map[string]any `json:"*"`
}

// Threshold is from where on an Eval passes.
type Threshold struct {
	Operator string   `json:"operator"` // gte, lte, gt, lt or eq
	Value    *float64 `json:"value"`
}

// Agents are prompts that are agents of their own.
type Agents struct {
	Entry   string           `json:"entry"`
	Members map[string]Agent `json:"members"` // by the prompts' keys
}

// Agent is what other agents are told of one. [Pack.Agent] has its description, wherever it is.
type Agent struct {
	Description string   `json:"description"` // "": the prompt's
	Tags        []string `json:"tags"`
	InputModes  []string `json:"input_modes"`  // MIME; ["text/plain"]
	OutputModes []string `json:"output_modes"` // MIME; ["text/plain"]
}

func (a *Agent) defaults() {
	a.InputModes, a.OutputModes = []string{"text/plain"}, []string{"text/plain"}
}

// Skill is knowledge that is loaded when it is needed: a Path, or Name, Description and Instructions.
type Skill struct {
	Path         string `json:"path"` // of a directory, a file, or a package (@org/name)
	Preload      bool   `json:"preload"`
	Name         string `json:"name"`
	Description  string `json:"description"`
	Instructions string `json:"instructions"`
}
