// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configtls"

	"github.com/callbraid/callbraid/internal/bytefrog/guard"
)

func TestWrongFlagsAreNamed(t *testing.T) {
	for arguments, want := range map[string]string{
		"":                                           "collector is not set",
		"--collector x":                              `collector is "x"`,
		"--collector a:1 --listen x":                 `listen is "x"`,
		"--collector a:1 --metrics x":                `metrics is "x"`,
		"--collector a:1 --memory 5":                 "memory is 5",
		"--collector a:1 --shutdown-timeout 0s":      "shutdown-timeout is 0s",
		"--collector a:1 --tls-ca x":                 "expected --tls too",
		"--collector a:1 --tls --tls-ca /no/such/ca": "/no/such/ca",
		"--collector a:1 --tls --tls-cert x":         "tls-key",
		"--collector a:1 --listen 192.0.2.1:1":       "--listen",
		"more":                                       "unknown command",
	} {
		command := rootCommand(newLines(io.Discard))
		command.SetArgs(strings.Fields(arguments))
		assert.ErrorContains(t, command.ExecuteContext(t.Context()), want, arguments)
	}
}

func TestAllMetricsAreServed(t *testing.T) {
	o := guard.DefaultOptions()
	o.Collectors = []string{"localhost:1"}
	guard, err := guard.New(o)
	require.NoError(t, err)
	guard.Counts().Passed.Add(7)
	log := newLines(io.Discard)
	log.total.Add(3)
	recorder := httptest.NewRecorder()
	metricsHandler(guard, log).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	text := recorder.Body.String()
	assert.Contains(t, text, "\nbytefrog_guard_events_passed_total 7\n")
	assert.Contains(t, text, "\nbytefrog_guard_log_lines_dropped_total 3\n")
	for _, m := range all() {
		assert.Contains(t, text, "\nbytefrog_guard_"+m.name+" ")
		assert.NotEmpty(t, m.help)
	}
}

func TestEachMetricHasItsOwnValue(t *testing.T) {
	c := &counts{}
	sums := map[string]*atomic.Uint64{
		"agents_taken_total": &c.Agents, "agents_turned_away_total": &c.TurnedAway, "connections_refused_total": &c.Refused,
		"received_bytes_total": &c.Bytes, "events_passed_total": &c.Passed, "events_dropped_total": &c.Dropped,
		"class_reports_dropped_total": &c.ClassReports, "lost_bytes_total": &c.LostBytes, "suspensions_total": &c.Suspensions,
		"stalls_total": &c.Stalls, "runs_total": &c.Runs, "losses_total": &c.Losses,
		"connections_evicted_total": &c.Evicted, "names_forgotten_total": &c.Forgotten, "bad_data_total": &c.BadData,
		"gave_way_total": &c.GaveWay,
	}
	want := map[string]float64{"agents": 101, "agents_connected": 102, "agents_held": 103, "waiting_bytes": 104, "names_bytes": 105, "untraced_seconds_total": 106}
	c.Untraced.Store(int64(106 * time.Second))
	for name, sum := range sums {
		want[name] = float64(len(want))
		sum.Store(uint64(want[name]))
	}
	got := map[string]float64{}
	for _, m := range all() {
		got[m.name] = m.value(c, state{Agents: 101, Connected: 102, Stalled: 103, Waiting: 104, Names: 105})
	}
	assert.Equal(t, want, got)
}

// The certificate of --tls-cert is shown to a collector that asks for one.
func TestTheGuardShowsItsCertificate(t *testing.T) {
	// Those of net/http's tests.
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	own := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
		return path
	}
	certificate := write("cert.pem", "CERTIFICATE", own.Certificate[0])
	s := &settings{options: guard.DefaultOptions(), tls: configtls.NewDefaultClientConfig()}
	command := &cobra.Command{}
	s.register(command)
	require.NoError(t, command.ParseFlags([]string{
		"--tls", "--tls-ca", certificate, "--tls-server-name", "example.com",
		"--tls-cert", certificate, "--tls-key", write("key.pem", "PRIVATE KEY", key),
	}))
	require.NoError(t, s.check(t.Context()))

	near, far := net.Pipe()
	defer near.Close()
	collector := tls.Server(far, &tls.Config{Certificates: server.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert})
	shaken := make(chan error, 1)
	go func() { shaken <- tls.Client(near, s.options.TLS).HandshakeContext(t.Context()) }()
	require.NoError(t, collector.HandshakeContext(t.Context()))
	require.NoError(t, <-shaken)
	assert.Equal(t, own.Certificate[0], collector.ConnectionState().PeerCertificates[0].Raw)
}
