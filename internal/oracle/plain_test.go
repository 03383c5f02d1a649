package oracle

// What may be said in two ways is written in one before requests are compared, so that what it says is compared, too. Each vendor documents
// that the two mean the same.

// plainAnthropic writes a text that stands for a list of blocks as that list.
func plainAnthropic(body object) {
	list := func(o object, name string) {
		if text, ok := o[name].(string); ok {
			o[name] = []any{object{"type": "text", "text": text}}
		}
	}
	list(body, "system")
	for m := range objects(body["messages"]) {
		list(m, "content")
		for block := range objects(m["content"]) {
			list(block, "content")
		}
	}
}

// plainChat leaves out a content that is null.
func plainChat(body object) {
	for m := range objects(body["messages"]) {
		if m["content"] == nil {
			delete(m, "content")
		}
	}
}

func plainResponses(object) {}

// plainGemini leaves out empty objects and texts, and the role of instructions, which is not read.
func plainGemini(body object) {
	empty := func(o object, name string) {
		if v, ok := o[name].(object); ok && len(v) == 0 {
			delete(o, name)
		}
	}
	empty(body, "generationConfig")
	if instruction, ok := body["systemInstruction"].(object); ok {
		delete(instruction, "role")
	}
	for c := range objects(body["contents"]) {
		for part := range objects(c["parts"]) {
			if part["text"] == "" {
				delete(part, "text")
			}
			if f, ok := part["functionCall"].(object); ok {
				empty(f, "args")
			}
		}
	}
}
