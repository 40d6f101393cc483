// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
	"github.com/callbraid/callbraid/internal/testkit/lttng"
)

// The simulated agents are compared with real ones: both receive the same commands, and must reply the same.

const (
	loggersInJava   = "../../../../test/testdata/lttng/Loggers.java"
	loggersInPython = "../../../../test/testdata/lttng/loggers.py"
)

// program is a program with an agent, real or simulated.
type program interface {
	// attach adds a logger.
	attach(name string)
	// traces reports whether the tracer receives the records of a logger.
	traces(name string) bool
}

type realProgram struct {
	t *testing.T
	*lttng.Program
}

func (p realProgram) attach(name string) { require.Equal(p.t, "attached", p.Ask(p.t, "attach "+name)) }

func (p realProgram) traces(name string) bool {
	said := p.Ask(p.t, "log "+name+" text")
	require.Contains(p.t, []string{"traced", "not traced"}, said)
	return said == "traced"
}

type simulatedProgram struct{ *logagent.Agent }

func (p simulatedProgram) attach(name string) { p.Attach(name) }

// traces supports names, "*" and prefixes.
func (p simulatedProgram) traces(name string) bool {
	for pattern := range p.Enabled() {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if pattern == name || isPrefix && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// realAgent starts a program with a real agent, whose daemon is the test. The program waits for its registration.
func realAgent(t *testing.T, domain lttngagent.Domain) (realProgram, daemon) {
	t.Helper()
	lttng.RequireAgents(t)
	home, d := lttng.NewHome(t), listen(t)
	d.portFile(home.SystemPortFile())
	path := loggersInPython
	if domain != lttngagent.Python {
		path = home.BuildJava(t, loggersInJava)
	}
	return realProgram{t, home.LaunchLoggers(t, path, domain.String())}, d
}

// simulatedAgent is realAgent for a simulated one.
func simulatedAgent(t *testing.T, domain lttngagent.Domain) (simulatedProgram, daemon) {
	t.Helper()
	d := listen(t)
	a, _ := d.start(logagent.Options{Domain: domain})
	return simulatedProgram{a}, d
}

// both runs do with a real agent and with a simulated one, and compares the results.
func both(t *testing.T, domain lttngagent.Domain, do func(program, daemon, *link) []string) {
	real, d := realAgent(t, domain)
	l, r := d.registered()
	assert.Equal(t, lttngagent.NewRegistration(domain, uint32(real.PID)), r)
	l.send(lttngagent.RegistrationDone{})
	real.Ready(t)
	want := do(real, d, l)
	t.Logf("%s:\n%s", domain, strings.Join(want, "\n"))

	played, d := simulatedAgent(t, domain)
	l, _ = d.registered()
	l.send(lttngagent.RegistrationDone{})
	assert.Equal(t, want, do(played, d, l))
}

func TestSimulatedAgentsReplyLikeRealOnes(t *testing.T) {
	t.Parallel()
	for _, domain := range []lttngagent.Domain{lttngagent.JUL, lttngagent.Log4j, lttngagent.Python} {
		t.Run(domain.String(), func(t *testing.T) {
			t.Parallel()
			both(t, domain, func(p program, d daemon, l *link) (said []string) {
				say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
				listed := func() []string {
					names := l.list()
					// Python also lists the loggers of its own modules, and the prefixes of names.
					names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "com.example.") })
					slices.Sort(names)
					return names
				}
				say("at first: %q", listed())
				p.attach("com.example.one")
				p.attach("com.example.two")
				say("attached: %q, one traced %t", listed(), p.traces("com.example.one"))
				one, all, prefix := pattern(t, "com.example.one"), pattern(t, "*"), pattern(t, "com.example.*")
				say("disabled first: %s", l.code(lttngagent.Disable{Logger: one}))
				say("enabled: %s, one traced %t, two traced %t", l.code(lttngagent.Enable{Logger: one}),
					p.traces("com.example.one"), p.traces("com.example.two"))
				say("enabled again: %s", l.code(lttngagent.Enable{Logger: one}))
				say("disabled once: %s, one traced %t", l.code(lttngagent.Disable{Logger: one}), p.traces("com.example.one"))
				say("disabled twice: %s, one traced %t", l.code(lttngagent.Disable{Logger: one}), p.traces("com.example.one"))
				never := lttngagent.Enable{Logger: prefix, Levels: levels(t, lttngagent.SingleLevel, 1), Filter: filter(t, `msg == "never"`)}
				say("enabled at a level and with a filter that it hasn't: %s, one traced %t", l.code(never), p.traces("com.example.one"))
				say("disabled: %s", l.code(lttngagent.Disable{Logger: prefix}))
				say("enabled all: %s, one traced %t", l.code(lttngagent.Enable{Logger: all}), p.traces("com.example.one"))
				if domain != lttngagent.Python {
					c := appContext(t)
					say("contexts: %s, %s, %s", l.code(lttngagent.EnableContext{Context: c}),
						l.code(lttngagent.DisableContext{Context: c}), l.code(lttngagent.DisableContext{Context: c}))
				}
				require.NoError(t, l.Close())

				l, _ = d.registered()
				say("without the daemon: one traced %t", p.traces("com.example.one"))
				say("come back, enabled: %s", l.code(lttngagent.Enable{Logger: all}))
				say("disabled: %s, one traced %t", l.code(lttngagent.Disable{Logger: all}), p.traces("com.example.one"))
				say("disabled: %s, one traced %t", l.code(lttngagent.Disable{Logger: all}), p.traces("com.example.one"))
				say("disabled: %s", l.code(lttngagent.Disable{Logger: all}))
				return said
			})
		})
	}
}

// TestSimulatedAgentsEndLikeRealOnes sends invalid commands.
func TestSimulatedAgentsEndLikeRealOnes(t *testing.T) {
	t.Parallel()
	java := lttngagent.Agent{Dialect: lttngagent.V2, Domain: lttngagent.JUL} // supports contexts
	withContext, err := java.AppendCommand(nil, lttngagent.EnableContext{Context: appContext(t)})
	require.NoError(t, err)
	badLevels, err := java.AppendCommand(nil, lttngagent.Enable{Logger: pattern(t, "*")})
	require.NoError(t, err)
	badLevels[23] = 3
	for _, c := range []struct {
		name   string
		domain lttngagent.Domain
		bytes  []byte
	}{
		{"an unknown command", lttngagent.JUL, deadly},
		{"a payload that is too short", lttngagent.JUL, []byte{7: 1, 11: 2, 15: 0, 16: 0}},
		{"an unknown type of levels", lttngagent.JUL, badLevels},
		{"an unknown command", lttngagent.Python, deadly},
		{"a context", lttngagent.Python, withContext},
		{"half a header", lttngagent.Python, deadly[:8]},
	} {
		t.Run(c.domain.String()+": "+c.name, func(t *testing.T) {
			t.Parallel()
			both(t, c.domain, func(_ program, d daemon, l *link) []string {
				l.write(c.bytes)
				if c.domain == lttngagent.Python {
					_, err := l.from.ReadByte()
					require.Error(t, err, "closed")
					l, _ = d.registered()
					return []string{fmt.Sprintf("closed, came back, lists: %t", l.list() != nil)}
				}
				l.send(lttngagent.List{})
				require.NoError(t, l.SetReadDeadline(time.Now().Add(time.Second)))
				_, err := l.from.ReadByte()
				return []string{fmt.Sprintf("mute: %t", errors.Is(err, os.ErrDeadlineExceeded))}
			})
		})
	}
}

// TestRealAgentsAcceptAllSupportedCommands: no command of AppendCommand ends an agent.
func TestRealAgentsAcceptAllSupportedCommands(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", lttngagent.MaxPattern)
	longest := lttngagent.Enable{
		Logger: pattern(t, long), Levels: levels(t, lttngagent.LevelRange, -5),
		Filter: filter(t, `msg == "`+strings.Repeat("é", (lttngagent.MaxFilter-9)/2)+`"`),
	}
	for _, domain := range []lttngagent.Domain{lttngagent.JUL, lttngagent.Python} {
		t.Run(domain.String(), func(t *testing.T) {
			t.Parallel()
			p, d := realAgent(t, domain)
			l, _ := d.registered()
			l.send(lttngagent.RegistrationDone{})
			p.Ready(t)
			names := []string{"com.example.größer", "com.example.名前", long + long}
			for _, name := range names {
				p.attach(name)
			}
			for range 20 {
				for _, c := range []lttngagent.Command{longest, lttngagent.Enable{}, lttngagent.Enable{Logger: pattern(t, `a\*b*c\\`)}} {
					assert.Equal(t, lttngagent.Success, l.code(c))
				}
				for _, c := range []lttngagent.Command{lttngagent.Disable{Logger: longest.Logger}, lttngagent.Disable{}} {
					assert.Equal(t, lttngagent.Success, l.code(c))
				}
			}
			assert.Subset(t, l.list(), names)
		})
	}
}

// TestTheEmptyNameIsTheRootLogger: it can be enabled, but is never listed.
func TestTheEmptyNameIsTheRootLogger(t *testing.T) {
	t.Parallel()
	p, d := realAgent(t, lttngagent.JUL)
	l, _ := d.registered()
	l.send(lttngagent.RegistrationDone{})
	p.Ready(t)
	p.attach("")
	assert.NotContains(t, l.list(), "")
	assert.False(t, p.traces(""))
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{}))
	assert.True(t, p.traces(""))
}

// TestAProgramsFirstHandlerWaitsForTheRegistration: the waiting times equal those of the captures.
func TestAProgramsFirstHandlerWaitsForTheRegistration(t *testing.T) {
	t.Parallel()
	for _, domain := range []lttngagent.Domain{lttngagent.JUL, lttngagent.Python} {
		p, d := realAgent(t, domain)
		l, _ := d.registered()
		assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{Logger: pattern(t, "*")}))
		p.Ready(t)
		var waited int64
		_, err := fmt.Sscan(p.Ask(t, "handler"), &waited)
		require.NoError(t, err)
		least := logagent.JavaHandlerTimeout
		if domain == lttngagent.Python {
			least = logagent.PythonHandlerTimeout
		}
		assert.GreaterOrEqual(t, time.Duration(waited)*time.Microsecond, least-100*time.Millisecond, "%s", domain)
	}
}
