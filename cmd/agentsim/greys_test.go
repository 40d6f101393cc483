// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/testkit"
)

const greysPatience = time.Minute

// playGreys runs agentsim greys, and returns its address; end ends it, and returns its output.
func playGreys(t *testing.T, args ...string) (address string, end func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), greysPatience)
	var out testkit.Output
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs(append([]string{"greys", "--listen", "localhost:0"}, args...))
	over := make(chan error, 1)
	go func() { over <- root.ExecuteContext(ctx) }()
	ended := sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-over)
	})
	t.Cleanup(ended)
	listening := regexp.MustCompile("listening on (.*), for")
	require.True(t, testkit.Happens(func() bool { return listening.MatchString(out.String()) }))
	return listening.FindStringSubmatch(out.String())[1], func() string {
		ended()
		return out.String()
	}
}

func greysTarget(t *testing.T) javamethods.Target {
	any, err := javamethods.NewPattern("*")
	require.NoError(t, err)
	return javamethods.Target{Class: any, Method: any}
}

func TestAGreysServerSpeaksBothProtocols(t *testing.T) {
	truthFile := filepath.Join(t.TempDir(), "truth.json")
	address, end := playGreys(t, "--codes", "--rate", "1000", "--end-delay", "1ms", "--server-version", "1.8.0.0", "--truth", truthFile)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	client := gp.NewClient(conn, gp.Config{Codes: gp.UsualCodes()})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- client.Serve(ctx) }()
	require.NoError(t, client.Run(ctx, javamethods.VersionCommand{}, func(r javamethods.Reply) { assert.Equal(t, &javamethods.Version{Text: "1.8.0.0"}, r) }))
	require.NoError(t, client.Run(ctx, javamethods.StackCommand{Target: greysTarget(t), Limit: 3}, func(javamethods.Reply) {}))
	stop()
	require.Error(t, <-served)

	text := console.Client{Dial: func(context.Context) (net.Conn, error) { return net.Dial("tcp", address) }}
	trees := 0
	require.NoError(t, text.Run(t.Context(), javamethods.TraceCommand{Target: greysTarget(t), Limit: 4}, func(r javamethods.Reply) {
		if _, is := r.(*javamethods.Tree); is {
			trees++
		}
	}))
	assert.Equal(t, 4, trees)

	assert.Regexp(t, `process \d+: made .* calls, .* failed; sent 0 by monitors, 4 trees, 3 stacks, 0 records; 0 missed; 0 classes were reset, 10 remained changed`, end())
	data, err := os.ReadFile(truthFile)
	require.NoError(t, err)
	var lives []struct {
		ProcessID int64 `json:"process_id"`
		Made      map[string]struct{ Calls int64 }
		Trees     int64
	}
	require.NoError(t, json.Unmarshal(data, &lives))
	require.Len(t, lives, 1)
	assert.Equal(t, int64(4), lives[0].Trees)
	calls := int64(0)
	for name, made := range lives[0].Made {
		assert.Regexp(t, `^com\.example\.shop\.Service\d\.operation\d$`, name)
		calls += made.Calls
	}
	assert.GreaterOrEqual(t, calls, int64(4))
	assert.Equal(t, int64(os.Getpid()), lives[0].ProcessID)
}

func TestAGreysServerIsRestarted(t *testing.T) {
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{"greys", "--listen", "localhost:0", "--restart-every", "1ms", "--duration", "100ms"})
	require.NoError(t, root.Execute())
	assert.Regexp(t, `(?s)process \d+: .*process \d+: `, out.String())
}

func TestGreysFaultsHaveTheirNumber(t *testing.T) {
	address, _ := playGreys(t, "--protocol", "gp", "--fault", "failure,unsupported", "--fault-every", "2", "--fault-times", "2", "--verbose")
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	client := gp.NewClient(conn, gp.Config{})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- client.Serve(ctx) }()
	for _, want := range []error{nil, javamethods.ErrRefused, nil, javamethods.ErrUnsupported, nil, nil} {
		require.ErrorIs(t, client.Run(ctx, javamethods.VersionCommand{}, func(javamethods.Reply) {}), want)
	}
	stop()
	require.Error(t, <-served)
}

func TestWrongFlagsOfGreysAreNamed(t *testing.T) {
	for text, args := range map[string][]string{
		"--classes: expected at least 1, got 0":       {"--classes", "0"},
		"--methods: expected at least 1":              {"--methods", "0"},
		"--threads: expected at least 1":              {"--threads", "0"},
		"--calls: expected at least 0":                {"--calls", "-1"},
		"--record-every: expected at least 0":         {"--record-every", "-1"},
		"--fault-every: expected at least 1":          {"--fault-every", "0"},
		"--fault-times: expected at least 0":          {"--fault-times", "-1"},
		"--reply-delay: expected at least 0":          {"--reply-delay", "-1s"},
		"--restart-every: expected at least 0":        {"--restart-every", "-1s"},
		"--rate, --speed: expected more than 0":       {"--rate", "0"},
		"--style: expected documented, typed or slop": {"--style", "x"},
		"--timezone: unknown time zone Mars/Base":     {"--timezone", "Mars/Base"},
		`protocol "x": expected gp, console or both`:  {"--protocol", "x"},
		`fault "x": expected one of ["close"`:         {"--fault", "x"},
		"failures: expected a fraction from 0 to 1":   {"--failures", "2"},
		"--listen: listen tcp":                        {"--listen", "localhost:-1"},
	} {
		root := rootCommand()
		root.SetOut(&bytes.Buffer{})
		root.SetArgs(append([]string{"greys"}, args...))
		assert.ErrorContains(t, root.Execute(), text)
	}
}
