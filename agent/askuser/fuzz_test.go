package askuser

import (
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// A person's answer to a question is told by the labels of the options, or in the person's own words: nothing is chosen that is not there, and no fewer or more than may be.
func FuzzAnswer(f *testing.F) {
	for _, s := range [][2]string{{"red,blue,2", "1, 2."}, {"a,a", "A"}, {"x,y", ",,"}, {"x,y", ""}, {"1,0", "+1"}, {"a,b,c", "a,c,a"}} {
		f.Add(s[0], s[1], 0, 2)
	}
	f.Fuzz(func(t *testing.T, list, text string, least, most int) {
		var q Question
		for label := range strings.SplitSeq(list, ",") {
			q.Options = append(q.Options, Option{Label: label})
		}
		q.Min, q.Max = max(0, least), max(0, most)
		for _, q.Kind = range []Kind{Select, MultiSelect} {
			labels, ok := q.choose(text)
			if !ok {
				continue
			}
			if q.Kind == Select && len(labels) != 1 || q.Kind == MultiSelect && (len(labels) < q.Min || q.Max > 0 && len(labels) > q.Max) {
				t.Fatalf("%q to %+v: %q", text, q, labels)
			}
			for i, l := range labels {
				if !slices.Contains(q.Options, Option{Label: l}) || slices.Contains(labels[:i], l) {
					t.Fatalf("%q to %+v: %q", text, q, labels)
				}
			}
		}
	})
}

// A line is read up to its end and not a byte further, in whatever pieces it comes.
func FuzzLine(f *testing.F) {
	f.Add("yes\r\nand more")
	f.Add("\xff\n")
	f.Add("no end\r")
	f.Fuzz(func(t *testing.T, in string) {
		all := strings.NewReader(in)
		line, err := readLine(all)
		pieces, err2 := readLine(iotest.DataErrReader(iotest.HalfReader(strings.NewReader(in))))
		first, rest, ends := strings.Cut(in, "\n")
		if len(first) >= longest {
			return
		}
		if line != pieces && strings.TrimSuffix(line, "\r") != strings.TrimSuffix(pieces, "\r") || ends != (err == nil) || ends && all.Len() != len(rest) || ends && err2 != nil && len(rest) > 0 {
			t.Fatalf("%q: %q (%v), in pieces %q (%v); %d bytes are left", in, line, err, pieces, err2, all.Len())
		}
	})
}
