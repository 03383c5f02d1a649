package builtin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// The limits of read.
const (
	readLines   = 2000    // by default
	readLineCap = 2000    // bytes of a line
	readCap     = 256_000 // bytes of a result, a little less than 256 KiB
	imageMost   = 5 << 20 // bytes
	headSize    = 8 << 10 // bytes by which text is told from binary
)

type readInput struct {
	Path   string `json:"file_path"`
	Offset whole  `json:"offset"`
	Limit  whole  `json:"limit"`
}

const readSchema = `{"type":"object","additionalProperties":false,"required":["file_path"],"properties":{
"file_path":{"type":"string","description":"the file: relative to the project directory, or absolute inside it or inside the directory of long outputs"},
"offset":{"type":"integer","minimum":0,"description":"number of the first line, from 1; default 1"},
"limit":{"type":"integer","minimum":0,"description":"how many lines; default 2000"}}}`

// Read is the tool that shows a file: {file_path, offset, limit}.
//
// A text file, which is one of valid UTF-8 without NUL bytes as far as its first 8 KiB tell, comes as numbered lines ("%6d\t"), 2,000
// by default, without carriage returns at their ends. Of a line it shows 2,000 bytes, of a file at most 250 KiB a call; notes in
// brackets say what is left out and how to go on. Files of any size can be read by offset and limit, in constant memory. PNG, JPEG,
// GIF and WebP images up to 5 MiB come as files of the result; of other binary files it only tells the size.
//
// Besides the project it reads the output directory, by absolute paths, and what [WithDirectories] and [WithOutside] name. Read-only and idempotent.
func (w *Workspace) Read() tool.Tool { return w.tools[1] }

func (w *Workspace) newRead() tool.Tool {
	return tool.Func("read", "Show a text file as numbered lines, or an image. The number and the tab before each line are not part of the file."+w.directoriesNote()+w.outsideNote(),
		guarded(w, "read", w.read), tool.ReadOnly, tool.Idempotent, tool.WithSchema(json.RawMessage(readSchema)), fileAliases, w.checkRead())
}

var fileAliases = tool.WithAliases(map[string]string{"path": "file_path", "old_str": "old_string", "new_str": "new_string"})

func (w *Workspace) read(ctx context.Context, in readInput) (tool.Result, error) {
	p, err := w.locate(in.Path)
	if err == nil {
		err = w.mayRead(ctx, p)
	}
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := w.openFile(p)
	if err != nil {
		return tool.Result{}, err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 64<<10)
	head, err := r.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Result{}, w.reason(p, err)
	}
	if mime := imageType(head); mime != "" {
		return readImage(p, mime, info.Size(), r)
	}
	if binary(head, len(head) < headSize) {
		return tool.Result{}, errdefs.Validation.Errorf("%s is a binary file of %d bytes, not UTF-8 text", p.shown, info.Size())
	}
	if len(head) == 0 {
		return tool.Result{Content: p.shown + " is empty"}, nil
	}
	text, err := numbered(ctx, r, max(1, int(in.Offset)), int(in.Limit))
	if err != nil {
		return tool.Result{}, w.reason(p, err)
	}
	return tool.Result{Content: text}, nil
}

// imageType tells the images that models take by their first bytes; "" for all else.
func imageType(head []byte) string {
	h := string(head)
	switch {
	case strings.HasPrefix(h, "\x89PNG\r\n\x1a\n"):
		return "image/png"
	case strings.HasPrefix(h, "\xff\xd8\xff"):
		return "image/jpeg"
	case strings.HasPrefix(h, "GIF87a"), strings.HasPrefix(h, "GIF89a"):
		return "image/gif"
	case len(h) > 12 && h[:4] == "RIFF" && h[8:12] == "WEBP":
		return "image/webp"
	}
	return ""
}

func readImage(p place, mime string, size int64, r io.Reader) (tool.Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, imageMost+1))
	if err != nil {
		return tool.Result{}, errdefs.NotAvailable.Errorf("%s: %w", p.shown, err)
	}
	if len(data) > imageMost {
		return tool.Result{}, errdefs.Validation.Errorf("%s is an image of %d bytes; more than %d can't be shown: make it smaller", p.shown, size, imageMost)
	}
	return tool.Result{
		Content: fmt.Sprintf("%s: %s of %d bytes", p.shown, mime, len(data)),
		Files:   []message.File{{MIME: mime, Name: filepath.Base(p.rel), Data: string(data)}},
	}, nil
}

// numbered gives the lines of r from number first on; limit 0 means readLines.
func numbered(ctx context.Context, r *bufio.Reader, first, limit int) (string, error) {
	if limit <= 0 {
		limit = readLines
	}
	if bom, _ := r.Peek(3); string(bom) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3)
	}
	var out strings.Builder
	for n := 1; ; n++ {
		more := n >= first+limit || out.Len() > readCap
		line, size, err := readLine(ctx, r, n >= first && !more)
		switch {
		case errors.Is(err, io.EOF) && n <= first:
			return "", errdefs.Validation.Errorf("the file has %s: offset %d is past its end", plural(n-1, "line"), first)
		case errors.Is(err, io.EOF):
			return strings.TrimSuffix(out.String(), "\n"), nil
		case err != nil:
			return "", err
		case more:
			return fmt.Sprintf("%s[there are more lines: go on with offset %d]", out.String(), n), nil
		case n < first:
			continue
		}
		fmt.Fprintf(&out, "%6d\t%s", n, line)
		if size > len(line) {
			fmt.Fprintf(&out, " [cut: the line has %d bytes]", size)
		}
		out.WriteByte('\n')
	}
}

// readLine reads a line of any length: its text if it is wanted, cut at readLineCap, and its whole size without the line end. At the
// end of the file it gives io.EOF.
func readLine(ctx context.Context, r *bufio.Reader, wanted bool) (line string, size int, err error) {
	if err := ctx.Err(); err != nil {
		return "", 0, err
	}
	var text []byte
	for {
		piece, err := r.ReadSlice('\n')
		size += len(piece)
		if wanted && len(text) <= readLineCap+2 {
			text = append(text, piece[:min(len(piece), readLineCap+3)]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if err := ctx.Err(); err != nil {
				return "", 0, err
			}
			continue
		case err != nil && (size == 0 || !errors.Is(err, io.EOF)):
			return "", 0, err
		}
		line = string(text)
		if err == nil {
			size--
			line = strings.TrimSuffix(line, "\n")
		}
		if len(line) == size && strings.HasSuffix(line, "\r") {
			size--
			line = line[:size]
		}
		if len(line) > readLineCap {
			line = cut(line, readLineCap)
		}
		return valid(line), max(size, 0), nil
	}
}

// readWhole reads a file that is to be changed or searched.
func (w *Workspace) readWhole(p place, most int64) ([]byte, os.FileInfo, error) {
	f, info, err := w.openFile(p)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > most {
		return nil, info, errTooLarge
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = errTooLarge
	}
	if err != nil && !errors.Is(err, errTooLarge) {
		err = w.reason(p, err)
	}
	return b, info, err
}

var errTooLarge = errors.New("too large")
