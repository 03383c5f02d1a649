package engine

import "strings"

// Accepts reports whether the caller takes output of a media type ("text/plain"). Ranges (text/*, */*) are understood, case and parameters
// (; charset=utf-8) don't matter. A run without OutputModes takes everything.
func (r Run) Accepts(mediaType string) bool {
	if len(r.OutputModes) == 0 {
		return true
	}
	want := bare(mediaType)
	kind, _, _ := strings.Cut(want, "/")
	for _, m := range r.OutputModes {
		if m = bare(m); m == want || m == "*/*" || m == kind+"/*" {
			return true
		}
	}
	return false
}

// bare is a media type without its parameters, in lower case.
func bare(mediaType string) string {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return strings.ToLower(strings.TrimSpace(mediaType))
}
