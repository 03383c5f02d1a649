package oracle

import (
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

var chatByHand = written(sendChat, map[string]sdk.ChatCompletionNewParams{
	"system":            chatParams(sdk.ChatCompletionNewParams{Messages: []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage(system), sdk.UserMessage("Hi")}}),
	"max_tokens":        chatParams(sdk.ChatCompletionNewParams{MaxCompletionTokens: param.NewOpt(int64(77))}),
	"temperature":       chatParams(sdk.ChatCompletionNewParams{Temperature: param.NewOpt(0.5)}),
	"top_p":             chatParams(sdk.ChatCompletionNewParams{TopP: param.NewOpt(0.9)}),
	"frequency_penalty": chatParams(sdk.ChatCompletionNewParams{FrequencyPenalty: param.NewOpt(0.5)}),
	"presence_penalty":  chatParams(sdk.ChatCompletionNewParams{PresencePenalty: param.NewOpt(-1.5)}),
	"seed":              chatParams(sdk.ChatCompletionNewParams{Seed: param.NewOpt(int64(matrixSeed))}),
	"stop":              chatParams(sdk.ChatCompletionNewParams{Stop: sdk.ChatCompletionNewParamsStopUnion{OfStringArray: stops}}),
	"output": chatParams(sdk.ChatCompletionNewParams{ResponseFormat: sdk.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "output", Strict: param.NewOpt(true), Schema: outputSchema},
	}}}),
	"tool_choice_none":     chatParams(sdk.ChatCompletionNewParams{Tools: chatTools, ToolChoice: sdk.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt("none")}}),
	"tool_choice_required": chatParams(sdk.ChatCompletionNewParams{Tools: chatTools, ToolChoice: sdk.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt("required")}}),
	"tool_choice_name": chatParams(sdk.ChatCompletionNewParams{
		Tools: chatTools, ToolChoice: sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: "bash"}),
	}),
	"tool_round": chatParams(sdk.ChatCompletionNewParams{Tools: chatTools, Messages: []sdk.ChatCompletionMessageParamUnion{
		sdk.UserMessage("What is in go.mod?"),
		{OfAssistant: &sdk.ChatCompletionAssistantMessageParam{
			Content:   sdk.ChatCompletionAssistantMessageParamContentUnion{OfString: param.NewOpt("Let me look.")},
			ToolCalls: []sdk.ChatCompletionMessageToolCallUnionParam{chatCall("call_1", "read", readInput), chatCall("call_2", "bash", `{}`)},
		}},
		sdk.ToolMessage(goMod, "call_1"), sdk.ToolMessage("no such command", "call_2"),
		sdk.UserMessage("Go on."),
	}}),
	"image":     chatLook(sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: dataURL("image/png", pngData)})),
	"image_url": chatLook(sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: imageURL})),
	"pdf": chatLook(sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
		Filename: param.NewOpt("report.pdf"), FileData: param.NewOpt(dataURL("application/pdf", pdfData)),
	})),
	"result_files": chatParams(sdk.ChatCompletionNewParams{Tools: chatTools, Messages: []sdk.ChatCompletionMessageParamUnion{
		sdk.UserMessage("Hi"),
		{OfAssistant: &sdk.ChatCompletionAssistantMessageParam{ToolCalls: []sdk.ChatCompletionMessageToolCallUnionParam{chatCall("call_1", "read", `{}`)}}},
		sdk.ToolMessage("a picture", "call_1"),
		sdk.UserMessage([]sdk.ChatCompletionContentPartUnionParam{sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: dataURL("image/png", pngData)})}),
		sdk.UserMessage("Go on"),
	}}),
})

var chatTools = []sdk.ChatCompletionToolUnionParam{
	sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "read", Description: param.NewOpt("Read a \"file\"."), Parameters: readSchema}),
	sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "bash", Description: param.NewOpt("Run a command."), Parameters: bashSchema}),
}

// chatParams gives p what every request has.
func chatParams(p sdk.ChatCompletionNewParams) sdk.ChatCompletionNewParams {
	p.Model = "gpt-5"
	if p.Messages == nil {
		p.Messages = []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("Hi")}
	}
	return p
}

func chatCall(id, name, input string) sdk.ChatCompletionMessageToolCallUnionParam {
	return sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
		ID: id, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: name, Arguments: input},
	}}
}

func chatLook(file sdk.ChatCompletionContentPartUnionParam) sdk.ChatCompletionNewParams {
	return chatParams(sdk.ChatCompletionNewParams{Messages: []sdk.ChatCompletionMessageParamUnion{
		sdk.UserMessage([]sdk.ChatCompletionContentPartUnionParam{sdk.TextContentPart("Look:"), file}),
	}})
}
