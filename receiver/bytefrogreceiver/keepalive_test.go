// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
)

func TestARunThatTracesTooMuchIsWarnedOfOnceAMinute(t *testing.T) {
	config := createDefaultConfig()
	config.WarnEventsPerSecond = 1000
	run := deskRun(t, consumertest.NewNop(), config)
	core, said := observer.New(zapcore.WarnLevel)
	run.logger = zap.New(core)
	now := run.opened
	rate := rateWatch{limit: config.WarnEventsPerSecond, at: now}
	second := func(events uint64) {
		now = now.Add(time.Second)
		run.stream.Advance(0, events)
		rate.check(now, run.stream.Received(), run.logger)
	}
	second(999)
	assert.Zero(t, said.Len())
	for range 59 {
		second(5000)
	}
	assert.Equal(t, 1, said.Len())
	second(5000)
	second(5000)
	assert.Equal(t, 2, said.Len())
	assert.Equal(t, 5000.0, said.All()[0].ContextMap()["events_per_second"])
	rate.limit = 0
	now = now.Add(time.Hour)
	second(1 << 40)
	assert.Equal(t, 2, said.Len(), "0 is no limit")
}

func TestAnEndpointThatOthersCanReachIsWarnedOf(t *testing.T) {
	b := newBed(t)
	assert.Zero(t, b.Log.FilterField(zap.String("component", b.receiver.env.ID)).Len(), "on localhost")
	for _, c := range []struct {
		tls  configoptional.Optional[configtls.ServerConfig]
		want string
	}{
		{configoptional.None[configtls.ServerConfig](), openlistener.WithoutTLS},
		{configoptional.Some(configtls.ServerConfig{}), openlistener.WithoutCertificates},
		{configoptional.Some(configtls.ServerConfig{ClientCAFile: "ca.pem"}), ""},
	} {
		b.receiver.env.config.TLS = c.tls
		b.receiver.warnIfOpen(&net.TCPAddr{IP: net.IPv6loopback, Port: 8765})
		b.receiver.warnIfOpen(&net.TCPAddr{IP: net.IPv4zero, Port: 8765})
		warned := b.Log.FilterLevelExact(zap.WarnLevel).TakeAll()
		if c.want == "" {
			assert.Empty(t, warned)
		} else if assert.Len(t, warned, 1) {
			assert.Equal(t, c.want, warned[0].Message)
			assert.Equal(t, "0.0.0.0:8765", warned[0].ContextMap()["address"])
			assert.Equal(t, b.receiver.env.ID, warned[0].ContextMap()["component"])
		}
		b.Log.TakeAll()
	}
}

func TestBreaksThatComeInABurstAreAnnouncedTogether(t *testing.T) {
	breaks := uint64(100_000)
	if testing.Short() {
		breaks /= 10
	}
	b := newBed(t, quickly)
	a := connect(b, 1)
	run := b.receiver.env.registry.lookup(1)
	var burst []byte
	for i := range uint32(breaks) {
		burst = bytefrog.DataBreak{Sequence: 7 * i}.AppendTo(burst)
	}
	began := time.Now()
	a.control.write(burst)
	b.Await("the breaks", func() bool { return run.breaks[callevent.CauseSuspended].Load() == breaks })
	b.Await("the last announcement", func() bool { return !run.stream.HasNewBarriers() })
	took := time.Since(began)
	// Beside one for each pause: the first.
	assert.LessOrEqual(t, b.only().empty, 1+int(took/announcePause))
	a.finish()
	b.awaitRuns(0)
}

// What was broken off may have been taken all the same, and would come twice.
func TestAnAnnouncementIsNotBrokenOffByTheEndOfTheRun(t *testing.T) {
	b := newBed(t, quickly)
	release := b.Traces.Hang(false)
	a := connect(b, 1)
	a.join()
	a.control.send(bytefrog.DataBreak{Sequence: 500})
	b.Await("the announcement", func() bool { return b.Traces.Calls().Begun > 0 })
	run := b.receiver.env.registry.lookup(1)
	run.leave(unresponsive(time.Second))
	// The agent does not wait for it.
	a.control.expectError()
	release()
	a.expectToLinger(b, 2)
	assert.Zero(t, b.Traces.Calls().BrokenOff)
	s := b.only()
	assert.Equal(t, 1, s.barriers[callevent.Point(500, callevent.CauseSuspended)], "heard of once")
	assert.Equal(t, callevent.CauseUnresponsive, s.end(t).Cause)
}
