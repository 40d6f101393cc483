// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// agent is an agent that has registered. It belongs to one goroutine, which owns its
// connection; others give it orders, and read what doesn't change, and loggers.
type agent struct {
	env          *environment
	conversation *conversation
	who          lttngagent.Agent
	// pid is that of its process, as the process itself sees it; 0: it wasn't told.
	pid        uint32
	registered time.Time
	orders     orders
	// loggers is how many it has, and heard when it answered last, in Unix nanoseconds.
	loggers, heard atomic.Int64

	// last is what came of the last command.
	last answer
	// announce shows the agent in the extensions, and unshow removes it; nil: it isn't shown.
	announce func(*agent) (withdraw func())
	unshow   func()
	// released says that the application was let go on.
	released bool
	// origin is whose its log records are; nil where the agent is not introduced yet, or no
	// pipeline takes them and nobody steers it. held are those that wait for it: what the agent refused of its
	// first commands.
	origin *origin
	held   []logEntry
	// process is what is known of its process once that was looked up.
	process  process
	lookedUp bool
	// undo are the commands that leave the agent as it was, the last first to be sent.
	undo      []lttngagent.Command
	inventory inventory
	pace      pace
}

func newAgent(env *environment, c *conversation, pid uint32, announce func(*agent) (withdraw func())) *agent {
	a := &agent{
		env: env, conversation: c, who: c.with, pid: pid, announce: announce, registered: env.Now(),
		pace: pace{first: env.firstPause, interval: env.config.ListInterval},
	}
	a.heard.Store(a.registered.UnixNano())
	return a
}

// tell has the agent told commands, as soon as those before are answered. It reports
// whether it will be, which it isn't once the receiver leaves it.
func (a *agent) tell(commands ...lttngagent.Command) bool {
	given := make([]order, len(commands))
	for i, command := range commands {
		given[i] = order{command: command}
	}
	return a.give(given...)
}

// give is tell for orders whose answers somebody waits for.
func (a *agent) give(given ...order) bool {
	taken := a.orders.give(given...)
	a.conversation.wake()
	return taken
}

// leave has the agent left as it was, which has to be over at the time latest.
func (a *agent) leave(latest time.Time) {
	a.orders.end()
	a.conversation.hurry(latest)
	a.conversation.wake()
}

// run talks with the agent until it has gone or is left.
func (a *agent) run() {
	a.sayRegistered()
	if a.who.Dialect == lttngagent.RFC {
		// Nobody waits for it.
		a.introduce()
		a.show()
	}
	e := a.endOf(a.work())
	a.hide()
	a.gone(e)
	if e.cause != causeShutdown && !e.forgets(a.who.Domain) {
		a.part(e)
	}
}

// endOf says how the agent went that work returned an error for. Where its memory was needed
// that is freed first.
func (a *agent) endOf(err error) ending {
	e := endingOf(err)
	if why := a.conversation.purse.why(); why != nil && e.cause != causeShutdown {
		e = ending{cause: causeMemory, err: why}
	}
	if e.cause == causeMemory {
		a.inventory = inventory{}
		_ = a.conversation.purse.settle(0) // giving back always succeeds
	}
	return e
}

// part takes back what the agent was told whose connection is about to be closed, or is.
// What it may not have read is told it when it comes back.
func (a *agent) part(e ending) {
	if len(a.undo) == 0 || e.reads() && a.conversation.takeBack(a.undo, a.env.config.CommandTimeout) {
		return
	}
	a.env.leftovers.keep(a.life(), a.undo)
}

// work carries out orders, in between asks for loggers, and waits when there is nothing
// to do. It returns nil when the agent was left as it was.
func (a *agent) work() error {
	for {
		next, over := a.orders.next()
		err := a.conversation.purse.why()
		switch {
		case err != nil:
		case over:
			return a.restore()
		case next.command != nil:
			err = a.carryOutOrder(next)
		case a.pace.isDue(time.Now()):
			err = a.list()
		default:
			err = a.conversation.wait(a.pace.due)
		}
		if err != nil {
			return err
		}
	}
}

// restore lets the application go on, if it still waits, and takes back what the agent
// was told.
func (a *agent) restore() error {
	if a.who.Dialect == lttngagent.V2 && !a.released {
		if err := a.registrationDone(); err != nil {
			return &abandonedError{left: len(a.undo), err: err}
		}
	}
	a.takeLeftovers()
	for n := len(a.undo); n > 0; n = len(a.undo) {
		if err := a.carryOut(a.undo[n-1]); err != nil {
			return &abandonedError{left: n, err: err}
		}
		a.undo = a.undo[:n-1] // what the agent refuses is not tried again
	}
	return nil
}

// carryOut tells the agent a command and sees what becomes of it. The error is that of
// a connection that can be used no more.
func (a *agent) carryOut(command lttngagent.Command) error {
	switch command.(type) {
	case lttngagent.List:
		return a.list()
	case lttngagent.RegistrationDone:
		err := a.registrationDone()
		// Nobody waits for the agent any more.
		a.introduce()
		// It cannot be found out any more once the agent has closed its connection.
		a.lookUp(a.env.Serving.Done())
		a.show()
		return err
	}
	code, err := a.conversation.order(command, a.env.config.CommandTimeout)
	if failed := a.outcome(command, code, err); failed != nil {
		if undo := undoOf(command); undo != nil && a.conversation.told {
			// It may have been done.
			a.undo = append(a.undo, undo)
		}
		return failed
	}
	a.note(command, err == nil && code == lttngagent.Success)
	a.pace.changed()
	return nil
}

// registrationDone lets the application go on.
func (a *agent) registrationDone() error {
	command := lttngagent.RegistrationDone{}
	a.released = true
	return a.outcome(command, lttngagent.Success, a.conversation.tell(command, a.env.config.CommandTimeout))
}

// list asks for the agent's loggers.
func (a *agent) list() error {
	reply, err := a.conversation.list(a.env.config.Limits.ofList(), a.env.config.CommandTimeout)
	var large *lttngagent.TooLargeError
	if errors.As(err, &large) {
		return a.keepUnlisted(large)
	}
	if err = a.outcome(lttngagent.List{}, reply.Code, err); err != nil {
		return err
	}
	return a.take(reply)
}

// keepUnlisted goes on with an agent that has more loggers than are listed. It is not
// closed: it would come back in seconds, as large as before. What was listed last stays.
func (a *agent) keepUnlisted(large *lttngagent.TooLargeError) error {
	a.env.counts.command(a.who.Domain, lttngagent.CommandList, resultTooLarge)
	a.env.telemetry.command(lttngagent.CommandList, resultTooLarge)
	a.last = answer{result: resultTooLarge, err: large}
	a.env.LogSeldom(&a.env.lines.unlisted, a.env.Logger.Warn, "The loggers of an LTTng agent are not listed: they exceed limits.max_loggers or limits.max_list_bytes",
		a.fields(zap.Error(large))...)
	a.pace.listed(time.Now(), false)
	return a.conversation.purse.settle(a.inventory.bytes)
}

// take takes the loggers of a list.
func (a *agent) take(reply lttngagent.ListReply) error {
	var appeared, disappeared []string
	if reply.Code == lttngagent.Success {
		appeared, disappeared = a.inventory.replace(reply.Loggers)
	}
	if err := a.conversation.purse.settle(a.inventory.bytes); err != nil {
		return err
	}
	a.loggers.Store(int64(len(a.inventory.names)))
	if len(appeared)+len(disappeared) > 0 {
		a.sayLoggers(appeared, disappeared)
	}
	a.pace.listed(time.Now(), len(appeared)+len(disappeared) > 0)
	return nil
}

// outcome counts what became of a command, and says it where the agent refused. The error
// is that of a connection that can be used no more.
func (a *agent) outcome(command lttngagent.Command, code lttngagent.Code, err error) error {
	result := resultOf(code)
	var unsupported *lttngagent.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		result = resultUnsupported
	case err != nil:
		result = resultNoAnswer
	}
	a.env.counts.command(a.who.Domain, command.Type(), result)
	a.env.telemetry.command(command.Type(), result)
	a.last = answer{result: result, code: code, err: err}
	if result != resultNoAnswer {
		a.heard.Store(a.env.Now().UnixNano())
	}
	switch result {
	case resultSuccess:
		return nil
	case resultNoAnswer:
		return err
	case resultUnsupported:
		a.sayRefused(command, result, err.Error(), code)
	default:
		a.sayRefused(command, result, code.String(), code)
	}
	return nil
}

// note remembers what takes back a command that succeeded, or that it was taken back.
func (a *agent) note(command lttngagent.Command, succeeded bool) {
	if !succeeded {
		return
	}
	if undo := undoOf(command); undo != nil {
		a.undo = append(a.undo, undo)
		return
	}
	for i := len(a.undo) - 1; i >= 0; i-- {
		if a.undo[i] == command {
			a.undo = slices.Delete(a.undo, i, i+1)
			return
		}
	}
}

// undoOf is what takes back a command; nil: nothing has to.
func undoOf(command lttngagent.Command) lttngagent.Command {
	switch c := command.(type) {
	case lttngagent.Enable:
		return lttngagent.Disable{Logger: c.Logger}
	case lttngagent.EnableContext:
		return lttngagent.DisableContext(c)
	default:
		return nil
	}
}

// sayRegistered says that the agent has registered.
func (a *agent) sayRegistered() {
	a.env.LogSeldom(&a.env.lines.registered, a.env.Logger.Info, "An LTTng agent has registered", a.fields()...)
}

// introduce begins the agent's log records, once: with whose they are, which takes time to
// find out and so comes when nobody waits for the agent, and with those that had to wait
// for it.
func (a *agent) introduce() {
	if a.origin != nil || a.env.logs == nil && len(a.env.Agents) == 0 {
		return
	}
	peer := a.conversation.conn.RemoteAddr()
	p := a.lookUp(a.env.Serving.Done()) // a shutdown has no time for it
	a.origin = &origin{resource: resourceOf(a.env.config, a.who.Domain, a.pid, p, peer), domain: a.who.Domain.String()}
	attributes := []logAttribute{text(attributeProtocol, a.who.Dialect.String())}
	if tcp, ok := peer.(*net.TCPAddr); ok {
		attributes = append(attributes, text(attributePeerAddress, tcp.IP.String()), number(attributePeerPort, int64(tcp.Port)))
	}
	a.log(a.registered, logEntry{event: eventRegistered, severity: plog.SeverityNumberInfo, body: "Agent registered", attributes: attributes})
	for _, entry := range a.held {
		a.log(entry.time, entry)
	}
	a.held = nil
}

// fields are what a line in the log says of the agent.
func (a *agent) fields(more ...zap.Field) []zap.Field {
	return append(more, zap.Stringer("domain", a.who.Domain), zap.Uint32("pid", a.pid), zap.Stringer("peer", a.conversation.conn.RemoteAddr()))
}

// gone says that the agent is no longer registered.
func (a *agent) gone(e ending) {
	a.introduce()
	a.env.telemetry.agentGone(e.cause)
	if e.cause == causeBadData {
		where := badReply
		if errors.As(e.err, new(unaskedError)) {
			where = badUnasked
		}
		a.env.telemetry.badData(where)
	}
	severity, body := plog.SeverityNumberInfo, "Agent gone: "+endingTexts[e.cause]
	if !e.isOrdinary() {
		severity = plog.SeverityNumberWarn
		body += ": " + e.err.Error()
		a.warnGone(e)
	} else {
		a.env.LogSeldom(&a.env.lines.gone, a.env.Logger.Info, "An LTTng agent has disconnected", a.fields(zap.String("cause", string(e.cause)))...)
	}
	a.log(a.env.Now(), logEntry{event: eventGone, severity: severity, body: body, attributes: []logAttribute{text(attributeCause, string(e.cause))}})
}

// warnGone says that the connection of an agent was closed because of what it did.
func (a *agent) warnGone(e ending) {
	a.env.LogSeldom(&a.env.lines.lost, a.env.Logger.Warn, "The receiver closed the connection of an LTTng agent",
		a.fields(zap.String("cause", string(e.cause)), zap.Error(e.err))...)
}

// sayLoggers says which loggers are new and which are gone.
func (a *agent) sayLoggers(appeared, disappeared []string) {
	a.logLoggers(eventDisappeared, disappeared)
	a.logLoggers(eventAppeared, appeared)
}

// sayRefused says that the agent refused a command, or cannot be told it: there is no
// code then.
func (a *agent) sayRefused(command lttngagent.Command, r result, why string, code lttngagent.Code) {
	attributes := []logAttribute{
		text(attributeCommand, commandAttribute(command.Type()).String()), text(attributeResult, r.attribute().String()),
	}
	if r != resultUnsupported {
		attributes = append(attributes, number(attributeCode, int64(code)))
	}
	subject, attribute := subjectOf(command)
	if subject != "" {
		attributes = append(attributes, attribute)
		subject = " " + subject
	}
	body := fmt.Sprintf("Agent refused: %s%s: %s", command.Type(), subject, why)
	a.log(a.env.Now(), logEntry{event: eventRefused, severity: plog.SeverityNumberWarn, body: body, attributes: attributes})
	a.env.LogSeldom(&a.env.lines.refusedCommand, a.env.Logger.Warn, "An LTTng agent refused a command",
		a.fields(zap.String("command", command.Type().String()+subject), zap.String("answer", why))...)
}

// log hands on an entry of an agent, if a pipeline takes any, or keeps it until the agent
// is introduced.
func (a *agent) log(at time.Time, entry logEntry) {
	entry.origin, entry.time = a.origin, at
	switch {
	case a.env.logs == nil, a.env.eventsOff[entry.event]:
	case a.origin == nil:
		a.held = append(a.held, entry)
	default:
		a.env.logs.Add(entry)
	}
}

// logLoggers hands on what happened to loggers.
func (a *agent) logLoggers(event string, names []string) {
	now := a.env.Now()
	for some := range slices.Chunk(names, maxLoggersOfEntry) {
		a.log(now, logEntry{event: event, severity: plog.SeverityNumberInfo, loggers: ofTheirOwn(some)})
	}
}

// lookUp finds out in which process the agent is, once, unless it is given up before.
func (a *agent) lookUp(givenUp <-chan struct{}) process {
	if !a.lookedUp && a.pid != 0 {
		a.process, a.lookedUp = a.env.lookups.processOf(a.conversation, a.pid, givenUp)
	}
	return a.process
}

// life says whose the agent is. It has to be found out while the connection is open, and
// before the time of a shutdown is over.
func (a *agent) life() life {
	return life{domain: a.who.Domain, pid: a.pid, started: a.lookUp(a.env.Delivering.Done()).started}
}

// takeLeftovers has the agent told what the command was not sent before.
func (a *agent) takeLeftovers() {
	if a.env.leftovers.has(a.who.Domain, a.pid) {
		a.undo = append(a.env.leftovers.take(a.life()), a.undo...)
	}
}

// show shows the agent to whoever steers it, which is done once: when nobody waits for it
// any more.
func (a *agent) show() {
	if len(a.env.Agents) == 0 || a.origin == nil {
		return
	}
	a.unshow = a.announce(a)
}

// hide ends what show began, and answers all orders that will not be carried out.
func (a *agent) hide() {
	a.orders.end()
	if a.unshow != nil {
		a.unshow()
	}
}

// carryOutOrder tells the agent what it is ordered, and says what came of it.
func (a *agent) carryOutOrder(o order) error {
	a.last = answer{}
	err := a.carryOut(o.command)
	done := a.last
	if err != nil && done.err == nil {
		done.result, done.err = resultNoAnswer, err
	}
	if _, isList := o.command.(lttngagent.List); isList && done.result == resultSuccess && o.answered != nil {
		// The inventory puts others in their place.
		done.loggers = slices.Clone(a.inventory.names)
	}
	o.done(done)
	return err
}
