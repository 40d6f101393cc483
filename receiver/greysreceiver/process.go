// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// process is one life of a server: what is known of it, and what is to be asked. It knows no
// connections.
type process struct {
	env    *environment
	logger *zap.Logger
	origin *origin
	// memory is that of the server; nil: nobody counts it.
	memory *servermemory.Memory
	// tasks are those of the goroutine that follows the server: there are others, or fewer,
	// only while it holds mu. So is owed: classes that something may be in that was put there
	// by commands that have ended. layers is how many runs may have put something into classes
	// since the last reset, and runs how many there were.
	tasks  []*task
	owed   []classes
	layers int
	runs   int64
	// poisoned says that the server has refused a command, and may have left code in classes
	// that has it refuse others: all are ended, it is taken out, and they are asked again.
	poisoned atomic.Bool
	// enhancing has room for the commands that the server is asked to change classes for, until
	// it has. apart says that there is one at a time: after one of several was refused it is not
	// known which the server refuses for itself.
	enhancing chan struct{}
	apart     atomic.Bool
	// alone is held while all room is taken.
	alone sync.Mutex

	// mu guards all below.
	mu sync.Mutex

	replies, bad, missing, reconnects int64
	// heard is when the server said something last.
	heard time.Time
	// sessions are those with the server, if it says them.
	sessions    int
	hasSessions bool
	calls       calls
	// tracing are the runs that are told of call trees.
	tracing      map[*run]struct{}
	records      records
	inventory    inventory
	nodesDropped int64
	// unwanted are recorded calls of others that no pattern of tt, or none whose limit is not
	// reached, has taken.
	unwanted int64
	// untimed counts replies whose times were left out, because their command matches several
	// methods, or their method calls itself.
	untimed untimed
	// nested is what is known of whether methods call themselves, and nestedBytes is what that
	// takes, about.
	nested      map[methodName]*nesting
	nestedBytes int
	told        told
}

// matched is what the patterns of a command matched when it was asked last.
type matched struct {
	classes, methods int64
	known            bool
}

func newProcess(env *environment, of *origin, wants []*want) *process {
	methods, _ := env.config.methodsOfServer()
	p := &process{env: env, logger: env.logger, origin: of, enhancing: make(chan struct{}, startsAtOnce), calls: newCalls(methods), inventory: newInventory(env.config.Limits.MaxInventory), nested: map[methodName]*nesting{}}
	for _, w := range wants {
		p.tasks = append(p.tasks, newTask(env, w))
	}
	return p
}

// setSessions sets how many sessions there are with the server.
func (p *process) setSessions(who identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = p.env.now()
	p.sessions, p.hasSessions = who.sessions, who.hasSessions
}

// reconnected counts a connection that is made anew after one was lost.
func (p *process) reconnected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reconnects++
}

// owe remembers that something may be in classes that is no longer needed there.
func (p *process) owe(c classes) {
	if !slices.Contains(p.owed, c) {
		p.owed = append(p.owed, c)
	}
}

// isTraced reports whether a call tree of a recorded call is handed on, as far as names say: of trees
// of one command for a regular expression it is not known. The lock is held.
func (p *process) isTraced(of *greys.Record) bool {
	for r := range p.tracing {
		t := &r.task.target
		if r.telling != nil {
			if !r.isFull() && slices.ContainsFunc(r.telling, func(p *part) bool { return p.tellsTreesOf(of) }) {
				return true
			}
			continue
		}
		if !r.affected || r.isFull() || t.Regexp || !matches(t.Method, of.Method) {
			continue
		}
		if matches(t.Class, of.Class) || of.IsSimple && !strings.Contains(of.Class, ".") && endsIn(t.Class, of.Class) {
			return true
		}
	}
	return false
}

// endsIn reports whether a pattern may match a class of any package that has a simple name.
func endsIn(pattern greys.Pattern, simple string) bool {
	return meet(wildcards(pattern.String()), append([]wildcard{anyMany, '.'}, units(simple)...))
}

// traces is told that a run begins, or ends, that is told of call trees.
func (p *process) traces(r *run, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !begins {
		delete(p.tracing, r)
		return
	}
	if p.tracing == nil {
		p.tracing = map[*run]struct{}{}
	}
	p.tracing[r] = struct{}{}
}

// wanted reports whether a call that others may have had recorded is one that is asked for,
// and counts it. What a regular expression of Java's matches is not known here: all is
// wanted. The lock is held.
func (p *process) wanted(of *greys.Record) bool {
	for _, t := range p.tasks {
		if t.kind != askRecords || t.ended || t.isFull() {
			continue
		}
		command := t.command(0).(greys.RecordCommand)
		if command.Regexp || matches(command.Class, of.Class) && matches(command.Method, of.Method) {
			t.taken++
			return true
		}
	}
	p.unwanted++
	return false
}

// recordsListed is told that a list of recorded calls has ended, and whether it was whole.
func (p *process) recordsListed(whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records.listed(whole)
}

// tree hands on a call tree that was received. The lock is held.
func (p *process) tree(of *greys.Tree, now time.Time) {
	parcel, left := treeSpans(p.origin, of, now, p.env.config.Limits.MaxTreeNodes)
	p.nodesDropped += int64(left)
	p.env.spans.Add(parcel)
}
