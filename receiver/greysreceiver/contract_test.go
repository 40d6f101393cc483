// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

func TestServersFulfilTheContractOfAgents(t *testing.T) {
	pay := on("demo.Pay", "charge")
	// By GP, a started task counts as begun if the server sends nothing. A reset does not.
	reset := agentcontroltest.Example{Command: server.OrderReset, Arguments: arguments{"class": "demo.Pay"}}
	for _, protocol := range []Protocol{ProtocolConsole, ProtocolGP} {
		t.Run(string(protocol), func(t *testing.T) {
			agentcontroltest.Contract{
				Type: metadata.Type,
				Examples: []agentcontroltest.Example{
					reset,
					{Command: "stack", Arguments: pay},
					{Command: "monitor", Arguments: pay},
					{Command: "trace", Arguments: pay},
					{Command: "tt", Arguments: pay},
					{Command: server.OrderList},
					{Command: server.OrderEnd, Arguments: arguments{server.ArgumentTask: "1"}},
				},
				Start: func(t testing.TB, host component.Host) agentcontroltest.Played {
					return playObedient(t, host, protocol)
				},
			}.Run(t)
		})
	}
}

// obedient is a server that carries out all commands, until it is silent or dies.
type obedient struct {
	*scripted
	silent atomic.Bool
	// died is closed when the server has died.
	died chan struct{}
}

func playObedient(t testing.TB, host component.Host, protocol Protocol) agentcontroltest.Played {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.GP.RecordsInterval = time.Hour
		c.ShutdownTimeout = 500 * time.Millisecond // a silent server takes half of it
	})
	b.Host = host
	o := &obedient{scripted: script(t, b, protocol), died: make(chan struct{})}
	b.receiver.env.connect = func(context.Context, *link.Dialer, Protocol) (*session.Link, error) {
		l, err := o.link()
		if err == nil {
			l.Asker = o
		}
		return l, err
	}
	left, obeyed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(obeyed)
		o.obey(left)
	}()
	t.Cleanup(func() {
		close(left)
		<-obeyed
	})
	b.start()
	b.Await("the monitor", func() bool { return b.point("replies") == 1 })
	return agentcontroltest.Played{
		Shutdown: b.Shutdown, Silence: func() { o.silent.Store(true) }, Die: sync.OnceFunc(o.die),
		Received: func() (n int) {
			o.set(func() { n = len(o.said) })
			return n
		},
		Records: func() (all []map[string]any) {
			for _, r := range b.Records(agentcontrol.EventName) {
				all = append(all, r.Attributes().AsRaw())
			}
			return all
		},
	}
}

var errDied = errors.New("the server has died")

// Run implements asker.
func (o *obedient) Run(ctx context.Context, command javamethods.Command, each func(javamethods.Reply)) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case <-o.died:
			end(errDied)
		case <-ctx.Done():
		}
	}()
	var err error
	if _, resets := command.(javamethods.ResetCommand); resets && o.silent.Load() {
		o.note(describe(command))
		<-ctx.Done()
		err = ctx.Err()
	} else {
		err = o.scripted.Run(ctx, command, each)
	}
	if context.Cause(ctx) == errDied {
		return errDied
	}
	return err
}

// obey answers the server's commands until done is closed.
func (o *obedient) obey(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case a := <-o.asked:
			_, lists := a.command.(javamethods.RecordsCommand)
			switch {
			case o.silent.Load():
			case lists:
				a.end <- nil
			default:
				a.answer(affectedOne)
			}
		}
	}
}

// die ends all commands, and refuses further connections.
func (o *obedient) die() {
	o.set(func() {
		o.gone = fmt.Errorf("connection refused: %w", errUnsent)
		if o.protocol == ProtocolGP {
			close(o.lost)
		}
	})
	close(o.died)
}
