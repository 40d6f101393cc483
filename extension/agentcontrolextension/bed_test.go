// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/extension/agentcontrolextension/internal/metadata"
	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/testkit"
)

// patience is the longest time that a test waits for a condition.
const patience = time.Minute

// bed is a running extension.
type bed struct {
	t         testing.TB
	extension *agentControl
	telemetry *componenttest.Telemetry
	said      *observer.ObservedLogs
	client    *http.Client
}

type option func(*Config)

func disruptive(c *Config) { c.AllowDisruptive = true }

func newBed(t testing.TB, options ...option) *bed {
	t.Helper()
	b := unstartedBed(t, options...)
	b.start()
	return b
}

func (b *bed) start() {
	b.t.Helper()
	require.NoError(b.t, b.extension.Start(context.Background(), componenttest.NewNopHost()))
	b.t.Cleanup(b.shutdown)
}

func unstartedBed(t testing.TB, options ...option) *bed {
	t.Helper()
	core, said := observer.New(zapcore.DebugLevel)
	b := &bed{t: t, telemetry: componenttest.NewTelemetry(), said: said, client: &http.Client{Timeout: patience, Transport: &http.Transport{}}}
	t.Cleanup(b.client.CloseIdleConnections)
	t.Cleanup(func() { assert.NoError(t, b.telemetry.Shutdown(context.Background())) })
	settings := extension.Settings{ID: extensiontest.NewNopSettings(metadata.Type).ID, TelemetrySettings: b.telemetry.NewTelemetrySettings()}
	settings.Logger = zap.New(core)
	config := createDefaultConfig().(*Config)
	config.NetAddr.Endpoint = "localhost:0"
	for _, o := range options {
		o(config)
	}
	require.NoError(t, config.Validate())
	x, err := newAgentControl(settings, config)
	require.NoError(t, err)
	b.extension = x
	return b
}

func (b *bed) shutdown() {
	b.client.CloseIdleConnections()
	assert.NoError(b.t, b.extension.Shutdown(context.Background()))
}

func (b *bed) url(path string) string { return "http://" + b.extension.address.String() + path }

// await waits for a condition.
func (b *bed) await(what string, condition func() bool) {
	b.t.Helper()
	require.True(b.t, testkit.Happens(condition), "waited for %s", what)
}

// do sends a request, reads the answer, and checks its fields, if it is of
// the API.
func (b *bed) do(r *http.Request) (*http.Response, []byte) {
	b.t.Helper()
	response, err := b.client.Do(r)
	require.NoError(b.t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	require.NoError(b.t, response.Body.Close())
	b.conforms(r, response, body)
	return response, body
}

// conforms checks that a response of the API has only fields that its Go types have. The end-to-end
// tests check responses against the document.
func (b *bed) conforms(r *http.Request, response *http.Response, body []byte) {
	b.t.Helper()
	path := r.URL.Path
	switch {
	case !strings.HasPrefix(path, "/v1/") || path == "/v1/openapi.yaml" && response.StatusCode == http.StatusOK:
	case response.StatusCode >= http.StatusBadRequest:
		decode[api.Problem](b.t, string(body))
	case path == "/v1/agents":
		decode[api.AgentList](b.t, string(body))
	case strings.HasSuffix(path, "/commands"):
		decode[api.Answer](b.t, string(body))
	default:
		decode[api.AgentDetail](b.t, string(body))
	}
}

func (b *bed) request(method, path, contentType, body string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequest(method, b.url(path), strings.NewReader(body))
	require.NoError(b.t, err)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

// get returns the body of a path, which must exist.
func (b *bed) get(path string) string {
	b.t.Helper()
	response, body := b.do(b.request(http.MethodGet, path, "", ""))
	require.Equal(b.t, http.StatusOK, response.StatusCode, "%s", body)
	return string(body)
}

func decode[T any](t testing.TB, body string) (value T) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&value))
	return value
}

func (b *bed) list() []api.Agent {
	b.t.Helper()
	return decode[api.AgentList](b.t, b.get("/v1/agents")).Agents
}

// order sends a command, and returns the answer or the problem.
func (b *bed) order(id, body string) (status int, a api.Answer, p api.Problem) {
	b.t.Helper()
	response, said := b.do(b.request(http.MethodPost, "/v1/agents/"+id+"/commands", api.TypeJSON, body))
	if response.StatusCode == http.StatusOK {
		return response.StatusCode, decode[api.Answer](b.t, string(said)), p
	}
	assert.Equal(b.t, api.TypeProblem, response.Header.Get("Content-Type"))
	p = decode[api.Problem](b.t, string(said))
	assert.Equal(b.t, response.StatusCode, p.Status)
	assert.Equal(b.t, problemTypes+p.Reason, p.Type)
	return response.StatusCode, a, p
}

// refusedOrder sends a command, and returns the reason of its refusal.
func (b *bed) refusedOrder(id, body string) (status int, reason string) {
	b.t.Helper()
	status, _, p := b.order(id, body)
	return status, p.Reason
}

func (b *bed) counter(name string, attributes ...string) int64 {
	b.t.Helper()
	m, err := b.telemetry.GetMetric(name)
	if err != nil {
		return 0
	}
	return sumOf(m, attributes...)
}

// fake is an agent whose answers a test sets.
type fake struct {
	id       string
	snapshot agentcontrol.Snapshot
	do       func(ctx context.Context, o agentcontrol.Order) (agentcontrol.Answer, error)

	mu      sync.Mutex
	records []agentcontrol.Record
}

var fakeCommands = []agentcontrol.Command{
	{Name: "suspend", Summary: "Stop tracing."},
	{Name: "stop", Summary: "Stop the program.", Disruptive: true},
	{Name: "enable", Summary: "Enable a logger.", Parameters: []agentcontrol.Parameter{
		{Name: "logger", Summary: "Its name.", Kind: agentcontrol.Text, Required: true},
		{Name: "level", Summary: "A level.", Kind: agentcontrol.Text, OneOf: []string{"FINE", "INFO"}},
		{Name: "limit", Summary: "A number.", Kind: agentcontrol.Integer, Least: 1, Most: 10,
			DisruptiveIf: &agentcontrol.Condition{Text: "it is above <8>", Holds: func(limit string) bool { return limit == "9" || limit == "10" }}},
		{Name: "all", Summary: "All of them.", Kind: agentcontrol.Boolean},
	}},
}

func newFake(words ...string) *fake {
	return &fake{
		id: agentcontrol.NewID(words...),
		snapshot: agentcontrol.Snapshot{
			Tracer: "bytefrog", Receiver: "bytefrog/shop", Service: "shop", Address: "127.0.0.1:1234",
			Process: agentcontrol.Process{PID: 42, Name: "java"}, State: "tracing",
			Since: time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC), LastSeen: time.Now(),
			Commands: fakeCommands, Counters: []agentcontrol.Counter{{Name: "events", Unit: "{event}", Value: 12}},
		},
		do: func(_ context.Context, o agentcontrol.Order) (agentcontrol.Answer, error) {
			return agentcontrol.Answer{Message: o.Command + " " + o.Arguments.String()}, nil
		},
	}
}

func (f *fake) ID() string                      { return f.id }
func (f *fake) Snapshot() agentcontrol.Snapshot { return f.snapshot }
func (f *fake) Do(ctx context.Context, o agentcontrol.Order) (agentcontrol.Answer, error) {
	return f.do(ctx, o)
}
func (f *fake) SendRecord(r agentcontrol.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, r)
}

// told returns the records that the agent's receiver got: command, result and client.
func (f *fake) told() (all []agentcontrol.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(all, f.records...)
}

var _ component.Component = (*agentControl)(nil)
