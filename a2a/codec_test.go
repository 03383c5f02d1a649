package a2a_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/errdefs"
)

// everything has each field of the types set.
func everything() []any {
	n := 3
	at := time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)
	meta := map[string]any{"k": "v", "n": 1.0}
	parts := []a2a.Part{
		a2a.Text("hi <&>"),
		{Kind: a2a.PartText, Metadata: meta},
		a2a.Raw("image/png", "a.png", []byte{0xff, 0xfe, 0}), a2a.URL("text/plain", "b.txt", "https://x/y"),
		a2a.Data(json.RawMessage(`{"a":[1,12345678901234567890]}`)), a2a.Data(json.RawMessage(`[1,"two"]`)), a2a.Data(json.RawMessage(`null`)),
	}
	m := a2a.Message{ID: "m", ContextID: "c", TaskID: "t", Role: a2a.RoleAgent, Parts: parts, Metadata: meta, Extensions: []string{"e"}, ReferenceTaskIDs: []string{"r"}}
	status := a2a.TaskStatus{State: a2a.StateInputRequired, Message: &m, Timestamp: at}
	artifact := a2a.Artifact{ID: "a", Name: "name", Description: "d", Parts: parts, Metadata: meta, Extensions: []string{"e"}}
	task := a2a.Task{ID: "t", ContextID: "c", Status: status, Artifacts: []a2a.Artifact{artifact}, History: []a2a.Message{m}, Metadata: meta}
	su := a2a.StatusUpdate{TaskID: "t", ContextID: "c", Status: status, Metadata: meta}
	au := a2a.ArtifactUpdate{TaskID: "t", ContextID: "c", Artifact: artifact, Append: true, LastChunk: true, Metadata: meta}
	push := a2a.PushConfig{ID: "p", TaskID: "t", URL: "https://x", Token: "tok", Authentication: &a2a.Authentication{Scheme: "Bearer", Credentials: "s"}}
	inner := push
	inner.TaskID = ""
	return []any{
		&m, &task, &artifact, &su, &au, &a2a.Event{Task: &task}, &a2a.Event{Message: &m}, &a2a.Event{Status: &su}, &a2a.Event{Artifact: &au},
		&a2a.SendRequest{Message: m, Metadata: meta, Configuration: a2a.SendConfig{AcceptedOutputModes: []string{"text/plain"}, Push: &inner, HistoryLength: &n, ReturnImmediately: true}},
		&a2a.GetTaskRequest{ID: "t", HistoryLength: &n}, &a2a.CancelTaskRequest{ID: "t", Metadata: meta}, &a2a.SubscribeRequest{ID: "t"},
		&push, &a2a.PushConfigRequest{TaskID: "t", ID: "p"}, &a2a.ListPushConfigsRequest{TaskID: "t"}, &a2a.ListPushConfigsResponse{Configs: []a2a.PushConfig{push}},
		&a2a.ExtendedCardRequest{}, card(a2a.V03),
	}
}

// onlyV1 is what 0.3 has no place for.
func onlyV1() []any {
	n := 3
	at := time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)
	text := a2a.Text("x")
	text.Filename, text.MediaType = "f", "text/markdown"
	m := a2a.Message{ID: "m", Role: a2a.RoleUser, Parts: []a2a.Part{text}}
	return []any{
		&a2a.SendRequest{Tenant: "ten", Message: m}, &a2a.GetTaskRequest{Tenant: "ten", ID: "t"}, &a2a.CancelTaskRequest{Tenant: "ten", ID: "t"}, &a2a.SubscribeRequest{Tenant: "ten", ID: "t"},
		&a2a.ListTasksRequest{Tenant: "ten", ContextID: "c", Status: a2a.StateWorking, PageSize: &n, PageToken: "p", HistoryLength: &n, StatusTimestampAfter: at, IncludeArtifacts: true},
		&a2a.ListTasksResponse{Tasks: []a2a.Task{{ID: "t", Status: a2a.TaskStatus{State: a2a.StateUnspecified}}}, NextPageToken: "n", PageSize: 3, TotalSize: 4},
		&a2a.PushConfig{Tenant: "ten", ID: "p", TaskID: "t", URL: "u"}, &a2a.PushConfigRequest{Tenant: "ten", TaskID: "t", ID: "p"},
		&a2a.ListPushConfigsRequest{Tenant: "ten", TaskID: "t", PageSize: 3, PageToken: "p"}, &a2a.ListPushConfigsResponse{NextPageToken: "n"}, &a2a.ExtendedCardRequest{Tenant: "ten"},
		card(a2a.V1),
	}
}

func card(v a2a.Version) *a2a.AgentCard {
	flow := &a2a.OAuthFlow{AuthorizationURL: "https://a", TokenURL: "https://t", RefreshURL: "https://r", Scopes: map[string]string{"s": "what"}}
	c := &a2a.AgentCard{
		Name: "n", Description: "d", Provider: &a2a.Provider{URL: "u", Organization: "o"}, Version: "1.2", DocumentationURL: "doc", IconURL: "icon",
		Interfaces:   []a2a.Interface{{URL: "https://x/a2a", ProtocolBinding: "JSONRPC", ProtocolVersion: "0.3.0"}, {URL: "https://x/g", ProtocolBinding: "GRPC", ProtocolVersion: "0.3.0"}},
		Capabilities: a2a.Capabilities{Streaming: true, PushNotifications: true, ExtendedAgentCard: true, Extensions: []a2a.Extension{{URI: "e", Description: "d", Required: true, Params: map[string]any{"p": 1.0}}}},
		SecuritySchemes: map[string]a2a.SecurityScheme{
			"key": {APIKey: &a2a.APIKeyScheme{Description: "d", Location: "header", Name: "X"}}, "http": {HTTP: &a2a.HTTPScheme{Description: "d", Scheme: "Bearer", BearerFormat: "JWT"}},
			"oauth": {OAuth2: &a2a.OAuth2Scheme{Description: "d", Flows: a2a.OAuthFlows{AuthorizationCode: flow}, MetadataURL: "m"}},
			"oidc":  {OpenIDConnect: &a2a.OpenIDConnectScheme{Description: "d", URL: "o"}}, "tls": {MutualTLS: &a2a.MutualTLSScheme{Description: "d"}},
		},
		SecurityRequirements: []a2a.SecurityRequirement{{"oauth": {"s"}, "http": {}}}, DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"image/png"},
		Skills:     []a2a.Skill{{ID: "i", Name: "n", Description: "d", Tags: []string{"t"}, Examples: []string{"e"}, InputModes: []string{"a/b"}, OutputModes: []string{"c/d"}, SecurityRequirements: []a2a.SecurityRequirement{{"key": {}}}}},
		Signatures: []a2a.Signature{{Protected: "p", Signature: "s", Header: map[string]any{"kid": "1"}}},
	}
	if v == a2a.V1 {
		c.Interfaces = append(c.Interfaces, a2a.Interface{URL: "https://x/a2a", ProtocolBinding: "JSONRPC", ProtocolVersion: "1.0", Tenant: "ten"})
		c.SecuritySchemes["device"] = a2a.SecurityScheme{OAuth2: &a2a.OAuth2Scheme{Flows: a2a.OAuthFlows{DeviceCode: &a2a.OAuthFlow{DeviceAuthorizationURL: "d", TokenURL: "t", Scopes: map[string]string{}, PKCERequired: true}}}}
	}
	return c
}

func fresh(value any) any {
	switch value.(type) {
	case *a2a.Message:
		return new(a2a.Message)
	case *a2a.Task:
		return new(a2a.Task)
	case *a2a.Artifact:
		return new(a2a.Artifact)
	case *a2a.StatusUpdate:
		return new(a2a.StatusUpdate)
	case *a2a.ArtifactUpdate:
		return new(a2a.ArtifactUpdate)
	case *a2a.Event:
		return new(a2a.Event)
	case *a2a.SendRequest:
		return new(a2a.SendRequest)
	case *a2a.GetTaskRequest:
		return new(a2a.GetTaskRequest)
	case *a2a.ListTasksRequest:
		return new(a2a.ListTasksRequest)
	case *a2a.ListTasksResponse:
		return new(a2a.ListTasksResponse)
	case *a2a.CancelTaskRequest:
		return new(a2a.CancelTaskRequest)
	case *a2a.SubscribeRequest:
		return new(a2a.SubscribeRequest)
	case *a2a.PushConfig:
		return new(a2a.PushConfig)
	case *a2a.PushConfigRequest:
		return new(a2a.PushConfigRequest)
	case *a2a.ListPushConfigsRequest:
		return new(a2a.ListPushConfigsRequest)
	case *a2a.ListPushConfigsResponse:
		return new(a2a.ListPushConfigsResponse)
	case *a2a.ExtendedCardRequest:
		return new(a2a.ExtendedCardRequest)
	case *a2a.AgentCard:
		return new(a2a.AgentCard)
	}
	panic("no such type")
}

func TestEachTypeComesBackAsItWasInBothVersions(t *testing.T) {
	for _, v := range []a2a.Version{a2a.V1, a2a.V03} {
		values := everything()
		if v == a2a.V1 {
			values = append(values, onlyV1()...)
		}
		for _, want := range values {
			data, err := v.Marshal(want)
			if err != nil {
				t.Fatalf("%s: %T: %v", v, want, err)
			}
			got := fresh(want)
			if err := v.Unmarshal(data, got); err != nil {
				t.Fatalf("%s: %T: %v\n%s", v, want, err, data)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %T (-want +got):\n%s\n%s", v, want, diff, data)
			}
			if strings.Contains(string(data), `\u003c`) {
				t.Errorf("%s: %T is escaped for HTML: %s", v, want, data)
			}
		}
	}
}

func TestACardForBothIsReadByBoth(t *testing.T) {
	want := card(a2a.V1)
	data, err := a2a.MarshalCard(*want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := a2a.UnmarshalCard(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Error(diff)
	}
	var old a2a.AgentCard
	if err := a2a.V03.Unmarshal(data, &old); err != nil {
		t.Fatal(err)
	}
	if i, v, ok := old.Select(); !ok || v != a2a.V03 || i.URL != "https://x/a2a" || old.SecuritySchemes["http"].HTTP.Scheme != "Bearer" {
		t.Errorf("%v %v %+v", i, v, old)
	}
	if i, v, ok := got.Select(); !ok || v != a2a.V1 || i.Tenant != "ten" {
		t.Errorf("%v %v", i, v)
	}
}

func TestWhatIsWrongIsAnErrorThatSaysWhere(t *testing.T) {
	for _, c := range []struct {
		v    a2a.Version
		into any
		json string
		says string
	}{
		{a2a.V1, &a2a.Task{}, `{"id":"t"}`, "status is missing"},
		{a2a.V1, &a2a.Task{}, `{"id":"t","status":{"state":"working"}}`, `"working" is no state`},
		{a2a.V1, &a2a.Task{}, `{"id":7,"status":{}}`, "id"},
		{a2a.V1, &a2a.Task{}, `{"ID":"x","id":"t","status":{}}`, "ID"},
		{a2a.V1, &a2a.SendRequest{}, `{}`, "message.messageId is missing"},
		{a2a.V1, &a2a.SendRequest{}, `{"message":{"messageId":"m","role":"ROLE_USER"}}`, "message.parts is empty"},
		{a2a.V1, &a2a.SendRequest{}, `{"message":{"messageId":"m","role":"user","parts":[]}}`, "is no role"},
		{a2a.V1, &a2a.SendRequest{}, `{"message":{"messageId":"m","role":1,"parts":[null]}}`, "not 0 of them"},
		{a2a.V1, &a2a.SendRequest{}, `{"message":{"messageId":"m","role":1,"parts":[{"text":"a","url":"b"}]}}`, "exactly one of"},
		{a2a.V1, &a2a.SendRequest{}, `{"message":{"messageId":"m","role":1,"parts":[{"raw":"???"}]}}`, "raw"},
		{a2a.V1, &a2a.Event{}, `{}`, "exactly one of task"},
		{a2a.V1, &a2a.Event{}, `{"task":{"id":"t","status":{}},"message":{"messageId":"m","role":2}}`, "not 2"},
		{a2a.V1, &a2a.ListTasksRequest{}, `{"pageSize":101}`, "1 to 100"},
		{a2a.V1, &a2a.GetTaskRequest{}, `{"id":"t","historyLength":-1}`, "historyLength"},
		{a2a.V1, &a2a.TaskStatus{}, `{}`, "is no type of the protocol"},
		{a2a.V1, &a2a.StatusUpdate{}, `{"taskId":"t","status":{"timestamp":"yesterday"}}`, "timestamp"},
		{a2a.V03, &a2a.Event{}, `{"id":"t"}`, "is none of task"},
		{a2a.V03, &a2a.Event{}, `{"kind":"task","id":"t"}`, "status is missing"},
		{a2a.V03, &a2a.Task{}, `{"kind":"message","id":"t","status":{"state":"working"}}`, "kind"},
		{a2a.V03, &a2a.SendRequest{}, `{"message":{"messageId":"m","role":"user","parts":[{"kind":"file","file":{}}]}}`, "parts[0]"},
		{a2a.V03, &a2a.SendRequest{}, `{"message":{"messageId":"m","role":"ROLE_USER"}}`, "is no role"},
		{a2a.V03, &a2a.ListTasksRequest{}, `{}`, "0.3 has no"},
		{a2a.V03, &a2a.AgentCard{}, `{"name":"n"}`, "reached nowhere"},
	} {
		err := c.v.Unmarshal([]byte(c.json), c.into)
		if !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v, which doesn't say %q", c.v, c.json, err, c.says)
		}
	}
}

func TestWhatOthersWriteIsRead(t *testing.T) {
	for text, want := range map[string]a2a.Part{
		`{"raw":"_-8"}`:           a2a.Raw("", "", []byte{0xff, 0xef}),
		`{"raw":"/+8="}`:          a2a.Raw("", "", []byte{0xff, 0xef}),
		`{"data":null}`:           a2a.Data(json.RawMessage("null")),
		`{"text":"","data":null}`: a2a.Text(""),
	} {
		var m a2a.Message
		if err := a2a.V1.Unmarshal([]byte(`{"messageId":"m","role":1,"parts":[`+text+`]}`), &m); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff([]a2a.Part{want}, m.Parts); diff != "" || m.Role != a2a.RoleUser {
			t.Errorf("%s: %s, %s", text, diff, m.Role)
		}
	}
	var s a2a.StatusUpdate
	for _, at := range []string{"2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05", "2026-01-02T03:04:05.000000"} {
		err := a2a.V03.Unmarshal([]byte(`{"kind":"status-update","taskId":"t","status":{"state":"auth-required","timestamp":"`+at+`"},"final":true}`), &s)
		if err != nil || !s.Status.Timestamp.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) || s.Status.State != a2a.StateAuthRequired {
			t.Errorf("%s: %+v, %v", at, s, err)
		}
	}
}

// Clients of 0.3 take a stream for over at an update that is final.
func TestAnUpdateOf03IsFinalWhenTheTaskStops(t *testing.T) {
	for state, want := range map[a2a.TaskState]string{
		a2a.StateWorking: `"final":false`, a2a.StateSubmitted: `"final":false`, a2a.StateCompleted: `"final":true`, a2a.StateFailed: `"final":true`, a2a.StateInputRequired: `"final":true`, a2a.StateAuthRequired: `"final":true`,
	} {
		data, err := a2a.V03.Marshal(a2a.Event{Status: &a2a.StatusUpdate{TaskID: "t", Status: a2a.TaskStatus{State: state}}})
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %s, %v", state, data, err)
		}
	}
}
