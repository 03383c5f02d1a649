package gemini

import (
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// thinks is how a model is told how much to think.
type thinks uint8

const (
	never    thinks = iota
	byBudget        // thinkingConfig.thinkingBudget, in tokens
	byLevel         // thinkingConfig.thinkingLevel
)

// family is what is known of a model by its name.
type family struct {
	thinks   thinks
	levels   []model.ReasoningLevel
	most     int  // the largest budget
	combines bool // the API's own tools go with the caller's
}

// budgets are the tokens that a level stands for where the API wants a number: Google's page on its OpenAI-compatible API has 1024 and 8192 for low and medium. The least is that of Flash-Lite, by the page on thinking; the most is the model's.
var budgets = map[model.ReasoningLevel]int{
	model.ReasoningMinimal: leastBudget, model.ReasoningLow: 1024, model.ReasoningMedium: 8192, model.ReasoningHigh: 16384,
}

const leastBudget = 512

// words are the API's words for levels.
var words = map[model.ReasoningLevel]string{
	model.ReasoningMinimal: "MINIMAL", model.ReasoningLow: "LOW", model.ReasoningMedium: "MEDIUM", model.ReasoningHigh: "HIGH", model.ReasoningMax: "HIGH",
}

// familyOf tells what is known of a model, by Google's page on thinking: 2.5 Pro can't be kept from it, Flash can; since Gemini 3 a level stands in place of a budget, and nothing switches thinking off. A name that is none of these is of one that came
// later, and takes every level.
func familyOf(name string) family {
	name = name[strings.LastIndexByte(name, '/')+1:]
	all := model.ReasoningLevels()
	switch {
	case strings.HasPrefix(name, "gemini-2.5-pro"):
		return family{thinks: byBudget, most: 32768, levels: all[1:]}
	case strings.HasPrefix(name, "gemini-2.5"):
		return family{thinks: byBudget, most: 24576, levels: all}
	case strings.HasPrefix(name, "gemini-1"), strings.HasPrefix(name, "gemini-2"), strings.HasPrefix(name, "gemma"):
		return family{levels: all[:1]}
	case strings.HasPrefix(name, "gemini-3-pro"):
		return family{thinks: byLevel, combines: true, levels: []model.ReasoningLevel{model.ReasoningLow, model.ReasoningHigh, model.ReasoningMax}}
	case strings.HasPrefix(name, "gemini-3.1-pro"):
		return family{thinks: byLevel, combines: true, levels: []model.ReasoningLevel{model.ReasoningLow, model.ReasoningMedium, model.ReasoningHigh, model.ReasoningMax}}
	}
	return family{thinks: byLevel, combines: true, levels: all[1:]}
}

// thinking is what thinkingConfig says; "" where the level is the model's own. Thoughts are asked for, as summaries: the API sends none otherwise.
func (f *family) thinking(s model.Settings) (string, error) {
	switch {
	case s.Reasoning == model.ReasoningDefault, f.thinks == never:
		return "", nil
	case s.Reasoning == model.ReasoningNone:
		return `{"thinkingBudget":0}`, nil
	case f.thinks == byLevel:
		return `{"includeThoughts":true,"thinkingLevel":"` + words[s.Reasoning] + `"}`, nil
	}
	budget, ok := budgets[s.Reasoning]
	if !ok {
		budget = f.most
	}
	if s.MaxTokens > 0 { // thoughts count against it: a quarter is for the answer
		if s.MaxTokens <= leastBudget {
			return "", errdefs.Validation.Errorf("gemini: reasoning %q can't go with an output limit of %d tokens, of which thoughts take at least %d: leave one of them out, or raise the limit", s.Reasoning, s.MaxTokens, leastBudget)
		}
		budget = max(leastBudget, min(budget, s.MaxTokens-s.MaxTokens/4))
	}
	return `{"includeThoughts":true,"thinkingBudget":` + strconv.Itoa(budget) + "}", nil
}
