// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// A terminal must not execute control characters of a server in completions.
func TestCompletionsArePrintable(t *testing.T) {
	shop := agentOf("shop")
	shop.snapshot.Commands = []agentcontrol.Command{
		{Name: "sus\x1b[2Jpend", Summary: "x\x1b]0;owned\x07y"},
		{Name: "enable", Parameters: []agentcontrol.Parameter{{Name: "a\x1b[2J", Summary: "\x1b[2J", OneOf: []string{"\x1b[2J"}}}},
	}
	endpoint := serve(t, shop)
	for _, words := range [][]string{{"do", shop.id, ""}, {"do", shop.id, "enable", ""}, {"do", shop.id, "enable", "a\x1b[2J="}} {
		out := mustRun(t, append([]string{"__complete", "--endpoint", endpoint}, words...)...)
		assert.NotContains(t, out, "\x1b")
		assert.Contains(t, out, "�")
	}
}

// JSON may contain some control characters of terminals, so agentctl escapes them.
func TestJSONIsPrintable(t *testing.T) {
	const name = "shop\u009b31m\u202e\x7f\U000e0001 é"
	endpoint := serve(t, agentOf(name))
	out := mustRun(t, "list", "-o", "json", "--endpoint", endpoint)
	assert.NotContains(t, out, "\u009b")
	assert.Contains(t, out, `shop\u009b31m\u202e\u007f\udb40\udc01 é`)
	var agents []api.Agent
	require.NoError(t, json.Unmarshal([]byte(out), &agents))
	assert.Equal(t, name, agents[0].Service)
}

func TestValuesAndMissingArgumentsAreCompleted(t *testing.T) {
	shop := agentOf("shop")
	endpoint := serve(t, shop)
	complete := func(words ...string) string {
		return mustRun(t, append([]string{"__complete", "--endpoint", endpoint, "do", shop.id, "enable"}, words...)...)
	}
	assert.Contains(t, complete("level="), "level=FINE\tA level.\nlevel=INFO")
	assert.NotContains(t, complete("logger="), "level")
	out := complete("logger=x", "")
	assert.Contains(t, out, "level=\t")
	assert.NotContains(t, out, "logger=")
}

// silent returns a server that accepts requests and never answers.
func silent(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server
}

// A completion must not block the shell for a minute. With --timeout alone it would end after an hour.
func TestACompletionEndsSoon(t *testing.T) {
	server := silent(t)
	for _, words := range [][]string{{"do", ""}, {"do", "3f2a", ""}} {
		out := mustRun(t, append([]string{"__complete", "--timeout", "1h", "--endpoint", server.URL}, words...)...)
		assert.NotContains(t, out, "3f2a")
	}
}

func TestARequestEndsAtTheTimeout(t *testing.T) {
	_, err := run(t, "list", "--timeout", "20ms", "--endpoint", silent(t).URL)
	assert.ErrorContains(t, err, "Client.Timeout exceeded")
}

func TestWatchEndsIfTheCollectorRefusesIt(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		for _, problem := range []bool{false, true} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if problem {
					w.Header().Set("Content-Type", api.TypeProblem)
					w.WriteHeader(status)
					assert.NoError(t, json.NewEncoder(w).Encode(api.Problem{Title: "no", Status: status}))
					return
				}
				http.Error(w, "no", status)
			}))
			_, err := run(t, "watch", "--interval", "100ms", "--endpoint", server.URL)
			assert.ErrorContains(t, err, "no")
			server.Close()
		}
	}
}

// A collector may restart. Each series of failures has one line.
func TestWatchContinuesAfterAnError(t *testing.T) {
	assert.False(t, isFinal(nil))
	assert.False(t, isFinal(errors.New("connection refused")))
	assert.False(t, isFinal(&api.Problem{Status: http.StatusServiceUnavailable}))
	var out bytes.Buffer
	c := newChanges(&out)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.print([]api.Agent{{ID: "1"}}, 1, at)
	out.Reset()
	for range 2 {
		c.printFailure(errors.New("refused\u009b2J"), at)
		c.printFailure(errors.New("refused"), at)
		c.print([]api.Agent{{ID: "1"}}, 1, at)
	}
	const when = "2026-01-02T03:04:05Z "
	const once = when + "request failed: refused\ufffd2J\n" + when + "request succeeded again\n"
	assert.Equal(t, once+once, out.String(), "no control characters of a server reach the terminal")
}

// endingWriter ends a watch after a number of lines.
type endingWriter struct {
	bytes.Buffer
	lines int
	end   context.CancelFunc
}

func (e *endingWriter) Write(p []byte) (int, error) {
	if e.lines--; e.lines == 0 {
		e.end()
	}
	return e.Buffer.Write(p)
}

func TestWatchRepeatsItsRequest(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 2 {
			w.Header().Set("Content-Type", api.TypeProblem)
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"title":"Too many wait","detail":"later","status":503}`))
			return
		}
		w.Header().Set("Content-Type", api.TypeJSON)
		_, _ = w.Write([]byte(`{"agents":[{"id":"3f2a"}]}`))
	}))
	t.Cleanup(server.Close)
	ctx, end := context.WithCancel(t.Context())
	out := &endingWriter{lines: 3, end: end}
	require.NoError(t, watch(ctx, &api.Client{Endpoint: server.URL, HTTP: server.Client()}, &filter{}, time.Millisecond, newChanges(out)))
	assert.Regexp(t, `^\S+ connected 3f2a .*\n\S+ request failed: Too many wait: later\n\S+ request succeeded again\n$`, out.String())
}

// The error after an interrupt must not hide that the agent may execute the command.
func TestAnInterruptedCommandMayHaveBeenSent(t *testing.T) {
	const id = "3f2a000000000000"
	ctx, interrupt := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = api.AgentList{Agents: []api.Agent{{ID: id}}}
		switch {
		case r.Method == http.MethodPost:
			_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
			interrupt()
			<-r.Context().Done()
			return
		case strings.HasSuffix(r.URL.Path, id):
			answer = api.AgentDetail{Agent: api.Agent{ID: id}}
		}
		w.Header().Set("Content-Type", api.TypeJSON)
		assert.NoError(t, json.NewEncoder(w).Encode(answer))
	}))
	defer server.Close()
	root := rootCommand()
	root.SetArgs([]string{"do", id, "suspend", "--endpoint", server.URL})
	assert.ErrorContains(t, root.ExecuteContext(ctx), "the command may have been sent")
	server.Close()
	client := &api.Client{Endpoint: server.URL, HTTP: http.DefaultClient}
	_, err := client.Order(t.Context(), id, api.Order{Command: "suspend"})
	assert.NotContains(t, uncertain(err).Error(), "sent", "no collector received the command")
}

func TestAgentsAreChosenByTracerServiceAndState(t *testing.T) {
	all := []api.Agent{{ID: "1", Tracer: "bytefrog", Service: "shop", State: "tracing"}, {ID: "2", Tracer: "rbkit", Service: "cart", State: "idle"}}
	for _, f := range []filter{{tracer: "rbkit"}, {service: "cart"}, {state: "idle"}} {
		assert.Equal(t, all[1:], f.apply(append([]api.Agent{}, all...)))
	}
}

func TestAPasswordIsNotShown(t *testing.T) {
	t.Setenv(endpointVariable, "http://alice:secret@collector:8766")
	out := mustRun(t, "list", "--help")
	assert.NotContains(t, out, "secret")
	assert.Contains(t, out, "http://alice:xxxxx@collector:8766")
	_, err := run(t, "list", "--endpoint", "ftp://alice:secret@collector")
	assert.ErrorContains(t, err, "alice:xxxxx")
}

func TestCredentialsOverANetworkWithoutTLSHaveAWarning(t *testing.T) {
	for _, c := range []struct {
		endpoint, token string
		warned          bool
	}{
		{"http://collector:8766", "secret", true},
		{"http://alice:secret@10.0.0.1:8766", "", true},
		{"https://collector:8766", "secret", false},
		{"http://collector:8766", "", false},
		{"http://localhost:8766", "secret", false},
		{"http://127.0.0.1:8766", "secret", false},
		{"http://[::1]:8766", "secret", false},
	} {
		t.Setenv(tokenVariable, c.token)
		f := &connectFlags{endpoint: c.endpoint}
		assert.Equal(t, c.warned, f.warning() != "", c.endpoint)
		f.tokenFile = "file"
		assert.Equal(t, strings.HasPrefix(c.endpoint, "http://") && !strings.Contains(c.endpoint, "localhost") && !strings.Contains(c.endpoint, "1]") && !strings.Contains(c.endpoint, "127."),
			f.warning() != "", c.endpoint)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	out, err := run(t, "list", "--endpoint", strings.Replace(server.URL, "http://", "http://alice:secret@", 1))
	assert.Error(t, err)
	assert.NotContains(t, out, "warning")
}

// files writes a certificate and its key, in PEM.
func files(t *testing.T, pair *tls.Certificate) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600))
	require.NoError(t, os.WriteFile(key, pkcs8(t, pair), 0o600))
	return cert, key
}

func TestAgentctlChecksTheCollectorsCertificateAndSendsItsOwn(t *testing.T) {
	shown := make(chan int, 4)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown <- len(r.TLS.PeerCertificates)
		w.Header().Set("Content-Type", api.TypeJSON)
		assert.NoError(t, json.NewEncoder(w).Encode(api.AgentList{}))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()
	cert, key := files(t, &server.TLS.Certificates[0])
	other, _ := files(t, selfSigned(t))
	for _, flags := range [][]string{nil, {"--tls-ca", other}} {
		_, err := run(t, append([]string{"list", "--endpoint", server.URL}, flags...)...)
		require.ErrorContains(t, err, "certificate")
	}
	mustRun(t, "list", "--endpoint", server.URL, "--tls-ca", cert)
	assert.Zero(t, <-shown)
	mustRun(t, "list", "--endpoint", server.URL, "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key)
	assert.Equal(t, 1, <-shown)
}

func pkcs8(t *testing.T, pair *tls.Certificate) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// selfSigned returns a certificate that no server of the tests has.
func selfSigned(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "other"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
