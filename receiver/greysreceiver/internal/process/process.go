// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package process has what the receiver knows of one process of a server: sums of its methods
// (methods.go), methods whose times are false (recursion.go), listed classes and methods
// (inventory.go), and recorded calls that were listed (recordlist.go). All of it is bounded, and
// counts in the memory of the server. It asks nothing and forwards nothing.
package process

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/task"
)

// Settings are those of a Process.
type Settings struct {
	// MaxMethods is how many methods have sums of their own, and MethodsSetting the setting that
	// allows no more.
	MaxMethods     int
	MethodsSetting string
	MaxInventory   int
	MaxTreeNodes   int
	// RecursionCheck is how many calls of a method prove its times; 0: nothing is checked.
	RecursionCheck int
	// MaxCommands is how many commands may run with all parts of their patterns.
	MaxCommands int
	// Memory accounts for what is known; nil: nothing does.
	Memory   *servermemory.Memory
	Counters *counters.Counters
	Logger   *zap.Logger
	Now      func() time.Time
}

// Process is what is known of one process. Several goroutines may use it.
type Process struct {
	Settings
	// Begun is when the process was connected first.
	Begun time.Time

	mu       sync.Mutex
	counts   counters.Process
	reported counters.Process

	reconnects int64
	// heard is when the server sent something last.
	heard time.Time
	// sessions is how many sessions the server has, where hasSessions.
	sessions    int
	hasSessions bool
	matched     map[*task.Task]Matched

	methods   methods
	recursion recursion
	inventory inventory
	records   recordList

	// full are bursts of each bound that was reached, and logged is the count at the last look.
	full [bounds]struct {
		burst  logline.Burst
		logged int64
	}
}

// Matched is what the patterns of a task matched when it was asked last.
type Matched struct{ Classes, Methods int64 }

// New makes a process of which nothing is known.
func New(s Settings) *Process {
	return &Process{
		Settings: s, Begun: s.Now(), matched: map[*task.Task]Matched{},
		methods: newMethods(s.MaxMethods), recursion: newRecursion(s.RecursionCheck, s.MaxMethods+s.MaxCommands), inventory: newInventory(s.MaxInventory),
	}
}

// bytesOfProcess is the memory of a server of which nothing is known, estimated.
const bytesOfProcess = 64 << 10

// changed counts the changes, and accounts for the memory. Then it unlocks.
func (p *Process) changed() {
	defer p.mu.Unlock()
	if p.Memory != nil {
		// Where it is too much, the memory has the server disconnected.
		_ = p.Memory.Hold(bytesOfProcess + p.methods.bytes + p.recursion.bytes + p.inventory.bytes())
	}
	p.counts.Folded, p.counts.OtherMonitor = p.methods.folded, p.methods.otherMonitor
	p.counts.Repeated, p.counts.InventoryDropped = p.records.repeated, p.inventory.dropped
	p.Counters.Process(&p.counts, &p.reported)
	p.reported = p.counts
}

// Identified enters the sessions of a server that has identified itself.
func (p *Process) Identified(sessions int, hasSessions bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = p.Now()
	p.sessions, p.hasSessions = sessions, hasSessions
}

// Reconnected counts a connection after a lost one.
func (p *Process) Reconnected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reconnects++
}

// Received counts a reply.
func (p *Process) Received() {
	p.mu.Lock()
	defer p.changed()
	p.counts.Replies++
	p.heard = p.Now()
}

// Undecoded counts replies that could not be decoded, and gaps in sequence numbers.
func (p *Process) Undecoded(bad, missing uint64) {
	p.mu.Lock()
	defer p.changed()
	p.counts.Bad += int64(bad)
	p.counts.Missing += int64(missing)
}

// Unwanted counts a recorded call that no task asks for.
func (p *Process) Unwanted() {
	p.mu.Lock()
	defer p.changed()
	p.counts.Unwanted++
}

// NodesDropped counts calls beyond the limit of a call tree.
func (p *Process) NodesDropped(n int) {
	p.mu.Lock()
	defer p.changed()
	p.counts.NodesDropped += int64(n)
}

// Untimed counts replies that are left out, or lose their times, since the times may be false.
func (p *Process) Untimed(n counters.Untimed) {
	p.mu.Lock()
	defer p.changed()
	p.counts.Untimed.Rows += n.Rows
	p.counts.Untimed.Trees += n.Trees
	p.counts.Untimed.Records += n.Records
}

// Match enters what the patterns of a task match; Unmatch removes it.
func (p *Process) Match(t *task.Task, m Matched) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.matched[t] = m
}

func (p *Process) Unmatch(t *task.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.matched, t)
}

// Matched returns what the patterns of a task match, where that is known.
func (p *Process) Matched(t *task.Task) (m Matched, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, known = p.matched[t]
	return m, known
}

// Rows adds rows of a monitor. checked has the times of a method withheld until stacks have shown
// that they are true. A row whose times are left out loses them.
func (p *Process) Rows(t *task.Task, rows []greys.MethodStatistics, checked bool) {
	p.mu.Lock()
	defer p.changed()
	now := p.Now()
	for i := range rows {
		row := &rows[i]
		var n *nesting
		if checked && p.recursion.check > 0 {
			n = p.withhold(row)
		}
		p.methods.count(t, row, n, now)
	}
}

// withhold returns what is known of the times of a row's method. A row that has to lose its times
// loses them.
func (p *Process) withhold(row *greys.MethodStatistics) *nesting {
	hasRoom := p.methods.hasRoom(nameOf(row))
	key := KeyOf(row.Class, row.Method)
	n := p.recursion.find(key)
	if n == nil && hasRoom && p.recursion.hasRoom() {
		n = p.recursion.of(key)
	}
	switch {
	case n != nil && n.times == timesTrue:
	case n == nil || n.times == timesFalse || !hasRoom:
		row.HasMean, row.HasRange = false, false
		p.counts.Untimed.Rows++
	default:
		n.rows++
	}
	return n
}

// ReleaseMethods lets other monitors count the methods of one that has ended.
func (p *Process) ReleaseMethods(monitor int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.methods.release(monitor)
}

// Stack checks a stack of a call of one of some methods, for methods that call themselves. It
// reports whether the times of all of the methods are known to be true or false.
func (p *Process) Stack(of map[MethodKey]bool, frames []greys.Frame) (decided bool) {
	p.mu.Lock()
	defer p.changed()
	p.checkStack(of, frames)
	for key := range of {
		if !p.recursion.isDecided(key) {
			return false
		}
	}
	return true
}

func (p *Process) checkStack(of map[MethodKey]bool, frames []greys.Frame) {
	for _, key := range p.recursion.stack(of, frames) {
		p.counts.Untimed.Rows += p.recursion.find(key).rows
		p.Logger.Warn("A method calls itself, and the server reports its times too short: the receiver leaves out its times, call trees and recorded calls",
			zap.String("method", key.name.class+"."+key.name.method))
	}
}

// IsRecursive reports whether a method is known to call itself.
func (p *Process) IsRecursive(class, method string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recursion.isRecursive(KeyOf(class, method))
}

// NeedsStacks reports whether it is unknown if the times of a method are true.
func (p *Process) NeedsStacks(class, method string) bool {
	p.mu.Lock()
	defer p.changed()
	return p.recursion.of(KeyOf(class, method)).times == timesUnknown
}

// CheckDetail reports whether the cost of a recorded call may be true, by the stack of its detail.
// A false one is counted. Inner calls end first, and their stack shows that they are inner ones.
func (p *Process) CheckDetail(detail *greys.RecordDetail) bool {
	p.mu.Lock()
	defer p.changed()
	key := KeyOf(detail.Class, detail.Method)
	// Without room the other calls of the method can't be compared.
	if p.recursion.find(key) != nil || p.recursion.hasRoom() {
		p.checkStack(map[MethodKey]bool{key: true}, detail.Stack.Frames)
		if !p.recursion.isRecursive(key) {
			return true
		}
	}
	p.counts.Untimed.Records++
	return false
}

// IsNewRecord reports whether no earlier list had a recorded call.
func (p *Process) IsNewRecord(of *greys.Record) bool {
	p.mu.Lock()
	defer p.changed()
	return p.records.isNew(of)
}

// RecordsListed closes a list of recorded calls.
func (p *Process) RecordsListed(complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records.ended(complete)
}

// Class and Method enter a listed class or method, and return what has changed.
func (p *Process) Class(by List, c *greys.Class) Change {
	p.mu.Lock()
	defer p.changed()
	return p.inventory.class(by, c)
}

func (p *Process) Method(by List, m *greys.Method) Change {
	p.mu.Lock()
	defer p.changed()
	return p.inventory.method(by, m)
}

// Listed closes a complete list of classes or methods, and returns the names of those that are
// gone.
func (p *Process) Listed(by List) (gone []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.removeOthers(by)
}

// bounds is how many bounds LogBounds logs.
const bounds = 3

// LogBounds logs the bounds that were reached since the last call, each once for a burst. One
// goroutine may call it.
func (p *Process) LogBounds() {
	p.mu.Lock()
	now := p.counts
	now.Folded, now.InventoryDropped = p.methods.folded, p.inventory.dropped
	p.mu.Unlock()
	for i, b := range [bounds]struct {
		count int64
		text  string
		limit zap.Field
	}{
		{now.Folded, "More methods are counted than may have sums of their own: the others are counted together, as other", zap.String("setting", fmt.Sprintf("%s: %d methods for this server", p.MethodsSetting, p.MaxMethods))},
		{now.InventoryDropped, "More classes and methods are listed than the receiver may remember: the others are left out", zap.Int("limits.max_inventory", p.MaxInventory)},
		{now.NodesDropped, "A call tree has more calls than its limit: the rest is left out", zap.Int("limits.max_tree_nodes", p.MaxTreeNodes)},
	} {
		full := &p.full[i]
		more := b.count - full.logged
		full.logged = b.count
		if more <= 0 {
			continue
		}
		if _, say := full.burst.Say(p.Now()); say {
			p.Logger.Warn(b.text, b.limit, zap.Int64("left_out", more))
		}
	}
}

// State is a process as metrics report it, at one moment.
type State struct {
	Replies, Bad, Missing, Reconnects int64
	Sessions                          int
	HasSessions                       bool
	Matched                           []TaskMatched
	Methods                           []MethodState
	Heard                             time.Time
}

// TaskMatched is what the patterns of a task match.
type TaskMatched struct {
	Task *task.Task
	Matched
}

// State returns a copy of what metrics report, with methods.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.summary()
	s.Methods = p.methods.states(p.Now())
	for t, m := range p.matched {
		s.Matched = append(s.Matched, TaskMatched{t, m})
	}
	slices.SortFunc(s.Matched, func(a, b TaskMatched) int { return cmp.Compare(a.Task.Number, b.Task.Number) })
	return s
}

// Summary returns the same without methods and tasks.
func (p *Process) Summary() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.summary()
}

func (p *Process) summary() State {
	return State{
		Replies: p.counts.Replies, Bad: p.counts.Bad, Missing: p.counts.Missing, Reconnects: p.reconnects,
		Sessions: p.sessions, HasSessions: p.hasSessions, Heard: p.heard,
	}
}
