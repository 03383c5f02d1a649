package message_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

func TestWhichFilesCanBeNobodys(t *testing.T) {
	for name, c := range map[string]struct {
		file message.File
		want string // "": nothing is wrong
	}{
		"data":                {message.File{MIME: "image/png", Data: "x"}, ""},
		"an address":          {message.File{MIME: "image/png", URL: "HTTP://[::1]:80/a"}, ""},
		"a hash":              {message.File{MIME: "image/png", Hash: "sha256:00"}, ""},
		"with parameters":     {message.File{MIME: "Text/Plain; charset=UTF-8", Data: "x"}, ""},
		"parameters in error": {message.File{MIME: "text/plain; x", Data: "x"}, ""},
		"nothing":             {message.File{}, "file 2: it has no MIME type"},
		"no bytes":            {message.File{MIME: "image/png"}, "image/png: it has no bytes"},
		"two places":          {message.File{MIME: "image/png", Name: "a", Data: "x", Hash: "y"}, "a: it has Data and Hash: give one"},
		"three places":        {message.File{MIME: "image/png", Name: "a", Data: "x", URL: "https://a", Hash: "y"}, "a: it has Data and URL and Hash"},
		"no type":             {message.File{MIME: "png", Data: "x"}, `png: its MIME type "png" is wrong`},
		"half a type":         {message.File{MIME: "image/", Data: "x"}, `its MIME type "image/" is wrong`},
		"of this machine":     {message.File{MIME: "image/png", URL: "file:///etc/passwd"}, `its URL "file:///etc/passwd" is wrong`},
		"no scheme":           {message.File{MIME: "image/png", URL: "a.png"}, `its URL "a.png" is wrong`},
		"no host":             {message.File{MIME: "image/png", URL: "http:a.png"}, `its URL "http:a.png" is wrong`},
		"bytes as an address": {message.File{MIME: "image/png", URL: "DATA:image/png;base64,eA=="}, "give the bytes as Data"},
		"long":                {message.File{MIME: "image/png", URL: strings.Repeat("ä", 500)}, "…"},
	} {
		err := message.New(message.RoleUser, message.File{MIME: "a/b", Data: "x"}, message.Text{Text: "x"}, c.file).CheckFiles()
		switch {
		case c.want == "":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300:
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	two := message.New(message.RoleUser, message.File{}, message.File{MIME: "a/b"}).CheckFiles()
	if two == nil || two.Error() != "file 1: it has no MIME type: give one, such as image/png; a/b: it has no bytes: give one of Data, URL and Hash" {
		t.Error(two)
	}
	if err := (message.Message{}).CheckFiles(); err != nil {
		t.Error(err)
	}
}
