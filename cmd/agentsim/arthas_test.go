// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/testkit"
)

// playedArthas is a run of agentsim arthas, and a client of it.
type playedArthas struct {
	*testing.T
	client *arthas.Client
	// end ends it, and returns its output.
	end func() string
}

func playArthas(t *testing.T, args ...string) *playedArthas {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	var out testkit.Output
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs(append([]string{"arthas", "--listen", "localhost:0"}, args...))
	over := make(chan error, 1)
	go func() { over <- root.ExecuteContext(ctx) }()
	ended := sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-over)
	})
	t.Cleanup(ended)
	listening := regexp.MustCompile("listening on (.*)\n")
	testkit.Eventually(t, "the server listens", func() (bool, string) { return listening.MatchString(out.String()), out.String() })
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := arthas.NewClient(&http.Client{Transport: transport}, "http://"+listening.FindStringSubmatch(out.String())[1], arthas.Settings{})
	require.NoError(t, err)
	return &playedArthas{t, client, func() string {
		ended()
		return out.String()
	}}
}

// everything matches all methods of all classes.
func everything(t *testing.T) arthas.Target {
	any, err := arthas.NewPattern("*")
	require.NoError(t, err)
	return arthas.Target{Target: javamethods.Target{Class: any, Method: any}}
}

// run runs a command to its end, and returns its results.
func (p *playedArthas) run(command arthas.Command) (results []arthas.Result) {
	p.Helper()
	session, err := p.client.Open(p.Context())
	require.NoError(p, err)
	job, err := session.Start(p.Context(), command)
	require.NoError(p, err)
	for {
		page, err := job.Pull(p.Context())
		require.NoError(p, err)
		results = append(results, page.Results...)
		if page.End != nil {
			require.NoError(p, session.Close(p.Context()))
			return results
		}
	}
}

func TestAnArthasServerReportsTheCallsOfItsProgram(t *testing.T) {
	truthFile := filepath.Join(t.TempDir(), "truth.json")
	p := playArthas(t, "--rate", "1000", "--failures", "0.5", "--in-flight", "1", "--truth", truthFile)
	version, err := p.client.Identify(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "4.3.4", version)
	trees := 0
	for _, r := range p.run(arthas.TraceCommand{Target: everything(t), Limit: 4}) {
		if tree, is := r.(*arthas.Trace); is {
			assert.Equal(t, trees > 0, tree.Nodes[0].Total.Known, "the first call was under way before")
			assert.Regexp(t, `^worker-[0-3]$`, tree.Thread.Name)
			trees++
		}
	}
	assert.Equal(t, 4, trees)
	rows := p.run(arthas.MonitorCommand{Target: everything(t), Cycle: time.Second, Limit: 2})
	calls := map[string]int64{}
	for _, r := range rows {
		if m, is := r.(*arthas.Monitor); is {
			for i := range m.Methods {
				calls[m.Methods[i].Class+"."+m.Methods[i].Method] += m.Methods[i].Calls
			}
		}
	}
	assert.Regexp(t, `process \d+: made .* calls, .* failed; sent .* by monitors, 4 trees, 0 stacks, 0 watches, 0 records; queues dropped 0 results; 0 classes were reset, 10 remained changed; 0 sessions remained open`, p.end())
	data, err := os.ReadFile(truthFile)
	require.NoError(t, err)
	var lives []struct {
		ProcessID  int64 `json:"process_id"`
		Made, Told map[string]struct{ Calls, Failed int64 }
	}
	require.NoError(t, json.Unmarshal(data, &lives))
	require.Len(t, lives, 1)
	assert.Equal(t, int64(os.Getpid()), lives[0].ProcessID)
	told := map[string]int64{}
	for name, of := range lives[0].Told {
		assert.Regexp(t, `^com\.example\.shop\.Service\d\.operation\d$`, name)
		assert.LessOrEqual(t, of.Calls, lives[0].Made[name].Calls)
		told[name] = of.Calls
	}
	assert.Equal(t, told, calls)
}

func TestAnArthasServerIsRestarted(t *testing.T) {
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{"arthas", "--listen", "localhost:0", "--restart-every", "1ms", "--duration", "100ms"})
	require.NoError(t, root.Execute())
	assert.Regexp(t, `(?s)process \d+: .*process \d+: `, out.String())
}

func TestAnArthasServerHasFaultsAndAPassword(t *testing.T) {
	p := playArthas(t, "--fault", "not-json,html", "--fault-every", "2", "--fault-times", "2")
	_, err := p.client.Identify(t.Context())
	require.NoError(t, err)
	_, err = p.client.Identify(t.Context())
	require.ErrorContains(t, err, "expected an answer of Arthas")
	_, err = p.client.Identify(t.Context())
	require.NoError(t, err)
	for _, want := range []error{arthas.ErrNotArthas, nil, nil} {
		_, err = p.client.Identify(t.Context())
		require.ErrorIs(t, err, want)
	}
	p = playArthas(t, "--user", "arthas", "--password", "secret", "--password-locally")
	_, err = p.client.Identify(t.Context())
	require.ErrorIs(t, err, arthas.ErrUnauthorized)
}

func TestWrongFlagsOfArthasAreNamed(t *testing.T) {
	for text, args := range map[string][]string{
		"--classes: expected at least 1, got 0":       {"--classes", "0"},
		"--methods: expected at least 1":              {"--methods", "0"},
		"--threads: expected at least 1":              {"--threads", "0"},
		"--calls: expected at least 0":                {"--calls", "-1"},
		"--in-flight: expected at least 0":            {"--in-flight", "-1"},
		"--loops: expected at least 0":                {"--loops", "-1"},
		"--fault-every: expected at least 1":          {"--fault-every", "0"},
		"--fault-times: expected at least 0":          {"--fault-times", "-1"},
		"--pull-wait: expected at least 0":            {"--pull-wait", "-1s"},
		"--restart-every: expected at least 0":        {"--restart-every", "-1s"},
		"--rate: expected more than 0":                {"--rate", "0"},
		"--failures: expected a fraction from 0 to 1": {"--failures", "2"},
		"--user, --password: expected both or none":   {"--user", "arthas"},
		"--timezone: unknown time zone Mars/Base":     {"--timezone", "Mars/Base"},
		`--fault: fault "x": expected one of ["close`: {"--fault", "x"},
		"--listen: listen tcp":                        {"--listen", "localhost:-1"},
	} {
		root := rootCommand()
		root.SetOut(&bytes.Buffer{})
		root.SetArgs(append([]string{"arthas"}, args...))
		assert.ErrorContains(t, root.Execute(), text)
	}
}
