package a2a

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/internal/wire"
)

// A Call is a JSON-RPC request: what a client posts.
type Call struct {
	ID     json.RawMessage // a string or a number; nil: the peer sent none, or null
	Method string
	Params json.RawMessage // nil: none
}

// ParseCall reads a request. An error is for the peer: [CodeParse] for what is no JSON, [CodeInvalidRequest] for what is no request, a batch
// among them, which the protocol does not have. The id is in the Call as far as it was there.
func ParseCall(data []byte) (Call, *Error) {
	if !json.Valid(data) {
		return Call{}, Errorf(CodeParse, "the body is not JSON")
	}
	if data = bytes.TrimSpace(data); data[0] != '{' {
		return Call{}, Errorf(CodeInvalidRequest, "the body is no JSON-RPC request: an object is expected, and batches are not part of the protocol")
	}
	var call Call
	if id := wire.First(data, "id"); validID(id) {
		call.ID = bytes.Clone(id)
	} else if !wire.IsNull(id) {
		return call, Errorf(CodeInvalidRequest, "id is neither a string nor a whole number")
	}
	var in struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if err := exact.Unmarshal(data, &in); err != nil {
		return call, Errorf(CodeInvalidRequest, "no JSON-RPC request: %v", err)
	}
	if in.JSONRPC != "2.0" || in.Method == "" {
		return call, Errorf(CodeInvalidRequest, `no JSON-RPC request: jsonrpc is "2.0", and there is a method`)
	}
	if call.Method = in.Method; !wire.IsNull(in.Params) {
		if in.Params[0] != '{' {
			return call, Errorf(CodeInvalidParams, "params is no object")
		}
		call.Params = in.Params
	}
	return call, nil
}

// validID takes strings and whole numbers, as the protocol does, of a length that is worth to give back.
func validID(raw []byte) bool {
	if len(raw) == 0 || len(raw) > 1024 {
		return false
	}
	if raw[0] == '"' {
		return true
	}
	for i, c := range raw {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	return true
}

// AppendCall appends the request of an operation to dst.
func (v Version) AppendCall(dst []byte, id string, op Operation, params any) ([]byte, error) {
	method := v.Method(op)
	if method == "" {
		return dst, Errorf(CodeUnsupportedOperation, "version %s has no %s", v, op)
	}
	raw, err := v.Marshal(params)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = wire.AppendString(dst, id)
	dst = append(dst, `,"method":`...)
	dst = wire.AppendString(dst, method)
	dst = append(dst, `,"params":`...)
	dst = append(dst, raw...)
	return append(dst, '}'), nil
}

// AppendResult appends the answer to a call to dst, one line of JSON: what stands behind data: in a stream, too. A nil result is that of
// [OpDeletePush].
func (v Version) AppendResult(dst []byte, id json.RawMessage, result any) ([]byte, error) {
	raw := []byte("null")
	if result != nil {
		var err error
		if raw, err = v.Marshal(result); err != nil {
			return dst, err
		}
	} else if v != V03 {
		raw = []byte("{}") // an empty message of protocol buffers
	}
	dst = appendHead(dst, id)
	dst = append(dst, `,"result":`...)
	dst = append(dst, raw...)
	return append(dst, '}'), nil
}

// AppendError appends the answer to a call that failed to dst, one line of JSON.
func (v Version) AppendError(dst []byte, id json.RawMessage, e *Error) []byte {
	e = e.in(v)
	dst = appendHead(dst, id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		var ok bool
		if dst, ok = wire.AppendCompact(dst, e.Data); !ok {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, "}}"...)
}

func appendHead(dst []byte, id json.RawMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if !validID(id) {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}

// ParseAnswer reads the answer to the call with that id, and its result into result, if that is not nil. A peer's error is an [*Error]. What
// is no answer, or one to another call, is of [errdefs.Internal]: the peer broke the protocol, and asking again is of no use.
func (v Version) ParseAnswer(data []byte, id string, result any) error {
	var in struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
		Error   *Error          `json:"error"`
	}
	if err := exact.Unmarshal(data, &in); err != nil {
		return broken("the answer is no JSON-RPC: %w", err)
	}
	if in.JSONRPC != "2.0" {
		return broken(`the answer is no JSON-RPC: jsonrpc is not "2.0"`)
	}
	if in.Error != nil && wire.IsNull(in.ID) {
		return in.Error // of a request that the peer could not read
	}
	if in.ID == nil || in.ID[0] != '"' || wire.String(in.ID) != id {
		return broken("the answer is to another call: its id is %.60s, not %q", in.ID, id)
	}
	if in.Error != nil {
		return in.Error
	}
	if in.Result == nil {
		return broken("the answer has neither result nor error")
	}
	if result == nil {
		return nil
	}
	if err := v.Unmarshal(in.Result, result); err != nil {
		return broken("the answer's result: %w", err)
	}
	return nil
}
