// Package a2a speaks the Agent2Agent protocol: the types of its version 1.0, their JSON in 1.0 and in 0.3, JSON-RPC around it, and a client.
//
// There is one set of types, that of 1.0; [Version] is a codec. Whoever serves and whoever calls decode and encode with it:
//
//	call, bad := a2a.ParseCall(body)           // a client's request
//	op, ok := version.Operation(call.Method)   // message/send and SendMessage are both OpSend
//	err := version.Unmarshal(call.Params, &req)
//	line, err := version.AppendResult(nil, call.ID, event)
//
// A server finds the version of a request by [ParseVersion] of the header [HeaderVersion]: without it, it is 0.3.
//
// # Where the facts come from
//
// The types, their members and what is required are those of specification/a2a.proto of A2A 1.0.1; the JSON is that of protocol buffers, with
// the names in lower camel case. Methods, headers, codes and the order of events are those of the specification's sections 3, 5, 8 and 9. The
// shapes of 0.3 are those of types.ts of its release 0.3.0. What both leave open is done as the implementations do that are met: a 0.3 request
// without blocking waits for the task, data that is no object is wrapped for 0.3 in {"value": …} and marked with data_part_compat, an update is
// final when its task has ended or waits, and a card that has supportedInterfaces is one of 1.0.
package a2a
