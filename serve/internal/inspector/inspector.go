// Package inspector is a page that shows sessions as they are on record and as they go on, over the run API: hand-written, and whole in the program.
package inspector

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var page embed.FS

// policy lets the page load its own files and ask its own server, and nothing else. No text can become markup: there are no trusted types.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Register puts the page's files under / and /inspector/.
func Register(mux *http.ServeMux) {
	files, err := fs.ReadDir(page, "page")
	if err != nil { // it is in the program
		panic(err)
	}
	for _, f := range files {
		b, err := page.ReadFile(path.Join("page", f.Name()))
		if err != nil {
			panic(err)
		}
		at := "GET /inspector/" + f.Name()
		if f.Name() == "index.html" {
			at = "GET /{$}"
		}
		mux.HandleFunc(at, file(f.Name(), b))
	}
}

// Open reports whether a request is for a file of the page, which has nothing of anybody's.
func Open(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/inspector/"))
}

// kinds of the files, whatever the system thinks that they are.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

func file(name string, b []byte) http.HandlerFunc {
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	kind := kinds[path.Ext(name)]
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("ETag", tag)
		h.Set("Cache-Control", "no-cache") // another program has another page
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}
