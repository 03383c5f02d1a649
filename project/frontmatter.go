package project

import "github.com/pawl-dev/pawl/internal/frontmatter"

// frontMatter is the YAML at the head of a Markdown file.
type frontMatter struct {
	place  Place // of the file
	fields []field
	body   string // what follows
}

// field is a member of it.
type field struct {
	frontmatter.Field
	at Place
}

// parseFrontMatter splits a file whose first line is ---.
func parseFrontMatter(at Place, text string) (frontMatter, *Problem) {
	t, wrong := frontmatter.Parse(text)
	out := frontMatter{place: at, body: t.Body}
	for _, f := range t.Fields {
		out.fields = append(out.fields, field{f, Place{at.File, f.Line, f.Column}})
	}
	return out, inFile(at, wrong)
}

// inFile is a problem of a file; nil stays nil.
func inFile(at Place, p *frontmatter.Problem) *Problem {
	if p == nil {
		return nil
	}
	return &Problem{Place{at.File, p.Line, p.Column}, p.Reason, p.Remedy}
}

// text reads a field of at most so many characters; 0: any.
func (f field) text(most int) (string, *Problem) {
	s, wrong := f.Text(most)
	return s, inFile(f.at, wrong)
}

// list reads a list of texts, however it is written.
func (f field) list() ([]string, *Problem) {
	all, wrong := f.List()
	return all, inFile(f.at, wrong)
}
