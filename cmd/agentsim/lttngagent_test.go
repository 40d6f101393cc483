// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// lttngAgents runs the command until ctx ends and returns its output.
func lttngAgents(ctx context.Context, args ...string) (string, error) {
	var out strings.Builder
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs(append([]string{"lttng-agent"}, args...))
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

func TestLTTngAgentFlagsAreChecked(t *testing.T) {
	for _, c := range []struct {
		args []string
		err  string
	}{
		{[]string{"--domain", "java"}, `--domain: expected jul, log4j, log4j2 or python, got "java"`},
		{[]string{"--protocol", "1"}, `--protocol: expected 2.0 or rfc, got "1"`},
		{[]string{"--protocol", "rfc", "--domain", "python"}, "--protocol rfc: expected --domain jul, got python"},
		{[]string{"--agents", "0"}, "--agents: expected at least 1, got 0"},
		{[]string{"--loggers", "-1"}, "--loggers: expected at least 0, got -1"},
		{[]string{"--retry", "0s"}, "--retry: expected more than 0, got 0s"},
		{[]string{"--names", "/nowhere/names"}, "--names: open /nowhere/names: no such file or directory"},
		{[]string{"--fault", "flood"}, "--fault: expected one of "},
		{[]string{"--fault", "die:x"}, `--fault: expected a number of replies behind die:, got "x"`},
		{[]string{"--fault", "die:-1"}, `--fault: expected a number of replies behind die:, got "-1"`},
		{[]string{"--fault-times", "-1"}, "--fault-times: expected at least 0, got -1"},
		{[]string{"--domain", "python", "--port-file", "/nowhere/agent.port"}, "an agent in Python reads the address of its daemon only once"},
	} {
		_, err := lttngAgents(t.Context(), append(c.args, "--duration", "1ms")...)
		require.ErrorContains(t, err, c.err, "%q", c.args)
	}
}

// serveAgents starts the agents, enables all events, and lists their loggers, until the listener is
// closed.
func serveAgents(t *testing.T, listener net.Listener, listed chan<- []string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			b := make([]byte, lttngagent.RegistrationSize)
			if _, err := io.ReadFull(conn, b); !assert.NoError(t, err) {
				return
			}
			r, err := lttngagent.ParseRegistration(b)
			assert.NoError(t, err)
			from := bufio.NewReader(conn)
			all, err := lttngagent.ParsePattern("*")
			assert.NoError(t, err)
			for _, c := range []lttngagent.Command{lttngagent.Enable{Logger: all}, lttngagent.RegistrationDone{}} {
				b, err := r.Agent().AppendCommand(nil, c)
				assert.NoError(t, err)
				_, err = conn.Write(b)
				assert.NoError(t, err)
			}
			_, err = r.Agent().ReadCode(from)
			assert.NoError(t, err)
			for {
				b, err := r.Agent().AppendCommand(nil, lttngagent.List{})
				assert.NoError(t, err)
				if _, err = conn.Write(b); err != nil {
					return
				}
				reply, err := r.Agent().ReadList(from, lttngagent.Limits{})
				if err != nil {
					return
				}
				if len(reply.Loggers) > 0 {
					listed <- reply.Loggers
					_, _ = from.ReadByte() // until the agent's end
					return
				}
			}
		}()
	}
}

func TestLTTngAgentsObeyUntilTheyAreEnded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	names := filepath.Join(t.TempDir(), "names")
	require.NoError(t, os.WriteFile(names, []byte("com.example.one\ncom.example.two\n"), 0o600))
	listed := make(chan []string, 10)
	go serveAgents(t, listener, listed)
	type result struct {
		out string
		err error
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan result, 1)
	go func() {
		out, err := lttngAgents(ctx, "--endpoint", listener.Addr().String(), "--agents", "2", "--names", names, "-v")
		ended <- result{out, err}
	}()
	for range 2 {
		select {
		case got := <-listed:
			assert.Equal(t, []string{"com.example.one", "com.example.two"}, got)
		case <-time.After(time.Minute):
			t.Fatal("expected two lists within a minute")
		}
	}
	end()
	r := <-ended
	require.NoError(t, r.err)
	assert.Contains(t, r.out, "playing 2 agents of jul with 2 loggers each\n2 connections, ")
	assert.Contains(t, r.out, " list, 2 enable, 2 registration done; 4 names listed\n2 programs made their first handler, the slowest in ")
	assert.Contains(t, r.out, ", 0 of them timed out\n0 requests ended an agent or its connection; 0 faults\nenabled at the end: 2: \"*\" (2)\n")
}
