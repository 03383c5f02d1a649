package pack_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/pack"
)

func TestWhichFilesAUserMaySend(t *testing.T) {
	media := func(text string) *pack.Prompt { return parsed(t, `"system_template": "x", "media": `+text) }
	limited := media(`{"enabled": true, "supported_types": ["image", "document", "model3d"], "image": {"max_size_mb": 1, "allowed_formats": ["jpg", "PNG"], "max_images_per_msg": 2},
		"document": {"allowed_formats": ["pdf", ".txt"], "max_size_mb": 1}, "model3d": {"allowed_formats": ["obj"], "max_size_mb": 2, "validation_params": {}}}`)
	sound := media(`{"enabled": true, "audio": {"allowed_formats": ["audio/wav", "mp3"]}, "video": {"max_size_mb": 1}}`)
	png := message.File{MIME: "image/png", Name: "a.png", Data: "x"}
	large := strings.Repeat("x", 1<<20+1)
	for _, c := range []struct {
		prompt *pack.Prompt
		files  []message.File
		want   string
	}{
		{parsed(t, `"system_template": "x"`), []message.File{png}, ""},
		{media(`{"enabled": false}`), nil, ""},
		{media(`{"enabled": false}`), []message.File{png}, "a.png: this prompt takes no files"},
		{media(`{"enabled": true}`), []message.File{png, {MIME: "video/mp4", Data: large}}, ""},
		{limited, []message.File{png, {MIME: "image/jpeg"}}, ""},
		{limited, []message.File{png, png, png}, "there are 3 images: send at most 2"},
		{limited, []message.File{{MIME: "image/gif"}}, "image/gif: it is no jpg or PNG"},
		{limited, []message.File{{MIME: "image/png", Name: "a.png", Data: large}}, "a.png: it has more than 1 MiB"},
		{limited, []message.File{{MIME: "image/png", URL: "https://example.com/a.png"}}, ""},
		{limited, []message.File{{MIME: "audio/wav"}}, "audio/wav: this prompt takes no files of the type audio: send image or document or model3d"},
		{limited, []message.File{{MIME: "application/pdf"}, {MIME: "text/plain; charset=utf-8"}, {MIME: "application/octet-stream", Name: "a.OBJ", Data: large}}, ""},
		{limited, []message.File{{MIME: "application/octet-stream", Name: "a.exe"}}, "a.exe: it is no pdf or .txt"},
		{limited, []message.File{{MIME: "image/gif", Name: "a.png"}}, "a.png: it is no jpg or PNG"},
		{sound, []message.File{{MIME: "audio/x-wav"}, {MIME: "audio/mpeg"}, {MIME: "video/mp4"}}, ""},
		{sound, []message.File{{MIME: "audio/ogg"}, {MIME: "video/mp4", Data: large}}, "audio/ogg: it is no audio/wav or mp3; video/mp4: it has more than 1 MiB"},
	} {
		parts := []message.Part{message.Text{Text: "see"}}
		for _, f := range c.files {
			parts = append(parts, f)
		}
		err := c.prompt.Admit(message.New(message.RoleUser, parts...))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !errors.Is(err, errdefs.Validation) || !strings.HasSuffix(err.Error(), "pack: prompt chat: "+c.want)) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
