package catalog_test

import (
	"fmt"

	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
)

func Example() {
	m, ok := catalog.Default().Lookup("anthropic/claude-opus-5-5")
	fmt.Println(ok, m.Window, m.MaxOutput)

	micros, known := m.Cost(model.Usage{Input: 1_000, Output: 500, CacheRead: 100_000})
	fmt.Printf("$%.6f, known: %t\n", float64(micros)/1e6, known)
	// Output:
	// true 1000000 128000
	// $0.034000, known: true
}

// Prices of your own contract, and a model that runs on your own machine and costs nothing.
func ExampleCatalog_With() {
	list := catalog.Default()
	ours, _ := list.Lookup("openai/gpt-6.2-sol")
	ours.Price = &catalog.Price{Input: 1.5, Output: 8}
	ours.Source, ours.Date, ours.Until = "our contract", "2026-11", ""

	c := list.With(ours, catalog.Model{Name: "ollama/qwen3:8b", Window: 32_768, Price: &catalog.Price{}})
	for _, name := range []string{"openai-responses/gpt-6.2-sol", "ollama/qwen3:8b", "ollama/other"} {
		m, _ := c.Lookup(name)
		micros, known := m.Cost(model.Usage{Input: 1_000_000, Output: 1_000})
		fmt.Println(name, micros, known)
	}
	// Output:
	// openai-responses/gpt-6.2-sol 1508000 true
	// ollama/qwen3:8b 0 true
	// ollama/other 0 false
}
