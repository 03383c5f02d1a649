package cloud

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/sigv4"
	"github.com/pawl-dev/pawl/model"
)

// AWS says who calls Amazon Bedrock, and where. What is empty is looked for.
type AWS struct {
	Region string // "": AWS_REGION, AWS_DEFAULT_REGION, or what the profile's section of ~/.aws/config says

	// Key is a Bedrock API key, sent as a bearer token. Credentials gives keys to sign with. Profile is a section of the files below. With none of them the first counts that is there: AWS_BEARER_TOKEN_BEDROCK;
	// AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; the section AWS_PROFILE, or "default", of ~/.aws/credentials
	// (AWS_SHARED_CREDENTIALS_FILE) and ~/.aws/config (AWS_CONFIG_FILE), which are read for each call. Roles, single sign-on and the credentials of machines are not looked for: Credentials can bring them.
	Key         string
	Credentials func(context.Context) (AWSCredentials, error)
	Profile     string

	// BaseURL is another server in the place of https://bedrock-runtime.REGION.amazonaws.com: a private endpoint, a test. It gets signed requests. "": AWS_ENDPOINT_URL_BEDROCK_RUNTIME, AWS_ENDPOINT_URL, or AWS's own.
	BaseURL string
}

// AWSCredentials are keys to sign with.
type AWSCredentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
	Expires         time.Time // zero: they are good for one call, and asked for again at the next
}

// signer is what a call goes out with: a bearer token, or keys.
type signer struct {
	bearer string
	keys   sigv4.Credentials
}

// fetch finds the credentials, and until when they are good.
func (a AWS) fetch(ctx context.Context, t *transport) (s signer, until time.Time, err error) {
	switch {
	case a.Key != "":
		s.bearer = a.Key
	case a.Credentials != nil:
		c, err := a.Credentials(ctx)
		if err != nil {
			return s, until, t.denied("no_credentials", "AWS.Credentials gave none", err)
		}
		s.keys, until = sigv4.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}, c.Expires
	case a.Profile == "" && os.Getenv("AWS_BEARER_TOKEN_BEDROCK") != "":
		s.bearer = os.Getenv("AWS_BEARER_TOKEN_BEDROCK")
	case a.Profile == "" && os.Getenv("AWS_ACCESS_KEY_ID") != "" && os.Getenv("AWS_SECRET_ACCESS_KEY") != "":
		s.keys = sigv4.Credentials{AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN")}
	default:
		profile, err := a.profile()
		if err != nil {
			return s, until, t.fail(errdefs.Validation, "profile", err.Error())
		}
		s.keys = sigv4.Credentials{AccessKeyID: profile["aws_access_key_id"], SecretAccessKey: profile["aws_secret_access_key"], SessionToken: profile["aws_session_token"]}
	}
	if s.bearer == "" && (s.keys.AccessKeyID == "" || s.keys.SecretAccessKey == "") {
		return s, until, t.fail(errdefs.Unauthorized, "no_credentials", "no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK, or put keys into the profile "+a.profileName()+
			"; for roles and single sign-on run: eval \"$(aws configure export-credentials --format env)\"")
	}
	t.secrets.add(s.bearer, s.keys.SecretAccessKey, s.keys.SessionToken)
	return s, until, nil
}

func (a AWS) profileName() string { return cmp.Or(a.Profile, os.Getenv("AWS_PROFILE"), "default") }

// profile reads what the files say under the profile's name; the one with the credentials counts first.
func (a AWS) profile() (map[string]string, error) {
	name := a.profileName()
	values := map[string]string{}
	section := "profile " + name
	if name == "default" {
		section = name
	}
	for _, f := range []struct{ variable, name, section string }{{"AWS_CONFIG_FILE", "config", section}, {"AWS_SHARED_CREDENTIALS_FILE", "credentials", name}} {
		path := os.Getenv(f.variable)
		if path == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				continue // there is no such file
			}
			path = filepath.Join(home, ".aws", f.name)
		}
		data, err := os.ReadFile(path) //nolint:gosec // the user's own file, or the one that the user names
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return nil, err
		}
		readSection(values, string(data), f.section)
	}
	return values, nil
}

// readSection adds the values of one section of an INI file. Indented lines belong to the value before, which is then a table that says nothing to us.
func readSection(values map[string]string, text, section string) {
	inside := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[':
			name, _, _ := strings.Cut(trimmed[1:], "]")
			inside = strings.Join(strings.Fields(name), " ") == section
		case inside && line[0] != ' ' && line[0] != '\t':
			name, value, _ := strings.Cut(trimmed, "=")
			value, _, _ = strings.Cut(value, " #")
			values[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
	}
}

// place gives the region and the address.
func (a AWS) place(t *transport) (region, base string, err error) {
	if region = cmp.Or(a.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")); region == "" {
		profile, err := a.profile()
		if err != nil {
			return "", "", t.fail(errdefs.Validation, "profile", err.Error())
		}
		region = profile["region"]
	}
	if !label(region) {
		return "", "", t.fail(errdefs.Validation, "no_region", "no AWS region: set AWS_REGION, such as eu-central-1, or AWS.Region")
	}
	return region, cmp.Or(a.BaseURL, os.Getenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"), os.Getenv("AWS_ENDPOINT_URL"), "https://bedrock-runtime."+region+".amazonaws.com"), nil
}

// denied makes an error for credentials that can't be had. A class that the cause has stays.
func (t *transport) denied(code, text string, cause error) *model.Error {
	e := t.fail(errdefs.Unauthorized, code, text)
	if kind := errdefs.Of(cause); kind != nil {
		e.Kind = kind
	}
	e.Err = cause
	return e
}
