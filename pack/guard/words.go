package guard

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// words refuses texts with any of a list of words. It finds them all in one pass (Aho and Corasick), whatever the number of words.
type words struct {
	words  []string // as they are written in the pack
	nodes  []node
	inside bool // a word counts also as a part of another
	depth  int  // of the longest word, in keys
}

// node is the longest beginning of a word that the text ends with.
type node struct {
	next  map[rune]int32
	fail  int32 // the next shorter one
	depth int32
	word  int32 // that ends here: an index, or -1
	also  int32 // the longest shorter one where a word ends; 0: none
}

// The most words, the most characters of one, and the most keys of all together: a character may fold to 18.
const (
	mostWords   = 10_000
	longestWord = 200
	mostKeys    = 200_000
)

func newWords(p Params) (Rule, error) {
	r := p.Read()
	list := r.Texts("words", "patterns")
	w := &words{nodes: []node{{word: -1}}, inside: r.OneOf("match_mode", "word_boundary", "substring") == "substring"}
	if len(list) == 0 {
		r.Missing("words", "list the words, such as [\"guarantee\"]")
	}
	if len(list) > mostWords {
		r.fault("words", fmt.Sprintf("it has %d words", len(list)), fmt.Sprintf("have at most %d", mostWords))
		list = nil
	}
	for _, word := range list {
		if utf8.RuneCountInString(word) > longestWord {
			r.fault("words", fmt.Sprintf("%q… is too long", string([]rune(word)[:20])), fmt.Sprintf("have at most %d characters in a word", longestWord))
		} else if !w.add(word) {
			r.fault("words", fmt.Sprintf("%q has nothing that can be seen", word), "remove it")
		}
		if len(w.nodes) > mostKeys {
			r.fault("words", fmt.Sprintf("together they have more than %d characters", mostKeys), "have fewer")
			break
		}
	}
	w.link()
	return w, r.Err()
}

// add puts a word into the tree; false when nothing of it is left after folding.
func (w *words) add(word string) bool {
	at := int32(0)
	f := newFolder()
	for _, c := range strings.TrimSpace(word) {
		f.keys(c, func(k rune) {
			next, ok := w.nodes[at].next[k]
			if !ok {
				next = int32(len(w.nodes)) //nolint:gosec // at most mostKeys, and what one word has more
				if w.nodes[at].next == nil {
					w.nodes[at].next = map[rune]int32{}
				}
				w.nodes[at].next[k] = next
				w.nodes = append(w.nodes, node{depth: w.nodes[at].depth + 1, word: -1})
			}
			at = next
		})
	}
	if at == 0 {
		return false
	}
	if w.nodes[at].word < 0 {
		w.nodes[at].word = int32(len(w.words)) //nolint:gosec // at most mostWords
		w.words = append(w.words, word)
	}
	w.depth = max(w.depth, int(w.nodes[at].depth))
	return true
}

// link says of each node which shorter beginning the text ends with as well, the shallow ones first.
func (w *words) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for k, next := range w.nodes[at].next {
			if at != 0 {
				w.nodes[next].fail = w.step(w.nodes[at].fail, k)
			}
			fail := w.nodes[next].fail
			w.nodes[next].also = w.nodes[fail].also
			if w.nodes[fail].word >= 0 {
				w.nodes[next].also = fail
			}
			queue = append(queue, next)
		}
	}
}

func (w *words) step(at int32, k rune) int32 {
	for {
		if next, ok := w.nodes[at].next[k]; ok {
			return next
		}
		if at == 0 {
			return 0
		}
		at = w.nodes[at].fail
	}
}

func (w *words) Judge(_ context.Context, text string) (string, error) {
	return scanned(w.Scanner(), text), nil
}

func (w *words) Holds() string {
	return fmt.Sprintf("what may become one of the words: at most %d characters, without white space and what can't be seen", w.depth+1)
}

func (w *words) Scanner() Scanner {
	s := &wordScanner{words: w, folder: newFolder(), recent: make([]key, w.depth+1), pending: -1}
	s.emit = s.key
	return s
}

// key is where a key began in the text.
type key struct {
	at     int
	inWord bool
	behind bool // it follows a key of a word
}

type wordScanner struct {
	*words
	folder   *folder
	emit     func(rune) // s.key, made once
	at       int        // bytes of the text
	node     int32
	n        int   // keys so far
	recent   []key // the last ones, by n
	last     bool  // the last key is of a word
	pending  int   // a word ended, and what comes decides whether it is one; -1: none
	pendedAt int
	wrong    string
	wrongAt  int
}

func (s *wordScanner) Scan(piece string) (int, string) {
	for i, c := range piece {
		s.at += i
		s.folder.keys(c, s.emit)
		s.at -= i
		if s.wrong != "" {
			return s.wrongAt, s.wrong
		}
	}
	s.at += len(piece)
	clear := s.at
	if depth := int(s.nodes[s.node].depth); depth > 0 {
		clear = s.key0(depth).at
	}
	return clear, "" // a word that is pending is at the end of what the node stands for
}

func (s *wordScanner) End() (int, string) {
	if s.pending >= 0 {
		s.found(s.pending, s.pendedAt)
	}
	return s.wrongAt, s.wrong
}

// key0 is the first of the last depth keys.
func (s *wordScanner) key0(depth int) key { return s.recent[(s.n-depth)%len(s.recent)] }

func (s *wordScanner) found(word, at int) {
	if s.wrong == "" {
		s.wrong, s.wrongAt = fmt.Sprintf("it has %q", s.words.words[word]), at
	}
}

// key takes the next key of the text.
func (s *wordScanner) key(k rune) {
	in := inWord(k)
	if s.pending >= 0 && !in {
		s.found(s.pending, s.pendedAt)
	}
	s.pending = -1
	s.recent[s.n%len(s.recent)] = key{s.at, in, s.last && in}
	s.n++
	s.last = in
	s.node = s.step(s.node, k)
	for at := s.node; at != 0; at = s.nodes[at].also {
		n := s.nodes[at]
		if n.word < 0 {
			continue
		}
		first := s.key0(int(n.depth))
		switch {
		case s.inside, !first.behind && !in:
			s.found(int(n.word), first.at)
		case !first.behind && s.pending < 0: // the longest
			s.pending, s.pendedAt = int(n.word), first.at
		}
	}
}
