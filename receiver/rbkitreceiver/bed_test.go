// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/life"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// patience bounds the wait of a test for a condition.
const patience = time.Minute

func openCapture(t testing.TB, name string) *capture.Capture {
	t.Helper()
	c, err := capture.Open(filepath.Join("..", "..", "testdata", "rbkit", name+".zip"))
	require.NoError(t, err)
	return c
}

// bed is the bed of an Rbkit receiver.
type bed struct {
	*receivertestbed.Bed
	receiver *rbkitReceiver
	// prepare changes the receiver before Start; nil: nothing does.
	prepare func(*rbkitReceiver)
}

// option changes the receiver of a bed, or its configuration, before it is made.
type option func(b *bed, c *Config)

// following is an option: which servers.
func following(servers ...*played) option {
	return func(_ *bed, c *Config) {
		for _, s := range servers {
			c.Servers = append(c.Servers, s.config())
		}
	}
}

// newBed makes a receiver and starts it; it ends with the test.
func newBed(t testing.TB, options ...option) *bed {
	t.Helper()
	b := unstartedBed(t, options...)
	b.Start()
	return b
}

func unstartedBed(t testing.TB, options ...option) *bed {
	t.Helper()
	b := &bed{Bed: receivertestbed.New(t, metadata.Type)}
	config := createDefaultConfig()
	config.Timeout = 5 * time.Second
	config.Reconnect = RetryConfig{InitialInterval: 5 * time.Millisecond, MaxInterval: 50 * time.Millisecond}
	config.Retry = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	for _, o := range options {
		o(b, config)
	}
	require.NoError(t, config.Validate())
	r, err := newReceiver(b.Settings, config)
	require.NoError(t, err)
	b.Use(r)
	b.receiver = r.Protocol.(*rbkitReceiver)
	if b.prepare != nil {
		b.prepare(b.receiver)
	}
	return b
}

// ofOneServer is an option: a server that no test connects to.
func ofOneServer(_ *bed, c *Config) { c.Servers = []ServerConfig{{Publish: "localhost:5555"}} }

// alone returns a server without sockets. The test gives it messages and collects metrics.
func alone(t testing.TB, options ...option) (*bed, *life.Lives) {
	t.Helper()
	b := unstartedBed(t, append([]option{ofOneServer}, options...)...)
	measured := b.Next.Metrics != nil
	b.Next.Metrics = nil
	b.open()
	s := b.receiver.servers[0]
	s.Process.Measured = measured
	if measured && !b.receiver.config.Metrics.RubyGcStat.Enabled {
		s.Lives.Unmeasured = unmeasuredKeys
	}
	return b, s.Lives
}

// open opens the outputs of a receiver that doesn't start. The test ends them with Finish.
func (b *bed) open() *outputs {
	b.receiver.open(b.Kit().NewRun(context.Background(), b.Host, b.Next))
	return b.receiver.out
}

// finish ends a server that is alone and delivers all of its data.
func (b *bed) finish(s *life.Lives) {
	s.End()
	b.receiver.out.Finish()
}

// state returns the state of the first server's process.
func (b *bed) state() process.State {
	b.T.Helper()
	return stateOf(b.receiver.servers[0].Lives)
}

// pointsOf are the points of a metric by the value of an attribute.
func pointsOf(metrics pmetric.Metrics, name, attribute string) map[string]int64 {
	points := map[string]int64{}
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != name {
				continue
			}
			var all pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeSum {
				all = m.Sum().DataPoints()
			} else {
				all = m.Gauge().DataPoints()
			}
			for _, p := range all.All() {
				v, _ := p.Attributes().Get(attribute)
				points[v.AsString()] += p.IntValue()
			}
		}
	}
	return points
}

// played is a server that is played.
type played struct {
	*rbkitserver.Server
	t                testing.TB
	publish, request net.Listener
	addresses        ServerConfig
	options          rbkitserver.Options
	end              func()
}

// play plays a server on ports that are free, until the test ends.
func play(t testing.TB, options rbkitserver.Options) *played {
	t.Helper()
	p := &played{t: t, options: options}
	p.start("localhost:0", "localhost:0")
	t.Cleanup(p.stop)
	return p
}

func (p *played) start(publish, request string) {
	p.t.Helper()
	p.publish, p.request = p.listen(publish), p.listen(request)
	p.addresses = ServerConfig{Publish: p.publish.Addr().String(), Request: p.request.Addr().String()}
	p.Server = rbkitserver.New(p.options)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func(s *rbkitserver.Server) { served <- s.Serve(ctx, p.publish, p.request) }(p.Server)
	p.end = sync.OnceFunc(func() {
		cancel()
		assert.NoError(p.t, <-served)
	})
}

// listen waits until an address is free. While a server is down, another connection can have its
// port.
func (p *played) listen(address string) (listener net.Listener) {
	p.t.Helper()
	require.EventuallyWithT(p.t, func(c *assert.CollectT) {
		var err error
		listener, err = net.Listen("tcp", address)
		require.NoError(c, err)
	}, patience, time.Millisecond)
	return listener
}

// config is how the server is reached.
func (p *played) config() ServerConfig { return p.addresses }

func (p *played) stop() { p.end() }

// restart ends the server and starts another one on the same ports.
func (p *played) restart(options rbkitserver.Options) {
	p.t.Helper()
	p.stop()
	p.options = options
	p.start(p.addresses.Publish, p.addresses.Request)
}

// awaitSubscriber waits until the receiver has subscribed.
func (p *played) awaitSubscriber() {
	p.t.Helper()
	require.True(p.t, testkit.Happens(func() bool { return p.Subscribers() > 0 }))
}

// replay publishes a capture as fast as it can.
func (p *played) replay(c *capture.Capture) {
	p.t.Helper()
	p.awaitSubscriber()
	require.NoError(p.t, p.Replay(context.Background(), c, 0, nil))
}

var (
	released = rbkit.HandshakeReply{
		Dialect: rbkit.Released, ServerVersion: "0.1.10", ProtocolVersion: "2.1", ProcessName: "prog.rb",
		WorkingDirectory: "/nowhere", PID: 4711, Clock: "wall", CPUProfilingMode: "sampling",
	}
)

// originOf returns the origin of a server's process.
func originOf(c *Config, server *ServerConfig, host string, who origin.Identity, begun time.Time, first int64) *origin.Origin {
	origins := originsOf(c, server, host)
	return origin.New(&origins, who, begun, first)
}

// stateOf returns the state of the last process of a server.
func stateOf(s *life.Lives) process.State {
	state, _ := s.ProcessState()
	return state
}
