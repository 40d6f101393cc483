// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

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
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
)

// bearer is an authenticator that knows one token, which is alice's.
type bearer struct{}

func (bearer) Start(context.Context, component.Host) error { return nil }
func (bearer) Shutdown(context.Context) error              { return nil }
func (bearer) Authenticate(ctx context.Context, headers map[string][]string) (context.Context, error) {
	got := headers["Authorization"]
	if len(got) != 1 || !strings.HasPrefix(got[0], "Bearer secret") {
		return ctx, errors.New("expected a token")
	}
	info := client.FromContext(ctx)
	info.Auth = &subject{attribute: "subject"}
	if strings.HasSuffix(got[0], "user") {
		info.Auth = &subject{attribute: "username"}
	}
	return client.NewContext(ctx, info), nil
}

// subject is alice, in an attribute that authenticators have for that.
type subject struct{ attribute string }

func (s *subject) GetAttribute(name string) any {
	if name == s.attribute {
		return "alice"
	}
	return nil
}
func (s *subject) GetAttributeNames() []string { return []string{s.attribute} }

var bearerID = component.MustNewID("bearertokenauth")

func (bearer) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{bearerID: bearer{}}
}

func TestAnAuthenticatorGuardsEverythingAndNamesTheClient(t *testing.T) {
	b := unstartedBed(t, func(c *Config) {
		c.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: bearerID}})
	})
	require.NoError(t, b.extension.Start(t.Context(), bearer{}))
	t.Cleanup(b.shutdown)
	f := newFake("one")
	b.extension.Register(f)
	order := func() *http.Request {
		return b.request(http.MethodPost, "/v1/agents/"+f.id+"/commands", api.TypeJSON, `{"command":"suspend"}`)
	}
	for _, r := range []*http.Request{
		order(), b.request(http.MethodGet, "/", "", ""), b.request(http.MethodGet, "/v1/agents", "", ""), b.request(http.MethodGet, "/v1/openapi.yaml", "", ""),
		b.request(http.MethodGet, "/style.css", "", ""), b.request(http.MethodGet, "/agents/"+f.id, "", ""),
		b.request(http.MethodPost, "/agents/"+f.id+"/commands", formType, "command=suspend"),
	} {
		response, body := b.do(r)
		assert.Equal(t, http.StatusUnauthorized, response.StatusCode, r.URL.Path)
		p := decode[api.Problem](t, string(body))
		assert.Equal(t, "unauthorized expected a token", p.Reason+" "+p.Detail)
		assert.Equal(t, `Bearer realm="agent_control"`, response.Header.Get("WWW-Authenticate"))
		assert.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
	}
	assert.Empty(t, f.told())
	for i, token := range []string{"Bearer secret", "Bearer secret user"} {
		r := order()
		r.Header.Set("Authorization", token)
		response, _ := b.do(r)
		assert.Equal(t, http.StatusOK, response.StatusCode)
		assert.True(t, strings.HasPrefix(f.told()[i].Order.By, "alice at 127.0.0.1:"), f.told()[i].Order.By)
	}
}

func TestABodyThatCannotBeUnpackedIsAProblem(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	for _, encoding := range []string{"gzip", "br"} {
		r := b.request(http.MethodPost, "/v1/agents/"+f.id+"/commands", api.TypeJSON, `{"command":"suspend"}`)
		r.Header.Set("Content-Encoding", encoding)
		response, body := b.do(r)
		assert.Equal(t, http.StatusBadRequest, response.StatusCode)
		assert.Equal(t, "bad_request", decode[api.Problem](t, string(body)).Reason)
		assert.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
	}
	assert.Empty(t, f.told())
}

func TestAnEndpointWithoutAuthenticationIsWarnedOfOnce(t *testing.T) {
	file, key, _, _ := certificate(t, t.TempDir())
	open := func(c *Config) { c.NetAddr.Endpoint = ":0" }
	secure := func(clientCA string) option {
		return func(c *Config) {
			open(c)
			c.TLS = configoptional.Some(configtls.ServerConfig{Config: configtls.Config{CertFile: file, KeyFile: key}, ClientCAFile: clientCA})
		}
	}
	for what, test := range map[string]struct {
		set  option
		want string
	}{
		"the default is for this machine": {func(*Config) {}, ""},
		"nothing is set":                  {open, openlistener.WithoutTLS},
		"TLS of the server alone":         {secure(""), openlistener.WithoutCertificates},
		"client certificates":             {secure(file), ""},
		"an authenticator is set": {func(c *Config) {
			open(c)
			c.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: bearerID}})
		}, ""},
	} {
		b := unstartedBed(t, test.set)
		require.NoError(t, b.extension.Start(t.Context(), bearer{}))
		if warned := b.said.FilterLevelExact(zap.WarnLevel).All(); test.want == "" {
			assert.Empty(t, warned, what)
		} else if assert.Len(t, warned, 1, what) {
			assert.Equal(t, test.want, warned[0].Message, what)
			assert.Equal(t, b.extension.id, warned[0].ContextMap()["component"], what)
			assert.Equal(t, b.extension.address.String(), warned[0].ContextMap()["address"], what)
		}
		b.shutdown()
	}
}

// certificate is one of its own for localhost, in files of dir.
func certificate(t *testing.T, dir string) (file, key string, pool *x509.CertPool, pair tls.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "alice"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	file, key = filepath.Join(dir, "own.crt"), filepath.Join(dir, "own.key")
	require.NoError(t, os.WriteFile(file, certificatePEM, 0o600))
	require.NoError(t, os.WriteFile(key, keyPEM, 0o600))
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificatePEM))
	pair, err = tls.X509KeyPair(certificatePEM, keyPEM)
	require.NoError(t, err)
	return file, key, pool, pair
}

func TestClientsMayNeedACertificateWhichNamesThem(t *testing.T) {
	file, key, pool, pair := certificate(t, t.TempDir())
	b := newBed(t, func(c *Config) {
		c.TLS = configoptional.Some(configtls.ServerConfig{Config: configtls.Config{CertFile: file, KeyFile: key}, ClientCAFile: file})
	})
	f := newFake("one")
	b.extension.Register(f)
	ask := func(own ...tls.Certificate) error {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: own}}
		defer transport.CloseIdleConnections()
		asker := &api.Client{Endpoint: "https://" + b.extension.address.String(), HTTP: &http.Client{Transport: transport, Timeout: patience}}
		_, err := asker.Order(t.Context(), f.id, api.Order{Command: "suspend"})
		return err
	}
	assert.Error(t, ask())
	assert.Empty(t, f.told())
	require.NoError(t, ask(pair))
	assert.True(t, strings.HasPrefix(f.told()[0].Order.By, "CN=alice at 127.0.0.1:"), f.told()[0].Order.By)
}
