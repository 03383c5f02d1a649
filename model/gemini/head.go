package gemini

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// head is the beginning of a body, up to the first message, and what it was made of. The slices are compared by identity: they are
// read-only and, being held here, not given to anybody else.
type head struct {
	system   string
	tools    []model.Tool
	output   json.RawMessage
	settings model.Settings
	bytes    []byte
}

// headOf gives the head, the last one again if it says the same.
func (m *Model) headOf(req model.Request) ([]byte, error) {
	if h := m.head.Load(); h != nil && h.system == req.System && same(h.tools, req.Tools) && same(h.output, req.Output) && h.settings.Equal(req.Settings) {
		return h.bytes, nil
	}
	h := &head{system: req.System, tools: req.Tools, output: req.Output, settings: req.Clone()}
	var err error
	if h.bytes, err = m.family.appendHead(nil, req); err != nil {
		return nil, err
	}
	m.head.Store(h)
	return h.bytes, nil
}

func same[S ~[]E, E any](a, b S) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// appendHead appends everything before the first message, which is also what a prefix cache keys on.
func (f *family) appendHead(b []byte, req model.Request) ([]byte, error) {
	b = append(b, '{')
	if req.System != "" {
		b = wire.AppendString(append(b, `"systemInstruction":{"parts":[{"text":`...), req.System)
		b = append(b, "}]},"...)
	}
	b, err := f.appendTools(b, req)
	if err != nil {
		return nil, err
	}
	if b, err = f.appendConfig(b, req); err != nil {
		return nil, err
	}
	return append(b, `"contents":[`...), nil
}

// appendConfig appends the settings and the schema of the reply; nothing when nothing is set.
func (f *family) appendConfig(b []byte, req model.Request) ([]byte, error) {
	const open = `"generationConfig":{`
	before := len(b)
	b = append(b, open...)
	empty := len(b)
	name := func(name string) {
		if len(b) > empty {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
	}
	if err := fit32(req.Settings); err != nil {
		return nil, err
	}
	if req.MaxTokens > 0 {
		name("maxOutputTokens")
		b = strconv.AppendInt(b, int64(req.MaxTokens), 10)
	}
	for _, f := range []struct {
		name  string
		value *float64
	}{{"temperature", req.Temperature}, {"topP", req.TopP}, {"frequencyPenalty", req.FrequencyPenalty}, {"presencePenalty", req.PresencePenalty}} {
		if f.value == nil {
			continue
		}
		if math.IsNaN(*f.value) || math.IsInf(*f.value, 0) {
			return nil, errdefs.Validation.Errorf("gemini: %s is %v: a number is needed", f.name, *f.value)
		}
		name(f.name)
		b = strconv.AppendFloat(b, *f.value, 'g', -1, 64)
	}
	if req.TopK != nil {
		name("topK")
		b = strconv.AppendInt(b, int64(*req.TopK), 10)
	}
	if req.Seed != nil {
		name("seed")
		b = strconv.AppendInt(b, *req.Seed, 10)
	}
	if len(req.Stop) > 0 {
		name("stopSequences")
		for i, s := range req.Stop {
			b = wire.AppendString(append(b, "[,"[min(i, 1)]), s)
		}
		b = append(b, ']')
	}
	thinking, err := f.thinking(req.Settings)
	if err != nil {
		return nil, err
	}
	if thinking != "" {
		name("thinkingConfig")
		b = append(b, thinking...)
	}
	if len(req.Output) > 0 {
		name("responseMimeType")
		b = append(b, `"application/json","responseJsonSchema":`...)
		var ok bool
		if b, ok = wire.AppendCompact(b, req.Output); !ok {
			return nil, errdefs.Validation.Errorf("gemini: the output schema is not JSON")
		}
	}
	if len(b) == empty {
		return b[:before], nil
	}
	return append(b, "},"...), nil
}

// fit32 refuses whole numbers that are longer than the API's, which has 32 bits for each and would refuse the body.
func fit32(s model.Settings) error {
	check := func(name string, n int64) error {
		if n < math.MinInt32 || n > math.MaxInt32 {
			return errdefs.Validation.Errorf("gemini: %s is %d: the API takes %d to %d", name, n, math.MinInt32, math.MaxInt32)
		}
		return nil
	}
	err := check("maxOutputTokens", int64(s.MaxTokens))
	if s.TopK != nil {
		err = cmp.Or(err, check("topK", int64(*s.TopK)))
	}
	if s.Seed != nil {
		err = cmp.Or(err, check("seed", *s.Seed))
	}
	return err
}
