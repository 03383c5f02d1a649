package openai

import (
	"encoding/base64"
	"mime"
	"strings"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// kindOf tells the kinds of files apart that the protocols have parts for: "image", "audio", "text", "pdf" or "".
func kindOf(f message.File) string {
	kind, _, _ := strings.Cut(f.MIME, "/")
	switch {
	case kind == "image", kind == "audio", kind == "text":
		return kind
	case mediaType(f) == "application/pdf":
		return "pdf"
	}
	return ""
}

func mediaType(f message.File) string {
	t, _, err := mime.ParseMediaType(f.MIME)
	if err != nil {
		return f.MIME
	}
	return t
}

// kept reports whether a file is one that keeper keeps.
func kept(f message.File, keeper string) bool { return f.ID != "" && f.Provider == keeper }

// misplaced tells what is wrong with where a file's bytes are; "" for nothing.
func misplaced(f message.File, url bool) string {
	switch {
	case f.Hash != "" && f.Data == "" && f.URL == "":
		return "it is still in the journal's store: resolve it before the call"
	case f.Data == "" && f.URL == "" && f.ID != "":
		return "this protocol takes only PDF by ID: give its data, or ask over Responses"
	case f.Data == "" && f.URL == "":
		return "it has neither data nor a URL"
	case f.Data == "" && !url:
		return "this protocol takes it only as data, not by URL"
	}
	return ""
}

// appendDataURL appends a data: URL as a JSON string.
func appendDataURL(dst []byte, f message.File) []byte {
	dst = wire.AppendString(dst, "data:"+f.MIME+";base64,")
	dst = base64.StdEncoding.AppendEncode(dst[:len(dst)-1], []byte(f.Data))
	return append(dst, '"')
}

// appendAddress appends where an image is: the bytes themselves, or its URL.
func appendAddress(dst []byte, f message.File) []byte {
	if f.Data != "" {
		return appendDataURL(dst, f)
	}
	return wire.AppendString(dst, f.URL)
}

// fileName gives the name that a file needs to have.
func fileName(f message.File) string {
	if f.Name != "" {
		return f.Name
	}
	return "document.pdf"
}

// textOf gives a text file as text, under its name.
func textOf(f message.File) string {
	if f.Name == "" {
		return f.Data
	}
	return f.Name + ":\n" + f.Data
}

// audioFormat gives the protocol's word for a sound file's format; "" when it has none.
func audioFormat(f message.File) string {
	switch mediaType(f) {
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}
