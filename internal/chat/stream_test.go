package chat

import (
	"strings"
	"testing"
	"time"
)

const reply = "A paragraph\nof two lines.\n\n- one\n\n  more of it\n- two\n\nText.\n\n```go\nfunc a() {}\n\nvar b\n```\nAnd `code`.\n\n1. a\n2. b\n"

func TestAReplyIsCutIntoBlocks(t *testing.T) {
	var s stream
	var got []string
	for _, r := range reply { // the smallest pieces
		if whole := s.add(string(r)); whole != "" {
			got = append(got, whole)
		}
	}
	got = append(got, s.end())
	want := []string{"A paragraph\nof two lines.\n\n", "- one\n\n  more of it\n- two\n\n", "Text.\n\n", "```go\nfunc a() {}\n\nvar b\n```\n", "And `code`.\n\n", "1. a\n2. b\n"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// However a reply comes, its blocks are the same, and nothing is lost.
func FuzzBlocks(f *testing.F) {
	f.Add(reply, 3)
	f.Add("~~~\na\n\n~~~~\nb", 1)
	f.Add("\n\n- a\r\n\r\nb\n\n", 2)
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = 1 + (size&0xff)%17
		blocks := func(size int) (all []string) {
			var s stream
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if whole := s.add(rest[:n]); whole != "" {
					all = append(all, whole)
				}
				rest = rest[n:]
			}
			return append(all, s.end())
		}
		pieces, bytes := blocks(size), blocks(1)
		if strings.Join(pieces, "") != text || strings.Join(bytes, "") != text {
			t.Errorf("%q of %q", pieces, text)
		}
		if last := len(bytes) - 1; pieces[len(pieces)-1] != bytes[last] {
			t.Errorf("the open block is %q, by bytes %q", pieces[len(pieces)-1], bytes[last])
		}
	})
}

// A line costs as much as it is long, however many pieces it comes in.
func TestALongLineIsLookedAtOnce(t *testing.T) {
	var s stream
	began := time.Now()
	for range 200_000 {
		s.add("ten bytes ")
	}
	if took := time.Since(began); len(s.rest()) != 2_000_000 || took > 5*time.Second {
		t.Errorf("%d bytes after %v", len(s.rest()), took)
	}
}
