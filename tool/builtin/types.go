package builtin

import (
	"maps"
	"slices"
	"strings"
)

// fileTypes are the languages that grep knows, by the names of their files.
var fileTypes = map[string][]string{
	"c":        {"*.c", "*.h"},
	"cpp":      {"*.cpp", "*.cc", "*.cxx", "*.c++", "*.hpp", "*.hh", "*.hxx", "*.h", "*.inl"},
	"clojure":  {"*.clj", "*.cljs", "*.cljc", "*.edn"},
	"cs":       {"*.cs"},
	"css":      {"*.css", "*.scss", "*.sass", "*.less"},
	"dart":     {"*.dart"},
	"docker":   {"Dockerfile", "Dockerfile.*", "*.dockerfile"},
	"elixir":   {"*.ex", "*.exs", "*.eex", "*.heex"},
	"erlang":   {"*.erl", "*.hrl"},
	"go":       {"*.go"},
	"graphql":  {"*.graphql", "*.gql"},
	"haskell":  {"*.hs", "*.lhs"},
	"html":     {"*.html", "*.htm"},
	"java":     {"*.java"},
	"js":       {"*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"},
	"json":     {"*.json", "*.jsonl", "*.jsonc"},
	"kotlin":   {"*.kt", "*.kts"},
	"lua":      {"*.lua"},
	"make":     {"Makefile", "makefile", "GNUmakefile", "*.mk"},
	"md":       {"*.md", "*.markdown", "*.mdx"},
	"ocaml":    {"*.ml", "*.mli"},
	"perl":     {"*.pl", "*.pm"},
	"php":      {"*.php"},
	"proto":    {"*.proto"},
	"py":       {"*.py", "*.pyi", "*.pyw"},
	"r":        {"*.r", "*.R", "*.Rmd"},
	"ruby":     {"*.rb", "*.rake", "*.gemspec", "Rakefile", "Gemfile"},
	"rust":     {"*.rs"},
	"scala":    {"*.scala", "*.sc"},
	"sh":       {"*.sh", "*.bash", "*.zsh", "*.ksh"},
	"sql":      {"*.sql"},
	"svelte":   {"*.svelte"},
	"swift":    {"*.swift"},
	"tf":       {"*.tf", "*.tfvars"},
	"toml":     {"*.toml"},
	"ts":       {"*.ts", "*.tsx", "*.mts", "*.cts"},
	"txt":      {"*.txt"},
	"vue":      {"*.vue"},
	"xml":      {"*.xml", "*.xsd", "*.xsl", "*.svg"},
	"yaml":     {"*.yaml", "*.yml"},
	"zig":      {"*.zig"},
	"protobuf": {"*.proto"},
}

func init() {
	for name, other := range map[string]string{
		"golang": "go", "python": "py", "javascript": "js", "typescript": "ts", "rs": "rust", "rb": "ruby", "kt": "kotlin",
		"csharp": "cs", "c++": "cpp", "markdown": "md", "bash": "sh", "shell": "sh", "yml": "yaml", "terraform": "tf", "makefile": "make",
	} {
		fileTypes[name] = fileTypes[other]
	}
}

func knownTypes() string { return strings.Join(slices.Sorted(maps.Keys(fileTypes)), ", ") }
