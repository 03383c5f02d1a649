package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/sandbox"
)

// passing are the variables that every command gets.
var passing = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CI", "PAWL_CALL",
	"GOROOT", "GOFLAGS", "GOPROXY", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOTOOLCHAIN", "GOOS", "GOARCH", "GOEXPERIMENT", "CGO_ENABLED",
	"CC", "CXX", "AR", "CFLAGS", "CXXFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "MAKEFLAGS", "JAVA_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS",
	"NVM_DIR", "NODE_ENV", "NODE_EXTRA_CA_CERTS", "PYENV_ROOT", "PYENV_VERSION", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED",
	"PIP_INDEX_URL", "PIP_CERT", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_DEFAULT_TIMEOUT", "npm_config_registry", "NPM_CONFIG_REGISTRY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NIX_PATH", "NIX_SSL_CERT_FILE", "LOCALE_ARCHIVE",
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_CONFIG_NOSYSTEM", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS",
}

// proxies pass with an open network only: otherwise it is our proxy that they name, or none.
var proxies = []string{"http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"}

// loaded reports whether a variable makes the dynamic linker load code: it would run before the fence stands, in the helper too.
func loaded(name string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || name == "GLIBC_TUNABLES" || name == "GCONV_PATH"
}

// Environ picks of an environment, as "NAME=value", what a policy lets pass: the variables that programs and compilers need (PATH, HOME, LANG, LC_*, TERM, GOFLAGS …) and
// those that Policy.Env names. A value of the former kind that has a password in it, as the address of a proxy may, doesn't pass. So keys and tokens pass when Env names
// them, and only then.
func Environ(p sandbox.Policy, environ []string) []string {
	var out []string
	for _, v := range environ {
		name, value, ok := strings.Cut(v, "=")
		listed := slices.Contains(passing, name) || strings.HasPrefix(name, "LC_") || p.Network.All && slices.Contains(proxies, name)
		if ok && !loaded(name) && (slices.Contains(p.Env, name) || listed && !hasPassword(value)) {
			out = append(out, v)
		}
	}
	for _, v := range p.Env {
		if strings.Contains(v, "=") {
			out = append(out, v)
		}
	}
	return out
}

// hasPassword reports whether there is an address with a password, or with a token in the place of a name, in a list of such.
func hasPassword(value string) bool {
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" ,|;", r) }) {
		if i := strings.Index(part, "://"); i >= 0 {
			u, err := url.Parse(part)
			if err != nil && strings.Contains(part[i:], "@") || err == nil && u.User != nil {
				return true
			}
		}
	}
	return false
}

// cacheEnv has the tools' caches in dir. What the user's Go module cache has is taken from there, read-only, and not from the network, where it is known what Go would ask otherwise. Files with secrets that tools would
// stumble over are replaced by none.
func cacheEnv(dir string, environ []string) []string {
	get := func(name string) string {
		if v := valueIn(environ, name); v != "" || !strings.HasPrefix(name, "GO") {
			return v
		}
		return valueIn(goEnvFile(environ), name)
	}
	env := []string{
		"XDG_CACHE_HOME=" + filepath.Join(dir, "xdg"),
		"GOCACHE=" + filepath.Join(dir, "go-build"), "GOPATH=" + filepath.Join(dir, "go"), "GOMODCACHE=" + filepath.Join(dir, "go", "pkg", "mod"),
		"GOBIN=" + filepath.Join(dir, "go", "bin"), "GOTELEMETRY=off",
		"npm_config_cache=" + filepath.Join(dir, "npm"), "npm_config_userconfig=" + filepath.Join(dir, "npmrc"), "npm_config_update_notifier=false",
		"YARN_CACHE_FOLDER=" + filepath.Join(dir, "yarn"), "YARN_GLOBAL_FOLDER=" + filepath.Join(dir, "yarn-berry"), "PNPM_HOME=" + filepath.Join(dir, "pnpm"),
		"CARGO_HOME=" + filepath.Join(dir, "cargo"), "PIP_CACHE_DIR=" + filepath.Join(dir, "pip"), "UV_CACHE_DIR=" + filepath.Join(dir, "uv"),
		"PYTHONPYCACHEPREFIX=" + filepath.Join(dir, "pycache"), "GRADLE_USER_HOME=" + filepath.Join(dir, "gradle"), "NETRC=" + os.DevNull,
	}
	if path := get("PATH"); path != "" { // what go install makes is found
		env = append(env, "PATH="+path+string(filepath.ListSeparator)+filepath.Join(dir, "go", "bin"))
	}
	// Modules are unpacked read-only, which keeps a directory from being removed.
	env = append(env, "GOFLAGS="+strings.TrimSpace(get("GOFLAGS")+" -modcacherw"))
	proxy := get("GOPROXY")
	if proxy == "" {
		proxy = valueIn(goDefaults(get), "GOPROXY")
	}
	if mod := userModules(get); mod != "" && proxy != "" {
		env = append(env, "GOPROXY="+(&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(mod, "cache", "download"))}).String()+","+proxy)
	}
	return env
}

// goDefaults is the file in which Go has its own values for variables that nobody set. It is read and not asked for: a program on PATH may be a command's work.
func goDefaults(get func(string) string) []string {
	root := get("GOROOT")
	if root == "" {
		for _, dir := range filepath.SplitList(get("PATH")) {
			if program, err := filepath.EvalSymlinks(filepath.Join(dir, "go")); err == nil && filepath.IsAbs(program) {
				root = filepath.Dir(filepath.Dir(program))
				break
			}
		}
	}
	if root == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(root, "go.env")) //nolint:gosec // the go command reads it too
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\n")
}

// goEnvFile is what "go env -w" has set.
func goEnvFile(environ []string) []string {
	path := valueIn(environ, "GOENV")
	if path == "" {
		config, err := os.UserConfigDir()
		if err != nil {
			return nil
		}
		path = filepath.Join(config, "go", "env")
	}
	b, err := os.ReadFile(path) //nolint:gosec // the go command reads it too
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\n")
}

// valueIn is a variable's value; of several the last counts.
func valueIn(environ []string, name string) string {
	for _, v := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// userModules is the user's module cache.
func userModules(get func(string) string) string {
	if dir := get("GOMODCACHE"); dir != "" {
		return dir
	}
	if path := filepath.SplitList(get("GOPATH")); len(path) > 0 && path[0] != "" {
		return filepath.Join(path[0], "pkg", "mod")
	}
	if home := get("HOME"); home != "" {
		return filepath.Join(home, "go", "pkg", "mod")
	}
	return ""
}

// digest names something by its content.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}
