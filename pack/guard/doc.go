// Package guard judges texts: the validators of a PromptPack file. A guard is made of a [Config] and judges a whole text, or a text that comes in pieces before anybody is shown them:
//
//	g, err := guard.New(guard.Config{Type: "banned_words", FailOnViolation: true, Params: guard.Params{"words": []any{"guarantee"}}}, nil)
//	f := guard.NewFilter(g)
//	show, err := f.Write("We guar") // "We ", nil: the rest could become the word
//	show, err = f.Write("antee it") // "", a *Violation
//
// What a guard holds back of a stream is its latency, which [Guard.Holds] states:
//
//	type              refuses                                                   holds back
//	banned_words      any of words, whole words in any case                     what may become one of the words: at most the longest of them
//	max_length        more than max_characters, or an estimate of max_tokens    nothing: what is within the limit is shown
//	max_sentences     more than max_sentences                                   nothing
//	pii_leakage       e-mail addresses, phone numbers, cards, IBANs, US SSNs    the last words, at most 640 bytes
//	required_fields   a text without one of fields                              the whole text
//	regex             a text that pattern does not match (expect_match: false: that it matches)   the whole text
//	json_schema       a text that is no JSON of schema                          the whole text
//	llm_judge         what a model says is against criteria                     the whole text
//
// A guard that does not fail on violation holds nothing back; what it finds is noted. Nothing here calls a model: llm_judge asks the function that it is given.
package guard
