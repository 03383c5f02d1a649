package a2a_test

import (
	"bytes"
	"testing"

	"github.com/pawl-dev/pawl/a2a"
)

// What can be read can be written, and is the same when it is read again.
func FuzzUnmarshal(f *testing.F) {
	types := append(everything(), onlyV1()...)
	for i, value := range types {
		for _, v := range []a2a.Version{a2a.V1, a2a.V03} {
			if data, err := v.Marshal(value); err == nil {
				f.Add(data, byte(i), v == a2a.V1)
			}
		}
	}
	f.Add([]byte(`{"kind":"task","id":"t","status":{"state":"working","timestamp":"2025-01-01T00:00:00"}}`), byte(5), false)
	f.Add([]byte(`{"messageId":"m","role":1,"parts":[{"raw":"_-8"},{"data":null}]}`), byte(0), true)
	f.Fuzz(func(t *testing.T, data []byte, kind byte, v1 bool) {
		v := a2a.V03
		if v1 {
			v = a2a.V1
		}
		of := types[int(kind)%len(types)]
		once := fresh(of)
		if v.Unmarshal(data, once) != nil {
			return
		}
		first, err := v.Marshal(once)
		if err != nil {
			if _, isCard := once.(*a2a.AgentCard); isCard && v == a2a.V03 {
				return // of another version
			}
			t.Fatalf("%T was read from %s and can't be written: %v", once, data, err)
		}
		twice := fresh(of)
		if err := v.Unmarshal(first, twice); err != nil {
			t.Fatalf("%T was read from %s, written as %s, and can't be read: %v", once, data, first, err)
		}
		second, err := v.Marshal(twice)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%T: %s becomes %s, then %s (%v)", once, data, first, second, err)
		}
	})
}

func FuzzUnmarshalCard(f *testing.F) {
	for _, v := range []a2a.Version{a2a.V1, a2a.V03} {
		data, err := a2a.MarshalCard(*card(v))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := a2a.UnmarshalCard(data)
		if err != nil {
			return
		}
		c.Select()
		if _, err := a2a.New(c); err == nil {
			if _, err := a2a.V1.Marshal(c); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
		}
	})
}

func FuzzParseCall(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"GetTask","params":{"id":"t"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":-1,"method":"message/send"}`))
	f.Add([]byte(`[{}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		call, bad := a2a.ParseCall(data)
		answer := a2a.V1.AppendError(nil, call.ID, a2a.Errorf(a2a.CodeInternal, "%s", data))
		if bad != nil {
			answer = a2a.V1.AppendError(nil, call.ID, bad)
		}
		if err := a2a.V1.ParseAnswer(answer, "x", nil); err == nil {
			t.Fatalf("%s: the answer %s is no error", data, answer)
		}
	})
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","result":{"task":{"id":"t","status":{}}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","error":{"code":-32001,"message":"m","data":[]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","result":{"kind":"message","messageId":"m","role":"agent","parts":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []a2a.Version{a2a.V1, a2a.V03} {
			var e a2a.Event
			if v.ParseAnswer(data, "x", &e) == nil && e.Task == nil && e.Message == nil && e.Status == nil && e.Artifact == nil {
				t.Fatalf("%s: an answer without anything in it", data)
			}
		}
	})
}
