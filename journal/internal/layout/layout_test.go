package layout

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// drawer is tables in memory: the rows of one session, and the parts.
type drawer struct {
	rows  []row
	texts []string // references, of each row
	parts shelf
	asked [][]string // for which parts, each time
	held  []int      // how many bytes of them were given at once
}

func (d *drawer) say(texts ...string) {
	for _, text := range texts {
		var p Parts
		data, err := journal.EncodeData(journal.Said{Message: message.User(text)})
		if err != nil {
			panic(err)
		}
		rest, refs := p.Cut("said", data)
		for _, part := range p.Sorted() {
			d.parts[part.Hash] = part.Data
		}
		d.rows = append(d.rows, row{Entry: journal.Entry{Session: "s", Seq: int64(len(d.rows) + 1)}, kind: "said", data: rest})
		d.texts = append(d.texts, refs)
	}
}

func (d *drawer) tables() Tables {
	return Tables{
		Store: "journal/drawer", Where: "here", What: "the drawer",
		Stretches: func(context.Context, string) ([]Stretch, error) {
			return []Stretch{{Num: 1, Session: "s", UpTo: int64(len(d.rows)), Own: true}}, nil
		},
		Page: func(_ context.Context, s Stretch, p *Page) error {
			for i, r := range d.rows {
				if r.Seq > s.After && (s.Own || r.Seq <= s.UpTo) {
					mine := bytes.Clone(r.data)
					enough := p.Add(r.Entry, r.kind, mine, d.texts[i])
					if clear(mine); enough { // it is the page's no longer
						break
					}
				}
			}
			return nil
		},
		Parts: func(_ context.Context, hashes []string, found func(string, []byte)) error {
			d.asked = append(d.asked, hashes)
			held := 0
			for _, h := range hashes {
				if b, ok := d.parts[h]; ok {
					found(h, b)
					held += len(b)
				}
			}
			d.held = append(d.held, held)
			return nil
		},
	}
}

// heard is what a reader gets, and the error that ends it.
func (d *drawer) heard(each func()) (texts []string, err error) {
	for e, err := range d.tables().Read(context.Background(), "s", 0) {
		if err != nil {
			return texts, err
		}
		texts = append(texts, e.Data.(journal.Said).Message.Text())
		each()
	}
	return texts, nil
}

func TestPartsAreReadForManyEntriesAtOnceAndOnce(t *testing.T) {
	d := &drawer{parts: shelf{}}
	var want []string
	image, tall := strings.Repeat("image", 100_000), strings.Repeat("tall", 200_000)
	for i := range 8 {
		want = append(want, "short", image, fmt.Sprint(i, strings.Repeat("own", 60_000)), image+tall)
	}
	d.say(want...)
	got, err := d.heard(func() {})
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%d texts, %v", len(got), err)
	}
	if len(d.asked) > len(want) {
		t.Errorf("%d queries for parts of %d entries", len(d.asked), len(want))
	}
	for i, n := range d.held {
		if n > PageBytes && len(d.asked[i]) > 1 {
			t.Errorf("%d bytes in %d parts at once", n, len(d.asked[i]))
		}
	}

	same := &drawer{parts: shelf{}}
	same.say(slices.Repeat([]string{image}, 50)...)
	if got, err := same.heard(func() {}); err != nil || len(got) != 50 || len(same.asked) != 1 {
		t.Errorf("%d texts, %d queries for one part: %v", len(got), len(same.asked), err)
	}
}

func TestAPartThatIsGoneOrAlteredIsDamageUnlessItsEntryIsGoneToo(t *testing.T) {
	long := strings.Repeat("long", 2000)
	for name, c := range map[string]struct {
		spoil func(d *drawer)
		class *errdefs.Class
		says  []string
	}{
		"missing":  {func(d *drawer) { clear(d.parts) }, errdefs.Internal, []string{"entry 2 of session s: part ", "is missing: the drawer is damaged"}},
		"altered":  {func(d *drawer) { spoil(d.parts, func(b []byte) { b[7] ^= 1 }) }, errdefs.Internal, []string{"entry 2 of session s: part ", "was altered: the drawer is damaged"}},
		"deleted":  {func(d *drawer) { clear(d.parts); d.rows, d.texts = nil, nil }, errdefs.NotFound, []string{"session s was deleted while it was read"}},
		"no place": {func(d *drawer) { d.rows[1].data = []byte("{}") }, errdefs.Internal, []string{"entry 2 of session s: part ", "no string is empty: the drawer is damaged"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &drawer{parts: shelf{}}
			d.say("short", long)
			var texts []string
			var err error
			if name == "no place" {
				c.spoil(d)
				texts, err = d.heard(func() {})
			} else {
				texts, err = d.heard(func() { c.spoil(d) })
			}
			if !slices.Equal(texts, []string{"short"}) || errdefs.Of(err) != c.class {
				t.Fatalf("%d texts, %v (%v)", len(texts), err, errdefs.Of(err))
			}
			for _, want := range append(c.says, "journal/drawer: read: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in %v", want, err)
				}
			}
		})
	}
	d := &drawer{parts: shelf{}}
	d.say("short", long)
	d.texts[1] = "nonsense"
	if _, err := d.heard(func() {}); errdefs.Of(err) != errdefs.Internal || !strings.Contains(err.Error(), "entry 2 of session s: the references") {
		t.Errorf("got %v", err)
	}
}

func spoil(parts shelf, how func([]byte)) {
	for hash, b := range parts {
		parts[hash] = bytes.Clone(b)
		how(parts[hash])
	}
}

func TestWhoHasReadAllOfItAsksForNoPage(t *testing.T) {
	d := &drawer{parts: shelf{}}
	d.say("one", "two", "three")
	tables, pages := d.tables(), 0
	page := tables.Page
	tables.Page = func(ctx context.Context, s Stretch, p *Page) error {
		pages++
		return page(ctx, s, p)
	}
	for after, want := range map[int64]int{0: 1, 2: 1, 3: 0, 4: 0} {
		pages = 0
		for _, err := range tables.Read(t.Context(), "s", after) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if pages != want {
			t.Errorf("after entry %d of 3: %d pages were asked for, want %d", after, pages, want)
		}
	}
}
