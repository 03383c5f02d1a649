package exact

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Amount int `json:"amount"`
	To     string
}

type outer struct {
	Order  *inner            `json:"order"`
	All    []inner           `json:"all"`
	ByName map[string]inner  `json:"by_name"`
	Free   map[string]any    `json:"free"`
	Text   map[string]string `json:"text"`
	When   time.Time
	inner2
	Self *outer `json:"self"`
	Not  int    `json:"-"`
}

type inner2 struct {
	Deep int `json:"deep"`
}

func TestAMemberIsAFieldInItsOwnSpellingOnly(t *testing.T) {
	for text, want := range map[string]string{
		`{"order":{"amount":1,"To":"a"},"When":"2026-01-02T03:04:05Z","deep":3}`: "",
		`{"order":{"Amount":1}}`:                            `/order/Amount: its name is "amount"`,
		`{"order":{"amount":1,"AMOUNT":2}}`:                 `/order/AMOUNT`,
		`{"Order":{}}`:                                      `/Order: its name is "order"`,
		`{"all":[{"to":"a"},{"TO":"b"}]}`:                   "",
		`{"all":[{"to":"a","To":"b"}]}`:                     `/all/0/to: its name is "To"`,
		`{"all":[{"to":"a","TO":"b"}]}`:                     `its name is "To"`,
		`{"by_name":{"x":{"Amount":1}}}`:                    `/by_name/x/Amount`,
		`{"free":{"Amount":1,"amount":2},"text":{"A":"a"}}`: "",
		`{"self":{"self":{"order":{"aMount":1}}}}`:          `/self/self/order/aMount`,
		`{"Deep":1}`:          `/Deep`,
		`{"ſelf":{}}`:         "/ſelf",
		`{"other":1,"Not":2}`: "",
		`{"order":1}`:         "cannot unmarshal",
		`{"order":{"amount":12345678901234567890123456789}}`: "cannot unmarshal",
	} {
		var v outer
		err := Unmarshal([]byte(text), &v)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	var m map[string]any
	var raw json.RawMessage
	var n []int
	for text, v := range map[string]any{`{"A":1,"a":2}`: &m, `{"A": 1}`: &raw, `[1]`: &n} {
		if err := Unmarshal([]byte(text), v); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if m["A"] != 1.0 || string(raw) != `{"A": 1}` || n[0] != 1 {
		t.Error(m, string(raw), n)
	}
}
