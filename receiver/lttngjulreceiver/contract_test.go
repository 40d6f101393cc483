// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
)

func TestAgentsFulfilTheContract(t *testing.T) {
	agentcontroltest.Contract{
		Type: metadata.Type,
		Examples: []agentcontroltest.Example{
			{Command: orderList},
			{Command: orderEnable, Arguments: map[string]string{argumentLogger: "com.example", argumentLevel: "FINE", argumentLevelType: "range"}},
			{Command: orderDisable, Arguments: map[string]string{argumentLogger: "com.example"}},
		},
		Start: playObedient,
	}.Run(t)
}

// obedient is an agent that carries out its commands until it is silent.
type obedient struct {
	*testAgent
	told   atomic.Int64
	silent atomic.Bool
}

func playObedient(t testing.TB, host component.Host) agentcontroltest.Played {
	b := unstartedBed(t, func(c *Config) {
		c.ListInterval = time.Hour
		c.ShutdownTimeout = 500 * time.Millisecond // an agent that is silent takes most of it
	})
	b.receiver.firstPause = time.Hour
	b.Host = host
	b.Start()
	played, _ := b.registered(lttngagent.JUL, "com.example")
	o := &obedient{testAgent: played}
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
		Records: func() (all []map[string]any) {
			for _, r := range b.records(agentcontrol.EventName) {
				all = append(all, r.attributes)
			}
			return all
		},
	}
}

// obey carries out commands until the connection ends.
func (o *obedient) obey() {
	for {
		request, err := o.dialect.ReadRequest(o.in)
		if err != nil {
			return
		}
		command, err := request.Command(o.dialect)
		if !assert.NoError(o.t, err) {
			return
		}
		o.told.Add(1)
		if o.silent.Load() {
			continue
		}
		reply := lttngagent.Success.AppendTo(nil)
		if _, isList := command.(lttngagent.List); isList {
			reply = lttngagent.ListReply{Code: lttngagent.Success, Loggers: []string{"com.example"}}.AppendTo(nil, o.dialect)
		}
		_, _ = o.conn.Write(reply) // fails after the end of the connection
	}
}

func (o *obedient) die() { _ = o.conn.Close() }
