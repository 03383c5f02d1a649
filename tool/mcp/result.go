package mcp

import (
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// longestText is how much of a result's text a model is told, in bytes: the beginning and the end.
const longestText = 100_000

// result is what a model is told of a server's result.
func result(r *sdk.CallToolResult) tool.Result {
	text, files := contents(r.Content)
	if text == "" && r.StructuredContent != nil {
		if b, err := encode(r.StructuredContent); err == nil {
			text = string(b)
		}
	}
	return tool.Result{Content: bounded(text), Files: files, IsError: r.IsError}
}

// contents gives the texts, one a line, and the files.
func contents(all []sdk.Content) (string, []message.File) {
	var texts []string
	var files []message.File
	file := func(mime, name string, data []byte) {
		files = append(files, message.File{MIME: mime, Name: name, Data: string(data)})
	}
	for _, c := range all {
		switch c := c.(type) {
		case *sdk.TextContent:
			texts = append(texts, c.Text)
		case *sdk.ImageContent:
			file(c.MIMEType, "", c.Data)
		case *sdk.AudioContent:
			file(c.MIMEType, "", c.Data)
		case *sdk.EmbeddedResource:
			if c.Resource == nil {
				continue
			}
			t, f := resource(c.Resource)
			texts, files = append(texts, t), append(files, f...)
		case *sdk.ResourceLink:
			texts = append(texts, fmt.Sprintf("[resource %s]", described(c.URI, c.Name, c.Description, c.MIMEType)))
		default:
			texts = append(texts, fmt.Sprintf("[a part of type %T is left out]", c))
		}
	}
	return strings.Join(texts, "\n"), files
}

// resource gives the content of a resource: a text under its address, or a file.
func resource(r *sdk.ResourceContents) (string, []message.File) {
	if len(r.Blob) == 0 {
		return "[resource " + r.URI + "]\n" + r.Text, nil
	}
	mime := r.MIMEType
	if mime == "" {
		mime = "application/octet-stream"
	}
	return "[resource " + r.URI + " is the file]", []message.File{{MIME: mime, Name: r.URI, Data: string(r.Blob)}}
}

// described is a thing that has an address, on one line.
func described(uri, name, description, mime string) string {
	out := uri
	if name != "" && name != uri {
		out += " " + name
	}
	if mime != "" {
		out += " (" + mime + ")"
	}
	if description != "" {
		out += ": " + strings.Join(strings.Fields(description), " ")
	}
	return out
}

// bounded leaves out the middle of a text that is too long.
func bounded(s string) string {
	if len(s) <= longestText {
		return s
	}
	head, end := s[:longestText/2], s[len(s)-longestText/2:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n[… %d of %d bytes are left out …]\n", len(s)-longestText, len(s)) + strings.ToValidUTF8(end, "")
}
