package a2a

import "strings"

// A Version is the protocol that a peer speaks, which decides methods, shapes and errors. Its text is what stands in [HeaderVersion] and in cards.
type Version string

// The versions that this package speaks.
const (
	V03 Version = "0.3"
	V1  Version = "1.0"
)

// Headers and names that the specification fixes.
const (
	HeaderVersion      = "A2A-Version"                  // the version of a request: Major.Minor; without it 0.3 is meant
	HeaderExtensions   = "A2A-Extensions"               // URIs of extensions that the client asks for, with commas; in 0.3 X-A2A-Extensions
	HeaderExtensions03 = "X-A2A-Extensions"             // the same in 0.3
	HeaderNotification = "X-A2A-Notification-Token"     // of a push notification: the token that the client gave for it
	CardPath           = "/.well-known/agent-card.json" // where a server shows its card
	BindingJSONRPC     = "JSONRPC"                      // the binding that this package speaks
	MediaType          = "application/a2a+json"         // of push notifications in 1.0; requests and answers are application/json
	errorDomain        = "a2a-protocol.org"             // of google.rpc.ErrorInfo
	errorInfo          = "type.googleapis.com/google.rpc.ErrorInfo"
)

// ParseVersion reads a version as it stands in a header or a card. Only Major.Minor counts, and "" is 0.3, as the specification says. Another
// one is an [Error] of [CodeVersionNotSupported].
func ParseVersion(text string) (Version, error) {
	text = strings.TrimSpace(text)
	major, rest, _ := strings.Cut(text, ".")
	minor, _, _ := strings.Cut(rest, ".")
	switch {
	case text == "", major == "0" && minor == "3":
		return V03, nil
	case major == "1" && (minor == "0" || minor == ""):
		return V1, nil
	}
	return "", Errorf(CodeVersionNotSupported, "version %.20q is not spoken here: use 1.0 or 0.3", text)
}

// An Operation is what a request asks for, whatever the version calls it. Its text is the method's name in 1.0.
type Operation string

// The operations. Beside each: what its parameters and its result are, for [Version.Marshal] and [Version.Unmarshal].
const (
	OpSend         Operation = "SendMessage"                      // SendRequest → Event: a Task or a Message
	OpStream       Operation = "SendStreamingMessage"             // SendRequest → a stream of Event
	OpGet          Operation = "GetTask"                          // GetTaskRequest → Task
	OpList         Operation = "ListTasks"                        // ListTasksRequest → ListTasksResponse; not in 0.3
	OpCancel       Operation = "CancelTask"                       // CancelTaskRequest → Task
	OpSubscribe    Operation = "SubscribeToTask"                  // SubscribeRequest → a stream of Event
	OpCreatePush   Operation = "CreateTaskPushNotificationConfig" // PushConfig → PushConfig
	OpGetPush      Operation = "GetTaskPushNotificationConfig"    // PushConfigRequest → PushConfig
	OpListPush     Operation = "ListTaskPushNotificationConfigs"  // ListPushConfigsRequest → ListPushConfigsResponse
	OpDeletePush   Operation = "DeleteTaskPushNotificationConfig" // PushConfigRequest → nothing
	OpExtendedCard Operation = "GetExtendedAgentCard"             // ExtendedCardRequest → AgentCard
)

// methods are the names in 0.3; "": there is no such method.
var methods = []struct {
	op  Operation
	v03 string
}{
	{OpSend, "message/send"},
	{OpStream, "message/stream"},
	{OpGet, "tasks/get"},
	{OpList, ""},
	{OpCancel, "tasks/cancel"},
	{OpSubscribe, "tasks/resubscribe"},
	{OpCreatePush, "tasks/pushNotificationConfig/set"},
	{OpGetPush, "tasks/pushNotificationConfig/get"},
	{OpListPush, "tasks/pushNotificationConfig/list"},
	{OpDeletePush, "tasks/pushNotificationConfig/delete"},
	{OpExtendedCard, "agent/getAuthenticatedExtendedCard"},
}

// Streams reports whether the operation's answer is a stream of events.
func (op Operation) Streams() bool { return op == OpStream || op == OpSubscribe }

// Method is the name of an operation's JSON-RPC method; "" where the version has none.
func (v Version) Method(op Operation) string {
	for _, m := range methods {
		if m.op == op {
			if v == V03 {
				return m.v03
			}
			return string(op)
		}
	}
	return ""
}

// Operation is what a JSON-RPC method asks for; false for a method that the version does not have.
func (v Version) Operation(method string) (Operation, bool) {
	for _, m := range methods {
		if name := v.Method(m.op); name != "" && name == method {
			return m.op, true
		}
	}
	return "", false
}
