package main

import (
	"encoding/json"
	"net/http"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// What all peers say of the model.
const (
	modelName = "bench"
	maxTokens = 4096
)

// client has the connections that everybody has here. An SDK without it makes a transport of its own, whose connections nobody can close.
var client = &http.Client{}

// call calls the tool, as a loop by hand would.
func call(t *load.Task, arguments []byte) (string, error) {
	var in input
	if err := json.Unmarshal(arguments, &in); err != nil {
		return "", err
	}
	return t.Call(in.Value), nil
}
