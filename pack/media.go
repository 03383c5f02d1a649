package pack

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// Admit says whether a user may send the files of a message: whether the prompt takes files of their type and format, how large each is, how long a wav file lasts, and how many images there are. The error,
// errdefs.Validation, names everything at once; what [message.Message.CheckFiles] finds it names first, and alone. A prompt without media says nothing about files besides. How large a file is that is only an address, and how long it lasts, is not known
// here, and not looked at.
func (p *Prompt) Admit(m message.Message) error {
	if err := m.CheckFiles(); err != nil {
		return errdefs.Validation.Errorf("pack: prompt %s: %w", p.ID, err)
	}
	if p.Media == nil {
		return nil
	}
	var wrong []string
	images := 0
	for f := range message.Of[message.File](m) {
		name := f.Name
		if name == "" {
			name = f.MIME
		}
		kind := p.Media.kind(f)
		if kind == "image" {
			images++
		}
		if err := p.Media.admit(kind, f); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %s", clip(name), err))
		}
	}
	if limit := p.Media.Image; limit != nil && limit.MaxPerMessage > 0 && images > limit.MaxPerMessage {
		wrong = append(wrong, fmt.Sprintf("there are %d images: send at most %d", images, limit.MaxPerMessage))
	}
	if len(wrong) == 0 {
		return nil
	}
	return errdefs.Validation.Errorf("pack: prompt %s: %s", p.ID, strings.Join(wrong, "; "))
}

// kind is image, audio, video, the name of a type in Other that has the file's format, or document.
func (m *Media) kind(f message.File) string {
	switch general, _, _ := strings.Cut(mediaType(f.MIME), "/"); general {
	case "image", "audio", "video":
		return general
	}
	for _, name := range slices.Sorted(maps.Keys(m.Other)) {
		if allows(m.Other[name].AllowedFormats, f) {
			return name
		}
	}
	return "document"
}

func (m *Media) admit(kind string, f message.File) error {
	if !m.Enabled {
		return fmt.Errorf("this prompt takes no files")
	}
	if len(m.SupportedTypes) > 0 && !slices.Contains(m.SupportedTypes, kind) {
		return fmt.Errorf("this prompt takes no files of the type %s: send %s", kind, strings.Join(m.SupportedTypes, " or "))
	}
	size, formats := m.limits(kind)
	if len(formats) > 0 && !allows(formats, f) {
		return fmt.Errorf("it is no %s", strings.Join(formats, " or "))
	}
	if size > 0 && len(f.Data) > size<<20 {
		return fmt.Errorf("it has more than %d MiB", size)
	}
	if kind == "audio" && m.Audio != nil && m.Audio.MaxDurationSec > 0 && f.Data != "" && formatOf(f) == "wav" {
		seconds, err := wavSeconds(f.Data)
		if err != nil {
			return fmt.Errorf("how long it lasts can't be told: %w", err)
		}
		if seconds > float64(m.Audio.MaxDurationSec) {
			return fmt.Errorf("it lasts longer than %d seconds", m.Audio.MaxDurationSec)
		}
	}
	return nil
}

func (m *Media) limits(kind string) (megabytes int, formats []string) {
	switch {
	case kind == "image" && m.Image != nil:
		return m.Image.MaxSizeMB, m.Image.AllowedFormats
	case kind == "audio" && m.Audio != nil:
		return m.Audio.MaxSizeMB, m.Audio.AllowedFormats
	case kind == "video" && m.Video != nil:
		return m.Video.MaxSizeMB, m.Video.AllowedFormats
	case kind == "document" && m.Document != nil:
		return m.Document.MaxSizeMB, m.Document.AllowedFormats
	}
	other := m.Other[kind]
	return other.MaxSizeMB, other.AllowedFormats
}

// sameFormats are names of formats that mean what others do.
var sameFormats = map[string]string{
	"jpg": "jpeg", "tif": "tiff", "svg+xml": "svg", "mpeg": "mp3", "mpga": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "x-m4a": "m4a", "quicktime": "mov", "x-msvideo": "avi", "x-matroska": "mkv",
	"plain": "txt", "text": "txt", "markdown": "md", "vnd.openxmlformats-officedocument.wordprocessingml.document": "docx", "vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
	"vnd.openxmlformats-officedocument.presentationml.presentation": "pptx", "msword": "doc", "vnd.ms-excel": "xls",
}

// mediaType is a MIME type as types are compared: lower case, without parameters.
func mediaType(name string) string {
	name, _, _ = strings.Cut(name, ";")
	return strings.ToLower(strings.TrimSpace(name))
}

// knownFormats are the usual formats of the types that the format of packs names, as format has them.
var knownFormats = map[string][]string{
	"image":    strings.Fields("jpeg png gif webp bmp tiff svg heic heif avif ico apng jxl"),
	"audio":    strings.Fields("mp3 wav ogg oga opus flac m4a aac mp4 webm aiff wma amr pcm l16 basic midi"),
	"video":    strings.Fields("mp4 webm mov avi mkv m4v mp3 mpg ogg ogv flv wmv 3gpp 3gp x-flv x-ms-wmv"), // mp3: what format makes of mpeg
	"document": strings.Fields("pdf txt md doc docx xls xlsx ppt pptx csv tsv json jsonl xml html htm rtf odt ods odp epub yaml yml tex log"),
}

// formats are those that files of the types that the format of packs names may have.
func (m *Media) formats() map[string][]string {
	all := map[string][]string{}
	for kind := range knownFormats {
		if _, formats := m.limits(kind); len(formats) > 0 {
			all[kind] = formats
		}
	}
	return all
}

// format is the usual name of a format, of a file's ending or of a MIME type.
func format(name string) string {
	name = strings.TrimPrefix(mediaType(name), ".")
	if _, sub, ok := strings.Cut(name, "/"); ok {
		name = sub
	}
	if same, ok := sameFormats[name]; ok {
		return same
	}
	return name
}

// formatOf is a file's format, by its MIME type, or where that names none (application/octet-stream), by the end of its name.
func formatOf(f message.File) string {
	is := format(f.MIME)
	if ending := filepath.Ext(f.Name); ending != "" && (is == "octet-stream" || is == "") {
		is = format(ending)
	}
	return is
}

// allows reports whether a file has one of some formats.
func allows(formats []string, f message.File) bool {
	is := formatOf(f)
	return slices.ContainsFunc(formats, func(name string) bool { return format(name) == is })
}
