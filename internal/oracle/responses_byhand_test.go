package oracle

import (
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

var responsesByHand = written(sendResponses, map[string]responses.ResponseNewParams{
	"system":      responsesParams(responses.ResponseNewParams{Instructions: param.NewOpt(system)}),
	"max_tokens":  responsesParams(responses.ResponseNewParams{MaxOutputTokens: param.NewOpt(int64(77))}),
	"temperature": responsesParams(responses.ResponseNewParams{Temperature: param.NewOpt(0.5)}),
	"top_p":       responsesParams(responses.ResponseNewParams{TopP: param.NewOpt(0.9)}),
	"output": responsesParams(responses.ResponseNewParams{Text: responses.ResponseTextConfigParam{Format: responses.ResponseFormatTextConfigUnionParam{
		OfJSONSchema: &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "output", Strict: param.NewOpt(true), Schema: outputSchema},
	}}}),
	"tool_choice_none": responsesParams(responses.ResponseNewParams{
		Tools: responsesTools, ToolChoice: responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptionsNone)},
	}),
	"tool_choice_required": responsesParams(responses.ResponseNewParams{
		Tools: responsesTools, ToolChoice: responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptionsRequired)},
	}),
	"tool_choice_name": responsesParams(responses.ResponseNewParams{
		Tools: responsesTools, ToolChoice: responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: "bash"}},
	}),
	"tool_round": responsesParams(responses.ResponseNewParams{Tools: responsesTools, Input: items(
		userItem("What is in go.mod?"),
		typed(responses.ResponseInputItemParamOfMessage("Let me look.", responses.EasyInputMessageRoleAssistant)),
		responses.ResponseInputItemParamOfFunctionCall(readInput, "call_1", "read"),
		responses.ResponseInputItemParamOfFunctionCall(`{}`, "call_2", "bash"),
		resultItem("call_1", responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: param.NewOpt(goMod)}),
		resultItem("call_2", responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: param.NewOpt("no such command")}),
		userItem("Go on."),
	)}),
	"image":     responsesLook(imagePart(dataURL("image/png", pngData))),
	"image_url": responsesLook(imagePart(imageURL)),
	"pdf": responsesLook(responses.ResponseInputContentUnionParam{OfInputFile: &responses.ResponseInputFileParam{
		Filename: param.NewOpt("report.pdf"), FileData: param.NewOpt(dataURL("application/pdf", pdfData)),
	}}),
	"result_files": responsesParams(responses.ResponseNewParams{Tools: responsesTools, Input: items(
		userItem("Hi"),
		responses.ResponseInputItemParamOfFunctionCall(`{}`, "call_1", "read"),
		resultItem("call_1", responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfResponseFunctionCallOutputItemArray: responses.ResponseFunctionCallOutputItemListParam{
			{OfInputText: &responses.ResponseInputTextContentParam{Text: "a picture"}},
			{OfInputImage: &responses.ResponseInputImageContentParam{Detail: "auto", ImageURL: param.NewOpt(dataURL("image/png", pngData))}},
		}}),
		userItem("Go on"),
	)}),
})

var responsesTools = []responses.ToolUnionParam{
	{OfFunction: &responses.FunctionToolParam{Name: "read", Description: param.NewOpt("Read a \"file\"."), Strict: param.NewOpt(false), Parameters: readSchema}},
	{OfFunction: &responses.FunctionToolParam{Name: "bash", Description: param.NewOpt("Run a command."), Strict: param.NewOpt(false), Parameters: bashSchema}},
}

// responsesParams gives p what every request has.
func responsesParams(p responses.ResponseNewParams) responses.ResponseNewParams {
	p.Model, p.Store = "gpt-5", param.NewOpt(false)
	p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	if p.Input.OfInputItemList == nil {
		p.Input = items(userItem("Hi"))
	}
	return p
}

func items(all ...responses.ResponseInputItemUnionParam) responses.ResponseNewParamsInputUnion {
	return responses.ResponseNewParamsInputUnion{OfInputItemList: all}
}

func userItem(text string, files ...responses.ResponseInputContentUnionParam) responses.ResponseInputItemUnionParam {
	content := append(responses.ResponseInputMessageContentListParam{responses.ResponseInputContentParamOfInputText(text)}, files...)
	return typed(responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser))
}

// typed says that a message is one, which may be left out.
func typed(item responses.ResponseInputItemUnionParam) responses.ResponseInputItemUnionParam {
	item.OfMessage.Type = responses.EasyInputMessageTypeMessage
	return item
}

func resultItem(call string, output responses.ResponseInputItemFunctionCallOutputOutputUnionParam) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(call), Output: output}}
}

func imagePart(url string) responses.ResponseInputContentUnionParam {
	return responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{Detail: responses.ResponseInputImageDetailAuto, ImageURL: param.NewOpt(url)}}
}

func responsesLook(file responses.ResponseInputContentUnionParam) responses.ResponseNewParams {
	return responsesParams(responses.ResponseNewParams{Input: items(userItem("Look:", file))})
}
