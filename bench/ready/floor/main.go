package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

func main() {
	b, _ := json.Marshal(map[string]string{})
	resp, err := http.Post("x", "x", bytes.NewReader(b))
	fmt.Println(resp, err)
	var x struct{ A int }
	fmt.Println(json.Unmarshal(b, &x))
}
