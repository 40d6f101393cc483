// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// sample gives the extension's log the Collector's default sampling.
func (b *bed) sample() {
	b.extension.logger = b.extension.logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, 10*time.Second, 10, 100)
	}))
}

// Any client may send commands that are refused. They must not hide executed commands in the log.
func TestExecutedCommandsAreLoggedAmongManyRefusedOnes(t *testing.T) {
	b := unstartedBed(t, disruptive)
	b.sample()
	b.start()
	f := newFake("one")
	b.extension.Register(f)
	for i := range 60 {
		status, _ := b.refusedOrder(f.id, fmt.Sprintf(`{"command":"reboot%d"}`, i))
		require.Equal(t, http.StatusUnprocessableEntity, status)
	}
	for range 12 {
		b.order(f.id, `{"command":"suspend"}`)
	}
	b.order(f.id, `{"command":"stop"}`)
	b.order(f.id, `{"command":"enable","arguments":{"logger":"x"}}`)
	b.order(f.id, `{"command":"enable","arguments":{"logger":"x","limit":9}}`)
	refused := b.said.FilterMessage("A command for an agent was refused: unknown_command")
	assert.Equal(t, refusedLines, refused.Len())
	assert.Equal(t, 10, b.said.FilterMessage("A command was sent to an agent: suspend: done").Len(), "the Collector drops only lines of this message")
	stop := b.said.FilterMessage("A command was sent to an agent: stop: done").All()
	require.Len(t, stop, 1)
	assert.Equal(t, zapcore.WarnLevel, stop[0].Level)
	assert.Equal(t, f.id, stop[0].ContextMap()["agent"])
	assert.Contains(t, stop[0].ContextMap()["by"], "127.0.0.1:")
	enable := b.said.FilterMessage("A command was sent to an agent: enable: done").All()
	require.Len(t, enable, 2)
	assert.Equal(t, zapcore.InfoLevel, enable[0].Level)
	assert.Equal(t, zapcore.WarnLevel, enable[1].Level)
	assert.Equal(t, "logger=x", enable[0].ContextMap()["arguments"])
}

// The agent's state forbids such a command, so the agent never gets it.
func TestACommandThatDoesNotFitNowIsLoggedAsRefused(t *testing.T) {
	b := newBed(t, disruptive)
	f := newFake("one")
	f.do = func(context.Context, agentcontrol.Order) (agentcontrol.Answer, error) {
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NotNow, "tracing is suspended")
	}
	b.extension.Register(f)
	b.order(f.id, `{"command":"stop"}`)
	assert.Equal(t, 1, b.said.FilterMessage("A command for an agent was refused: not_now").Len())
	assert.Zero(t, b.said.FilterMessageSnippet("A command was sent to an agent").Len())
}

func TestCommandsThatWereRefusedAreCounted(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	for range refusedLines {
		b.order(f.id, `{"command":"stop"}`)
	}
	for range 7 {
		b.order(f.id, `{"command":"stop"}`)
	}
	// The time of a pause is over.
	b.extension.refusals["not_allowed"].Most = 2 * refusedLines
	b.order(f.id, `{"command":"stop"}`)
	lines := b.said.FilterMessage("A command for an agent was refused: not_allowed").All()
	require.Len(t, lines, refusedLines+1)
	assert.EqualValues(t, 1, lines[0].ContextMap()["since_last_line"])
	assert.EqualValues(t, 8, lines[refusedLines].ContextMap()["since_last_line"])
	assert.Len(t, f.told(), refusedLines+8, "log records are of each")
}

// The text of an unknown command is logged in part, up to the length of a command.
func TestUnknownCommandsAreLoggedInPart(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	long := strings.Repeat("x", 2*maxWritten)
	b.order(f.id, `{"command":"`+long+`"}`)
	b.order(f.id, `{"command":"enable","arguments":{"logger":"`+long+`"}}`)
	require.Len(t, f.told(), 2)
	assert.Len(t, f.told()[0].Order.Command, maxWritten)
	assert.Len(t, f.told()[1].Written, maxWritten)
	for _, line := range b.said.FilterMessageSnippet("was refused").All() {
		for _, field := range []string{"command", "arguments"} {
			assert.LessOrEqual(t, len(line.ContextMap()[field].(string)), maxWritten)
		}
	}
}
