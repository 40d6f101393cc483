// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadata"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/testkit"
)

// serving is an exporter that serves, until the end of the test, and the address of its
// pages.
func serving(t *testing.T, telemetry *componenttest.Telemetry, change func(*Config)) (*bed, string) {
	t.Helper()
	return servingFor(t, telemetry, componenttest.NewNopHost(), change)
}

// servingFor is serving for a host.
func servingFor(t *testing.T, telemetry *componenttest.Telemetry, host component.Host, change func(*Config)) (*bed, string) {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.NetAddr.Endpoint = "localhost:0"
	if change != nil {
		change(config)
	}
	set := exportertest.NewNopSettings(metadata.Type)
	if telemetry != nil {
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
	}
	g := bedOf(t, set, config)
	require.NoError(t, g.Start(t.Context(), host))
	t.Cleanup(func() { assert.NoError(t, g.Shutdown(context.Background())) })
	return g, "http://" + g.server.address.String()
}

// client keeps no idle connections, whose goroutines would remain.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func get(t *testing.T, address string) (status int, body string) {
	t.Helper()
	response, err := client.Get(address)
	require.NoError(t, err)
	defer response.Body.Close() // read only
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(b)
}

// fold folds a tree of the service shop: main calls work n times.
func fold(g *bed, n byte) {
	const begin = 1_000_000
	trace, parent := calltree.TraceID{1}, calltree.SpanID{1}
	spans := []calltree.Span{{Trace: trace, ID: parent, Function: "main", Start: begin, End: begin + 100*uint64(n)}}
	for i := range uint64(n) {
		spans = append(spans, calltree.Span{
			Trace: trace, ID: calltree.SpanID{2, byte(i)}, ParentTrace: trace, Parent: parent,
			Function: "work", Start: begin + 100*i, End: begin + 100*i + 50,
		})
	}
	g.store.Fold(calltree.Origin{Service: "shop"}, spans)
}

func TestPagesAreServed(t *testing.T) {
	g, address := serving(t, nil, nil)
	fold(g, 3)
	for page, want := range map[string]string{
		"/": "shop", "/services/shop/": "work", "/services/shop/ui/flamegraph": "work", "/services/shop/profile.folded": "main;work 150\n",
	} {
		status, body := get(t, address+page)
		assert.Equal(t, http.StatusOK, status, page)
		assert.Contains(t, body, want, page)
	}
}

func TestAnAddressInUseFailsTheStart(t *testing.T) {
	_, address := serving(t, nil, nil)
	config := createDefaultConfig().(*Config)
	config.NetAddr.Endpoint = strings.TrimPrefix(address, "http://")
	g := bedOf(t, exportertest.NewNopSettings(metadata.Type), config)
	err := g.Start(t.Context(), componenttest.NewNopHost())
	assert.ErrorContains(t, err, "address already in use")
	assert.Equal(t, err, g.Start(t.Context(), componenttest.NewNopHost()), "of the other signal, too")
	assert.NoError(t, g.Shutdown(context.Background()))
}

func TestBothSignalsAreServedByOne(t *testing.T) {
	factory := NewFactory()
	config := factory.CreateDefaultConfig().(*Config)
	config.NetAddr.Endpoint = "localhost:0"
	set := exportertest.NewNopSettings(metadata.Type)
	traces, err := factory.CreateTraces(t.Context(), set, config)
	require.NoError(t, err)
	again, err := factory.CreateTraces(t.Context(), set, config)
	require.NoError(t, err)
	for _, e := range []interface {
		Start(context.Context, component.Host) error
		Shutdown(context.Context) error
	}{traces, again} {
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	}
	require.NoError(t, traces.Shutdown(t.Context()))
	require.NoError(t, again.Shutdown(t.Context()))
}

// The window is longer than the server allows for requests and responses, 30 s by default.
func TestWindowsCanBeLongerThanTheWriteTimeout(t *testing.T) {
	g, address := serving(t, nil, func(c *Config) { c.ReadTimeout, c.WriteTimeout = 500*time.Millisecond, 500*time.Millisecond })
	fold(g, 1)
	status, body := get(t, address+"/services/shop/profile.pb.gz?seconds=1")
	assert.Equal(t, http.StatusOK, status)
	assert.NotEmpty(t, body)
}

func TestAShutdownEndsWindows(t *testing.T) {
	g, address := serving(t, nil, nil)
	fold(g, 1)
	type answer struct {
		status int
		err    error
	}
	ended := make(chan answer, 1)
	go func() {
		response, err := client.Get(address + "/services/shop/profile.pb.gz?seconds=600")
		if err != nil {
			ended <- answer{err: err}
			return
		}
		response.Body.Close() // not read
		ended <- answer{status: response.StatusCode}
	}()
	require.True(t, testkit.Happens(func() bool { return g.store.Usage().Windows == 1 }))
	require.NoError(t, g.Shutdown(context.Background()))
	assert.Equal(t, answer{status: http.StatusServiceUnavailable}, <-ended)
}

// TestAShutdownDoesNotWaitForSlowReaders has a client that asks for more than fits
// between it and the server, and reads no more than the beginning.
func TestAShutdownDoesNotWaitForSlowReaders(t *testing.T) {
	const names, length = 2000, 8000
	g, address := serving(t, nil, func(c *Config) { c.MaxNameBytes = length })
	for i := range uint16(names) {
		g.store.Fold(calltree.Origin{Service: "shop"}, []calltree.Span{{
			Trace: calltree.TraceID{1}, ID: calltree.SpanID{1, byte(i >> 8), byte(i)},
			Function: fmt.Sprintf("%0*d", length, i), Start: 1, End: 2,
		}})
	}
	before := goleak.IgnoreCurrent()
	connection, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.(*net.TCPConn).SetReadBuffer(4096))
	_, err = io.WriteString(connection, "GET /services/shop/profile.speedscope.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	_, err = connection.Read(make([]byte, 1))
	require.NoError(t, err)
	begin := time.Now()
	require.NoError(t, g.Shutdown(context.Background()))
	assert.GreaterOrEqual(t, time.Since(begin), stopTimeout, "it had something to send")
	assert.NoError(t, goleak.Find(before), "it sends no more")
}

// TestAFormThatDoesNotArriveEndsItsConnection has a client that sends a part of a form.
func TestAFormThatDoesNotArriveEndsItsConnection(t *testing.T) {
	_, address := serving(t, nil, func(c *Config) { c.ReadTimeout = 100 * time.Millisecond })
	connection, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(connection, "POST /reset HTTP/1.1\r\nHost: localhost\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\na")
	require.NoError(t, err)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err, "it is closed")
	assert.NotContains(t, string(answer), "303 See Other")
}

func TestOtherNamesOfThisServerAreRefused(t *testing.T) {
	_, address := serving(t, nil, func(c *Config) { c.AllowedHosts = []string{"flames.example"} })
	for host, want := range map[string]int{
		"evil.example:4040": http.StatusForbidden, "flames.example": http.StatusOK, "localhost": http.StatusOK,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/", nil)
		require.NoError(t, err)
		request.Host = host
		response, err := client.Do(request)
		require.NoError(t, err)
		response.Body.Close() // not read
		assert.Equal(t, want, response.StatusCode, host)
	}
}

func TestOtherSitesCannotReset(t *testing.T) {
	g, address := serving(t, nil, nil)
	fold(g, 1)
	for origin, want := range map[string]int{"http://attacker.example": http.StatusForbidden, address: http.StatusOK} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/reset", strings.NewReader(url.Values{"service": {"shop"}}.Encode()))
		require.NoError(t, err)
		request.Header.Set("Origin", origin)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := client.Do(request)
		require.NoError(t, err)
		response.Body.Close() // not read
		assert.Equal(t, want, response.StatusCode, origin)
	}
}

func TestRequestsAreMeasuredByPage(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	defer func() { assert.NoError(t, telemetry.Shutdown(context.Background())) }()
	g, address := serving(t, telemetry, nil)
	fold(g, 1)
	get(t, address+"/services/shop/ui/top")
	get(t, address+"/services/nobody/")
	got, err := telemetry.GetMetric("http.server.request.duration")
	require.NoError(t, err)
	codes := map[string]int64{}
	for _, point := range got.Data.(metricdata.Histogram[float64]).DataPoints {
		route, _ := point.Attributes.Value("http.route")
		code, _ := point.Attributes.Value("http.response.status_code")
		codes[route.AsString()] = code.AsInt64()
	}
	assert.Equal(t, map[string]int64{"/services/{service}/ui/{page}": 200, "/services/{service}/{$}": 404}, codes)
}

// TestGoToolPprofReadsTheDownload runs Go's own program on the download.
func TestGoToolPprofReadsTheDownload(t *testing.T) {
	g, address := serving(t, nil, nil)
	fold(g, 5)
	for sampleType, want := range map[string]map[string][2]string{
		"":       {"work": {"250", "250"}, "main": {"250", "500"}},
		"calls":  {"work": {"5", "5"}, "main": {"1", "6"}},
		"errors": {},
	} {
		got := map[string][2]string{}
		scanner := bufio.NewScanner(strings.NewReader(goToolPprof(t, "-sample_index="+sampleType, address+"/services/shop/profile.pb.gz")))
		for scanner.Scan() { // flat flat% sum% cum cum% name
			if fields := strings.Fields(scanner.Text()); len(fields) == 6 && strings.HasSuffix(fields[1], "%") && fields[3] != "0" {
				got[fields[5]] = [2]string{strings.TrimSuffix(fields[0], "ns"), strings.TrimSuffix(fields[3], "ns")}
			}
		}
		assert.Equal(t, want, got, sampleType)
	}
}

func goToolPprof(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"tool", "pprof", "-top", "-unit=ns"}, arguments...)...)
	// The go command compiles pprof. Without cgo, it shares the packages of the standard library with the collector.
	command.Env = append(command.Environ(), "CGO_ENABLED=0", "PPROF_TMPDIR="+t.TempDir())
	output, err := command.Output()
	require.NoError(t, err)
	return string(output)
}
