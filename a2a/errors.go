package a2a

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/errdefs"
)

// The codes of errors: those of JSON-RPC, and those of the protocol.
const (
	CodeParse                     = -32700
	CodeInvalidRequest            = -32600
	CodeMethodNotFound            = -32601
	CodeInvalidParams             = -32602
	CodeInternal                  = -32603
	CodeTaskNotFound              = -32001
	CodeTaskNotCancelable         = -32002
	CodePushNotSupported          = -32003
	CodeUnsupportedOperation      = -32004
	CodeContentTypeNotSupported   = -32005
	CodeInvalidAgentResponse      = -32006
	CodeExtendedCardNotConfigured = -32007
	CodeExtensionSupportRequired  = -32008 // not in 0.3: CodeUnsupportedOperation there
	CodeVersionNotSupported       = -32009 // not in 0.3: CodeInvalidRequest there
)

// codes say of each code its class, and the reason of google.rpc.ErrorInfo, which 1.0 sends along.
var codes = map[int]struct {
	class  *errdefs.Class
	reason string
}{
	CodeParse:                     {errdefs.Validation, ""},
	CodeInvalidRequest:            {errdefs.Validation, ""},
	CodeMethodNotFound:            {errdefs.NotAvailable, ""},
	CodeInvalidParams:             {errdefs.Validation, ""},
	CodeInternal:                  {errdefs.Internal, ""},
	CodeTaskNotFound:              {errdefs.NotFound, "TASK_NOT_FOUND"},
	CodeTaskNotCancelable:         {errdefs.Conflict, "TASK_NOT_CANCELABLE"},
	CodePushNotSupported:          {errdefs.NotAvailable, "PUSH_NOTIFICATION_NOT_SUPPORTED"},
	CodeUnsupportedOperation:      {errdefs.NotAvailable, "UNSUPPORTED_OPERATION"},
	CodeContentTypeNotSupported:   {errdefs.Validation, "CONTENT_TYPE_NOT_SUPPORTED"},
	CodeInvalidAgentResponse:      {errdefs.Internal, "INVALID_AGENT_RESPONSE"},
	CodeExtendedCardNotConfigured: {errdefs.NotAvailable, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"},
	CodeExtensionSupportRequired:  {errdefs.NotAvailable, "EXTENSION_SUPPORT_REQUIRED"},
	CodeVersionNotSupported:       {errdefs.NotAvailable, "VERSION_NOT_SUPPORTED"},
}

// An Error is the error of a JSON-RPC answer: a peer's, or one for a peer. Its class is that of its code, [errdefs.Internal] for a code that
// is not known.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"` // as the peer sent it; nil in one for a peer: made of the code, where 1.0 wants it
}

// Errorf makes an error for a peer.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error gives the words and the code.
func (e *Error) Error() string { return fmt.Sprintf("a2a: %s (%d)", e.Message, e.Code) }

// Class is the class of the code.
func (e *Error) Class() *errdefs.Class {
	if c, ok := codes[e.Code]; ok {
		return c.class
	}
	return errdefs.Internal
}

// Is reports whether target is the error's class.
func (e *Error) Is(target error) bool { return target == error(e.Class()) }

// ErrorOf gives the error that a peer is told for err: the [Error] in it as it is, or else one of the code that fits its class. Words of a
// class that is the server's own business, [errdefs.Internal] or none, are not passed on.
func ErrorOf(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	switch errdefs.Of(err) {
	case errdefs.Validation, errdefs.Overflow:
		return Errorf(CodeInvalidParams, "%v", err)
	case errdefs.NotFound:
		return Errorf(CodeTaskNotFound, "%v", err)
	case errdefs.NotAvailable, errdefs.Conflict:
		return Errorf(CodeUnsupportedOperation, "%v", err)
	case nil, errdefs.Internal:
		return Errorf(CodeInternal, "internal error: the server's log says more")
	}
	return Errorf(CodeInternal, "%v", err)
}

// in is the error as a version sends it.
func (e *Error) in(v Version) *Error {
	out := *e
	if v == V03 {
		switch e.Code {
		case CodeExtensionSupportRequired:
			out.Code = CodeUnsupportedOperation
		case CodeVersionNotSupported:
			out.Code = CodeInvalidRequest
		}
		return &out
	}
	if c := codes[e.Code]; c.reason != "" && e.Data == nil {
		out.Data = json.RawMessage(`[{"@type":"` + errorInfo + `","reason":"` + c.reason + `","domain":"` + errorDomain + `"}]`)
	}
	return &out
}

// broken is an error of a peer that doesn't keep to the protocol.
func broken(format string, args ...any) error {
	return errdefs.Internal.Errorf("a2a: the peer broke the protocol: "+format, args...)
}

// ClassKey is the member of a status message's metadata by which an agent may say of which class of [errdefs] the failure of its task is: the
// class's name. The protocol has no place for it; others leave it alone.
const ClassKey = "pawl.dev/class"
