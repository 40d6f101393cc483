// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package life knows which process of a server sends messages: the lives of one Rbkit server.
//
// A life begins when the server identifies itself as another process than before. Without an
// identity, a number or a statistic that falls, or another dialect, begins a life. Messages wait
// while the receiver asks for the identity. The package knows no connection.
package life

import (
	"errors"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// Settings are the settings of the lives of one server.
type Settings struct {
	Kit      *receiverkit.Kit
	Logger   *zap.Logger
	Counters *counters.Counters
	Health   *serverhealth.Part
	Memory   *servermemory.Memory
	Origin   origin.Settings
	Process  *process.Settings
	Output   Output
	// Requests is nil if the server has no address for requests.
	Requests Requests
	// MaxMessageBytes bounds the messages that wait for an identity.
	MaxMessageBytes int
	// Unmeasured returns the keys of statistics that have no metric; nil: no line is logged for
	// them.
	Unmeasured func(process.Stats) []string
}

// Output receives the events of lives.
type Output interface {
	Connected(*origin.Origin)
	Restarted(*origin.Origin)
	// Ended receives the last state of a process, unless a collection of metrics has had it.
	Ended(process.State)
}

// Requests is the connection for requests to the server.
type Requests interface {
	// RequestCorrection asks for the identity and the state of the server soon.
	RequestCorrection()
	// Identified notes the identity after a new connection; other says that it is another life.
	Identified(other bool)
	// ConnectedToOther notes that the connection has been to another life since its begin.
	ConnectedToOther()
}

// Lives are the lives of one server, one after the other. It is for several goroutines.
type Lives struct {
	Settings

	mu sync.Mutex
	// bad is a burst of malformed messages. connects, restarts and dialects limit log lines of
	// frequent events.
	bad                          logline.Burst
	connects, restarts, dialects logline.Seldom
	// peer is the other side of the last connection, and dialect the dialect of the last message.
	peer    net.Addr
	dialect rbkit.Dialect
	// process is the life that sent the last data, nil: none yet. identity is its identity,
	// and connectedAs the identity at the begin of the last connection.
	process               *process.Process
	identity, connectedAs origin.Identity
	// lastReply is the last reply of the process; nil: it has sent none. lastHeard is the time of
	// the last message or reply.
	lastReply *rbkit.HandshakeReply
	lastHeard time.Time
	// first is when the process was seen first, in Unix milliseconds. No two lives have the same.
	first int64
	// connected says that the process is reachable. uncollected says that no collection of metrics
	// has had its state since it was reachable. A process that connects again before a collection
	// hasn't ended.
	connected, uncollected bool
	// identification is open while the receiver doesn't know the sender of messages.
	identification identification
	// limited are the limits that were reached.
	limited [len(process.Limits)]bool
	// unmeasuredLogged says that the statistics without a metric were logged.
	unmeasuredLogged bool
}

// New returns the lives of a server that is not connected.
func New(s Settings) *Lives { return &Lives{Settings: s} }

// Connect begins a connection. Messages wait from now on, until Identified.
func (l *Lives) Connect(peer net.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peer = peer
	l.identification.begin(false)
}

// Disconnect delivers all data at the end of a connection, and returns the origin of the process,
// which may connect again.
func (l *Lives) Disconnect() *origin.Origin {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deliverAll()
	l.connected = false
	return l.process.Origin
}

// Begin begins a life, and ends the previous one.
func (l *Lives) Begin(who origin.Identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin(who)
}

// End delivers all data of the process, and its last metrics.
func (l *Lives) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// begin is Begin. The lock is held.
func (l *Lives) begin(who origin.Identity) {
	restarted := l.process != nil
	if restarted {
		l.end()
		l.Counters.Restarted()
	}
	l.newProcess(who)
	if restarted {
		l.Kit.LogSeldom(&l.restarts, l.Logger.Warn, "The server was restarted", fieldsOf(who.State)...)
		l.Output.Restarted(l.process.Origin)
	}
}

// fieldsOf returns the log fields of a server's reply.
func fieldsOf(hello *rbkit.HandshakeReply) []zap.Field {
	if hello == nil {
		return nil
	}
	return []zap.Field{
		zap.String("process", names.ValidString(hello.ProcessName)), zap.Uint64("pid", hello.PID),
		zap.String("version", names.ValidString(hello.ServerVersion)), zap.Stringer("dialect", hello.Dialect),
	}
}

// newProcess makes a process of which nothing is known. The lock is held.
func (l *Lives) newProcess(who origin.Identity) {
	now := l.Kit.Now()
	l.first = max(l.first+1, now.UnixMilli())
	l.identity, l.lastReply = who, who.State
	l.process = process.New(l.Process, origin.New(&l.Origin, who, now, l.first), l.holdMemory)
	if who.State != nil {
		l.lastHeard = now
		l.process.SetServerState(who.State)
	}
}

// nameProcess gives the process its name, if the server hadn't identified itself before. The lock is
// held.
func (l *Lives) nameProcess(hello *rbkit.HandshakeReply) {
	if l.identity.State != nil || l.identification.open {
		return
	}
	l.identity = origin.Identity{State: hello, Local: origin.FindLocal(l.peer, hello)}
	if l.connectedAs.State == nil {
		l.connectedAs = l.identity
	}
	l.process.SetOrigin(origin.New(&l.Origin, l.identity, l.process.Origin.Begun, l.first))
}

// end is End. The lock is held.
func (l *Lives) end() {
	l.deliverAll()
	if l.uncollected {
		l.Output.Ended(l.endedState())
	}
}

// deliverAll delivers all data of the process except metrics. The lock is held.
func (l *Lives) deliverAll() {
	l.process.Deliver()
	l.reportProcess()
}

// endedState returns the last state of a process that has ended. The lock is held.
func (l *Lives) endedState() process.State {
	last := l.process.State()
	last.Ended = true
	return last
}

// Free ends the life of the process and begins another life of it, of which nothing is known. It
// returns how many waiting messages it dropped.
func (l *Lives) Free() (dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.process != nil {
		l.end()
		l.newProcess(l.identity)
	}
	dropped = l.identification.drop()
	l.Memory.Renew()
	return dropped
}

// bytesOfServer is the approximate memory of a server without its process.
const bytesOfServer = 64 << 10

// holdMemory counts the memory of the server without the buffers of its connections. The lock is
// held.
func (l *Lives) holdMemory() error {
	bytes := bytesOfServer + l.identification.size
	if l.process != nil {
		bytes += l.process.Memory()
	}
	return l.Memory.Hold(bytes)
}

// Receive handles a message, or holds it until its sender is known.
func (l *Lives) Receive(m zmtp.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(m) != 1 {
		l.reportBad(counters.BadParts, errors.New("expected a message of one part"), zap.Int("parts", len(m)))
		return
	}
	now := l.Kit.Now()
	l.lastHeard = now
	defer func() { _ = l.holdMemory() }() // the session disconnects a server with too much memory
	for l.identification.open || !l.handleMessage(m[0], now) {
		if l.identification.hold(m[0], now, l.MaxMessageBytes) {
			return
		}
		// There is no memory to wait for the identity.
		l.identified(origin.Identity{})
	}
}

// handleMessage handles a message that arrived at a time. ok is false if it belongs to an unknown
// life of the server; the receiver then asks for the identity. The lock is held.
func (l *Lives) handleMessage(message []byte, at time.Time) (ok bool) {
	var r rbkit.Reader
	dialect, err := rbkit.DialectOf(message)
	if err == nil {
		if err = r.Open(dialect, message); err == nil {
			l.noteDialect(dialect)
		} else {
			dialect = 0 // a message that can't be opened has no dialect
		}
		if !l.process.Follows(dialect, r.Header()) {
			if l.Requests != nil {
				l.identification.begin(true)
				l.Requests.RequestCorrection()
				return false
			}
			l.begin(origin.Identity{})
		}
	}
	// A message that can't be opened counts as a message without events.
	if wrong := l.readEvents(&r, dialect, len(message), at); err == nil {
		err = wrong
	}
	l.reportRead(err, len(message))
	return true
}

// reportRead counts and logs the error with which a message of so many bytes ended, if any.
func (l *Lives) reportRead(err error, bytes int) {
	switch {
	case err == nil:
		l.bad.Over()
	case errors.Is(err, process.ErrShutdown):
		l.Logger.Warn("shutdown_timeout is over: the rest of a message is dropped", zap.Int("bytes", bytes))
	case errors.As(err, new(*budget.Error)): // the session disconnects the server
	default:
		what := ""
		if bad := (*rbkit.ProtocolError)(nil); errors.As(err, &bad) {
			what = bad.Problem.String()
		}
		l.reportBad(what, err, zap.Int("bytes", bytes))
	}
}

func (l *Lives) reportBad(what string, err error, fields ...zap.Field) {
	l.Counters.BadMessage(what)
	l.Kit.LogSeldom(&l.bad, l.Logger.Warn, "A message of the server is malformed: only the events before the error count",
		append(fields, zap.Error(err))...)
}

// noteDialect logs a change of the dialect. The lock is held.
func (l *Lives) noteDialect(dialect rbkit.Dialect) {
	if l.dialect != dialect {
		l.dialect = dialect
		l.Kit.LogSeldom(&l.dialects, l.Logger.Info, "Detected the dialect of the server", zap.Stringer("dialect", dialect))
	}
}

// readEvents makes the process read the events of a message of so many bytes. The lock is
// held.
func (l *Lives) readEvents(r *rbkit.Reader, dialect rbkit.Dialect, bytes int, at time.Time) error {
	l.process.BeginMessage(dialect, bytes, at)
	over, err := l.process.ReadEvents(r)
	if over {
		err = l.restartWithin(r, at)
	}
	l.process.DeliverDue(at)
	l.reportProcess()
	return err
}

// restartWithin begins another life of the server at an event within a message, and reads the rest
// of the message. That life has existed since the begin of the connection, and identified itself
// then. The lock is held.
func (l *Lives) restartWithin(r *rbkit.Reader, at time.Time) error {
	l.begin(l.connectedAs)
	if l.Requests != nil {
		l.Requests.ConnectedToOther()
	}
	return l.process.ReadFrom(r, at)
}

// DeliverDue delivers data that is old enough.
func (l *Lives) DeliverDue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.process.DeliverDue(l.Kit.Now())
	l.reportProcess()
}

// Unidentified returns the number and the peer of an open identification; ok is false if there is
// none.
func (l *Lives) Unidentified() (number int, peer net.Addr, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.identification.number, l.peer, l.identification.open
}

// Identified ends the identification with a number, if it is still open. The identity may be
// unknown.
func (l *Lives) Identified(number int, who origin.Identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.identification.open && l.identification.number == number {
		l.identified(who)
	}
}

// identified ends the identification. It handles the held messages up to a message of yet another
// life. The lock is held.
func (l *Lives) identified(who origin.Identity) {
	other := l.process == nil || l.identification.restarted || l.identity.IsOther(who)
	if other {
		l.begin(who)
	} else if who.State != nil {
		l.identity = who
		l.process.SetServerState(who.State)
	}
	l.connectedAs = who
	if who.State != nil {
		l.lastReply = who.State
	}
	if l.Requests != nil {
		l.Requests.Identified(other)
	}
	l.reportHealth()
	if !l.connected {
		l.connected, l.uncollected = true, true
		l.Kit.LogSeldom(&l.connects, l.Logger.Info, "Connected to the server", fieldsOf(who.State)...)
		l.Output.Connected(l.process.Origin)
	}
	held := l.identification.end()
	for i, m := range held {
		if !l.handleMessage(m.data, m.at) {
			l.identification.holdAll(held[i:])
			return
		}
	}
}

var errNoAnswer = errors.New("the server publishes messages, but doesn't answer at the address of request")

// reportHealth reports whether the server answered, if it has an address for requests. The
// lock is held.
func (l *Lives) reportHealth() {
	if l.Requests != nil && l.lastReply == nil {
		l.Health.Failed(errNoAnswer)
		return
	}
	l.Health.Up()
}

// SetReply notes a reply of the server.
func (l *Lives) SetReply(reply rbkit.HandshakeReply) {
	h := &reply
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastReply, l.lastHeard = h, l.Kit.Now()
	if l.process != nil {
		l.nameProcess(h)
		if l.connected {
			l.Health.Up()
		}
		l.process.SetServerState(h)
	}
}

// reportProcess adds the totals of the process to the receiver's own counters, and logs each limit
// that the server reached, once. The lock is held.
func (l *Lives) reportProcess() {
	l.process.CountTotals(l.Counters)
	for i := range process.Limits {
		if l.limited[i] || process.Limits[i].Reached(l.process) == 0 {
			continue
		}
		l.limited[i] = true
		l.Logger.Warn("The server has reached a limit",
			zap.String("setting", "limits."+process.Limits[i].Setting), zap.String("then", process.Limits[i].Then))
	}
	if stats, arrived := l.process.NewStats(); arrived {
		l.logUnmeasured(stats)
	}
}

// maxLoggedKeys is how many keys of statistics a log line has.
const maxLoggedKeys = 16

// logUnmeasured logs, once for a server, the statistics that have no metric. The lock is held.
func (l *Lives) logUnmeasured(of process.Stats) {
	if l.unmeasuredLogged || l.Unmeasured == nil {
		return
	}
	keys := l.Unmeasured(of)
	if len(keys) == 0 {
		return
	}
	l.unmeasuredLogged = true
	l.Logger.Info("The server sends statistics that have no metric. To receive them under their keys, set metrics.ruby.gc.stat.enabled to true",
		zap.Int("count", len(keys)), zap.Strings("keys", keys[:min(len(keys), maxLoggedKeys)]))
}

// CollectState returns the state of the process for a collection of metrics: the current state, or
// the last state once more.
func (l *Lives) CollectState() (process.State, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.connected:
		return l.process.State(), true
	case l.uncollected:
		l.uncollected = false
		return l.endedState(), true
	default:
		return process.State{}, false
	}
}

// Status is what the receiver knows of a server now.
type Status struct {
	// Connected says that the process is reachable.
	Connected bool
	// Heard is the time of the last message or reply; zero: there was none.
	Heard time.Time
	// Reply is the last reply of the process; nil: it has sent none.
	Reply *rbkit.HandshakeReply
	// Process is the last process; nil: none was identified.
	Process *ProcessStatus
	// Waiting is how many messages wait for an identity.
	Waiting int
}

// ProcessStatus is what the receiver knows of the last process.
type ProcessStatus struct {
	Origin  *origin.Origin
	Traffic process.Traffic
}

// Status returns the status of the server.
func (l *Lives) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{Connected: l.connected, Heard: l.lastHeard, Reply: l.lastReply, Waiting: len(l.identification.held)}
	if l.process != nil {
		s.Process = &ProcessStatus{Origin: l.process.Origin, Traffic: l.process.Traffic}
	}
	return s
}

// ProcessState returns the state of the last process, whether it is connected or not. ok is false if
// there was none.
func (l *Lives) ProcessState() (state process.State, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.process == nil {
		return process.State{}, false
	}
	return l.process.State(), true
}
