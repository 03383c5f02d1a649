package message

// Part is a piece of a message: [Text], [Reasoning], [File], [ToolCall], [ToolResult], [ProviderCall] or [Opaque]. The set is closed.
type Part interface{ part() }

// Origin is what a provider attached to a part beyond the part's common fields. It is sent back to that provider unchanged and
// left out for every other one. Zero for parts that no provider made.
type Origin struct {
	Provider string // wire format that made the part: "anthropic", "openai", "openai-responses", "gemini"; "pawl": made by the loop
	Extra    string // a JSON object with the members that have no field of ours; "" for none
}

// Text is plain text, UTF-8.
type Text struct {
	Text      string
	Citations []Citation // what a provider says that it rests on; must not be written to any more
	Origin
}

// Citation is a source that a provider names for a text. It is for readers: what the provider wants back is in the text's Origin.
type Citation struct {
	URL        string // of a page; "" for a file of the conversation
	Title      string // of the page or file
	Quote      string // the source's own words, where the provider gives them
	Start, End int    // which bytes of the Text it is for, End not included; 0 and 0: all of them
}

// Reasoning is a model's thinking. Signature is the provider's proof of it (or its encrypted form) and is sent back unchanged, to
// the provider that it came from only.
type Reasoning struct {
	Text, Signature string
	Origin
}

// File is an image, sound or document. One of Data, URL and Hash says where the bytes are: inline, at an address that the
// provider can reach, or in the journal's store of large parts. A provider that keeps them itself has given them an ID, by which it is sent
// instead, to that provider only; with an ID alone no other one can be asked.
type File struct {
	MIME string // "image/png"; required
	Name string // file name shown to the model where the provider has a place for it; optional
	URL  string
	Hash string
	Data string // the bytes themselves; a string, because they never change

	Provider, ID string // who keeps the bytes, as in Origin.Provider, and under which name; both or none
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

// ProviderCall is what a provider did with a tool that it ran itself, such as a search: what it asked for, what came of it, or both, as
// the provider tells it. It is sent back as it came, to that provider, like the Opaque that it is, whose JSON is "" where the provider wants nothing back; its other fields are for readers.
type ProviderCall struct {
	Opaque
	Call    string     // the provider's id, which what it asked for and what came of it share; "" where it has none
	Name    string     // "web_search", "code_execution", …, or the provider's own word
	Input   string     // what was asked for: JSON, or code; "" in what came of it
	Output  string     // what came of it, as text, where the provider tells it; "" in what was asked for
	Sources []Citation // what a search found; must not be written to any more
	IsError bool
}

// Opaque is a provider's own part (a redacted thought, a kind that is not known here), kept byte for byte for that provider and
// left out for every other one.
type Opaque struct {
	Provider string
	JSON     string
}

func (Text) part()         {}
func (Reasoning) part()    {}
func (File) part()         {}
func (ToolCall) part()     {}
func (ToolResult) part()   {}
func (ProviderCall) part() {}
func (Opaque) part()       {}
