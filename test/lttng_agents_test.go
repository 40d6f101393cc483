// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/test/kit"
)

// LTTng's own log agents, in Java and Python. The built distribution takes the place of LTTng's session daemon.

const (
	loggersInJava   = "testdata/lttng/Loggers.java"
	loggersInPython = "testdata/lttng/loggers.py"

	agentsNow = "otelcol_receiver_lttng_jul_agents"
)

// switcher configures a collector that agents find by a port file, and that enables loggers below com.example.
func switcher(endpoint, portFile, more string) string {
	return fmt.Sprintf(`
receivers:
  lttng_jul:
    endpoint: %q
    port_files: [%q]
    list_interval: 100ms
    enable:
      - {domain: jul, logger: "com.example.*", level: FINE}
      - {domain: log4j, logger: "com.example.*", level: DEBUG}
      - {domain: python, logger: "com.example.*", level: DEBUG}
    contexts:
      - {provider: test, name: request}
exporters:
  file/logs: {path: "${env:DIR}/logs.json", append: true, flush_interval: 50ms}
service:
  pipelines:
    logs: {receivers: [lttng_jul], exporters: [file/logs]}
%s`, endpoint, portFile, more)
}

// switched is a log record of lttng_jul, with the parts that tests check.
type switched struct {
	event, domain, logger, cause, command string
	pid                                   int64
	severity                              plog.SeverityNumber
}

// agentRecords returns the log records of a collector so far.
func agentRecords(t *testing.T, c *kit.Collector) (all []switched) {
	t.Helper()
	eachLog(t, c, func(resource pcommon.Resource, r plog.LogRecord) {
		text := func(key string) string {
			v, _ := r.Attributes().Get(key)
			return v.Str()
		}
		pid, _ := resource.Attributes().Get("process.pid")
		all = append(all, switched{
			event: r.EventName(), domain: text("lttng.agent.domain"), logger: text("lttng.logger.name"),
			cause: text("lttng.agent.end.cause"), command: text("lttng.agent.command"), pid: pid.Int(), severity: r.SeverityNumber(),
		})
	})
	return all
}

// awaitSwitched waits until the collector has written n matching log records.
func awaitSwitched(t *testing.T, c *kit.Collector, what string, n int, wanted func(switched) bool) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d log records that say: %s", n, what), func() (bool, string) {
		all := agentRecords(t, c)
		found := 0
		for _, s := range all {
			if wanted(s) {
				found++
			}
		}
		return found >= n, fmt.Sprintf("%d of %+v", found, all)
	})
}

func appeared(logger string) func(switched) bool {
	return func(s switched) bool { return s.event == "lttng.logger.appeared" && s.logger == logger }
}

// firstHandler returns the time that a program needed to make its first handler.
func firstHandler(t *testing.T, p *lttng.Program) time.Duration {
	t.Helper()
	microseconds, err := strconv.ParseInt(p.Ask(t, "handler"), 10, 64)
	require.NoError(t, err)
	return time.Duration(microseconds) * time.Microsecond
}

// traced reports whether the tracer receives the records of a logger.
func traced(t *testing.T, p *lttng.Program, logger string) bool {
	t.Helper()
	said := p.Ask(t, "log "+logger+" text")
	require.Contains(t, []string{"traced", "not traced"}, said)
	return said == "traced"
}

// awaitTraced waits until the tracer receives the records of a logger, or until it does not.
func awaitTraced(t *testing.T, p *lttng.Program, logger string, want bool) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("records of %s go to the tracer: %t", logger, want), func() (bool, string) {
		got := traced(t, p, logger)
		return got == want, strconv.FormatBool(got)
	})
}

// launchLoggers starts a program of a domain with a real agent.
func launchLoggers(t *testing.T, home *lttng.Home, domain string) *lttng.Program {
	t.Helper()
	path := loggersInPython
	if domain != "python" {
		path = home.BuildJava(t, loggersInJava)
	}
	return home.LaunchLoggers(t, path, domain)
}

// The collector sees and switches the loggers of agents in Java and in Python, without any daemon of LTTng. The
// agents reconnect to a collector that was away.
func TestTheCollectorSwitchesLoggersOfLTTngAgents(t *testing.T) {
	t.Parallel()
	lttng.RequireAgents(t)
	for _, domain := range []string{"jul", "log4j", "python"} {
		t.Run(domain, func(t *testing.T) {
			t.Parallel()
			home, endpoint := lttng.NewHome(t), testkit.Address(t)
			configuration := switcher(endpoint, home.SystemPortFile(), "")
			c := kit.Start(t, configuration)
			p := launchLoggers(t, home, domain)
			p.Ready(t)
			c.AwaitMetric(t, 1, agentsNow)
			for _, name := range []string{"com.example.one", "com.example.two", "org.example.other"} {
				require.Equal(t, "attached", p.Ask(t, "attach "+name))
				awaitSwitched(t, c, name+" appeared", 1, appeared(name))
			}
			assert.True(t, traced(t, p, "com.example.one"))
			// Python's agent traces all loggers or none.
			assert.Equal(t, domain == "python", traced(t, p, "org.example.other"))

			c.Stop(t)
			assert.NoFileExists(t, home.SystemPortFile())
			assert.False(t, traced(t, p, "com.example.one"), "a collector that ends leaves the agent as it was")
			checkRecords(t, c, domain, p.PID, "shutdown")

			c = kit.Start(t, configuration)
			awaitTraced(t, p, "com.example.one", true)
			awaitSwitched(t, c, "com.example.one appeared", 1, appeared("com.example.one"))
			c.Reload(t)
			awaitSwitched(t, c, "the agent has come back", 2, func(s switched) bool { return s.event == "lttng.agent.registered" })
			awaitTraced(t, p, "com.example.one", true)
			p.End(t)
			awaitSwitched(t, c, "the agent has gone with its program", 1, func(s switched) bool { return s.cause == "closed" })
			c.Stop(t)
		})
	}
}

// checkRecords checks all log records of a stopped collector for one agent. None may have been refused.
func checkRecords(t *testing.T, c *kit.Collector, domain string, pid int, cause string) {
	t.Helper()
	all := agentRecords(t, c)
	require.NotEmpty(t, all)
	assert.Equal(t, switched{event: "lttng.agent.registered", domain: domain, pid: int64(pid), severity: plog.SeverityNumberInfo}, all[0])
	assert.Equal(t, switched{event: "lttng.agent.gone", domain: domain, pid: int64(pid), severity: plog.SeverityNumberInfo, cause: cause}, all[len(all)-1])
	var names []string
	for _, s := range all[1 : len(all)-1] {
		assert.Equal(t, "lttng.logger.appeared", s.event)
		if strings.Contains(s.logger, "example.") {
			names = append(names, s.logger)
		}
	}
	slices.Sort(names)
	assert.Equal(t, []string{"com.example.one", "com.example.two", "org.example.other"}, names)
	command := "java"
	if domain == "python" {
		command = "python3"
	}
	eachLog(t, c, func(resource pcommon.Resource, _ plog.LogRecord) {
		name, _ := resource.Attributes().Get("process.executable.name")
		assert.Contains(t, name.Str(), command)
	})
}

// A program's first handler waits until the agent is registered: 6 s in Java if no daemon
// confirms it. The receiver confirms it immediately, so the median of some programs that start at the same time is far below.
func TestAProgramsFirstHandlerDoesNotWaitForItsTimeout(t *testing.T) {
	lttng.RequireAgents(t)
	const programs, most = 3, 2 * time.Second
	for _, domain := range []string{"jul", "log4j", "python"} {
		home, endpoint := lttng.NewHome(t), testkit.Address(t)
		c := kit.Start(t, switcher(endpoint, home.SystemPortFile(), ""))
		var waits []time.Duration
		var all []*lttng.Program
		for range programs {
			all = append(all, launchLoggers(t, home, domain))
		}
		for _, p := range all {
			p.Ready(t)
		}
		for _, p := range all {
			waits = append(waits, firstHandler(t, p))
			p.End(t)
		}
		slices.Sort(waits)
		t.Logf("%s: %v", domain, waits)
		assert.LessOrEqual(t, waits[programs/2], most, domain)
		c.Stop(t)
	}
}

// LTTng's daemons run beside the collector. Records of loggers that the collector has enabled arrive by lttng_live.
// The session daemon has the port file of the user, the collector that of the system. A program in Java or Python has
// an agent's client for each.
func TestRecordsThatTheCollectorEnablesArriveByLTTngLive(t *testing.T) {
	t.Parallel()
	lttng.RequireAgents(t)
	daemons := lttng.Start(t)
	session := daemons.Create(t, lttng.Session{Name: "any", AnyAgentRecords: true})
	theirs, err := os.ReadFile(daemons.PortFile())
	require.NoError(t, err, "the session daemon's own")
	c := kit.Start(t, strings.Replace(switcher(testkit.Address(t), daemons.SystemPortFile(), ""), "receivers:", fmt.Sprintf(`
receivers:
  lttng_live:
    endpoint: %q
    poll: {list_interval: 20ms}`, daemons.Relay.Live), 1)+`
    logs/live: {receivers: [lttng_live], exporters: [file/logs]}
`)
	for _, domain := range []string{"jul", "log4j", "python"} {
		p := launchLoggers(t, daemons.Home, domain)
		p.Ready(t)
		one, other := "com.example."+domain, "org.example."+domain
		for _, name := range []string{one, other} {
			p.Ask(t, "attach "+name)
		}
		awaitTraced(t, p, one, true)
		assert.Equal(t, "traced", p.Ask(t, "log "+one+" on "+domain))
		p.Ask(t, "log "+other+" off "+domain)
		awaitRecord(t, c, "on "+domain)
		p.End(t)
	}
	now, err := os.ReadFile(daemons.PortFile())
	require.NoError(t, err)
	assert.Equal(t, theirs, now, "the session daemon's file was left alone")
	session.Destroy(t)
	awaitClosed(t, c, 1)
	c.Stop(t)
	bodies := recordBodies(t, c)
	assert.NotContains(t, bodies, "off jul")
	assert.NotContains(t, bodies, "off log4j")
	assert.Contains(t, bodies, "off python", "Python's agent traces all loggers or none")
}

// The collector does not touch a port file of LTTng's session daemon. When that ends, agents find the collector's
// port.
func TestTheCollectorReplacesNoPortFileOfARunningSessionDaemon(t *testing.T) {
	t.Parallel()
	daemons, endpoint := lttng.Start(t), testkit.Address(t)
	var theirs []byte
	testkit.Eventually(t, "the daemon's port is in the file", func() (bool, string) {
		var err error
		theirs, err = os.ReadFile(daemons.PortFile())
		return len(theirs) > 0, fmt.Sprint(err)
	})
	c := kit.Start(t, switcher(endpoint, daemons.PortFile(), ""))
	awaitSaid(t, c, "on which another daemon listens", 1)
	now, err := os.ReadFile(daemons.PortFile())
	require.NoError(t, err)
	assert.Equal(t, theirs, now)
	daemons.EndSessionDaemon(t)
	_, port, _ := strings.Cut(endpoint, ":")
	testkit.Eventually(t, "the collector's port is in the file", func() (bool, string) {
		text, err := os.ReadFile(daemons.PortFile())
		return err == nil && strings.TrimSpace(string(text)) == port, fmt.Sprintf("%q, %v", text, err)
	})
	c.Stop(t)
	assert.NoFileExists(t, daemons.PortFile())
}

// awaitRecord waits until a record of a program has become a log record.
func awaitRecord(t *testing.T, c *kit.Collector, body string) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("a log record with %q", body), func() (bool, string) {
		bodies := recordBodies(t, c)
		return slices.Contains(bodies, body), strings.Join(bodies, "; ")
	})
}

// recordBodies returns the texts of all log records of a collector so far.
func recordBodies(t *testing.T, c *kit.Collector) (bodies []string) {
	t.Helper()
	eachLog(t, c, func(_ pcommon.Resource, r plog.LogRecord) { bodies = append(bodies, r.Body().AsString()) })
	return bodies
}
