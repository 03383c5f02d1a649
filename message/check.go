package message

import (
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// CheckFiles says which files of m can be nobody's: those without exactly one of Data, URL and Hash (none, or one, where a provider keeps them under an ID), those whose MIME type is none, and those whose URL is not of http or https. The error, errdefs.Validation, names each, by its name, its type or
// its number, and what is wrong with it. Whether the bytes are there, and what they are, is not looked at; nor are the files of tools' results.
func (m Message) CheckFiles() error {
	if !m.HasFiles() {
		return nil
	}
	var wrong []string
	n := 0
	for f := range Of[File](m) {
		n++
		why := f.wrong()
		if why == "" {
			continue
		}
		name := f.Name
		if name == "" {
			name = f.MIME
		}
		if name == "" {
			name = fmt.Sprintf("file %d", n)
		}
		wrong = append(wrong, fmt.Sprintf("%s: %s", clipped(name), why))
	}
	if len(wrong) == 0 {
		return nil
	}
	return errdefs.Validation.Errorf("%s", strings.Join(wrong, "; "))
}

// wrong says what is wrong with the form of a file; "" for nothing.
func (f File) wrong() string {
	if f.MIME == "" {
		return "it has no MIME type: give one, such as image/png"
	}
	if t, _, err := mime.ParseMediaType(f.MIME); err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || !strings.Contains(t, "/") {
		return fmt.Sprintf("its MIME type %q is wrong: want one such as image/png", clipped(f.MIME))
	}
	var has []string
	for _, at := range []struct{ name, value string }{{"Data", f.Data}, {"URL", f.URL}, {"Hash", f.Hash}} {
		if at.value != "" {
			has = append(has, at.name)
		}
	}
	switch {
	case (f.ID == "") != (f.Provider == ""):
		return "Provider and ID go together: give both or none"
	case len(has) == 0 && f.ID != "":
		return ""
	case len(has) == 0:
		return "it has no bytes: give one of Data, URL and Hash"
	case len(has) > 1:
		return fmt.Sprintf("it has %s: give one of them", strings.Join(has, " and "))
	case f.URL == "":
		return ""
	}
	if strings.EqualFold(f.URL[:min(5, len(f.URL))], "data:") { // one provider of three takes it
		return "its URL begins with data: give the bytes as Data"
	}
	u, err := url.Parse(f.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Sprintf("its URL %q is wrong: want http or https, and a host", clipped(f.URL))
	}
	return ""
}

// clipped is a text of others, short enough for an error.
func clipped(s string) string {
	const most = 100
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
