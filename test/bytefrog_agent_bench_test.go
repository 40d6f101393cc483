// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Bytefrog's own agent traces a Java program. No distribution has a package of the agent: the environment names its file.

const (
	agentVariable = "CALLBRAID_BYTEFROG_AGENT"
	// tracedWork is the program. Only its own class is traced.
	tracedWork   = "testdata/bytefrog/Work.java"
	onlyWork     = `{inclusions: ["^Work"], exclusions: [""]}`
	requestRoots = `trace_roots: ['Work\.request']`
	// warmRequests is the number of requests for each thread before the measured ones, in which the JVM compiles the program.
	warmRequests, measuredRequests = 20_000, 60_000
	callsPerRequest                = 41 // one of 64 has another
	workThreads                    = 2
)

// BenchmarkBytefrogsAgent measures the time of a program with two threads that makes short calls, for each call: if a program
// reads and discards the agent's data, and with the distribution and the nop exporter. With the connector it also compares
// the metric of calls with the program's own counts.
func BenchmarkBytefrogsAgent(b *testing.B) {
	jar := os.Getenv(agentVariable)
	if jar == "" {
		b.Skipf("set %s to the path of the agent, bytefrog-tracer.jar", agentVariable)
	}
	classes := b.TempDir()
	output, err := exec.CommandContext(b.Context(), "javac", "--release", "8", "-d", classes, tracedWork).CombinedOutput()
	require.NoError(b, err, "%s", output)
	for _, reader := range []struct {
		name  string
		start func(*testing.B) (endpoint string, check func(calls map[string]int64))
	}{
		{"discarded", func(b *testing.B) (string, func(map[string]int64)) { return discardAgentData(b), nil }},
		{"processor", startPairing},
		{"connector", startCounting},
	} {
		b.Run(reader.name, func(b *testing.B) {
			perCall := 0.0
			for b.Loop() {
				endpoint, check := reader.start(b)
				p := startWork(b, jar, classes, endpoint)
				p.handle(warmRequests)
				took, calls := p.handle(measuredRequests)
				perCall += float64(took) / (workThreads * measuredRequests * callsPerRequest)
				if check != nil {
					check(calls)
				}
				p.end()
			}
			b.ReportMetric(perCall/float64(b.N), "ns/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// startPairing starts the distribution with the processor, which makes spans of all calls.
func startPairing(b *testing.B) (endpoint string, check func(map[string]int64)) {
	endpoint = testkit.Address(b)
	kit.Start(b, withOrdinaryTelemetry(pipeline(endpoint, "agent: "+onlyWork, requestRoots, "nop: {}")))
	return endpoint, nil
}

const countedWork = `
receivers: {bytefrog: {endpoint: %q, max_block: 0s, agent: %s}}
connectors: {stack_pairing: {interval: 1s, keep: {ratio: 0.01}, %s}}
exporters:
  nop: {}
  prometheus: {endpoint: %q, metric_expiration: 1h}
service: {pipelines: {
  traces/calls: {receivers: [bytefrog], exporters: [stack_pairing]},
  traces/kept: {receivers: [stack_pairing], exporters: [nop]},
  metrics: {receivers: [stack_pairing], exporters: [prometheus]},
  profiles: {receivers: [stack_pairing], exporters: [nop]}}}
`

// startCounting starts the distribution with the connector: metrics and profiles of all calls, and the spans of one of a
// hundred traces. Calls are counted when they end, so check must run while main has not ended, and ignores it.
func startCounting(b *testing.B) (endpoint string, check func(map[string]int64)) {
	endpoint, page := testkit.Address(b), testkit.Address(b)
	kit.Start(b, withOrdinaryTelemetry(fmt.Sprintf(countedWork, endpoint, onlyWork, requestRoots, page)))
	return endpoint, func(calls map[string]int64) {
		b.Helper()
		testkit.Eventually(b, "the metric equals the program's counts", func() (bool, string) {
			counted := callsOnPage(b, fetch(b, "http://"+page+"/metrics"))
			return maps.Equal(calls, counted), fmt.Sprintf("the program counted %v, the metric has %v", calls, counted)
		})
	}
}

var callsSeries = regexp.MustCompile(`(?m)^code_function_calls_total\{[^}]*code_function_name="([^"]+)"[^}]*\} (\S+)`)

// callsOnPage returns the number of calls by function on a page for Prometheus.
func callsOnPage(b *testing.B, page string) map[string]int64 {
	b.Helper()
	calls := map[string]int64{}
	for _, found := range callsSeries.FindAllStringSubmatch(page, -1) {
		n, err := strconv.ParseFloat(found[2], 64)
		require.NoError(b, err)
		calls[found[1]] += int64(n)
	}
	return calls
}

// work is the traced program.
type work struct {
	b       *testing.B
	command *exec.Cmd
	input   io.WriteCloser
	lines   *bufio.Scanner
	errors  *testkit.Output
}

func startWork(b *testing.B, jar, classes, endpoint string) *work {
	b.Helper()
	w := &work{b: b, errors: &testkit.Output{}}
	w.command = exec.CommandContext(b.Context(), "java", "-javaagent:"+jar+"="+endpoint, "-cp", classes, "Work")
	w.command.Dir, w.command.Stderr = b.TempDir(), w.errors
	input, err := w.command.StdinPipe()
	require.NoError(b, err)
	output, err := w.command.StdoutPipe()
	require.NoError(b, err)
	w.input, w.lines = input, bufio.NewScanner(output)
	require.NoError(b, w.command.Start())
	return w
}

// handle lets each thread of the program handle some requests. It returns the time in nanoseconds, and the number of
// all calls so far by function.
func (w *work) handle(requests int) (took int64, calls map[string]int64) {
	w.b.Helper()
	_, err := fmt.Fprintln(w.input, requests)
	require.NoError(w.b, err)
	calls = map[string]int64{}
	for w.lines.Scan() {
		name, number, isNumber := strings.Cut(w.lines.Text(), " ")
		switch {
		case name == "done":
			return took, calls
		case !isNumber:
			require.Fail(w.b, "expected a function and a number", w.lines.Text())
		}
		n, err := strconv.ParseInt(number, 10, 64)
		require.NoError(w.b, err)
		if name == "took" {
			took = n
			continue
		}
		calls[name] = n
	}
	require.Fail(w.b, "the program ended too early", "%v\n%s", w.lines.Err(), w.errors)
	return 0, nil
}

// end ends the program.
func (w *work) end() {
	w.b.Helper()
	w.input.Close()
	require.NoError(w.b, w.command.Wait(), "%s", w.errors)
}

// discardAgentData starts a headquarters that configures and starts agents as the receiver does, and discards their data.
func discardAgentData(b *testing.B) (endpoint string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if err := discard(conn); err != nil && !errors.Is(err, net.ErrClosed) {
					b.Errorf("read the agent's data: %v", err)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func discard(conn net.Conn) error {
	first := make([]byte, 2)
	if _, err := io.ReadFull(conn, first); err != nil {
		return err
	}
	hello, _, err := bytefrog.DecodeFirst(first, bytefrog.MaxString)
	if err != nil {
		return err
	}
	answer := bytefrog.DataHelloReply{}.AppendTo(nil)
	if hello, ok := hello.(bytefrog.Hello); ok {
		configuration, err := bytefrog.AgentConfiguration{
			RunID: 1, HeartbeatInterval: time.Second, Exclusions: []string{""}, Inclusions: []string{"^Work"},
			BufferMemoryBudget: 4 << 20, QueueRetryCount: 10, DataConnections: 2, // the receiver's defaults
		}.Message(hello.Version)
		if err != nil {
			return err
		}
		answer = bytefrog.Command{Of: bytefrog.TypeStart}.AppendTo(configuration.AppendTo(nil))
	}
	if _, err := conn.Write(answer); err != nil {
		return err
	}
	buffer := make([]byte, 256<<10)
	for {
		if _, err := conn.Read(buffer); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
