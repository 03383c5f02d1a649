package oracle

import (
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

var anthropicByHand = written(sendAnthropic, map[string]sdk.MessageNewParams{
	"system":      anthropicParams(sdk.MessageNewParams{System: []sdk.TextBlockParam{{Text: system}}}),
	"max_tokens":  anthropicParams(sdk.MessageNewParams{MaxTokens: 77}),
	"temperature": anthropicParams(sdk.MessageNewParams{Temperature: param.NewOpt(0.5)}),
	"top_p":       anthropicParams(sdk.MessageNewParams{TopP: param.NewOpt(0.9)}),
	"top_k":       anthropicParams(sdk.MessageNewParams{TopK: param.NewOpt(int64(40))}),
	"stop":        anthropicParams(sdk.MessageNewParams{StopSequences: stops}),
	"output":      anthropicParams(sdk.MessageNewParams{OutputConfig: sdk.OutputConfigParam{Format: sdk.JSONOutputFormatParam{Schema: outputSchema}}}),
	"tool_choice_none": anthropicParams(sdk.MessageNewParams{
		Tools: anthropicTools, Messages: anthropicHi(true), ToolChoice: sdk.ToolChoiceUnionParam{OfNone: new(sdk.NewToolChoiceNoneParam())},
	}),
	"tool_choice_required": anthropicParams(sdk.MessageNewParams{
		Tools: anthropicTools, Messages: anthropicHi(true), ToolChoice: sdk.ToolChoiceUnionParam{OfAny: &sdk.ToolChoiceAnyParam{}},
	}),
	"tool_choice_name": anthropicParams(sdk.MessageNewParams{Tools: anthropicTools, Messages: anthropicHi(true), ToolChoice: sdk.ToolChoiceParamOfTool("bash")}),
	"tool_round": anthropicParams(sdk.MessageNewParams{Tools: anthropicTools, Messages: []sdk.MessageParam{
		sdk.NewUserMessage(sdk.NewTextBlock("What is in go.mod?")),
		sdk.NewAssistantMessage(
			sdk.NewTextBlock("Let me look."),
			sdk.NewToolUseBlock("call_1", json.RawMessage(readInput), "read"),
			sdk.NewToolUseBlock("call_2", json.RawMessage(`{}`), "bash"),
		),
		sdk.NewUserMessage(sdk.NewToolResultBlock("call_1", goMod, false), sdk.NewToolResultBlock("call_2", "no such command", true)),
		sdk.NewUserMessage(anthropicMarked("Go on.")),
	}}),
	"image":     anthropicLook(sdk.NewImageBlockBase64("image/png", base64Of(pngData))),
	"image_url": anthropicLook(sdk.NewImageBlock(sdk.URLImageSourceParam{URL: imageURL})),
	"pdf": anthropicLook(sdk.ContentBlockParamUnion{OfDocument: &sdk.DocumentBlockParam{
		Title: param.NewOpt("report.pdf"), Source: sdk.DocumentBlockParamSourceUnion{OfBase64: &sdk.Base64PDFSourceParam{Data: base64Of(pdfData)}},
	}}),
	"result_files": anthropicParams(sdk.MessageNewParams{Tools: anthropicTools, Messages: []sdk.MessageParam{
		sdk.NewUserMessage(sdk.NewTextBlock("Hi")),
		sdk.NewAssistantMessage(sdk.NewToolUseBlock("call_1", json.RawMessage(`{}`), "read")),
		sdk.NewUserMessage(sdk.ContentBlockParamUnion{OfToolResult: &sdk.ToolResultBlockParam{ToolUseID: "call_1", Content: []sdk.ToolResultBlockParamContentUnion{
			{OfText: &sdk.TextBlockParam{Text: "a picture"}},
			{OfImage: sdk.NewImageBlockBase64("image/png", base64Of(pngData)).OfImage},
		}}}),
		sdk.NewUserMessage(anthropicMarked("Go on")),
	}}),
})

var anthropicTools = []sdk.ToolUnionParam{
	anthropicTool("read", "Read a \"file\".", readSchema, sdk.CacheControlEphemeralParam{}),
	anthropicTool("bash", "Run a command.", bashSchema, sdk.NewCacheControlEphemeralParam()), // the head ends with a mark
}

func anthropicTool(name, description string, schema map[string]any, mark sdk.CacheControlEphemeralParam) sdk.ToolUnionParam {
	return sdk.ToolUnionParam{OfTool: &sdk.ToolParam{
		CacheControl: mark,
		Name:         name, Description: param.NewOpt(description),
		InputSchema: sdk.ToolInputSchemaParam{Properties: schema["properties"], Required: schema["required"].([]string)},
	}}
}

// anthropicParams gives p what every request has.
func anthropicParams(p sdk.MessageNewParams) sdk.MessageNewParams {
	p.Model = "claude-sonnet-4-5"
	if p.MaxTokens == 0 {
		p.MaxTokens = 32000
	}
	if p.Messages == nil {
		p.Messages = anthropicHi(false)
	}
	return p
}

func anthropicHi(marked bool) []sdk.MessageParam {
	if marked {
		return []sdk.MessageParam{sdk.NewUserMessage(anthropicMarked("Hi"))}
	}
	return []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("Hi"))}
}

// anthropicMarked is a text up to which the API is to cache.
func anthropicMarked(text string) sdk.ContentBlockParamUnion {
	return sdk.ContentBlockParamUnion{OfText: &sdk.TextBlockParam{Text: text, CacheControl: sdk.NewCacheControlEphemeralParam()}}
}

func anthropicLook(file sdk.ContentBlockParamUnion) sdk.MessageNewParams {
	return anthropicParams(sdk.MessageNewParams{Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("Look:"), file)}})
}
