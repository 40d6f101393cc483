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
	"sync"
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
	// tracedWork is the program. Only its own class is traced, and each request is a trace.
	tracedWork = "testdata/bytefrog/Work.java"
	onlyWork   = `agent: {inclusions: ["^Work"], exclusions: [""]}`
	byRequest  = `trace_roots: ['Work\.request']`
	// warmRequests are handled by each thread before the measured ones. Meanwhile the JVM compiles the program.
	warmRequests, measuredRequests = 20_000, 200_000
	callsPerRequest                = 41 // one of 64 has another
	workThreads                    = 2
)

// BenchmarkBytefrogsAgent measures the time of a call in a program with two threads that makes short calls. Its agent's data go
// to a program that discards them, to the processor with all spans, or to the connector. The number of spans and the
// connector's metrics must equal the program's own counts.
func BenchmarkBytefrogsAgent(b *testing.B) {
	jar := os.Getenv(agentVariable)
	if jar == "" {
		b.Skipf("set %s to the absolute path of the agent, bytefrog-tracer.jar", agentVariable)
	}
	_, err := os.Stat(jar)
	require.NoError(b, err, "%s must be the absolute path of the agent", agentVariable)
	classes := b.TempDir()
	// The agent reads classes of Java 8.
	output, err := exec.CommandContext(b.Context(), "javac", "--release", "8", "-d", classes, tracedWork).CombinedOutput()
	require.NoError(b, err, "%s", output)
	for _, reader := range []struct {
		name  string
		start func(*testing.B) agentReader
	}{{"discarded", startDiscarding}, {"processor", startPairing}, {"connector", startCounting}} {
		b.Run(reader.name, func(b *testing.B) {
			perCall := 0.0
			for b.Loop() {
				r := reader.start(b)
				w := startWork(b, jar, classes, r.endpoint)
				w.handle(warmRequests)
				took, calls := w.handle(measuredRequests)
				w.end()
				calls["Work.main"] = 1
				r.end(calls)
				perCall += float64(took) / (workThreads * measuredRequests * callsPerRequest)
			}
			b.ReportMetric(perCall/float64(b.N), "ns/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// agentReader receives the data of one agent. end compares them with the calls of the program by function, when it has ended.
type agentReader struct {
	endpoint string
	end      func(calls map[string]int64)
}

// startPairing starts the distribution with the processor, which makes spans of all calls.
func startPairing(b *testing.B) agentReader {
	endpoint := testkit.Address(b)
	c := kit.Start(b, withOrdinaryTelemetry(plainPipeline(endpoint, onlyWork, byRequest, "nop: {}")))
	return agentReader{endpoint, func(calls map[string]int64) {
		b.Helper()
		c.AwaitMetric(b, 1, runsEnded)
		all := int64(0)
		for _, n := range calls {
			all += n
		}
		require.EqualValues(b, all, c.Metric(b, spansFinished), "spans")
		c.Stop(b)
	}}
}

const countedWork = `
receivers: {bytefrog: {endpoint: %q, max_block: 0s, %s}}
connectors: {stack_pairing: {interval: 1s, keep: {ratio: 0.01}, %s}}
exporters:
  nop: {}
  prometheus: {endpoint: %q}
service: {pipelines: {
  traces/calls: {receivers: [bytefrog], exporters: [stack_pairing]},
  traces/kept: {receivers: [stack_pairing], exporters: [nop]},
  metrics: {receivers: [stack_pairing], exporters: [prometheus]},
  profiles: {receivers: [stack_pairing], exporters: [nop]}}}
`

// startCounting starts the distribution with the connector: metrics and profiles of all calls, and the spans of one of a
// hundred traces.
func startCounting(b *testing.B) agentReader {
	endpoint, page := testkit.Address(b), testkit.Address(b)
	c := kit.Start(b, withOrdinaryTelemetry(fmt.Sprintf(countedWork, endpoint, onlyWork, byRequest, page)))
	return agentReader{endpoint, func(calls map[string]int64) {
		b.Helper()
		var text string
		testkit.Eventually(b, "the metric of calls equals the program's counts", func() (bool, string) {
			text = fetch(b, "http://"+page+"/metrics")
			counted := countsOnPage(b, text, "code_function_calls_total")
			return maps.Equal(calls, counted), fmt.Sprintf("the program counted %v, the metric has %v", calls, counted)
		})
		require.Equal(b, map[string]int64{"Work.fail": calls["Work.fail"]}, countsOnPage(b, text, "code_function_errors_total"))
		c.Stop(b)
	}}
}

// countsOnPage returns the values of a metric on a page for Prometheus by function. A function without any is left out.
func countsOnPage(b *testing.B, page, metric string) map[string]int64 {
	b.Helper()
	counts := map[string]int64{}
	for _, found := range regexp.MustCompile(`(?m)^`+metric+`\{[^}]*code_function_name="([^"]+)"[^}]*\} (\S+)`).FindAllStringSubmatch(page, -1) {
		n, err := strconv.ParseFloat(found[2], 64)
		require.NoError(b, err)
		if n > 0 {
			counts[found[1]] += int64(n)
		}
	}
	return counts
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
	b.Cleanup(func() {
		_ = w.command.Process.Kill() // an error means that it has ended
		_ = w.command.Wait()
	})
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

// startDiscarding starts a headquarters that configures and starts agents as the receiver does by default, and discards their data.
func startDiscarding(b *testing.B) agentReader {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var running sync.WaitGroup
	b.Cleanup(func() {
		listener.Close()
		running.Wait() // the program has ended, and its connections with it
	})
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				if err := discard(conn); err != nil && !b.Failed() {
					b.Errorf("read the agent's data: %v", err)
				}
			})
		}
	})
	return agentReader{listener.Addr().String(), func(map[string]int64) {}}
}

// discard answers the hello of a control or data connection, and reads the connection to its end.
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
