// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
)

// arguments are the arguments of a command, by name.
type arguments = map[string]string

func TestServersFulfilTheContractOfAgents(t *testing.T) {
	pay := arguments{"class": "demo.Pay", "method": "charge"}
	agentcontroltest.Contract{
		Type: metadata.Type,
		Examples: []agentcontroltest.Example{
			{Command: server.OrderReset, Arguments: arguments{"class": "demo.Pay"}},
			{Command: "stack", Arguments: pay},
			{Command: "monitor", Arguments: pay},
			{Command: "trace", Arguments: pay},
			{Command: "watch", Arguments: pay},
			{Command: "tt", Arguments: pay},
			{Command: server.OrderList},
			{Command: server.OrderEnd, Arguments: arguments{server.ArgumentTask: "1"}},
		},
		Start: playObedient,
	}.Run(t)
}

// obedient is a simulated server that can fall silent.
type obedient struct {
	played *arthasserver.Server
	// over is closed at the end of the test.
	over chan struct{}

	mu sync.Mutex
	// received counts commands that instrument or restore classes. silent means that they have no answer.
	received int
	silent   bool
}

func (o *obedient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var request struct{ Command string }
	_ = json.Unmarshal(body, &request)
	word, _, _ := strings.Cut(request.Command, " ")
	switch word {
	case "reset", "stack", "monitor", "trace", "watch", "tt":
		o.mu.Lock()
		o.received++
		silent := o.silent
		o.mu.Unlock()
		if silent {
			select {
			case <-o.over:
			case <-r.Context().Done():
			}
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	o.played.ServeHTTP(w, r)
}

func playObedient(t testing.TB, host component.Host) agentcontroltest.Played {
	o := &obedient{over: make(chan struct{}), played: newPlayed(nil)}
	listening := httptest.NewServer(o)
	die := sync.OnceFunc(func() {
		close(o.over)
		o.played.Close()
		listening.CloseClientConnections()
		listening.Close()
	})
	t.Cleanup(die)
	b := newBed(t, o.played, listening.URL, func(c *Config) {
		c.Monitors = []MonitorConfig{{TargetConfig: shop}}
		c.ShutdownTimeout = time.Second // a silent server takes three quarters of it
	})
	b.Host = host
	b.Start()
	b.awaitJobs(1)
	return agentcontroltest.Played{
		Shutdown: b.Shutdown, Die: die,
		Silence: func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.silent = true
		},
		Received: func() int {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.received
		},
		Records: func() (all []map[string]any) {
			for _, r := range b.Records(agentcontrol.EventName) {
				all = append(all, r.Attributes().AsRaw())
			}
			return all
		},
	}
}

// steer returns a function that sends orders to the only server.
func (b *bed) steer() func(command string, written arguments) (agentcontrol.Answer, error) {
	agents := b.Host.(*agentcontroltest.Directory).Agents()
	require.Len(b.T, agents, 1)
	return func(command string, written arguments) (agentcontrol.Answer, error) {
		return agentcontroltest.Order(b.T.Context(), agents[0], command, written)
	}
}

// A receiver may have no configured commands if operators can start some.
func TestOperatorsStartAndEndCommands(t *testing.T) {
	played, endpoint := newServer(t, nil)
	nothing := func(*Config) {}
	b := newBed(t, played, endpoint, nothing)
	b.Host = &agentcontroltest.Directory{}
	b.Start()
	b.AwaitRecords("arthas.server.connected", 1)
	do := b.steer()
	mustDo := func(command string, written arguments) agentcontrol.Answer {
		t.Helper()
		answer, err := do(command, written)
		require.NoError(t, err)
		return answer
	}
	assert.Empty(t, mustDo("list", nil).Items)
	buying := arguments{"class": "demo.Shop", "method": "buy"}
	started := mustDo("watch", buying)
	assert.Equal(t, []agentcontrol.Detail{{Name: "task", Value: "1"}, {Name: "matching classes", Value: "1"}, {Name: "matching methods", Value: "1"}}, started.Details)
	mustDo("tt", arguments{"class": "demo.Shop", "method": "buy", "limit": "1"})
	played.Call(buy(time.Millisecond))
	b.AwaitRecords("arthas.record", 1)
	b.AwaitRecords("arthas.watch", 1)
	b.Await("the end of the records", func() bool { return len(mustDo("list", nil).Items) == 1 })
	assert.Equal(t, []string{"1 watch demo.Shop buy, 100 calls: running, 1 calls received, matches 1 classes and 1 methods"}, mustDo("list", nil).Items)
	mustDo("reset", nil)
	b.awaitJobs(1)
	mustDo("end", arguments{"task": "1"})
	b.Await("restored classes", func() bool { return len(played.Instrumented()) == 0 })

	_, err := do("stack", arguments{"class": "demo.None", "method": "*"})
	assert.Equal(t, agentcontrol.Refused, agentcontrol.ReasonOf(err))
	for _, pattern := range []string{">", "a b", "|", "-n", "'"} {
		for _, written := range []arguments{{"class": pattern, "method": "*"}, {"class": "demo.Shop", "method": pattern}} {
			_, err = do("stack", written)
			assert.Equal(t, agentcontrol.BadArgument, agentcontrol.ReasonOf(err), "%v", written)
		}
		_, err = do("reset", arguments{"class": pattern})
		assert.Equal(t, agentcontrol.BadArgument, agentcontrol.ReasonOf(err), pattern)
	}
	b.Shutdown()
	b.awaitRestored()

	err = newBed(t, played, endpoint, nothing).Component().Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "monitors, traces, stacks, watches, records, jvm and profiles are empty: set one of them")
	assert.ErrorContains(t, err, "agent_control")
}

func TestCommandsThatMayHarmAreDisruptive(t *testing.T) {
	played, endpoint := newServer(t, nil)
	b := newBed(t, played, endpoint, func(*Config) {})
	b.Host = &agentcontroltest.Directory{}
	b.Start()
	commands := b.Host.(*agentcontroltest.Directory).Agents()[0].Snapshot().Commands
	for _, c := range []struct {
		command string
		written arguments
		want    string
	}{
		{"watch", arguments{"class": "com.example.*", "method": "*"}, ""},
		{"monitor", arguments{"class": "*", "method": "charge"}, "monitor with class=*"},
		{"stack", arguments{"class": "demo", "method": "x", "regexp": "true"}, "stack with regexp=true"},
		{"tt", arguments{"class": "demo", "method": "x", "limit": "1000"}, ""},
		{"list", nil, ""},
		{"end", arguments{"task": "1"}, ""},
		{"reset", arguments{"class": "demo.Pay"}, "reset"},
	} {
		command, err := agentcontrol.Find(commands, c.command)
		require.NoError(t, err)
		arguments, err := command.Parse(c.written)
		require.NoError(t, err)
		assert.Equal(t, c.want, command.Disruption(arguments), "%s %v", c.command, c.written)
	}
	records, err := agentcontrol.Find(commands, "tt")
	require.NoError(t, err)
	for _, limit := range []string{"0", "-1", "1001"} {
		_, err = records.Parse(arguments{"class": "demo", "method": "x", "limit": limit})
		assert.ErrorContains(t, err, "limit")
	}
}
