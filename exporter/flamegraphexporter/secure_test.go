// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

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
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
)

// certified is a peer with a certificate, which is its own authority.
type certified struct {
	certificate, key string // files
	pool             *x509.CertPool
	pair             tls.Certificate
}

func newCertified(t *testing.T) certified {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	dir := t.TempDir()
	c := certified{certificate: filepath.Join(dir, "crt.pem"), key: filepath.Join(dir, "key.pem"), pool: x509.NewCertPool()}
	require.NoError(t, os.WriteFile(c.certificate, certificate, 0o600))
	require.NoError(t, os.WriteFile(c.key, key, 0o600))
	require.True(t, c.pool.AppendCertsFromPEM(certificate))
	c.pair, err = tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	return c
}

// trusting is a client that knows the server's certificate, and has some of its own.
func (c certified) trusting(own ...tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: c.pool, Certificates: own},
	}}
}

func TestPagesAreServedWithTLS(t *testing.T) {
	server := newCertified(t)
	g, address := serving(t, nil, func(c *Config) {
		c.TLS = configoptional.Some(configtls.ServerConfig{Config: configtls.Config{CertFile: server.certificate, KeyFile: server.key}})
	})
	fold(g, 1)
	client := server.trusting()
	address = "https://" + strings.TrimPrefix(address, "http://")
	// A window, too, for which the write deadline is extended.
	for _, page := range []string{"/", "/services/shop/ui/flamegraph", "/services/shop/profile.pb.gz?seconds=1"} {
		response, err := client.Get(address + page)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusOK, response.StatusCode, page)
		assert.Equal(t, 2, response.ProtoMajor, page)
		assert.NotEmpty(t, body, page)
	}
	status, _ := get(t, strings.Replace(address, "https:", "http:", 1))
	assert.Equal(t, http.StatusBadRequest, status, "a client without TLS gets no page")
	_, err := newCertified(t).trusting().Get(address)
	assert.ErrorContains(t, err, "certificate", "it shows its own certificate")
}

func TestPagesMayRequireAClientCertificate(t *testing.T) {
	server, reader, stranger := newCertified(t), newCertified(t), newCertified(t)
	g, address := serving(t, nil, func(c *Config) {
		c.TLS = configoptional.Some(configtls.ServerConfig{
			Config: configtls.Config{CertFile: server.certificate, KeyFile: server.key}, ClientCAFile: reader.certificate,
		})
	})
	fold(g, 1)
	address = "https://" + strings.TrimPrefix(address, "http://")
	for who, own := range map[string][]tls.Certificate{"none": nil, "another": {stranger.pair}} {
		response, err := server.trusting(own...).Get(address)
		if !assert.Error(t, err, who) {
			response.Body.Close() // not read
		}
	}
	response, err := server.trusting(reader.pair).Get(address)
	require.NoError(t, err)
	response.Body.Close() // not read
	assert.Equal(t, http.StatusOK, response.StatusCode)
}

// authenticator accepts clients with the password.
type authenticator struct {
	component.StartFunc
	component.ShutdownFunc
	extensionauth.ServerAuthenticateFunc
}

// withAuthenticator is a host that has an authenticator.
type withAuthenticator struct{ component.Host }

var authenticatorID = component.MustNewID("password")

const password = "Basic cmVhZGVyOmxpa2VzIGZsYW1lcw==" // of a reader who likes flames

func (withAuthenticator) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{authenticatorID: authenticator{
		ServerAuthenticateFunc: func(ctx context.Context, headers map[string][]string) (context.Context, error) {
			if http.Header(headers).Get("Authorization") != password {
				return ctx, errors.New("not a reader")
			}
			return ctx, nil
		},
	}}
}

// everyPage is one address, at least, of all that is served.
var everyPage = []string{
	"GET /", "GET /style.css", "GET /services/shop/", "GET /services/shop/ui/", "GET /services/shop/ui/flamegraph",
	"GET /services/shop/ui/flamegraph.json", "GET /flamegraph.js", "GET /flamegraph.css", "GET /d3/d3-selection-3.0.0.min.js",
	"GET /services/shop/ui/top", "GET /services/shop/ui/peek", "GET /services/shop/ui/download",
	"GET /services/shop/profile.pb.gz", "GET /services/shop/profile.folded", "GET /services/shop/profile.speedscope.json",
	"GET /services/shop/profile.pb.gz?seconds=1", "GET /services/shop/profiles/samples/count/", "GET /windows/1/",
	"GET /traces/01000000000000000000000000000000.speedscope.json", "POST /windows", "POST /reset", "GET /nothing",
}

func TestAnAuthenticatorGuardsEveryPage(t *testing.T) {
	g, address := servingFor(t, nil, withAuthenticator{componenttest.NewNopHost()}, func(c *Config) {
		c.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: authenticatorID}})
	})
	fold(g, 1)
	ask := func(page, authorization string) (status int, challenge, body string) {
		method, path, _ := strings.Cut(page, " ")
		request, err := http.NewRequestWithContext(t.Context(), method, address+path, nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", authorization)
		response, err := client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close() // read only
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, response.Header.Get("WWW-Authenticate"), string(text)
	}
	for _, page := range everyPage {
		for _, authorization := range []string{"", "Basic cmVhZGVyOg=="} {
			status, challenge, body := ask(page, authorization)
			assert.Equal(t, http.StatusUnauthorized, status, page)
			assert.Equal(t, `Basic realm="flame graphs", charset="UTF-8"`, challenge, "browsers ask for a password")
			assert.Equal(t, "not a reader\n", body, page)
		}
		status, challenge, _ := ask(page, password)
		assert.NotEqual(t, http.StatusUnauthorized, status, page)
		assert.Empty(t, challenge, page)
	}
	services := g.store.Services()
	require.Len(t, services, 1)
	assert.Zero(t, services[0].Calls, "a client with the password has reset it")
}

func TestAMissingAuthenticatorFailsTheStart(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.NetAddr.Endpoint = "localhost:0"
	config.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: component.MustNewID("nobody")}})
	g := newBed(t)
	g.config = config
	assert.ErrorContains(t, g.Start(t.Context(), componenttest.NewNopHost()), "nobody")
}

// The exporter of two signals starts twice, and has one listener.
func TestPagesWithoutAuthenticationAreWarnedOfOnce(t *testing.T) {
	server := newCertified(t)
	open := func(c *Config) { c.NetAddr.Endpoint = ":0" }
	secure := func(clientCA string) func(*Config) {
		return func(c *Config) {
			open(c)
			c.TLS = configoptional.Some(configtls.ServerConfig{
				Config: configtls.Config{CertFile: server.certificate, KeyFile: server.key}, ClientCAFile: clientCA,
			})
		}
	}
	for what, test := range map[string]struct {
		set  func(*Config)
		want string
	}{
		"the default is for this machine": {func(*Config) {}, ""},
		"nothing is set":                  {open, openlistener.WithoutTLS},
		"TLS of the server alone":         {secure(""), openlistener.WithoutCertificates},
		"client certificates":             {secure(server.certificate), ""},
		"an authenticator is set": {func(c *Config) {
			open(c)
			c.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: authenticatorID}})
		}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			core, said := observer.New(zap.WarnLevel)
			g := newBed(t)
			config := createDefaultConfig().(*Config)
			config.NetAddr.Endpoint = "localhost:0"
			test.set(config)
			g.config, g.set.Logger = config, zap.New(core)
			for range 2 {
				require.NoError(t, g.Start(t.Context(), withAuthenticator{componenttest.NewNopHost()}))
			}
			if test.want == "" {
				assert.Zero(t, said.Len())
			} else if assert.Equal(t, 1, said.Len()) {
				assert.Equal(t, test.want, said.All()[0].Message)
				assert.Equal(t, g.set.ID.String(), said.All()[0].ContextMap()["component"])
				assert.Equal(t, g.server.address.String(), said.All()[0].ContextMap()["address"])
			}
		})
	}
}
