package pack_test

import (
	"encoding/binary"
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
		{limited, []message.File{png, {MIME: "image/jpeg", Data: "x"}}, ""},
		{limited, []message.File{png, png, png}, "there are 3 images: send at most 2"},
		{limited, []message.File{{MIME: "image/gif", Data: "x"}}, "image/gif: it is no jpg or PNG"},
		{limited, []message.File{{MIME: "image/png", Name: "a.png", Data: large}}, "a.png: it has more than 1 MiB"},
		{limited, []message.File{{MIME: "image/png", URL: "https://example.com/a.png"}}, ""},
		{limited, []message.File{{MIME: "audio/wav", Data: "x"}}, "audio/wav: this prompt takes no files of the type audio: send image or document or model3d"},
		{limited, []message.File{{MIME: "application/pdf", Data: "x"}, {MIME: "text/plain; charset=utf-8", Data: "x"}, {MIME: "application/octet-stream", Name: "a.OBJ", Data: large}}, ""},
		{limited, []message.File{{MIME: "application/octet-stream", Name: "a.exe", Data: "x"}}, "a.exe: it is no pdf or .txt"},
		{limited, []message.File{{MIME: "image/gif", Name: "a.png", Data: "x"}}, "a.png: it is no jpg or PNG"},
		{sound, []message.File{{MIME: "audio/x-wav", Data: "x"}, {MIME: "audio/mpeg", Data: "x"}, {MIME: "video/mp4", Data: "x"}}, ""},
		{sound, []message.File{{MIME: "audio/ogg", Data: "x"}, {MIME: "video/mp4", Data: large}}, "audio/ogg: it is no audio/wav or mp3; video/mp4: it has more than 1 MiB"},
		{limited, []message.File{{MIME: "IMAGE/PNG", Data: "x"}, {MIME: "Image/JPG; q=1", Data: "x"}}, ""},
		{limited, []message.File{{MIME: "IMAGE/PNG", Name: "a.png", Data: large}}, "a.png: it has more than 1 MiB"},
		{limited, []message.File{{MIME: "Image/png; x", Data: "x"}, {MIME: "image/PNG", Data: "x"}, png}, "there are 3 images: send at most 2"},
		{limited, []message.File{{MIME: "Audio/wav", Data: "x"}}, "Audio/wav: this prompt takes no files of the type audio: send image or document or model3d"},
		{sound, []message.File{{MIME: "AUDIO/WAV; codecs=1", Data: "x"}}, ""},
		{media(`{"enabled": true, "image": {"allowed_formats": ["image/JPG; q=1"]}}`), []message.File{{MIME: "image/jpeg", Data: "x"}}, ""},
		{limited, []message.File{{}, {MIME: "video/mp4", Data: "x"}}, "file 1: it has no MIME type: give one, such as image/png"},
		{parsed(t, `"system_template": "x"`), []message.File{{MIME: "image/png"}}, "image/png: it has no bytes: give one of Data, URL and Hash"},
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

// wav is a file of so many bytes of sound: 16 bits, two channels, 8000 samples a second.
func wav(change func(header []byte), sound int, before string) string {
	h := []byte("RIFF\x00\x00\x00\x00WAVE" + before + "fmt \x10\x00\x00\x00\x01\x00\x02\x00\x40\x1f\x00\x00\x00\x7d\x00\x00\x04\x00\x10\x00data")
	h = binary.LittleEndian.AppendUint32(h, uint32(sound))
	if change != nil {
		change(h)
	}
	return string(h) + strings.Repeat("\x00", sound)
}

func TestHowLongAWavFileLasts(t *testing.T) {
	p := parsed(t, `"system_template": "x", "media": {"enabled": true, "audio": {"max_duration_sec": 2}, "video": {"max_duration_sec": 2}}`)
	const second = 32000
	put := func(at int, b ...byte) func([]byte) { return func(h []byte) { copy(h[at:], b) } }
	for name, c := range map[string]struct {
		file message.File
		want string
	}{
		"as long as it may":        {message.File{MIME: "audio/wav", Data: wav(nil, 2*second, "")}, ""},
		"longer":                   {message.File{MIME: "audio/x-wav", Data: wav(nil, 2*second+4, "")}, "it lasts longer than 2 seconds"},
		"by its name":              {message.File{MIME: "application/octet-stream", Name: "a.wav", Data: wav(nil, 3*second, "")}, ""}, // a document
		"a chunk before":           {message.File{MIME: "audio/wav", Data: wav(nil, 3*second, "LIST\x03\x00\x00\x00abc\x00")}, "it lasts longer"},
		"a size that is not known": {message.File{MIME: "audio/wav", Data: wav(put(40, 0xff, 0xff, 0xff, 0xff), 3*second, "")}, "it lasts longer"},
		"a size of nothing":        {message.File{MIME: "audio/wav", Data: wav(put(40, 0, 0, 0, 0), 3*second, "")}, "it lasts longer"},
		"a rate that is not so":    {message.File{MIME: "audio/wav", Data: wav(put(28, 0, 0, 0xff, 0), 3*second, "")}, "can't be told: its format contradicts itself"},
		"no rate":                  {message.File{MIME: "audio/wav", Data: wav(put(24, 0, 0, 0, 0, 0, 0, 0, 0), 3*second, "")}, "contradicts itself"},
		"frames that are not so":   {message.File{MIME: "audio/wav", Data: wav(put(28, 0, 0xfa, 0, 0, 8, 0), 3*second, "")}, "contradicts itself"},
		"compressed":               {message.File{MIME: "audio/wav", Data: wav(put(20, 2), second, "")}, "its sound is compressed"},
		"no sound":                 {message.File{MIME: "audio/wav", Data: wav(nil, 0, "")[:36]}, "it has no sound"},
		"cut off":                  {message.File{MIME: "audio/wav", Data: wav(nil, 0, "")[:24]}, "it is cut off"},
		"sound first":              {message.File{MIME: "audio/wav", Data: "RIFF\x00\x00\x00\x00WAVEdata\x00\x00\x00\x00"}, "before its format"},
		"something else":           {message.File{MIME: "audio/wav", Data: "OggS"}, "it is no WAVE file"},
		"an address":               {message.File{MIME: "audio/wav", URL: "https://example.com/a.wav"}, ""},
		"another format":           {message.File{MIME: "audio/mpeg", Data: "ID3"}, ""},
	} {
		err := p.Admit(message.New(message.RoleUser, c.file))
		if (c.want == "") != (err == nil) || err != nil && (!errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for formats, want := range map[string]int{`["wav"]`: 0, `["audio/x-wav", "WAV"]`: 0, `["wav", "mp3"]`: 1, `[]`: 1} {
		_, warnings := pack.Validate(minimal(`"system_template": "x", "media": {"enabled": true, "audio": {"max_duration_sec": 2, "allowed_formats": ` + formats + `}}`))
		if len(warnings) != want || want == 1 && !strings.Contains(warnings[0].String(), "audio.max_duration_sec: it has no effect: how long a file lasts is looked at for audio in wav alone") {
			t.Errorf("%s: %v", formats, warnings)
		}
	}
}

func FuzzWav(f *testing.F) {
	p := parsed(f, `"system_template": "x", "media": {"enabled": true, "audio": {"max_duration_sec": 2}}`)
	f.Add(wav(nil, 10, "LIST\x03\x00\x00\x00abc\x00"))
	f.Add(wav(nil, 3*32000, "")[:60])
	f.Fuzz(func(t *testing.T, data string) {
		err := p.Admit(message.New(message.RoleUser, message.File{MIME: "audio/wav", Data: data}))
		if err == nil && data != "" && !strings.HasPrefix(data, "RIFF") {
			t.Errorf("%q is taken", data)
		}
	})
}
