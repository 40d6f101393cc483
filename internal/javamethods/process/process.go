// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package process has the state of one process of a server: sums of its methods (methods.go), methods with false times
// (recursion.go), listed classes and methods (inventory.go), and listed recorded calls (recordlist.go). All of it has
// limits, and counts as memory of the server. The package neither sends commands nor forwards results.
package process

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// Settings are the settings of a Process.
type Settings struct {
	// MaxMethods is the number of methods with sums of their own. MethodsSetting is the setting that limits it.
	MaxMethods     int
	MethodsSetting string
	MaxInventory   int
	MaxTreeNodes   int
	// RecursionCheck is the number of calls that prove the times of a method; 0 means no check.
	RecursionCheck int
	// MaxCommands limits the commands, including all parts of their patterns.
	MaxCommands int
	// Memory counts the memory of the state; nil means no counting.
	Memory   *servermemory.Memory
	Counters Counters
	Logger   *zap.Logger
	Now      func() time.Time
}

// Counts are the counts of one process of a server.
type Counts struct {
	// Replies were received. Bad ones could not be decoded, Missing ones are gaps in sequence
	// numbers.
	Replies, Bad, Missing int64
	// Folded are rows of methods beyond the limit. OtherMonitor are rows of methods that another
	// monitor counts.
	Folded, OtherMonitor int64
	// Unwanted are recorded calls of other clients that no task asks for.
	Unwanted int64
	Untimed  Untimed
	// Repeated are recorded calls that were in an earlier list.
	Repeated int64
	// NodesDropped are calls beyond the limit of a call tree. InventoryDropped are classes and methods beyond the limit
	// of the inventory.
	NodesDropped, InventoryDropped int64
}

// Untimed are replies with times that may be false. Rows are counted without them; call trees and recorded calls are
// dropped.
type Untimed struct{ Rows, Trees, Records int64 }

// Counters receives the counts of processes. Several goroutines use it.
type Counters interface {
	// Process counts the difference of two counts of a process.
	Process(now, before *Counts)
}

// Process is the state of one process. Several goroutines may use it.
type Process struct {
	Settings
	// Begun is the time of the first connection to the process.
	Begun time.Time

	mu       sync.Mutex
	counts   Counts
	reported Counts

	reconnects int64
	// lastReply is the time of the last reply.
	lastReply time.Time
	// sessions is the number of the server's sessions, valid if hasSessions.
	sessions    int
	hasSessions bool
	matched     map[*task.Task]Matched

	methods   methods
	recursion recursion
	inventory inventory
	records   recordList

	// full has a burst for each limit that can be reached; logged is the count at the last check.
	full [limits]struct {
		burst  logline.Burst
		logged int64
	}
}

// Matched are the counts of classes and methods that the last command of a task matched.
type Matched struct{ Classes, Methods int64 }

// New returns an empty state.
func New(s Settings) *Process {
	return &Process{
		Settings: s, Begun: s.Now(), matched: map[*task.Task]Matched{},
		methods: newMethods(s.MaxMethods), recursion: newRecursion(s.RecursionCheck, s.MaxMethods+s.MaxCommands), inventory: newInventory(s.MaxInventory),
	}
}

// bytesOfProcess is the estimated memory of an empty state.
const bytesOfProcess = 64 << 10

// changed reports new counts and the memory, and unlocks.
func (p *Process) changed() {
	defer p.mu.Unlock()
	if p.Memory != nil {
		// If it is too much, the memory disconnects the server.
		_ = p.Memory.Hold(bytesOfProcess + p.methods.bytes + p.recursion.bytes + p.inventory.bytes())
	}
	p.counts.Folded, p.counts.OtherMonitor = p.methods.folded, p.methods.otherMonitor
	p.counts.Repeated, p.counts.InventoryDropped = p.records.repeated, p.inventory.dropped
	p.Counters.Process(&p.counts, &p.reported)
	p.reported = p.counts
}

// Identified stores the sessions of a server that has identified itself.
func (p *Process) Identified(sessions int, hasSessions bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastReply = p.Now()
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
	p.lastReply = p.Now()
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

// Untimed counts replies that were dropped, or lost their times, because the times may be false.
func (p *Process) Untimed(n Untimed) {
	p.mu.Lock()
	defer p.changed()
	p.counts.Untimed.Rows += n.Rows
	p.counts.Untimed.Trees += n.Trees
	p.counts.Untimed.Records += n.Records
}

// Match stores the counts of classes and methods that a task's patterns match. Unmatch removes them.
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

// Matched returns the stored counts of a task's patterns, if there are any.
func (p *Process) Matched(t *task.Task) (m Matched, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, known = p.matched[t]
	return m, known
}

// Monitor identifies a monitor of a server.
type Monitor struct {
	// Number differs for all monitors of a server. Cycle is the length of a cycle.
	Number int
	Cycle  time.Duration
}

// Rows adds rows of a monitor. With checked, times of a method are withheld until stacks have shown that they are true.
// Times that are dropped are removed from the row.
func (p *Process) Rows(by Monitor, rows []javamethods.MethodStatistics, checked bool) {
	p.mu.Lock()
	defer p.changed()
	now := p.Now()
	for i := range rows {
		row := &rows[i]
		var n *nesting
		if checked && p.recursion.check > 0 {
			n = p.withhold(row)
		}
		p.methods.count(by, row, n, now)
	}
}

// withhold returns the nesting state of a row's method. It removes the times of a row that must not report them.
func (p *Process) withhold(row *javamethods.MethodStatistics) *nesting {
	hasRoom := p.methods.hasRoom(nameOf(row))
	key := KeyOf(row.Class, row.Method)
	n := p.recursion.find(key)
	if n == nil && hasRoom && p.recursion.hasRoom() {
		n = p.recursion.of(key)
	}
	switch {
	case n != nil && n.times == timesTrue:
	case n == nil || n.times == timesFalse || !hasRoom:
		row.DropTimes()
		p.counts.Untimed.Rows++
	default:
		n.rows++
	}
	return n
}

// ReleaseMethods lets other monitors count the methods of an ended monitor.
func (p *Process) ReleaseMethods(monitor int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.methods.release(monitor)
}

// Stack examines the stack of a call for methods that call themselves. It reports whether all of the methods are now
// decided: their times are known to be true or false.
func (p *Process) Stack(of map[MethodKey]bool, frames []javamethods.Frame) (decided bool) {
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

func (p *Process) checkStack(of map[MethodKey]bool, frames []javamethods.Frame) {
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

// NeedsStacks reports whether a method is still undecided.
func (p *Process) NeedsStacks(class, method string) bool {
	p.mu.Lock()
	defer p.changed()
	return p.recursion.of(KeyOf(class, method)).times == timesUnknown
}

// CheckDetail reports whether the cost of a recorded call may be true, by the stack of its detail. It counts a false
// one. Inner calls end first, and their stacks show that they are inner calls.
func (p *Process) CheckDetail(detail *javamethods.RecordDetail) bool {
	p.mu.Lock()
	defer p.changed()
	key := KeyOf(detail.Class, detail.Method)
	// Without room, the method's other calls cannot be compared.
	if p.recursion.find(key) != nil || p.recursion.hasRoom() {
		p.checkStack(map[MethodKey]bool{key: true}, detail.Stack.Frames)
		if !p.recursion.isRecursive(key) {
			return true
		}
	}
	p.counts.Untimed.Records++
	return false
}

// IsNewRecord reports whether a recorded call was in no earlier list.
func (p *Process) IsNewRecord(of *javamethods.Record) bool {
	p.mu.Lock()
	defer p.changed()
	return p.records.isNew(of)
}

// RecordsListed handles the end of a list of recorded calls.
func (p *Process) RecordsListed(complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records.ended(complete)
}

// Class and Method store a listed class or method, and return its change.
func (p *Process) Class(by List, c *javamethods.Class) Change {
	p.mu.Lock()
	defer p.changed()
	return p.inventory.class(by, c)
}

func (p *Process) Method(by List, m *javamethods.Method) Change {
	p.mu.Lock()
	defer p.changed()
	return p.inventory.method(by, m)
}

// Listed handles the end of a complete list of classes or methods, and returns the names of removed ones.
func (p *Process) Listed(by List) (gone []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.removeOthers(by)
}

// limits is the number of limits that LogLimits logs.
const limits = 3

// LogLimits logs the limits that were exceeded since the last call, each once for a burst. Only one goroutine may call
// it.
func (p *Process) LogLimits() {
	p.mu.Lock()
	now := p.counts
	now.Folded, now.InventoryDropped = p.methods.folded, p.inventory.dropped
	p.mu.Unlock()
	for i, b := range [limits]struct {
		count int64
		text  string
		limit zap.Field
	}{
		{now.Folded, "More methods are counted than the limit allows: the receiver counts the others together, as other", zap.String("setting", fmt.Sprintf("%s: %d methods for this server", p.MethodsSetting, p.MaxMethods))},
		{now.InventoryDropped, "More classes and methods are listed than the receiver may remember: it leaves out the others", zap.Int("limits.max_inventory", p.MaxInventory)},
		{now.NodesDropped, "A call tree has more calls than its limit: the rest is left out", zap.Int("limits.max_tree_nodes", p.MaxTreeNodes)},
	} {
		full := &p.full[i]
		more := b.count - full.logged
		full.logged = b.count
		if more <= 0 {
			continue
		}
		if _, due := full.burst.Count(p.Now()); due {
			p.Logger.Warn(b.text, b.limit, zap.Int64("left_out", more))
		}
	}
}

// State is a snapshot of a process in the form of metrics.
type State struct {
	Replies, Bad, Missing, Reconnects int64
	Sessions                          int
	HasSessions                       bool
	Matched                           []TaskMatched
	Methods                           []MethodState
	LastReply                         time.Time
}

// TaskMatched are the counts of classes and methods that a task's patterns match.
type TaskMatched struct {
	Task *task.Task
	Matched
}

// State returns a snapshot with methods and tasks.
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

// Summary returns a snapshot without methods and tasks.
func (p *Process) Summary() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.summary()
}

func (p *Process) summary() State {
	return State{
		Replies: p.counts.Replies, Bad: p.counts.Bad, Missing: p.counts.Missing, Reconnects: p.reconnects,
		Sessions: p.sessions, HasSessions: p.hasSessions, LastReply: p.lastReply,
	}
}
