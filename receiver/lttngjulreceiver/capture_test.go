// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

func captured(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "lttng", "agent", name))
	require.NoError(t, err)
	return b
}

// expectBytes reads what the receiver sends.
func (a *testAgent) expectBytes(want []byte) {
	a.t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(a.in, got)
	require.NoError(a.t, err)
	require.Equal(a.t, want, got)
}

func filter(t *testing.T, text string) lttngagent.Filter {
	t.Helper()
	f, err := lttngagent.ParseFilter(text)
	require.NoError(t, err)
	return f
}

func levels(t *testing.T, kind lttngagent.LevelType, level lttngagent.Level) lttngagent.Levels {
	t.Helper()
	l, err := lttngagent.NewLevels(kind, level)
	require.NoError(t, err)
	return l
}

func TestTheRealDaemonsConversationWithTheRealAgentByteForByte(t *testing.T) {
	b := newBed(t, nil)
	toDaemon, toAgent := captured(t, "real2.conn1.c2s.bin"), captured(t, "real2.conn1.s2c.bin")
	single := lttngagent.Enable{
		Logger: pattern(t, "com.example.JulDemo"), Levels: levels(t, lttngagent.SingleLevel, 800),
		Filter: filter(t, `(logger_name == "com.example.JulDemo") && (int_loglevel == 800)`),
	}
	some := lttngagent.Enable{
		Logger: pattern(t, "com.example.d*"), Levels: levels(t, lttngagent.LevelRange, 400),
		Filter: filter(t, `(logger_name == "com.example.d*") && (int_loglevel >= 400)`),
	}
	user := contextOf(t, "myprov", "myctx")
	a := b.connect()
	a.send(toDaemon[:16])
	a.expectBytes(toAgent[:32])
	a.send(toDaemon[16:63])
	assert.Equal(t, []string{"com.example.JulDemo", "com.example.db"}, loggersOf(b.awaitRecords(eventAppeared, 2)))

	require.True(t, b.receiver.registrar.registry.agents()[0].Queue(
		single, some, lttngagent.EnableContext{Context: user},
		lttngagent.Disable{Logger: single.Logger}, lttngagent.Disable{Logger: some.Logger}, lttngagent.DisableContext{Context: user},
	))
	toAgent, toDaemon = toAgent[32:], toDaemon[63:]
	for _, size := range []int{16 + 332, 16 + 327, 16 + 21, 16 + 256, 16 + 256, 16 + 21} {
		a.expectBytes(toAgent[:size])
		a.send(toDaemon[:4])
		toAgent, toDaemon = toAgent[size:], toDaemon[4:]
	}
	assert.Empty(t, toAgent)
	assert.Empty(t, toDaemon)
	require.Equal(t, lttngagent.List{}, a.next(), "the command may have changed the loggers")
	require.NoError(t, a.conn.Close())
	gone := b.awaitRecords(eventGone, 1)[0]
	assert.Equal(t, "closed", gone.attributes[attributeCause])
	assert.Empty(t, b.records(eventRefused))
}

func TestARealAgentThatIsEnabledAtItsRegistrationByteForByte(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}} })
	toDaemon, toAgent := captured(t, "jul_full.agent2.a2s.bin"), captured(t, "jul_full.agent2.s2a.bin")
	a := b.connect()
	a.send(toDaemon[:16])
	a.expectBytes(toAgent[:284]) // enable *
	a.send(toDaemon[16:20])
	a.expectBytes(toAgent[284:316]) // registration done, list
	a.send(toDaemon[20:67])
	assert.Len(t, b.awaitRecords(eventAppeared, 2), 2)

	db := lttngagent.Enable{
		Logger: pattern(t, "com.example.db"), Levels: levels(t, lttngagent.LevelRange, 400),
		Filter: filter(t, `logger_name == "com.example.db"`),
	}
	demo := lttngagent.Enable{Logger: pattern(t, "com.example.JulDemo"), Levels: levels(t, lttngagent.SingleLevel, 800)}
	require.True(t, b.receiver.registrar.registry.agents()[0].Queue(
		db, demo, lttngagent.Disable{Logger: pattern(t, "*")}, lttngagent.Disable{Logger: pattern(t, "com.example.nosuch")},
	))
	toAgent, toDaemon = toAgent[316:], toDaemon[67:]
	for _, size := range []int{16 + 300, 16 + 268, 16 + 256, 16 + 256} {
		a.expectBytes(toAgent[:size])
		a.send(toDaemon[:4])
		toAgent, toDaemon = toAgent[size:], toDaemon[4:]
	}
	refused := b.awaitRecords(eventRefused, 1)[0]
	assert.Equal(t, "Agent refused: disable com.example.nosuch: unknown name", refused.body)
	assert.Equal(t, "unknown_name", refused.attributes[attributeResult])
	assert.Equal(t, "disable", refused.attributes[attributeCommand])
	assert.Equal(t, "com.example.nosuch", refused.attributes[attributeLogger])
	assert.EqualValues(t, 3, refused.attributes[attributeCode])
	// The extension has disabled *, so the shutdown does not.
	require.Equal(t, lttngagent.List{}, a.next())
	a.list("com.example.JulDemo", "com.example.db")
	go b.Shutdown()
	a.expect(lttngagent.Disable{Logger: demo.Logger}, lttngagent.Disable{Logger: db.Logger})
	a.awaitClosed()
}
