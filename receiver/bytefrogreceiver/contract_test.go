// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
)

func TestAgentsFulfilTheContract(t *testing.T) {
	agentcontroltest.Contract{
		Type: metadata.Type,
		Examples: []agentcontroltest.Example{
			{Command: "suspend"}, {Command: "unsuspend"}, {Command: "pause"}, {Command: "unpause"}, {Command: "stop"},
		},
		Start: playObedient,
	}.Run(t)
}

// obedient is an agent that carries out all commands, until it is silent.
type obedient struct {
	*agent
	told   atomic.Int64
	silent atomic.Bool
}

func playObedient(t testing.TB, host component.Host) agentcontroltest.Played {
	b := newBed(t, quickly, func(b *bed, c *Config) {
		steerable(b, c)
		b.Host = host
	})
	o := &obedient{agent: connect(b, 1)}
	o.join().write(namesOne())
	// A class report makes the agent ready for commands.
	o.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing}, bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Main"})
	b.Await("the class report", func() bool { return b.Counter("classes") == 1 })
	obeyed := make(chan struct{})
	go func() {
		defer close(obeyed)
		o.obey()
	}()
	t.Cleanup(func() {
		o.die()
		<-obeyed
	})
	return agentcontroltest.Played{
		Shutdown: b.Shutdown, Silence: func() { o.silent.Store(true) }, Die: o.die,
		Received: func() int { return int(o.told.Load()) },
		Records:  b.ordersLogged,
	}
}

// obey carries out commands until stop, an error message, or its death.
func (o *obedient) obey() {
	for {
		m, err := o.control.receive()
		command, is := m.(bytefrog.Command)
		if err != nil || !is {
			o.die()
			return
		}
		o.told.Add(1)
		if o.silent.Load() {
			continue
		}
		// An error does no harm: no test waits for the answer of a dead agent.
		_, _ = o.control.conn.Write(encode(answersTo[command.Of]...))
		if command.Of == bytefrog.TypeStop {
			o.die()
		}
	}
}

var answersTo = map[bytefrog.MessageType][]bytefrog.Message{
	bytefrog.TypeSuspend:   {bytefrog.DataBreak{}, bytefrog.Heartbeat{Mode: bytefrog.ModeSuspended}},
	bytefrog.TypeUnsuspend: {bytefrog.Heartbeat{Mode: bytefrog.ModeTracing}},
	bytefrog.TypePause:     {bytefrog.Heartbeat{Mode: bytefrog.ModePaused}},
	bytefrog.TypeUnpause:   {bytefrog.Heartbeat{Mode: bytefrog.ModeTracing}},
	bytefrog.TypeStop:      {bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown}},
}

func (o *obedient) die() {
	for _, p := range append(o.data, o.control) {
		p.close()
	}
}

// ordersLogged are the attributes of the log records of orders.
func (b *bed) ordersLogged() (all []map[string]any) {
	for _, r := range b.Records(agentcontrol.EventName) {
		all = append(all, r.Attributes().AsRaw())
	}
	return all
}
