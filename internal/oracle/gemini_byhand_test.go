package oracle

import (
	"encoding/json"

	sdk "google.golang.org/genai"
)

var geminiByHand = written(sendGemini, map[string]geminiRequest{
	"system":               {sdk.Text("Hi"), &sdk.GenerateContentConfig{SystemInstruction: &sdk.Content{Parts: []*sdk.Part{{Text: system}}}}},
	"max_tokens":           {sdk.Text("Hi"), &sdk.GenerateContentConfig{MaxOutputTokens: 77}},
	"temperature":          {sdk.Text("Hi"), &sdk.GenerateContentConfig{Temperature: new(float32(0.5))}},
	"top_p":                {sdk.Text("Hi"), &sdk.GenerateContentConfig{TopP: new(float32(0.9))}},
	"top_k":                {sdk.Text("Hi"), &sdk.GenerateContentConfig{TopK: new(float32(40))}},
	"frequency_penalty":    {sdk.Text("Hi"), &sdk.GenerateContentConfig{FrequencyPenalty: new(float32(0.5))}},
	"presence_penalty":     {sdk.Text("Hi"), &sdk.GenerateContentConfig{PresencePenalty: new(float32(-1.5))}},
	"seed":                 {sdk.Text("Hi"), &sdk.GenerateContentConfig{Seed: new(int32(matrixSeed))}},
	"stop":                 {sdk.Text("Hi"), &sdk.GenerateContentConfig{StopSequences: stops}},
	"output":               {sdk.Text("Hi"), &sdk.GenerateContentConfig{ResponseMIMEType: "application/json", ResponseJsonSchema: outputSchema}},
	"tool_choice_auto":     {sdk.Text("Hi"), &sdk.GenerateContentConfig{Tools: geminiTools}},
	"tool_choice_none":     {sdk.Text("Hi"), geminiChoice(sdk.FunctionCallingConfigModeNone)},
	"tool_choice_required": {sdk.Text("Hi"), geminiChoice(sdk.FunctionCallingConfigModeAny)},
	"tool_choice_name":     {sdk.Text("Hi"), geminiChoice(sdk.FunctionCallingConfigModeAny, "bash")},
	"tool_round": {[]*sdk.Content{
		sdk.NewContentFromText("What is in go.mod?", sdk.RoleUser),
		sdk.NewContentFromParts([]*sdk.Part{{Text: "Let me look."}, geminiCall("call_1", "read", readInput), geminiCall("call_2", "bash", `{}`)}, sdk.RoleModel),
		sdk.NewContentFromParts([]*sdk.Part{
			{FunctionResponse: &sdk.FunctionResponse{ID: "call_1", Name: "read", Response: map[string]any{"result": goMod}}},
			{FunctionResponse: &sdk.FunctionResponse{ID: "call_2", Name: "bash", Response: map[string]any{"error": "no such command"}}},
		}, sdk.RoleUser),
		sdk.NewContentFromText("Go on.", sdk.RoleUser),
	}, &sdk.GenerateContentConfig{Tools: geminiTools}},
	"image":     geminiLook(sdk.NewPartFromBytes([]byte(pngData), "image/png")),
	"image_url": geminiLook(sdk.NewPartFromURI(imageURL, "image/png")),
	"pdf":       geminiLook(sdk.NewPartFromBytes([]byte(pdfData), "application/pdf")),
})

var geminiTools = []*sdk.Tool{{FunctionDeclarations: []*sdk.FunctionDeclaration{
	{Name: "read", Description: "Read a \"file\".", ParametersJsonSchema: readSchema},
	{Name: "bash", Description: "Run a command.", ParametersJsonSchema: bashSchema},
}}}

func geminiChoice(mode sdk.FunctionCallingConfigMode, names ...string) *sdk.GenerateContentConfig {
	return &sdk.GenerateContentConfig{
		Tools: geminiTools, ToolConfig: &sdk.ToolConfig{FunctionCallingConfig: &sdk.FunctionCallingConfig{Mode: mode, AllowedFunctionNames: names}},
	}
}

func geminiCall(id, name, input string) *sdk.Part {
	var args map[string]any
	if err := json.Unmarshal([]byte(input), &args); err != nil {
		panic(err)
	}
	return &sdk.Part{FunctionCall: &sdk.FunctionCall{ID: id, Name: name, Args: args}}
}

func geminiLook(file *sdk.Part) geminiRequest {
	return geminiRequest{[]*sdk.Content{sdk.NewContentFromParts([]*sdk.Part{{Text: "Look:"}, file}, sdk.RoleUser)}, nil}
}
