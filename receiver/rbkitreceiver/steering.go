// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"cmp"
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/life"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/session"
)

// commands are the commands that the extensions offer. A dump and a collection of all
// garbage stop the program, for a time that grows with its objects. The memory profile and
// the dump of the released gem crash a program on a current Ruby.
var commands = []agentcontrol.Command{
	{Name: string(rbkit.Handshake), Summary: "Ask the server for its process and its state."},
	{Name: string(rbkit.StartMemoryProfile), Disruptive: true, Summary: "Report each object that is created and destroyed. This slows the program down. The released gem crashes a program on Ruby 3.1."},
	{Name: string(rbkit.StopMemoryProfile), Summary: "Stop reporting objects."},
	{Name: string(rbkit.TriggerGC), Disruptive: true, Summary: "Collect all garbage now. The program stops meanwhile."},
	{Name: string(rbkit.ObjectSpaceSnapshot), Disruptive: true, Summary: "Dump all objects now. The program stops meanwhile. The released gem crashes a program on Ruby 3.1."},
	{Name: string(rbkit.UseCPUTime), Summary: "Sample by processor time after the next start of CPU profiling."},
	{Name: string(rbkit.UseWallTime), Summary: "Sample by wall time after the next start of CPU profiling."},
	{Name: string(rbkit.StartCPUProfiling), Summary: "Start sampling stacks."},
	{Name: string(rbkit.StopCPUProfiling), Summary: "Stop sampling stacks."},
}

// controlledServer is a configured server as extensions control it.
type controlledServer struct {
	server *session.Server
	out    *outputs
	config *ServerConfig
	id     string
}

// ID returns the ID of the server, which is the same after a restart of the collector.
func (s *controlledServer) ID() string { return s.id }

// Snapshot returns the state of the server and its process.
func (s *controlledServer) Snapshot() agentcontrol.Snapshot {
	status := s.server.Lives.Status()
	now := agentcontrol.Snapshot{
		Tracer: metadata.Type.String(), Receiver: s.out.ID, Address: s.config.Publish,
		Service: cmp.Or(s.config.ServiceName, s.out.config.ServiceName),
		State:   stateText(&status), LastSeen: status.Heard,
	}
	if s.config.Request != "" {
		now.Commands, now.Unfit = commands, unfit(&status)
	}
	if h := status.Reply; h != nil {
		now.Process = agentcontrol.Process{PID: h.PID, Name: names.ValidString(h.ProcessName)}
	}
	if p := status.Process; p != nil {
		now.Since = p.Origin.Begun
		now.Service = agentcontrol.TextOf(p.Origin.Resource.Attributes(), origin.AttributeServiceName)
		now.Counters = []agentcontrol.Counter{
			{Name: "messages", Unit: "{message}", Value: p.Traffic.Messages},
			{Name: "bytes", Unit: "By", Value: p.Traffic.Bytes},
			{Name: "events", Unit: "{event}", Value: p.Traffic.Events},
			{Name: "lost messages", Unit: "{message}", Value: p.Traffic.Lost},
		}
	}
	return now
}

// stateText returns the state of a server in words.
func stateText(s *life.Status) string {
	if !s.Connected {
		return "disconnected"
	}
	word := "connected"
	if s.Reply != nil && s.Reply.ObjectTraceEnabled {
		word += ", memory profile"
	}
	if s.Reply != nil && s.Reply.CPUProfiling {
		word += ", CPU profile"
	}
	return word
}

// unfit returns the commands that do not fit the state of a server, with the reason.
func unfit(s *life.Status) map[string]string {
	switch {
	case !s.Connected:
		return agentcontrol.NoneFits(commands, "the receiver is not connected to the server")
	case s.Reply == nil:
		return nil
	}
	unfit := map[string]string{}
	of := func(command rbkit.Command, isUnfit bool, reason string) {
		if isUnfit {
			unfit[string(command)] = reason
		}
	}
	of(rbkit.StartMemoryProfile, s.Reply.ObjectTraceEnabled, "the server reports objects already")
	of(rbkit.StopMemoryProfile, !s.Reply.ObjectTraceEnabled, "the server does not report objects")
	of(rbkit.StartCPUProfiling, s.Reply.CPUProfiling, "the server samples stacks already")
	of(rbkit.StopCPUProfiling, !s.Reply.CPUProfiling, "the server does not sample stacks")
	return unfit
}

// SendRecord delivers a log record of a command. Its origin is the process, or the configured
// server if none was reached.
func (s *controlledServer) SendRecord(r agentcontrol.Record) {
	var of *origin.Origin
	if p := s.server.Lives.Status().Process; p != nil {
		of = p.Origin
	} else {
		origins := originsOf(s.out.config, s.config, "")
		of = origin.New(&origins, origin.Identity{}, s.out.Now(), 0)
	}
	s.out.log(of, agentcontrol.EventName, r.Body(), r.Severity(), 0, func(m pcommon.Map) {
		for _, a := range r.Attributes() {
			m.PutStr(a.Key, a.Value)
		}
	})
}

// Do sends a command. Its effect lasts until the shutdown of the receiver.
func (s *controlledServer) Do(ctx context.Context, order agentcontrol.Order) (agentcontrol.Answer, error) {
	return s.server.Do(ctx, rbkit.Command(order.Command))
}
