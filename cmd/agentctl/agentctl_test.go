// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/callbraid/callbraid/extension/agentcontrolextension"
	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/testkit"
)

// played is an agent that executes and confirms each command.
type played struct {
	id       string
	snapshot agentcontrol.Snapshot
}

func (p *played) ID() string                      { return p.id }
func (p *played) Snapshot() agentcontrol.Snapshot { return p.snapshot }
func (*played) SendRecord(agentcontrol.Record)    {}
func (*played) Do(_ context.Context, o agentcontrol.Order) (agentcontrol.Answer, error) {
	if o.Command == "stop" {
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.Refused, "not today")
	}
	return agentcontrol.Answer{
		Message: o.Command + " " + o.Arguments.String(),
		Details: []agentcontrol.Detail{{Name: "state", Value: "suspended"}}, Items: []string{"com.example", "evil\x1b[2J"},
	}, nil
}

// serve starts the extension with agents, and returns its address.
func serve(t *testing.T, agents ...*played) (endpoint string) {
	t.Helper()
	address := testkit.Address(t)
	factory := agentcontrolextension.NewFactory()
	config := factory.CreateDefaultConfig().(*agentcontrolextension.Config)
	config.NetAddr.Endpoint, config.AllowDisruptive = address, true
	x, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	require.NoError(t, x.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, x.Shutdown(context.Background())) })
	for _, a := range agents {
		x.(agentcontrol.Directory).Register(a)
	}
	return "http://" + address
}

func agentOf(service string) *played {
	return &played{id: agentcontrol.NewID(service), snapshot: agentcontrol.Snapshot{
		Tracer: "bytefrog", Receiver: "bytefrog", Service: service, Address: "127.0.0.1:1", State: "tracing", LastSeen: time.Now(),
		Process: agentcontrol.Process{PID: 42, Name: "java"},
		Commands: []agentcontrol.Command{
			{Name: "suspend", Summary: "Stop tracing."},
			{Name: "stop", Summary: "Stop the program.", Disruptive: true},
			{Name: "enable", Summary: "Enable a logger.", Parameters: []agentcontrol.Parameter{
				{Name: "logger", Summary: "Its name.", Kind: agentcontrol.Text, Required: true},
				{Name: "level", Summary: "A level.", Kind: agentcontrol.Text, OneOf: []string{"FINE", "INFO"},
					DisruptiveIf: &agentcontrol.Condition{Text: "it is loud", Holds: func(string) bool { return false }}},
			}},
		},
	}}
}

// run runs agentctl, and returns its output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, args...)
	require.NoError(t, err, strings.Join(args, " "))
	return out
}

func TestAgentsAreListed(t *testing.T) {
	shop, evil := agentOf("shop"), agentOf("evil\x1b[31m\nname")
	endpoint := serve(t, shop, evil)
	out := mustRun(t, "list", "--endpoint", endpoint)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, rows, 3, "a name is one line")
	assert.Equal(t, []string{"ID", "TRACER", "SERVICE", "ADDRESS", "PROCESS", "STATE", "LAST", "SEEN"}, strings.Fields(rows[0]))
	assert.Equal(t, []string{shop.id, "bytefrog", "shop", "127.0.0.1:1", "42", "java", "tracing"}, strings.Fields(rows[2])[:7])
	assert.NotContains(t, out, "\x1b")

	var agents []api.Agent
	require.NoError(t, json.Unmarshal([]byte(mustRun(t, "list", "-o", "json", "--service", "shop", "--endpoint", endpoint)), &agents))
	require.Len(t, agents, 1)
	assert.Equal(t, shop.id, agents[0].ID)
	assert.Len(t, strings.Split(mustRun(t, "list", "--state", "paused", "--endpoint", endpoint), "\n"), 2)
}

func TestCommandsAreListedAndSent(t *testing.T) {
	shop := agentOf("shop")
	endpoint := serve(t, shop, agentOf("other"))
	out := mustRun(t, "commands", shop.id[:6], "--endpoint", endpoint)
	for _, want := range []string{"suspend", "Stop the program. (needs allow_disruptive)", "logger=text", "[level=FINE|INFO]", "A level. (needs allow_disruptive if it is loud)"} {
		assert.Contains(t, out, want)
	}
	out = mustRun(t, "do", shop.id[:6], "enable", "logger=com.example=1", "level=FINE", "--endpoint", endpoint)
	assert.Contains(t, out, "enable level=FINE logger=com.example=1")
	assert.Contains(t, out, "suspended")
	assert.NotContains(t, out, "\x1b")
	var answer api.Answer
	require.NoError(t, json.Unmarshal([]byte(mustRun(t, "do", shop.id, "suspend", "-o", "json", "--endpoint", endpoint)), &answer))
	assert.Equal(t, []string{"com.example", "evil\x1b[2J"}, answer.Items)
}

func TestWrongArgumentsAreErrors(t *testing.T) {
	shop := agentOf("shop")
	endpoint := serve(t, shop, agentOf("other"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"do", shop.id, "stop"}, "not today"},
		{[]string{"do", shop.id, "reboot"}, "expected suspend or stop or enable"},
		{[]string{"do", shop.id, "enable", "logger"}, "expected name=value"},
		{[]string{"do", shop.id, "enable", "logger=a", "logger=b"}, "expected logger once"},
		{[]string{"do", "zzzz", "suspend"}, "which none of 2 agents has"},
		{[]string{"do", shop.id}, "requires at least 2 arg"},
		{[]string{"list", "-o", "xml"}, "--output: expected table or json"},
		{[]string{"list", "--timeout", "0s"}, "--timeout: expected more than 0"},
		{[]string{"watch", "--interval", "1ms"}, "--interval: expected at least 100ms"},
		{[]string{"list", "--token-file", "/nowhere/token"}, "--token-file"},
		{[]string{"list", "--tls-ca", "/nowhere/ca"}, "--tls-ca"},
	} {
		_, err := run(t, append(c.args, "--endpoint", endpoint)...)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := run(t, "list", "--endpoint", "localhost:8766")
	assert.ErrorContains(t, err, "--endpoint: expected http://host:port")
	_, err = run(t, "do", shop.id, "stop", "--endpoint", endpoint)
	assert.ErrorAs(t, err, new(*api.Problem))
}

func TestAnEmptyOrShortIDIsAnError(t *testing.T) {
	shop := agentOf("shop")
	endpoint := serve(t, shop)
	for _, digits := range []string{"", shop.id[:1], shop.id[:3]} {
		for _, args := range [][]string{{"do", digits, "suspend"}, {"commands", digits}} {
			_, err := run(t, append(args, "--endpoint", endpoint)...)
			assert.ErrorContains(t, err, "at least its first 4 digits", "though it is the only one")
		}
	}
	assert.Contains(t, mustRun(t, "do", shop.id[:4], "suspend", "--endpoint", endpoint), "suspend")
}

func TestDigitsOfSeveralAgentsAreAnError(t *testing.T) {
	one, two := api.Agent{ID: "3f2a"}, api.Agent{ID: "3f2a0000"}
	for digits, want := range map[string]string{"3f2a": "3f2a", "3f2a0": "3f2a0000"} {
		for _, all := range [][]api.Agent{{one, two}, {two, one}} {
			found, err := resolve(all, digits)
			require.NoError(t, err, "a whole ID is that of one, though another begins with it")
			assert.Equal(t, want, found.ID)
		}
	}
	_, err := resolve([]api.Agent{{ID: "3f2a0"}, {ID: "3f2a1"}}, "3f2a")
	assert.ErrorContains(t, err, "with which 2 begin")
}

func TestAnotherServerThanACollectorIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	}))
	defer server.Close()
	_, err := run(t, "list", "--endpoint", server.URL)
	assert.ErrorContains(t, err, "401 Unauthorized")
	assert.False(t, errors.As(err, new(*api.Problem)))
}

func TestATokenIsSentOnlyToTheCollector(t *testing.T) {
	var mu sync.Mutex
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { assert.Fail(t, "it followed") }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Authorization"))
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	_, err := run(t, "list", "--endpoint", server.URL, "--token-file", file)
	assert.ErrorContains(t, err, "307")
	t.Setenv(tokenVariable, "other")
	_, err = run(t, "list", "--endpoint", server.URL)
	assert.ErrorContains(t, err, "307")
	assert.Equal(t, []string{"Bearer secret", "Bearer other"}, got)
}

func TestAgentsAndCommandsAreCompleted(t *testing.T) {
	shop := agentOf("shop")
	endpoint := serve(t, shop)
	complete := func(args ...string) string {
		return mustRun(t, append([]string{"__complete", "--endpoint", endpoint}, args...)...)
	}
	assert.Contains(t, complete("do", ""), shop.id+"\tbytefrog shop 127.0.0.1:1")
	assert.Contains(t, complete("do", shop.id, ""), "suspend\tStop tracing.")
	assert.Contains(t, complete("do", shop.id, "enable", ""), "logger=\tIts name.")
	assert.Contains(t, complete("commands", shop.id[:2]), shop.id)
	assert.Contains(t, complete("list", "--output", ""), "json")
	assert.Contains(t, mustRun(t, "completion", "bash"), "agentctl")
}

func TestWatchPrintsChanges(t *testing.T) {
	var out bytes.Buffer
	c := newChanges(&out)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one, two := api.Agent{ID: "1", State: "tracing"}, api.Agent{ID: "2", State: "tracing"}
	c.print([]api.Agent{one, two}, 2, at)
	one.State = "suspended"
	c.print([]api.Agent{one, two}, 2, at)
	c.printFailure(errors.New("refused\n"), at)
	c.printFailure(errors.New("refused\n"), at)
	c.print([]api.Agent{one}, 1, at)
	const when = "2026-01-02T03:04:05Z "
	assert.Equal(t, []string{
		when + "connected 1 - - - - tracing", when + "connected 2 - - - - tracing", when + "changed 1 - - - - suspended",
		when + "request failed: refused�", when + "request succeeded again", when + "disconnected 2 - - - - tracing", "",
	}, strings.Split(out.String(), "\n"))
}

func TestWatchPrintsOneLineIfNoAgentMatchesYet(t *testing.T) {
	var out bytes.Buffer
	c := newChanges(&out)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.print(nil, 3, at)
	c.print(nil, 3, at)
	c.print([]api.Agent{{ID: "1", State: "tracing"}}, 4, at)
	c.print(nil, 3, at)
	const when = "2026-01-02T03:04:05Z "
	assert.Equal(t, []string{
		when + "waiting: none of 3 connected agents matches", when + "connected 1 - - - - tracing", when + "disconnected 1 - - - - tracing", "",
	}, strings.Split(out.String(), "\n"))
}

func TestWatchRunsUntilItIsInterrupted(t *testing.T) {
	shop := agentOf("shop")
	endpoint := serve(t, shop)
	ctx, interrupt := context.WithCancel(t.Context())
	root := rootCommand()
	out := &testkit.Output{}
	root.SetOut(out)
	root.SetArgs([]string{"watch", "--interval", "100ms", "--endpoint", endpoint})
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	require.True(t, testkit.Happens(func() bool { return strings.Contains(out.String(), "connected "+shop.id) }))
	interrupt()
	assert.NoError(t, <-ended)
}
