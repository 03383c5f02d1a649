// Package gemini speaks the Gemini API of Google: models/{name}:generateContent and streamGenerateContent.
//
// The key comes from [model.WithKey], GEMINI_API_KEY or GOOGLE_API_KEY, in this order. A history is encoded once, message by
// message, and sent again from the same bytes.
//
// What Gemini signs comes back as it was: the thoughtSignature of a part is kept on it (message.Reasoning has it as Signature, text
// and calls in Origin.Extra), signed parts are never merged with their neighbours, and parts that this package doesn't know, such
// as mediaProcessing, are message.Opaque. What the API did with tools of its own is message.ProviderCall; of a search or a fetch that
// no part tells of, one without JSON is made of what stands beside the parts, and citations are made of where it says which text
// rests on which source. Files that a tool gives back stand behind their result in the same content, which all models take; only
// the newer ones take them inside of it. A file's Name is not sent, because the API refuses names.
//
// Gemini often gives calls no ids. Such calls are named gemini_call_1, gemini_call_2, … in the order of the reply, and an id that
// begins so is not sent back, neither with its call nor with its result: Gemini then pairs them by their order, as it asks for.
// Arguments always arrive whole, so there are no half calls.
//
// Gemini 3 and later refuse a call in the history that carries no signature. The first call of a message that has none, because
// another model made it, gets the value that Google documents for this case.
package gemini
