// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// What a server has in memory is in an account of the process's memory budget, with
// limits.max_server_memory as its own bound. Where either is reached the server is
// disconnected. Its memory is freed first: what is known of its process ends as if it had
// ended, and is counted anew. It is connected to again after a pause.

const (
	// What things take in memory, about, with their place in a map.
	bytesOfServer    = 64 << 10
	bytesOfTracked   = 36
	bytesOfName      = 96
	bytesOfSite      = 64
	bytesOfReference = 16
	bytesOfStackSeen = 80
	bytesOfPlace     = 48
)

// release frees the server's memory whenever it has to, until the context ends.
func (s *server) release(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case shortage := <-s.memory.Over():
			if s.memory.IsCurrent(shortage) {
				s.free(shortage.Why)
			}
		}
	}
}

// free ends what is known of the server's process, and its connections.
func (s *server) free(why error) {
	s.mu.Lock()
	if s.process != nil {
		s.end()
		s.renew(s.who)
	}
	dropped := len(s.meeting.kept)
	s.meeting.kept, s.meeting.size = nil, 0
	s.memory.Renew()
	s.mu.Unlock()
	reason := reasonBudget
	if short := (*budget.Error)(nil); errors.As(why, &short) && short.Setting == servermemory.Setting {
		reason = reasonServer
	}
	s.env.telemetry.disconnected(reason)
	if since, say := s.full.Say(s.env.now()); say {
		s.logger.Warn("The server is disconnected for now: it holds too much memory. What was counted of it begins anew",
			zap.Error(why), zap.Int("messages_dropped", dropped), zap.Int("times_since_last_line", since))
	}
}

// Why a server is disconnected.
const (
	reasonBudget = "memory_budget"
	reasonServer = "max_server_memory"
)

// held counts what the server takes in memory, beside the buffers of its connections. The lock
// is held.
func (s *server) held() error {
	bytes := bytesOfServer + s.meeting.size
	if s.process != nil {
		bytes += s.process.held()
	}
	return s.memory.Hold(bytes)
}

// held is how many bytes the process takes, about.
func (p *process) held() int {
	bytes := p.classes.bytes + p.allocations.files.bytes + bytesOfSite*len(p.allocations.sites) + p.objects.tracked.held()
	for _, c := range [...]counts{p.objects.created, p.objects.destroyed, p.dumps.live.objects, p.dumps.live.bytes} {
		bytes += 8 * cap(c)
	}
	if d := p.dumps.open; d != nil {
		bytes += 8 * (cap(d.live.objects) + cap(d.live.bytes))
		if r := &d.references; r.seen != nil {
			bytes += 8*len(r.seen.slots) + bytesOfReference*cap(r.waiting)
		}
	}
	if s := &p.samples; s.dictionary != nil {
		bytes += s.parcel.bytes + s.dictionary.bytes + s.toldBytes + bytesOfStackSeen*len(s.byStack)
	}
	if o := p.snapshots.open; o != nil {
		bytes += o.parcel.bytes + o.dictionary.bytes + bytesOfStackSeen*len(o.stacks) + bytesOfPlace*(len(o.placed)+len(o.samples))
	}
	return bytes + p.records.bytes
}

// held is how many bytes the objects take, about. Generations keep the space that they had.
func (t *tracked) held() int {
	t.most[0], t.most[1] = max(t.most[0], len(t.young)), max(t.most[1], len(t.old))
	return bytesOfTracked * (t.most[0] + t.most[1])
}
