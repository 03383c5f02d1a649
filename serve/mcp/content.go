package mcp

import (
	"cmp"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/message"
)

// contents are a text and files as parts of the protocol's.
func contents(text string, files []message.File) []sdk.Content {
	out := []sdk.Content{}
	if text != "" || len(files) == 0 {
		out = append(out, &sdk.TextContent{Text: strings.ToValidUTF8(text, "\uFFFD")})
	}
	for _, f := range files {
		out = append(out, content(f))
	}
	return out
}

// content is a file: an image, a sound, a link to what is elsewhere, or a resource with what it holds.
func content(f message.File) sdk.Content {
	switch {
	case f.Data == "" && f.URL != "":
		return &sdk.ResourceLink{URI: f.URL, Name: cmp.Or(f.Name, f.URL), MIMEType: f.MIME}
	case strings.HasPrefix(f.MIME, "image/"):
		return &sdk.ImageContent{MIMEType: f.MIME, Data: []byte(f.Data)}
	case strings.HasPrefix(f.MIME, "audio/"):
		return &sdk.AudioContent{MIMEType: f.MIME, Data: []byte(f.Data)}
	}
	return &sdk.EmbeddedResource{Resource: resource(f.Name, f)}
}

// resource is the content at an address; a name without a scheme is one of a file.
func resource(uri string, f message.File) *sdk.ResourceContents {
	if !strings.Contains(uri, ":") {
		uri = "file:///" + strings.TrimLeft(uri, "/")
	}
	r := &sdk.ResourceContents{URI: uri, MIMEType: f.MIME}
	if isText(f.MIME) {
		r.Text = strings.ToValidUTF8(f.Data, "\uFFFD")
	} else {
		r.Blob = []byte(f.Data)
	}
	return r
}

func isText(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	return strings.HasPrefix(mime, "text/") || mime == "application/json" || strings.HasSuffix(mime, "+json") || strings.HasSuffix(mime, "+xml") || mime == "application/xml"
}

// messages parts messages into those of a prompt, which have one part each.
func messages(all []message.Message) []*sdk.PromptMessage {
	out := []*sdk.PromptMessage{}
	for _, m := range all {
		role := sdk.Role("user")
		if m.Role() == message.RoleAssistant {
			role = "assistant"
		}
		for p := range m.Parts() {
			switch p := p.(type) {
			case message.Text:
				out = append(out, &sdk.PromptMessage{Role: role, Content: &sdk.TextContent{Text: p.Text}})
			case message.File:
				out = append(out, &sdk.PromptMessage{Role: role, Content: content(p)})
			}
		}
	}
	return out
}
