package oracle

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/providertest"
	"github.com/pawl-dev/pawl/model"
)

// free are the members whose objects may be any JSON, which the vendors' types keep as it is.
var free = []string{"input_schema", "parameters", "parametersJsonSchema", "schema", "responseJsonSchema", "input", "args", "response"}

// A member that a vendor's type doesn't know is seen, wherever it stands: else "nothing is lost" would say nothing.
func TestAMemberThatTheVendorDoesNotKnowIsSeen(t *testing.T) {
	for _, v := range vendors {
		for _, name := range []string{"tool_round", "image", "output", "tool_choice_required"} {
			t.Run(v.name+"/"+name, func(t *testing.T) {
				own, ok := asked(t, v, caseOf(t, name), false)
				if !ok {
					t.Fatal("it is refused")
				}
				places := objectsIn("", document(t, own.Body))
				if len(places) < 2 {
					t.Fatalf("objects at %q alone", places)
				}
				for _, place := range places {
					changed := document(t, own.Body)
					memberAt(changed, place)["of_the_future"] = true
					body, err := json.Marshal(changed)
					if err != nil {
						t.Fatal(err)
					}
					s := answered(t, v, false)
					if v.again(t, s.client(), body, false) == nil && len(changes("", document(t, s.call().Body), document(t, body))) == 0 {
						t.Errorf("%s/of_the_future goes through the vendor's types", place)
					}
				}
			})
		}
	}
}

func caseOf(t *testing.T, name string) model.Request {
	t.Helper()
	all := providertest.Cases()
	i := slices.IndexFunc(all, func(c providertest.Case) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("the matrix has no case %q", name)
	}
	return all[i].Request
}

// objectsIn gives the places of the objects in v whose members a type decides.
func objectsIn(place string, v any) (places []string) {
	switch v := v.(type) {
	case object:
		if slices.Contains(free, path.Base(place)) {
			return nil
		}
		places = append(places, place)
		for name, m := range v {
			places = append(places, objectsIn(place+"/"+name, m)...)
		}
	case []any:
		for i, e := range v {
			places = append(places, objectsIn(fmt.Sprintf("%s/%d", place, i), e)...)
		}
	}
	return places
}

func memberAt(v any, place string) object {
	for _, name := range strings.Split(place, "/")[1:] {
		switch in := v.(type) {
		case object:
			v = in[name]
		case []any:
			var i int
			_, _ = fmt.Sscan(name, &i)
			v = in[i]
		}
	}
	return v.(object)
}

// Each thing in a reply is compared by a field of its own.
func TestEveryPartOfAReplyIsCompared(t *testing.T) {
	whole := func() *reply {
		return &reply{ID: "id", Model: "m", Stop: "s", Reason: "r", Usage: model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5}, Said: []said{
			{Kind: "text", Text: "t"}, {Kind: "reasoning", Text: "t", Signature: "s"}, {Kind: "call", ID: "i", Name: "n", Input: "{}"}, {Kind: "other", Other: "{}"},
		}, Failed: &failure{1, "c", "m", "r"}}
	}
	leaves := 0
	var walk func(v reflect.Value, other *reply)
	walk = func(v reflect.Value, other *reply) {
		switch v.Kind() {
		case reflect.Pointer:
			walk(v.Elem(), other)
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), other)
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), other)
			}
		default:
			if v.IsZero() {
				return
			}
			leaves++
			was := reflect.New(v.Type()).Elem()
			was.Set(v)
			if v.SetZero(); cmp.Equal(values(whole()), values(other)) {
				t.Errorf("a %s %v that is gone is not seen", v.Type(), was)
			}
			v.Set(was)
		}
	}
	r := whole()
	walk(reflect.ValueOf(r), r)
	if leaves < 20 {
		t.Errorf("only %d values were tried", leaves)
	}
}

func values(r *reply) (all []any) {
	for _, f := range r.fields() {
		all = append(all, f.value)
	}
	return all
}

// Documents that say something else are told apart.
func TestChangesOfDocumentsAreSeen(t *testing.T) {
	for _, c := range []struct{ theirs, ours, want string }{
		{`{"a":1.50,"b":[{"c":null}]}`, `{"b":[{"c":null}],"a":15e-1}`, ""},
		{`{"a":1}`, `{"a":2}`, "/a"},
		{`{"a":1}`, `{"a":"1"}`, "/a"},
		{`{"a":null}`, `{}`, "/a"},
		{`{}`, `{"a":null}`, "/a"},
		{`{"a":[1]}`, `{"a":[1,2]}`, "/a"},
		{`{"a":[1,{"b/c":true}]}`, `{"a":[1,{"b/c":false}]}`, "/a/1/b~1c"},
		{`{"a":{}}`, `{"a":[]}`, "/a"},
	} {
		var got []string
		for _, ch := range changes("", document(t, []byte(c.theirs)), document(t, []byte(c.ours))) {
			got = append(got, ch.pointer)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s and %s: changes at %q, want %q", c.theirs, c.ours, got, c.want)
		}
	}
}

// A line of a table that no case needs is told, once all cases were looked at.
func TestADifferenceThatIsGoneIsTold(t *testing.T) {
	a := newAllowances(differing("why", at("v", "one.*", "stop", "id"), at("v", "rec/1", "id")))
	if a.has("v", "two.json", "stop") || a.has("w", "one.json", "stop") || a.has("v", "one.json", "model") || !a.has("v", "one.json", "stop") {
		t.Error("a line fits where it should not, or not where it should")
	}
	if got := a.unused(1, true); got != nil {
		t.Errorf("before all were looked at: %q", got)
	}
	a.ran()
	if got := a.unused(1, true); len(got) != 2 {
		t.Errorf("told %q, want two lines", got)
	}
	if got := a.unused(1, false); len(got) != 1 {
		t.Errorf("without recordings told %q, want one line", got)
	}
}
