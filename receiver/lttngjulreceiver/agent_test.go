// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

func enable(t testing.TB, domain lttngagent.Domain, logger, level string) lttngagent.Enable {
	t.Helper()
	levels := lttngagent.Levels{}
	if level != "" {
		number, err := domain.ParseLevel(level)
		require.NoError(t, err)
		levels, err = lttngagent.NewLevels(lttngagent.LevelRange, number)
		require.NoError(t, err)
	}
	return lttngagent.Enable{Logger: pattern(t, logger), Levels: levels}
}

func pattern(t testing.TB, text string) lttngagent.Pattern {
	t.Helper()
	p, err := lttngagent.ParsePattern(text)
	require.NoError(t, err)
	return p
}

func contextOf(t testing.TB, provider, name string) lttngagent.Context {
	t.Helper()
	c, err := lttngagent.NewContext(provider, name)
	require.NoError(t, err)
	return c
}

// twoRules sets rules for two domains, and a context.
func twoRules(c *Config) {
	c.Enable = []EnableRule{
		{Domain: "jul", Logger: "com.example.*", Level: "FINER"},
		{Domain: "python", Logger: "*"},
		{Domain: "jul", Logger: "org.other"},
	}
	c.Contexts = []ContextRule{{Provider: "shop", Name: "user"}}
}

func TestAnAgentIsEnabledReleasedAndListedInThisOrder(t *testing.T) {
	b := newBed(t, twoRules)
	a := b.register(lttngagent.JUL)
	a.expect(
		enable(t, lttngagent.JUL, "com.example.*", "FINER"),
		enable(t, lttngagent.JUL, "org.other", ""),
		lttngagent.EnableContext{Context: contextOf(t, "shop", "user")},
		lttngagent.RegistrationDone{},
	)
	require.Equal(t, lttngagent.List{}, a.next())
	a.list("com.example.db", "com.example.web")

	registered := b.awaitRecords(eventRegistered, 1)[0]
	executable, err := os.Executable()
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, plog.SeverityNumberInfo, registered.severity)
	assert.Equal(t, "jul", registered.attributes[attributeDomain])
	assert.Equal(t, "2.0", registered.attributes[attributeProtocol])
	assert.Equal(t, "127.0.0.1", registered.attributes[attributePeerAddress])
	assert.EqualValues(t, os.Getpid(), registered.resource[attributeProcessID])
	assert.Equal(t, filepath.Base(executable), registered.resource[attributeExecutableName])
	assert.Equal(t, "unknown_service:"+filepath.Base(executable), registered.resource[attributeServiceName])
	assert.NotContains(t, registered.resource, attributeCommandArgs)
	assert.Equal(t, host, registered.resource[attributeHostName])
	assert.Len(t, registered.resource[attributeServiceInstanceID], 36)

	appeared := b.awaitRecords(eventAppeared, 2)
	assert.Equal(t, []string{"com.example.db", "com.example.web"}, loggersOf(appeared))
	assert.Equal(t, "Logger com.example.db appeared", appeared[0].body)
	assert.Equal(t, registered.resource, appeared[0].resource)
}

func TestAShutdownUndoesCommandsLastFirst(t *testing.T) {
	b := newBed(t, twoRules)
	a := b.register(lttngagent.JUL)
	a.expect(
		enable(t, lttngagent.JUL, "com.example.*", "FINER"),
		enable(t, lttngagent.JUL, "org.other", ""),
		lttngagent.EnableContext{Context: contextOf(t, "shop", "user")},
		lttngagent.RegistrationDone{},
		lttngagent.List{},
	)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.Shutdown()
	}()
	a.expect(
		lttngagent.DisableContext{Context: contextOf(t, "shop", "user")},
		lttngagent.Disable{Logger: pattern(t, "org.other")},
		lttngagent.Disable{Logger: pattern(t, "com.example.*")},
	)
	a.awaitClosed()
	<-stopped
	gone := b.awaitRecords(eventGone, 1)[0]
	assert.Equal(t, plog.SeverityNumberInfo, gone.severity)
	assert.Equal(t, "shutdown", gone.attributes[attributeCause])
	assert.EqualValues(t, 1, b.Counter("agents_gone"))
}
