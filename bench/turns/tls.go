package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/upstream"
)

// trust is the variable by which programs in Go are told of the only authorities that they trust, where the system has no store of its own: Linux and the BSDs.
const trust = "SSL_CERT_FILE"

// authority is a certificate for this machine that signs itself, in a directory of its own. All systems trust it while a benchmark runs.
type authority struct {
	dir    string
	client *http.Client // that trusts it
	before string       // of the variable
	set    bool
}

func newAuthority() (a *authority, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	a = new(authority)
	a.before, a.set = os.LookupEnv(trust)
	if a.dir, err = os.MkdirTemp("", "pawl-tls-"); err != nil {
		return nil, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	err = errors.Join(
		os.WriteFile(a.cert(), public, 0o600),
		os.WriteFile(a.key(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
		os.Setenv(trust, a.cert()),
	)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	a.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	return a, err
}

func (a *authority) cert() string { return filepath.Join(a.dir, "cert.pem") }
func (a *authority) key() string  { return filepath.Join(a.dir, "key.pem") }

func (a *authority) end() error {
	a.client.CloseIdleConnections()
	restore := os.Unsetenv
	if a.set {
		restore = func(name string) error { return os.Setenv(name, a.before) }
	}
	return errors.Join(restore(trust), os.RemoveAll(a.dir))
}

// secured has a server speak HTTP/1.1 or HTTP/2 over TLS.
func secured(s *http.Server, protocol, cert, key string) error {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(protocol == "http1")
	s.Protocols.SetHTTP2(protocol == "http2")
	return nil
}

// counts asks a model what it saw.
func (b *bench) counts(ctx context.Context, url string) (upstream.Counts, error) {
	if b.ca == nil {
		return upstream.CountsOf(ctx, url)
	}
	return upstream.CountsBy(ctx, b.ca.client, url)
}

// spoke says what is wrong with the protocol that requests came by.
func (b *bench) spoke(before, after upstream.Counts) error {
	all, second := after.Requests-before.Requests, after.HTTP2-before.HTTP2
	if want := map[bool]int64{true: all}[b.tls == "http2"]; second != want {
		return fmt.Errorf("%d of %d requests came by HTTP/2, want %d", second, all, want)
	}
	return nil
}
