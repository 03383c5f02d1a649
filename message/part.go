package message

// Part is a piece of a message: [Text], [Reasoning], [File], [ToolCall], [ToolResult] or [Opaque]. The set is closed.
type Part interface{ part() }

// Origin is what a provider attached to a part beyond the part's common fields. It is sent back to that provider unchanged and
// left out for every other one. Zero for parts that no provider made.
type Origin struct {
	Provider string // wire format that made the part: "anthropic", "openai", "openai-responses", "gemini"; "pawl": made by the loop
	Extra    string // a JSON object with the members that have no field of ours; "" for none
}

// Text is plain text, UTF-8.
type Text struct {
	Text string
	Origin
}

// Reasoning is a model's thinking. Signature is the provider's proof of it (or its encrypted form) and is sent back unchanged, to
// the provider that it came from only.
type Reasoning struct {
	Text, Signature string
	Origin
}

// File is an image, sound or document. Exactly one of Data, URL and Hash says where the bytes are: inline, at an address that the
// provider can reach, or in the journal's store of large parts.
type File struct {
	MIME string // "image/png"; required
	Name string // file name shown to the model where the provider has a place for it; optional
	URL  string
	Hash string
	Data string // the bytes themselves; a string, because they never change
}

// ToolCall is a model's wish to use a tool.
type ToolCall struct {
	ID    string // unique in its session: the loop makes it so, because providers repeat them
	Name  string
	Input string // JSON, compact when it is valid; what the model wrote, as it is, when it is not
	Origin
}

// ToolResult answers the call with ID Call. Every call has exactly one result before the next assistant message.
type ToolResult struct {
	Call, Name string
	Content    string
	Files      []File // images a tool gives back; must not be written to any more
	IsError    bool
}

// Opaque is a provider's own part (a search that it ran itself, a redacted thought), kept byte for byte for that provider and
// left out for every other one.
type Opaque struct {
	Provider string
	JSON     string
}

func (Text) part()       {}
func (Reasoning) part()  {}
func (File) part()       {}
func (ToolCall) part()   {}
func (ToolResult) part() {}
func (Opaque) part()     {}
