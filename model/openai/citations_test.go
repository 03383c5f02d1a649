package openai

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/message"
)

func TestAnnotationsAreCitations(t *testing.T) {
	const text = "é👋 ab"
	for name, c := range map[string]struct {
		annotation string
		want       message.Citation
	}{
		"a page":                    {`{"type":"url_citation","start_index":3,"end_index":5,"url":"https://x","title":"X"}`, message.Citation{URL: "https://x", Title: "X", Start: 7, End: 9}},
		"a page, of Chat":           {`{"type":"url_citation","url_citation":{"start_index":1,"end_index":2,"url":"https://x","title":"X"}}`, message.Citation{URL: "https://x", Title: "X", Start: 2, End: 6}},
		"with words, of OpenRouter": {`{"type":"url_citation","url_citation":{"start_index":0,"end_index":0,"url":"https://x","title":"X","content":"It is so."}}`, message.Citation{URL: "https://x", Title: "X", Quote: "It is so."}},
		"a file":                    {`{"type":"file_citation","file_id":"file-1","filename":"a.txt","index":3}`, message.Citation{Title: "a.txt"}},
		"a file of a container":     {`{"type":"container_file_citation","container_id":"c","file_id":"cfile_1","filename":"a.png","start_index":0,"end_index":1}`, message.Citation{Title: "a.png", End: 2}},
		"a path":                    {`{"type":"file_path","file_id":"file-1","index":0}`, message.Citation{Title: "file-1"}},
		"too far":                   {`{"type":"url_citation","start_index":1,"end_index":99,"url":"https://x"}`, message.Citation{URL: "https://x", Start: 2, End: 9}},
		"all too far":               {`{"type":"url_citation","start_index":98,"end_index":99,"url":"https://x"}`, message.Citation{URL: "https://x"}},
		"backwards":                 {`{"type":"url_citation","start_index":4,"end_index":2,"url":"https://x"}`, message.Citation{URL: "https://x"}},
		"below nothing":             {`{"type":"url_citation","start_index":-5,"end_index":1,"url":"https://x"}`, message.Citation{URL: "https://x", End: 2}},
		"beyond all numbers":        {`{"type":"url_citation","start_index":-1e300,"end_index":1e300,"url":"https://x"}`, message.Citation{URL: "https://x"}},
		"no numbers":                {`{"type":"url_citation","start_index":"1","end_index":null,"url":"https://x"}`, message.Citation{URL: "https://x"}},
	} {
		r, err := stateless().decode([]byte(output(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `","annotations":[7,{},` + c.annotation + `]}]}`)))
		if err != nil {
			t.Fatal(err)
		}
		got := parts(r.Message)[0].(message.Text)
		if diff := cmp.Diff([]message.Citation{c.want}, got.Citations); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !strings.Contains(got.Extra, c.annotation) {
			t.Errorf("%s: the provider's own form is not kept: %s", name, got.Extra)
		}
	}
}

// The text and the numbers are OpenAI's own, recorded: the letters beyond ASCII count as one each.
func TestCitationsAreCountedInCharacters(t *testing.T) {
	const text = "**Political Developments:**\n\n- **Presidential Election:** On June 1, 2024, entrepreneur Halla Tómasdóttir was elected President of Iceland, succeeding Guðni Th. Jóhannesson, who did not seek a third term. Tómasdóttir assumed office on August 1, 2024. ([en.wikipedia.org](https://en.wikipedia.org/wiki/2024_Icelandic_presidential_election?utm_source=openai))"
	const before = 653 // characters of the recorded text
	got := citations(text, fmt.Appendf(nil, `[{"end_index":%d,"start_index":%d,"title":"2024 Icelandic presidential election","type":"url_citation","url":"https://en.wikipedia.org/wiki/2024_Icelandic_presidential_election?utm_source=openai"}]`, 1010-before, 904-before))
	if said := text[got[0].Start:got[0].End]; said != "([en.wikipedia.org](https://en.wikipedia.org/wiki/2024_Icelandic_presidential_election?utm_source=openai))" {
		t.Errorf("%q", said)
	}
}

func TestCharactersAreFoundInLongTexts(t *testing.T) {
	text := strings.Repeat("aé世👋", 1000)
	at := characters{text: text}
	var want int
	for n := range int64(4001) {
		if got := at.byte(n); got != want {
			t.Fatalf("character %d begins at byte %d, not %d", n, want, got)
		}
		_, size := utf8.DecodeRuneInString(text[want:])
		want += size
	}
	for _, n := range []int64{4001, 4352, 9999, 10000, 1 << 62} {
		if got := at.byte(n); got != len(text) {
			t.Errorf("character %d: %d", n, got)
		}
	}
}

func TestATextWithoutAnnotationsCostsNothingMore(t *testing.T) {
	text, list := strings.Repeat("é", 100), []byte(`[]`)
	if n := testing.AllocsPerRun(100, func() { citations(text, list) }); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}
