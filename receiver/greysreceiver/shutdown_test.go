// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

// hanging is a console that identifies itself, and loses the first command that instruments classes. Then it does not
// answer lines that begin with at, nor their abort. It signals asked for them.
func hanging(at string, asked chan<- struct{}) func(net.Conn) {
	var sessions atomic.Int64
	const end = "\r" + console.DefaultPrompt + "\x04"
	return func(conn net.Conn) {
		who := javamethods.Sessions{ProcessID: 4711, Sessions: []javamethods.Session{{ID: sessions.Add(1), Charset: "UTF-8"}}}
		in := bufio.NewReader(conn)
		for {
			line, err := in.ReadString('\n')
			line = strings.Trim(line, "\x04\n")
			switch {
			case err != nil:
				return
			case strings.HasPrefix(line, at):
				select {
				case asked <- struct{}{}:
				default:
				}
				_, _ = io.Copy(io.Discard, in)
				return
			case line == "version":
				_, _ = conn.Write(append(console.AppendVersion(nil, &javamethods.Version{Text: "1.7.6.6"}), console.EndOfReply))
			case line == "session":
				_, _ = conn.Write(append(console.AppendSession(nil, &who, false), console.EndOfReply))
			case strings.HasPrefix(line, "session -s"):
				_, _ = conn.Write(append(console.AppendSession(nil, &who, true), end...))
			default:
				_, _ = io.WriteString(conn, "Affect(class-cnt:1 , method-cnt:4) cost in 21 ms.\n"+end)
				return
			}
		}
	}
}

// A server that hangs at the shutdown must not prevent the delivery of another server's data.
func TestAHangingServerAtShutdownLosesNoDataOfOthers(t *testing.T) {
	for _, at := range []string{"reset", "monitor", "version"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 1)
			good := play(t, greysserver.Options{Protocol: greysserver.Console, ProcessID: 1000, Program: greysserver.ProgramOptions{Rate: 500}})
			b := following(t, func(c *Config) {
				c.Servers = append(c.Servers, ServerConfig{Endpoint: listen(t, hanging(at, asked))})
				c.Protocol = ProtocolConsole
				c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
				c.CollectionInterval = time.Hour
				c.AnswerTimeout = time.Minute
			}, good)
			// Like an exporter, the consumer accepts nothing after its context has ended.
			next, err := consumer.NewMetrics(func(ctx context.Context, metrics pmetric.Metrics) error {
				return errors.Join(ctx.Err(), b.Metrics.ConsumeMetrics(ctx, metrics))
			})
			require.NoError(t, err)
			b.Next.Metrics = next
			b.start()
			b.Await("the server to hang", func() bool { return len(asked) > 0 })
			b.Await("calls", func() bool {
				return values(b.collect(), "java.method.calls")["com.example.shop.Service1.operation1"] > 0
			})
			b.Shutdown()
			assert.Positive(t, b.sums()[1000][0], "the sums of the last collection")
			assert.Zero(t, b.point("metric_points_dropped{reason=refused}"))
			assert.Zero(t, good.life().Enhanced)
			if at == "reset" {
				assert.Equal(t, receiverkit.ErrPeerTime.Error(), b.awaitLogged("No reset was possible").ContextMap()["error"])
			}
		})
	}
}

// A command that was not sent has not instrumented classes.
func TestAnUnsentCommandNeedsNoReset(t *testing.T) {
	asked := make(chan struct{}, 1)
	b := newBed(t, func(c *Config) {
		c.Servers[0].Endpoint = listen(t, hanging("session -s", asked))
		c.Protocol = ProtocolConsole
		c.Monitors = []MonitorConfig{monitor("demo.*", "*")}
	}).start()
	b.Await("the server to hang", func() bool { return len(asked) > 0 })
	b.Shutdown()
	points := b.Points()
	assert.EqualValues(t, 1, points["commands{outcome=stopped}"])
	assert.Zero(t, points["resets{outcome=done}"]+points["resets{outcome=failed}"])
}
