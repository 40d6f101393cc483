// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/hqtest"
	"github.com/callbraid/callbraid/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settle is the time in which an agent has to notice two losses that belong together. All times are simulated.
const settle = 150 * time.Millisecond

// heartbeat is the interval of the agents' heartbeats, and the time that they need to close their connections after an
// error.
const heartbeat = settle

func configuration() bytefrog.AgentConfiguration {
	return bytefrog.AgentConfiguration{
		RunID:              200,
		HeartbeatInterval:  10 * time.Millisecond,
		Exclusions:         []string{""},
		Inclusions:         []string{"^demo/"},
		BufferMemoryBudget: 160 << 10,
		QueueRetryCount:    10,
		DataConnections:    2,
	}
}

// busy is a program that enters and leaves one method: without end, or `events` times. It fills a buffer in a millisecond, so that
// the simulated time goes on.
type busy struct {
	events uint32
	made   chan struct{} // closed when it has sent its first buffer; may be nil
	end    chan struct{} // it waits for this before it returns; may be nil
}

func (p *busy) Run(t *bytefrogagent.Tracer) error {
	var number uint32
	for first := true; p.events == 0 || number < p.events; first = false {
		t.Sleep(time.Millisecond)
		err := t.Proceed()
		var b *bytefrogagent.Buffer
		if err == nil {
			b, err = t.Acquire()
		}
		for errors.Is(err, bytefrogagent.ErrSuspended) {
			t.Break(number)
			if err = t.AwaitUnsuspend(); err == nil {
				b, err = t.Acquire()
			}
		}
		if err != nil {
			return err
		}
		for b.Room() >= bytefrog.MaxEventSize && (p.events == 0 || number < p.events) {
			kind := bytefrog.TypeMethodEntry
			if number%2 == 1 {
				kind = bytefrog.TypeMethodExit
			}
			b.Data = bytefrog.AppendEvent(b.Data, bytefrog.Event{Type: kind, Time: uint32(t.Elapsed().Milliseconds()), Sequence: number})
			b.Events++
			number++
		}
		t.Send(b)
		if first && p.made != nil {
			close(p.made)
		}
	}
	if p.end != nil {
		<-p.end
	}
	return nil
}

// bed is an agent that runs against a scripted HQ, in simulated time.
type bed struct {
	t      *testing.T
	hq     *hqtest.HQ
	agent  *bytefrogagent.Agent
	kill   context.CancelFunc
	result chan bytefrogagent.Result
}

func play(t *testing.T, program bytefrogagent.Program, change func(o *bytefrogagent.Options)) *bed {
	t.Helper()
	network := hqtest.NewPipes()
	hq := hqtest.NewAt(t, network)
	options := bytefrogagent.Options{
		Dial:           network.Dial,
		ConnectTimeout: 5 * time.Second,
		StartTimeout:   5 * time.Second,
		Settle:         settle,
	}
	if change != nil {
		change(&options)
	}
	ctx, kill := context.WithCancel(context.Background())
	t.Cleanup(kill)
	b := &bed{t: t, hq: hq, agent: bytefrogagent.New(options, program), kill: kill, result: make(chan bytefrogagent.Result, 1)}
	go func() { b.result <- b.agent.Run(ctx) }()
	return b
}

// end waits for the end of the agent.
func (b *bed) end() bytefrogagent.Result {
	b.t.Helper()
	select {
	case r := <-b.result:
		return r
	case <-time.After(20 * time.Second):
		b.t.Fatal("the agent does not end")
		return bytefrogagent.Result{}
	}
}

// waitFull waits until every buffer is full and stays full for some heartbeats. The configuration has 20 buffers, and 2
// of them are being written.
func waitFull(hq *hqtest.HQ, heartbeats int) {
	const full = 18
	from := len(hq.ControlMessages())
	hq.Wait("heartbeats with all buffers full", func(control []bytefrog.Message, _ [][]byte) bool {
		if len(control)-from < heartbeats {
			return false
		}
		for _, m := range control[len(control)-heartbeats:] {
			beat, ok := m.(bytefrog.Heartbeat)
			if !ok || beat.Mode != bytefrog.ModeTracing || beat.SendBuffers != full {
				return false
			}
		}
		return true
	})
}

// Each case is the behaviour of an HQ that disconnects from a busy program, and the fate of the program.
func TestFateOfAProgramWhenItsHQDisconnects(t *testing.T) {
	after := func(d time.Duration, f func()) { <-time.After(d); f() }
	for name, test := range map[string]struct {
		disconnect func(hq *hqtest.HQ)
		want       bytefrogagent.Outcome
	}{
		"everything closed immediately, data first": {
			disconnect: func(hq *hqtest.HQ) { hq.CloseData(); hq.CloseControl() },
			want:       bytefrogagent.Hung,
		},
		"everything closed immediately, control first": {
			disconnect: func(hq *hqtest.HQ) { hq.CloseControl(); hq.CloseData() },
			want:       bytefrogagent.Hung,
		},
		"control closed, then data before all was read": {
			disconnect: func(hq *hqtest.HQ) {
				hq.StopReading(true)
				waitFull(hq, 3)
				hq.CloseControl()
				after(2*settle, hq.CloseData)
			},
			want: bytefrogagent.Hung,
		},
		"one data connection closed, then immediately control": {
			disconnect: func(hq *hqtest.HQ) { hq.Data[1].Close(); hq.CloseControl() },
			want:       bytefrogagent.Hung,
		},
		"data closed, control after a while": {
			disconnect: func(hq *hqtest.HQ) { hq.CloseData(); after(4*settle, hq.CloseControl) },
			want:       bytefrogagent.Untraced,
		},
		"one data connection closed, control after a while": {
			disconnect: func(hq *hqtest.HQ) { hq.Data[0].Close(); after(4*settle, hq.CloseControl) },
			want:       bytefrogagent.Untraced,
		},
		"only control closed, data read to the end": {
			disconnect: func(hq *hqtest.HQ) { hq.CloseControl() },
			want:       bytefrogagent.Untraced,
		},
		"suspend, then everything closed before all was read": {
			disconnect: func(hq *hqtest.HQ) {
				hq.StopReading(true)
				waitFull(hq, 3)
				hq.Order(bytefrog.TypeSuspend)
				hq.WaitBreak(1)
				hq.CloseData()
				hq.CloseControl()
			},
			want: bytefrogagent.Hung,
		},
		"suspend, its break, all read, then control closed first": {
			disconnect: func(hq *hqtest.HQ) {
				hq.Order(bytefrog.TypeSuspend)
				hq.WaitEvents(int(hq.WaitBreak(1).Sequence))
				// The last buffer is free again when the agent has noticed that it was sent.
				after(settle, hq.CloseControl)
				hq.CloseData()
			},
			want: bytefrogagent.Untraced,
		},
		"suspend, unsuspend, then everything closed": {
			disconnect: func(hq *hqtest.HQ) {
				hq.Order(bytefrog.TypeSuspend)
				hq.WaitBreak(1)
				hq.Order(bytefrog.TypeUnsuspend)
				hq.CloseControl()
				hq.CloseData()
			},
			want: bytefrogagent.Hung,
		},
		"error, then everything closed immediately": {
			disconnect: func(hq *hqtest.HQ) { hq.Send(bytefrog.ErrorMessage{Text: "away"}); hq.CloseData(); hq.CloseControl() },
			want:       bytefrogagent.Hung,
		},
		"error, then everything closed after a while": {
			disconnect: func(hq *hqtest.HQ) {
				hq.StopReading(true)
				waitFull(hq, 3)
				hq.Send(bytefrog.ErrorMessage{Text: "away"})
				after(4*settle, hq.CloseData)
				hq.CloseControl()
			},
			want: bytefrogagent.Untraced,
		},
		"error, then everything read until the agent closes": {
			disconnect: func(hq *hqtest.HQ) { hq.Send(bytefrog.ErrorMessage{Text: "away"}); hq.WaitClosed() },
			want:       bytefrogagent.Untraced,
		},
		"error, then no more reading": {
			disconnect: func(hq *hqtest.HQ) {
				hq.StopReading(true)
				waitFull(hq, 3)
				hq.Send(bytefrog.ErrorMessage{Text: "away"})
			},
			want: bytefrogagent.Hung,
		},
		"an unknown control byte, then everything closed immediately": {
			disconnect: func(hq *hqtest.HQ) { hq.Control.Write([]byte{77}); hq.CloseControl(); hq.CloseData() },
			want:       bytefrogagent.Hung,
		},
		"an unknown control byte, then everything read": {
			disconnect: func(hq *hqtest.HQ) { hq.Control.Write([]byte{77}); hq.WaitClosed() },
			want:       bytefrogagent.Untraced,
		},
		"stop, then everything closed": {
			disconnect: func(hq *hqtest.HQ) { hq.Order(bytefrog.TypeStop); hq.CloseControl(); hq.CloseData() },
			want:       bytefrogagent.Untraced,
		},
		"stop, then everything read": {
			disconnect: func(hq *hqtest.HQ) { hq.Order(bytefrog.TypeStop); hq.WaitClosed() },
			want:       bytefrogagent.Untraced,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				program := &busy{made: make(chan struct{})}
				b := play(t, program, func(o *bytefrogagent.Options) { o.StartTimeout = 10 * settle })
				c := configuration()
				c.HeartbeatInterval = heartbeat
				b.hq.Begin(c)
				<-program.made
				b.hq.WaitBytes(50000)
				test.disconnect(b.hq)
				got := b.end()
				assert.Equal(t, test.want, got.Outcome, got.Reason)
				assert.NotEmpty(t, got.Reason)
			})
		})
	}
}

func TestAHungProgramHangsForTheHangTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hang = 300 * time.Millisecond
		b := play(t, &busy{}, func(o *bytefrogagent.Options) { o.HangTimeout = hang })
		b.hq.Begin(configuration())
		b.hq.WaitBytes(1)
		begin := time.Now()
		b.hq.CloseControl()
		b.hq.CloseData()
		assert.Equal(t, bytefrogagent.Hung, b.end().Outcome)
		assert.GreaterOrEqual(t, time.Since(begin), hang)
	})
}

func TestARunEndsAfterEverythingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		program := &busy{events: 30000}
		b := play(t, program, nil)
		b.hq.Begin(configuration())
		got := b.end()
		b.hq.WaitClosed()

		assert.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)
		assert.NoError(t, got.Err)
		assert.Equal(t, configuration(), got.Configuration)
		assert.EqualValues(t, 30000, got.Stats.Events)
		control := b.hq.ControlMessages()
		assert.Equal(t, bytefrog.ModeInitializing, control[0].(bytefrog.Heartbeat).Mode)
		assert.Equal(t, bytefrog.ModeShuttingDown, control[len(control)-1].(bytefrog.Heartbeat).Mode)
		sum := 0
		for _, data := range b.hq.DataBytes() {
			sum += len(data)
		}
		assert.EqualValues(t, sum, got.Stats.Bytes)
		assert.Equal(t, 15000*(bytefrog.MethodEntrySize+bytefrog.MethodExitSize), sum)
	})
}

func TestAnHQThatDisconnectsAfterTheLastEventHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		program := &busy{events: 1000, end: make(chan struct{})}
		b := play(t, program, nil)
		b.hq.Begin(configuration())
		require.True(t, testkit.Happens(func() bool { return b.agent.Stats().Events == 1000 }))
		close(program.end)
		b.hq.Wait("mode X", func(control []bytefrog.Message, _ [][]byte) bool {
			beat, ok := control[len(control)-1].(bytefrog.Heartbeat)
			return ok && beat.Mode == bytefrog.ModeShuttingDown
		})
		b.hq.CloseControl()
		b.hq.CloseData()
		got := b.end()
		assert.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)
	})
}

func TestAProgramWaitsForAnHQThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := play(t, &busy{}, nil)
		b.hq.Begin(configuration())
		b.hq.WaitBytes(1)
		b.hq.StopReading(true)
		waitFull(b.hq, 10)
		b.hq.StopReading(false)
		b.hq.WaitBytes(1 << 20)
		b.agent.Stop()
		got := b.end()
		assert.Equal(t, bytefrogagent.Untraced, got.Outcome, got.Reason)
		assert.Positive(t, got.Stats.Waited)
	})
}

func TestAnHQThatDoesNotReadCanSuspendAndDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := play(t, &busy{}, nil)
		b.hq.Begin(configuration())
		b.hq.WaitBytes(1)
		b.hq.StopReading(true)
		waitFull(b.hq, 10)
		b.hq.Order(bytefrog.TypeSuspend)
		b.hq.WaitBreak(1)
		b.hq.StopReading(false)
		b.hq.WaitEvents(int(b.hq.WaitBreak(1).Sequence))
		b.hq.Send(bytefrog.ErrorMessage{Text: "away"})
		b.hq.WaitClosed()
		assert.Equal(t, bytefrogagent.Untraced, b.end().Outcome)
	})
}

// After Thaw, a frozen process reads the last messages and the loss of its connections simultaneously.
func TestFateOfAFrozenProgram(t *testing.T) {
	for name, test := range map[string]struct {
		disconnect func(hq *hqtest.HQ)
		want       bytefrogagent.Outcome
	}{
		"error, then closed in good time": {
			disconnect: func(hq *hqtest.HQ) {
				hq.Send(bytefrog.ErrorMessage{Text: "no heartbeat"})
				hq.CloseData()
				<-time.After(2 * settle)
				hq.CloseControl()
			},
			want: bytefrogagent.Hung,
		},
		"error, and the HQ continues to read": {
			disconnect: func(hq *hqtest.HQ) { hq.Send(bytefrog.ErrorMessage{Text: "no heartbeat"}) },
			want:       bytefrogagent.Untraced,
		},
		"left alone": {disconnect: func(*hqtest.HQ) {}, want: bytefrogagent.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				program := &busy{events: 100_000_000}
				if test.want == bytefrogagent.Completed {
					program.events = 100_000
				}
				b := play(t, program, nil)
				b.hq.Begin(configuration())
				b.hq.WaitBytes(50000)
				b.agent.Freeze()
				beats := b.agent.Stats().Heartbeats
				test.disconnect(b.hq)
				<-time.After(settle)
				assert.LessOrEqual(t, b.agent.Stats().Heartbeats, beats+1, "one heartbeat may have been in progress")
				b.agent.Thaw()
				got := b.end()
				assert.Equal(t, test.want, got.Outcome, got.Reason)
			})
		})
	}
}

// For an agent that is shutting down, suspend is an error.
func TestSuspendAtTheEndLosesUnsentEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 100_000 // fewer than fit in the agent's buffers
		c := configuration()
		c.BufferMemoryBudget = 8 << 20
		b := play(t, &busy{events: events}, nil)
		b.hq.StopReading(true)
		b.hq.Begin(c)
		b.hq.Wait("mode X", func(control []bytefrog.Message, _ [][]byte) bool {
			beat, ok := control[len(control)-1].(bytefrog.Heartbeat)
			return ok && beat.Mode == bytefrog.ModeShuttingDown
		})
		b.hq.Order(bytefrog.TypeSuspend)
		b.hq.Wait("error", func(control []bytefrog.Message, _ [][]byte) bool {
			return slices.ContainsFunc(control, func(m bytefrog.Message) bool { _, ok := m.(bytefrog.ErrorMessage); return ok })
		})
		b.hq.StopReading(false)
		got := b.end()
		assert.Equal(t, bytefrogagent.Untraced, got.Outcome, got.Reason)
		assert.Contains(t, got.Reason, "suspend where nothing was traced")
	})
}

func TestARefusedAgentRunsItsProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nothing := bytefrog.AgentConfiguration{
			HeartbeatInterval: 10 * time.Millisecond, Exclusions: []string{""}, Inclusions: []string{},
			BufferMemoryBudget: 64 << 10, QueueRetryCount: 1,
		}
		b := play(t, &busy{}, func(o *bytefrogagent.Options) { o.DataConnections = 3 })
		b.hq.Configure(b.hq.Accept().Version, nothing)
		b.hq.Order(bytefrog.TypeStart)
		b.hq.Wait("a class report", func(control []bytefrog.Message, _ [][]byte) bool {
			return slices.ContainsFunc(control, func(m bytefrog.Message) bool { _, ok := m.(bytefrog.ClassReport); return ok })
		})
		b.hq.Send(bytefrog.ErrorMessage{Text: "too many"})
		b.hq.WaitClosed()
		got := b.end()
		assert.Equal(t, bytefrogagent.Refused, got.Outcome, got.Reason)
		assert.Equal(t, "the HQ sent error: too many", got.Reason)
		assert.Zero(t, got.Configuration.DataConnections)
		assert.Zero(t, got.Stats.Bytes)
	})
}

func TestOrdersAreCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := play(t, &busy{}, nil)
		b.hq.Begin(configuration())
		mode := func(want bytefrog.Mode) {
			t.Helper()
			seen := len(b.hq.ControlMessages())
			b.hq.Wait("mode "+want.String(), func(control []bytefrog.Message, _ [][]byte) bool {
				for _, m := range control[seen:] {
					if beat, ok := m.(bytefrog.Heartbeat); ok && beat.Mode == want {
						return true
					}
				}
				return false
			})
		}
		bytesNow := func() int {
			sum := 0
			for _, data := range b.hq.DataBytes() {
				sum += len(data)
			}
			return sum
		}
		mode(bytefrog.ModeTracing)
		b.hq.Order(bytefrog.TypePause)
		mode(bytefrog.ModePaused)
		b.hq.Order(bytefrog.TypeUnpause)
		b.hq.WaitBytes(bytesNow() + 1<<20)
		for n := 1; n <= 3; n++ {
			b.hq.Order(bytefrog.TypeSuspend)
			first := b.hq.WaitBreak(n)
			mode(bytefrog.ModeSuspended)
			// Events before the break arrive, and no event from it on.
			b.hq.WaitEvents(int(first.Sequence))
			assert.Equal(t, int(first.Sequence), numbered(b.hq.DataBytes()))
			b.hq.Order(bytefrog.TypeUnsuspend)
			b.hq.WaitBytes(bytesNow() + 1<<20)
		}
		// The HQ suspends twice before the program notices the first: both are answered.
		b.hq.Send(bytefrog.Command{Of: bytefrog.TypeSuspend})
		b.hq.WaitBreak(4)
		b.hq.Send(bytefrog.Command{Of: bytefrog.TypeUnsuspend}, bytefrog.Command{Of: bytefrog.TypeSuspend})
		b.hq.WaitBreak(5)
		b.hq.Order(bytefrog.TypeStop)
		got := b.end()
		assert.Equal(t, bytefrogagent.Untraced, got.Outcome, got.Reason)
		assert.EqualValues(t, 5, got.Stats.Breaks)
	})
}

// numbered counts events.
func numbered(data [][]byte) int {
	var events [64]bytefrog.Event
	sum := 0
	for _, b := range data {
		for {
			n, size := bytefrog.DecodeEvents(events[:], b)
			if n == 0 {
				break
			}
			sum += n
			b = b[size:]
		}
	}
	return sum
}

func TestSuspendBeforeStartHasNoEffectOnEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := play(t, &busy{events: 1000}, nil)
		hello := b.hq.Accept()
		b.hq.Configure(hello.Version, configuration())
		b.hq.Order(bytefrog.TypeSuspend)
		b.hq.Order(bytefrog.TypeStart)
		b.hq.AcceptData(2)
		got := b.end()
		assert.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)
		assert.EqualValues(t, 1000, got.Stats.Events)
		assert.Zero(t, got.Stats.Breaks)
	})
}

func TestVersion2ReadsItsConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := play(t, &busy{events: 10}, func(o *bytefrogagent.Options) { o.Version = 2; o.DataConnections = 3 })
		hello := b.hq.Accept()
		require.EqualValues(t, 2, hello.Version)
		b.hq.Configure(2, configuration())
		b.hq.Order(bytefrog.TypeStart)
		b.hq.AcceptData(3)
		got := b.end()
		assert.Equal(t, bytefrogagent.Completed, got.Outcome, got.Reason)
		assert.EqualValues(t, 200, got.Configuration.RunID)
		assert.Equal(t, []string{"^demo/"}, got.Configuration.Inclusions)
	})
}

// These are actions of an HQ before the start.
func TestBeforeMain(t *testing.T) {
	short := func(o *bytefrogagent.Options) { o.StartTimeout = 100 * time.Millisecond }
	for name, test := range map[string]struct {
		change func(o *bytefrogagent.Options)
		treat  func(hq *hqtest.HQ)
		want   bytefrogagent.Outcome
	}{
		"no configuration": {
			change: short,
			treat:  func(hq *hqtest.HQ) { hq.Accept() },
			want:   bytefrogagent.Hung,
		},
		"no start": {
			change: short,
			treat:  func(hq *hqtest.HQ) { hq.Configure(hq.Accept().Version, configuration()) },
			want:   bytefrogagent.Hung,
		},
		"closed between configuration and start": {
			treat: func(hq *hqtest.HQ) { hq.Configure(hq.Accept().Version, configuration()); hq.CloseControl() },
			want:  bytefrogagent.Died,
		},
		"no data hello reply": {
			change: short,
			treat: func(hq *hqtest.HQ) {
				hq.Configure(hq.Accept().Version, configuration())
				hq.Order(bytefrog.TypeStart)
				hq.AcceptDataHello()
			},
			want: bytefrogagent.Hung,
		},
		"error instead of configuration": {
			treat: func(hq *hqtest.HQ) { hq.Accept(); hq.Send(bytefrog.ErrorMessage{Text: "no"}) },
			want:  bytefrogagent.Died,
		},
		"closed instead of configuration": {
			treat: func(hq *hqtest.HQ) { hq.Accept(); hq.CloseControl() },
			want:  bytefrogagent.Died,
		},
		"start instead of configuration": {
			treat: func(hq *hqtest.HQ) { hq.Accept(); hq.Order(bytefrog.TypeStart) },
			want:  bytefrogagent.Died,
		},
		"error instead of start": {
			treat: func(hq *hqtest.HQ) {
				hq.Configure(hq.Accept().Version, configuration())
				hq.Send(bytefrog.ErrorMessage{Text: "no"})
			},
			want: bytefrogagent.Died,
		},
		"error instead of data hello reply": {
			treat: func(hq *hqtest.HQ) {
				hq.Configure(hq.Accept().Version, configuration())
				hq.Order(bytefrog.TypeStart)
				hq.AcceptDataHello()
				hq.Reply(bytefrog.ErrorMessage{Text: "unknown run"})
			},
			want: bytefrogagent.Untraced,
		},
		"an invalid configuration": {
			treat: func(hq *hqtest.HQ) { hq.Accept(); hq.Send(bytefrog.Configuration{Data: []byte("no object")}) },
			want:  bytefrogagent.Died,
		},
		"too little memory for ten buffers": {
			treat: func(hq *hqtest.HQ) {
				c := configuration()
				c.BufferMemoryBudget = 1279
				hq.Configure(hq.Accept().Version, c)
			},
			want: bytefrogagent.Died,
		},
		"less than no data connections": {
			treat: func(hq *hqtest.HQ) {
				c := configuration()
				c.DataConnections = -1
				hq.Configure(hq.Accept().Version, c)
				hq.Order(bytefrog.TypeStart)
			},
			want: bytefrogagent.Died,
		},
		"stop instead of start": {
			treat: func(hq *hqtest.HQ) {
				hq.Configure(hq.Accept().Version, configuration())
				hq.Order(bytefrog.TypeStop)
			},
			want: bytefrogagent.Hung,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := play(t, &busy{}, test.change)
				test.treat(b.hq)
				got := b.end()
				assert.Equal(t, test.want, got.Outcome, got.Reason)
			})
		})
	}
}

func TestRetryCount0FailsAtTheFirstEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := play(t, &busy{}, nil)
		c := configuration()
		c.QueueRetryCount = 0
		b.hq.Begin(c)
		got := b.end()
		assert.Equal(t, bytefrogagent.Untraced, got.Outcome, got.Reason)
		assert.Zero(t, got.Stats.Events)
	})
}

func TestWithoutAnHQTheProgramRunsUntraced(t *testing.T) {
	begin := time.Now()
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: testkit.Address(t), ConnectTimeout: 100 * time.Millisecond}, &busy{})
	got := agent.Run(context.Background())
	assert.Equal(t, bytefrogagent.Untraced, got.Outcome, got.Reason)
	assert.Error(t, got.Err)
	assert.GreaterOrEqual(t, time.Since(begin), 100*time.Millisecond)
}

func TestAKilledProgramClosesWithoutAMessage(t *testing.T) {
	for name, prepare := range map[string]func(hq *hqtest.HQ){
		"before configuration": func(hq *hqtest.HQ) { hq.Accept() },
		"before start":         func(hq *hqtest.HQ) { hq.Configure(hq.Accept().Version, configuration()) },
		"in the middle":        func(hq *hqtest.HQ) { hq.Begin(configuration()); hq.WaitBytes(100000) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := play(t, &busy{}, nil)
				prepare(b.hq)
				b.kill()
				assert.Equal(t, bytefrogagent.Killed, b.end().Outcome)
				b.hq.WaitClosed()
				for _, m := range b.hq.ControlMessages() {
					if beat, ok := m.(bytefrog.Heartbeat); ok {
						assert.NotEqual(t, bytefrog.ModeShuttingDown, beat.Mode, "the agent must not report its end")
					}
				}
			})
		})
	}
}

// broken is a program that fails.
type broken struct{}

func (broken) Run(*bytefrogagent.Tracer) error { return errors.New("out of luck") }

func TestAFailedProgramReportsToTheHQ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := play(t, broken{}, nil)
		b.hq.Begin(configuration())
		got := b.end()
		assert.Equal(t, bytefrogagent.Untraced, got.Outcome)
		assert.ErrorContains(t, got.Err, "out of luck")
		b.hq.WaitClosed()
		assert.Contains(t, b.hq.ControlMessages(), bytefrog.Message(bytefrog.ErrorMessage{Text: "the program failed: out of luck"}))
	})
}
