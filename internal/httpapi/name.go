package httpapi

import (
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// ToolName is the name in a call, a JSON string. It costs nothing where it is that of a tool that was offered, as nearly always: that text is there already.
func ToolName(raw []byte, tools []model.Tool) string {
	for i := range tools {
		if wire.Quotes(raw, tools[i].Name) {
			return tools[i].Name
		}
	}
	return wire.String(raw)
}
