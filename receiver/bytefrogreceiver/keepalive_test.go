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
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

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

func TestABurstOfBreaksIsSentInFewBatches(t *testing.T) {
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
	b.Await("the breaks", func() bool { return run.State().Breaks[callevent.CauseSuspended] == breaks })
	b.Await("the last announcement", func() bool {
		return len(b.Traces.AllTraces()) > 0 && b.only().barriers[callevent.Point(7*(breaks-1), callevent.CauseSuspended)] > 0
	})
	took := time.Since(began)
	// Beside one for each pause: the first.
	assert.LessOrEqual(t, b.only().empty, 1+int(took/(10*time.Millisecond)))
	a.finish()
	b.awaitRuns(0)
}

// The pipeline may have accepted a cancelled batch, and would get it twice.
func TestAnAnnouncementIsNotBrokenOffByTheEndOfTheRun(t *testing.T) {
	b := newBed(t, quickly)
	release := b.Traces.Hang(false)
	a := connect(b, 1)
	a.join()
	a.control.send(bytefrog.DataBreak{Sequence: 500})
	b.Await("the announcement", func() bool { return b.Traces.Calls().Begun > 0 })
	run := b.receiver.env.registry.lookup(1)
	run.Leave(session.Unresponsive(time.Second))
	// The agent does not wait for it.
	a.control.expectError()
	release()
	a.expectToLinger(b, 2)
	assert.Zero(t, b.Traces.Calls().BrokenOff)
	s := b.only()
	assert.Equal(t, 1, s.barriers[callevent.Point(500, callevent.CauseSuspended)], "heard of once")
	assert.Equal(t, callevent.CauseUnresponsive, s.end(t).Cause)
}
