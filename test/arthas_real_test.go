// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// These tests run the built distribution with the real Arthas. No distribution has a package of it: the environment names the
// folder of its release.

const (
	arthasVariable = "CALLBRAID_ARTHAS_HOME"
	// arthasSecondsVariable is the time of all counted calls together, in seconds.
	arthasSecondsVariable = "CALLBRAID_ARTHAS_SECONDS"
	arthasSeconds         = 12
	tracedShop            = "testdata/arthas/Shop.java"
)

// shop is the traced program.
type shop struct {
	t                      *testing.T
	home, classes, address string
	command                *exec.Cmd
	input                  io.WriteCloser
	lines                  *bufio.Scanner
	errors                 *testkit.Output
}

// newShop compiles the program.
func newShop(t *testing.T) *shop {
	home := os.Getenv(arthasVariable)
	if home == "" {
		t.Skipf("set %s to the absolute path of the folder of Arthas that has arthas-core.jar", arthasVariable)
	}
	_, err := os.Stat(filepath.Join(home, "arthas-core.jar"))
	require.NoError(t, err, "%s must be the absolute path of the folder of Arthas", arthasVariable)
	s := &shop{t: t, home: home, classes: t.TempDir(), address: testkit.Address(t)}
	output, err := exec.CommandContext(t.Context(), "javac", "-d", s.classes, tracedShop).CombinedOutput()
	require.NoError(t, err, "%s", output)
	return s
}

// start starts the program.
func (s *shop) start() {
	s.t.Helper()
	s.errors = &testkit.Output{}
	s.command = exec.Command("java", "-XX:+UseG1GC", "-Xmx128m", "-Duser.home="+s.classes, "-cp", s.classes, "demo.Shop")
	s.command.Dir, s.command.Stderr = s.classes, s.errors
	input, err := s.command.StdinPipe()
	require.NoError(s.t, err)
	output, err := s.command.StdoutPipe()
	require.NoError(s.t, err)
	s.input, s.lines = input, bufio.NewScanner(output)
	require.NoError(s.t, s.command.Start())
	command := s.command
	s.t.Cleanup(func() {
		_ = command.Process.Kill() // an error means that it has ended
		_ = command.Wait()
	})
	s.do("counts")
}

// end ends the program.
func (s *shop) end() {
	s.t.Helper()
	s.input.Close()
	require.NoError(s.t, s.command.Wait(), "%s", s.errors)
}

func (s *shop) pid() string { return strconv.Itoa(s.command.Process.Pid) }

// attach attaches Arthas to the program.
func (s *shop) attach() {
	s.t.Helper()
	_, port, _ := strings.Cut(s.address, ":")
	_, telnet, _ := strings.Cut(testkit.Address(s.t), ":")
	core := filepath.Join(s.home, "arthas-core.jar")
	output, err := exec.CommandContext(s.t.Context(), "java", "-Duser.home="+s.classes, "-jar", core, "-pid", s.pid(), "-core", core,
		"-agent", filepath.Join(s.home, "arthas-agent.jar"), "-target-ip", "127.0.0.1", "-telnet-port", telnet, "-http-port", port).CombinedOutput()
	require.NoError(s.t, err, "%s", output)
	testkit.Eventually(s.t, "Arthas", func() (bool, string) {
		_, err := s.exec("version")
		return err == nil, fmt.Sprint(err)
	})
}

// exec sends a command to Arthas.
func (s *shop) exec(command string) (string, error) {
	body, err := json.Marshal(map[string]string{"action": "exec", "command": command})
	require.NoError(s.t, err)
	response, err := http.Post("http://"+s.address+"/api", "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return string(answer), err
}

// methodCounts are calls and failures by method.
type methodCounts map[string][2]int64

// do sends a line to the program. It returns the counts, and the number that the answer begins with.
func (s *shop) do(line string) (counts methodCounts, took float64) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.input, line)
	require.NoError(s.t, err)
	counts = methodCounts{}
	for s.lines.Scan() {
		words := strings.Fields(s.lines.Text())
		switch {
		case len(words) == 1 && words[0] == "done":
			return counts, took
		case len(words) == 2:
			took, err = strconv.ParseFloat(words[1], 64)
			require.NoError(s.t, err)
		default:
			require.Len(s.t, words, 3)
			var of [2]int64
			for i := range of {
				of[i], err = strconv.ParseInt(words[1+i], 10, 64)
				require.NoError(s.t, err)
			}
			counts[words[0]] = of
		}
	}
	require.Fail(s.t, "the program ended too early", "%v\n%s", s.lines.Err(), s.errors)
	return nil, 0
}

func (m methodCounts) minus(before methodCounts) methodCounts {
	rest := methodCounts{}
	for name, of := range m {
		rest[name] = [2]int64{of[0] - before[name][0], of[1] - before[name][1]}
	}
	return rest
}

// cpu is the program's time of processors so far.
func (s *shop) cpu() time.Duration {
	s.t.Helper()
	stat, err := os.ReadFile("/proc/" + s.pid() + "/stat")
	require.NoError(s.t, err)
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	ticks := int64(0)
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(s.t, err)
		ticks += n
	}
	const hertz = 100
	return time.Duration(ticks) * time.Second / hertz
}

// countsHere returns the metric's counts of the running process.
func (s *shop) countsHere(c *kit.Collector) methodCounts {
	pid, _ := strconv.ParseInt(s.pid(), 10, 64) // a process ID
	return methodCounts(countsOf(s.t, c)[pid])
}

// sell lets the program sell for some seconds, and compares the counts of the calls with the metrics. The program rests before
// and afterwards. The first calls come until all methods have counts: they show that the methods are instrumented.
func (s *shop) sell(c *kit.Collector, seconds float64) (calls int64) {
	s.t.Helper()
	s.do(sell)
	base := s.countsHere(c)
	testkit.Eventually(s.t, "counts of all methods", func() (bool, string) {
		now := s.countsHere(c).minus(base)
		return now["demo.Shop.buy"][0] > 0 && now["demo.Shop.price"][0] > 0 && now["demo.Shop.charge"][1] > 0, fmt.Sprint(now)
	})
	before, _ := s.do("rest")
	base = s.settled(c)
	s.do(sell)
	s.waitFor(seconds)
	after, _ := s.do("rest")
	want := after.minus(before)
	testkit.Eventually(s.t, "the counts of the program", func() (bool, string) {
		got := s.countsHere(c).minus(base)
		return maps.Equal(want, got), fmt.Sprintf("the program counted %v, the metrics have %v", want, got)
	})
	return want["demo.Shop.buy"][0] + want["demo.Shop.price"][0] + want["demo.Shop.charge"][0]
}

// settled returns the metrics' counts after the cycles that had calls. Only a monitor runs, which reports empty cycles too.
func (s *shop) settled(c *kit.Collector) methodCounts {
	s.t.Helper()
	results := func() float64 { return c.Metric(s.t, "otelcol_receiver_arthas_results") }
	const cycles, collections = 3, 2
	c.AwaitMetric(s.t, results()+cycles, "otelcol_receiver_arthas_results")
	written := func() int {
		text, err := os.ReadFile(filepath.Join(c.Dir, "metrics.json"))
		require.NoError(s.t, err)
		return bytes.Count(text, []byte("\n"))
	}
	before := written()
	testkit.Eventually(s.t, "later metrics", func() (bool, string) { return written() >= before+collections, "" })
	return s.countsHere(c)
}

// waitFor waits for a time in which the program works.
func (s *shop) waitFor(seconds float64) {
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
	case <-s.t.Context().Done():
	}
}

// quick returns the nanoseconds of a call of a short method: the least of several measurements.
func (s *shop) quick() float64 {
	s.t.Helper()
	least := 0.0
	for i := range 5 {
		if _, took := s.do("time"); i == 0 || took < least {
			least = took
		}
	}
	return least
}

// assertRestored checks that a method is as fast as before.
func (s *shop) assertRestored(what string, before float64) {
	s.t.Helper()
	testkit.Eventually(s.t, "a fast method after "+what, func() (bool, string) {
		after := s.quick()
		s.t.Logf("after %s a call takes %.3f ns, before it took %.3f ns", what, after, before)
		return after < 1.1*before, fmt.Sprint(after)
	})
}

// sell makes the program sell: 200 calls of buy in a second.
const sell = "sell 200"

const (
	shopMonitor = `
    monitors: [{class: demo.Shop, method: "buy|price|charge|quick", regexp: true, cycle: 1s}]`
	shopCommands = shopMonitor + `
    traces: [{class: demo.Shop, method: buy, limit: 20}]
    stacks: [{class: demo.Shop, method: charge, limit: 100}]
    watches: [{class: demo.Shop, method: charge, limit: 7, expression: "params[0]", trace_id: "@demo.Shop@traceID()", span_id: "@demo.Shop@spanID()"}]
    records: [{class: demo.Shop, method: charge, limit: 6}]
    jvm: {interval: 1s}`
)

// Monitors count each call once, over restarts of the collector, of Arthas and of the program. After each end of the receiver
// the program is as fast as before.
func TestTheRealArthasAgreesWithItsProgram(t *testing.T) {
	s := newShop(t)
	seconds := float64(arthasSeconds)
	if text := os.Getenv(arthasSecondsVariable); text != "" {
		var err error
		seconds, err = strconv.ParseFloat(text, 64)
		require.NoError(t, err, arthasSecondsVariable)
	}
	const parts = 5
	folder, calls := t.TempDir(), int64(0)
	start := func(commands string) *kit.Collector {
		server := arthasServer{s.address, testkit.Address(t)}
		return kit.Start(t, server.client(folder, commands))
	}
	s.start()
	before := s.quick()
	s.attach()
	s.assertRestored("the attachment", before)

	c := start(shopCommands)
	s.do(sell)
	c.AwaitMetric(t, 4, "otelcol_receiver_arthas_commands", `outcome="ended"`) // all commands with a limit
	calls += s.sell(c, seconds/parts)
	s.compareJVM(c)
	leftOut := c.Metric(t, "otelcol_receiver_arthas_trees_left_out")
	c.Stop(t)
	s.compareSignals(c, leftOut)
	s.assertRestored("a shutdown", before)

	c = start(shopMonitor)
	calls += s.sell(c, seconds/parts)
	c.Kill()
	c = start(shopMonitor)
	c.AwaitMetric(t, 1, "otelcol_receiver_arthas_leftover_sessions")
	calls += s.sell(c, seconds/parts)

	_, _ = s.exec("stop") // the server closes the connection without an answer
	testkit.Eventually(t, "the end of the server", func() (bool, string) {
		up := c.Metric(t, "otelcol_receiver_arthas_server_up")
		return up == 0, fmt.Sprint(up)
	})
	// Arthas' own end leaves the classes of running commands instrumented.
	s.attach()
	calls += s.sell(c, seconds/parts)
	c.Stop(t)
	s.assertRestored("a shutdown after a restart of Arthas", before)

	c = start(shopMonitor)
	s.end()
	s.start()
	before = s.quick()
	s.attach()
	calls += s.sell(c, seconds/parts)
	c.Kill()
	c = start(shopMonitor)
	c.AwaitMetric(t, 1, "otelcol_receiver_arthas_leftover_sessions")
	c.Stop(t)
	s.assertRestored("a killed collector and the next one", before)
	t.Logf("%d calls in %v s were counted exactly", calls, seconds)
}

// compareSignals checks the spans and log records of shopCommands. Some call trees were left out, because their duration is not
// known.
func (s *shop) compareSignals(c *kit.Collector, leftOut float64) {
	s.t.Helper()
	spans, failed, repeated := map[string]int{}, map[string]int{}, 0
	c.ReadTraces(s.t, "spans.bin", func(traces ptrace.Traces) {
		for _, resource := range traces.ResourceSpans().All() {
			for _, span := range resource.ScopeSpans().At(0).Spans().All() {
				spans[span.Name()]++
				if span.Status().Code() == ptrace.StatusCodeError {
					failed[span.Name()]++
				}
				if n, is := span.Attributes().Get("callbraid.repeated.calls"); is && n.Int() == 3 {
					repeated++
				}
			}
		}
	})
	// Calls that were under way when the class was instrumented have no duration, or a part of their callees: of two threads, for
	// each of five commands and for two further parts of a limit.
	const limit, underWay = 20, 2 * (5 + 2)
	assert.EqualValues(s.t, limit, float64(spans["Shop.buy"])+leftOut, "call trees, and those that were left out")
	assert.GreaterOrEqual(s.t, spans["Shop.charge"], limit-underWay)
	assert.GreaterOrEqual(s.t, spans["Shop.buy"], spans["Shop.charge"])
	assert.Equal(s.t, spans["Shop.charge"], spans["Shop.price"])
	assert.Equal(s.t, spans["Shop.price"], repeated, "three prices are one span")
	assert.Len(s.t, spans, 3)
	assert.LessOrEqual(s.t, failed["Shop.charge"], failed["Shop.buy"])
	assert.InDelta(s.t, 4, failed["Shop.buy"], 2, "each fifth call of a thread fails")
	events := map[string]int{}
	eachLog(s.t, c, func(_ pcommon.Resource, r plog.LogRecord) {
		events[r.EventName()]++
		if r.EventName() != "arthas.watch" {
			return
		}
		var number int64
		_, err := fmt.Sscanf(r.Body().Str(), "@Long[%d]", &number)
		require.NoError(s.t, err, r.Body().Str())
		assert.Equal(s.t, fmt.Sprintf("%016x%016x", 0xa11ce, number), r.TraceID().String())
		assert.Equal(s.t, fmt.Sprintf("%016x", number), r.SpanID().String())
	})
	assert.Equal(s.t, map[string]int{"arthas.server.connected": 1, "arthas.server.gone": 1, "arthas.stack": 100, "arthas.watch": 7, "arthas.record": 6}, events)
	s.t.Logf("spans %v, failed %v, log records %v", spans, failed, events)
}

// compareJVM compares the heap and the garbage collections with those of jcmd.
func (s *shop) compareJVM(c *kit.Collector) {
	s.t.Helper()
	jcmd := func(arguments ...string) string {
		output, err := exec.CommandContext(s.t.Context(), "jcmd", append([]string{s.pid()}, arguments...)...).CombinedOutput()
		require.NoError(s.t, err, "%s", output)
		return string(output)
	}
	number := func(text, expression string) float64 {
		found := regexp.MustCompile(expression).FindStringSubmatch(text)
		require.Len(s.t, found, 2, "%s in %s", expression, text)
		n, err := strconv.ParseFloat(found[1], 64)
		require.NoError(s.t, err)
		return n
	}
	jcmd("GC.run")
	testkit.Eventually(s.t, "the heap and the collections of jcmd", func() (bool, string) {
		heap := number(jcmd("GC.heap_info"), `used (\d+)K`) * 1024
		counters := jcmd("PerfCounter.print")
		young, old := number(counters, `sun.gc.collector.0.invocations=(\d+)`), number(counters, `sun.gc.collector.1.invocations=(\d+)`)
		got := lastPoints(s.t, c)
		used := got["jvm.memory.used g1_eden_space"] + got["jvm.memory.used g1_survivor_space"] + got["jvm.memory.used g1_old_gen"]
		text := fmt.Sprintf("jcmd: heap %.0f, collections %v and %v; metrics: heap %.0f, collections %v and %v", heap, young, old,
			used, got["arthas.gc.collections g1_young_generation"], got["arthas.gc.collections g1_old_generation"])
		// The program, Arthas and jcmd allocate between the two measurements.
		equal := used > 0.8*heap && used < 1.2*heap && young == got["arthas.gc.collections g1_young_generation"] && old == got["arthas.gc.collections g1_old_generation"]
		if equal {
			s.t.Log(text)
		}
		return equal, text
	})
}

// lastPoints returns the last values of all metrics by name and pool or collector.
func lastPoints(t *testing.T, c *kit.Collector) map[string]float64 {
	t.Helper()
	last := map[string]float64{}
	eachLine(t, filepath.Join(c.Dir, "metrics.json"), func(line json.RawMessage) {
		metrics, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, resource := range metrics.ResourceMetrics().All() {
			for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
				var points pmetric.NumberDataPointSlice
				if m.Type() == pmetric.MetricTypeSum {
					points = m.Sum().DataPoints()
				} else {
					points = m.Gauge().DataPoints()
				}
				for _, p := range points.All() {
					key := m.Name()
					for _, name := range []string{"jvm.memory.pool.name", "jvm.gc.name"} {
						if v, is := p.Attributes().Get(name); is {
							key += " " + v.Str()
						}
					}
					last[key] = p.DoubleValue() + float64(p.IntValue())
				}
			}
		}
	})
	return last
}

// The receiver's polls use at most 1% of a processor in the program. The program rests, so its instrumented methods cost nothing.
// The program without polls is measured before and afterwards, with Arthas attached to it. The smaller of both counts.
//
// The JVM compiles the code of Arthas that answers polls during the first minutes, on a busy machine later. So the least of some
// measurements counts.
func TestPollsOfTheRealArthasCostLittle(t *testing.T) {
	s := newShop(t)
	s.start()
	s.attach()
	const seconds, limit, tries = 30, 1.0, 8
	measure := func() float64 {
		before, began := s.cpu(), time.Now()
		s.waitFor(seconds)
		return 100 * float64(s.cpu()-before) / float64(time.Since(began))
	}
	s.waitFor(seconds / 2) // Arthas compiles and loads classes after its start
	before := measure()
	server := arthasServer{s.address, testkit.Address(t)}
	defaults := strings.NewReplacer("idle_poll_interval: 50ms", "", "poll_interval: 50ms", "", "jvm: {interval: 1s}", "", "cycle: 1s", "cycle: 10s")
	c := kit.Start(t, defaults.Replace(server.client(t.TempDir(), shopCommands)))
	testkit.Eventually(t, "five commands that run", func() (bool, string) {
		answer, err := s.exec("thread --all")
		running := strings.Count(answer, "ResultDistributor")
		return err == nil && running == 5, fmt.Sprint(running, " ", err)
	})
	s.waitFor(seconds) // the pauses of idle commands grow
	var with []float64
	for len(with) < tries && (len(with) == 0 || slices.Min(with)-before >= limit) {
		with = append(with, measure())
	}
	c.Stop(t)
	s.waitFor(seconds / 6)
	after := measure()
	polls := slices.Min(with) - min(before, after)
	t.Logf("of a processor: %.2f%% without polls before, %.2f%% with polls of five commands, %.2f%% without polls afterwards: the polls cost %.2f%%", before, with, after, polls)
	assert.Less(t, polls, limit)
}

// The profiles of a program that uses a known time of a processor have this time, and none twice.
func TestProfilesOfTheRealArthasHaveTheTimeOfTheProgram(t *testing.T) {
	s := newShop(t)
	s.start()
	s.attach()
	var mu sync.Mutex
	got := profiled{}
	endpoint, stop := kit.ServeOTLP(t, kit.Accept{Profiles: func(p pprofile.Profiles) int {
		mu.Lock()
		defer mu.Unlock()
		got.read(p)
		return http.StatusOK
	}})
	config := func(period, exporters, exporter string) string {
		return fmt.Sprintf(`
receivers: {arthas: {servers: [{endpoint: "http://%s"}], profiles: {period: %s}}}
exporters: {%s}
service: {pipelines: {profiles: {receivers: [arthas], exporters: [%s]}}}
`, s.address, period, exporters, exporter)
	}
	c := kit.Start(t, config("2s", toBackend(endpoint), "otlp_http"))
	c.AwaitMetric(t, 1, "otelcol_receiver_arthas_profile_periods", `outcome="done"`)
	_, took := s.do("burn 6")
	done := c.Metric(t, "otelcol_receiver_arthas_profile_periods")
	c.AwaitMetric(t, done+2, "otelcol_receiver_arthas_profile_periods")
	c.Stop(t)
	stop()
	spin := int64(0)
	for stack, nanoseconds := range got["cpu in nanoseconds by "] {
		if strings.Contains(stack, "demo.Shop.spin ") {
			spin += nanoseconds
		}
	}
	t.Logf("spin used %.2f s of a processor, and the profiles have %.2f s of it", took/1e9, float64(spin)/1e9)
	// Between two periods is a part of a second without samples.
	assert.InDelta(t, took, float64(spin), 0.25*took)
	status, err := s.exec("profiler status")
	require.NoError(t, err)
	assert.Contains(t, status, "Profiler is not active", "a shutdown stops the profiler")

	_, err = s.exec("profiler start")
	require.NoError(t, err)
	foreign := kit.Start(t, config("1s", "nop: {}", "nop"))
	foreign.AwaitMetric(t, 2, "otelcol_receiver_arthas_profile_periods", `outcome="foreign"`)
	foreign.Stop(t)
	status, err = s.exec("profiler status")
	require.NoError(t, err)
	assert.Contains(t, status, "Profiling is running", "the receiver does not stop the profiler of somebody else")
}
