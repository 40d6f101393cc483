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

// agent is an agent that has registered. One goroutine owns it and its connection. Other
// goroutines queue orders and read the fields that don't change, loggers and answeredAt.
type agent struct {
	env          *environment
	conversation *conversation
	identity     lttngagent.Agent
	// pid is the process ID as the process itself sees it; 0: the protocol doesn't send it.
	pid        uint32
	registered time.Time
	orders     orders
	// loggers is the number of loggers, and answeredAt the time of the last answer in Unix
	// nanoseconds.
	loggers, answeredAt atomic.Int64

	// lastAnswer is the answer to the last command.
	lastAnswer answer
	// announce shows the agent in the extensions, and withdraw removes it; nil: it isn't
	// shown.
	announce func(*agent) (withdraw func())
	withdraw func()
	// released says that the agent has let its application continue.
	released bool
	// origin is the source of the agent's log records. It is nil before createOrigin, and
	// if neither a pipeline nor an extension needs it. waitingEntries are entries that were
	// made before it.
	origin         *origin
	waitingEntries []logEntry
	// process describes the agent's process, once findProcess has found it.
	process  process
	lookedUp bool
	// undo are the commands that restore the agent. The last one is sent first.
	undo      []lttngagent.Command
	inventory inventory
	pace      listPace
}

func newAgent(env *environment, c *conversation, pid uint32, announce func(*agent) (withdraw func())) *agent {
	a := &agent{
		env: env, conversation: c, identity: c.agent, pid: pid, announce: announce, registered: env.Now(),
		pace: listPace{first: env.firstPause, interval: env.config.ListInterval},
	}
	a.answeredAt.Store(a.registered.UnixNano())
	return a
}

// sendSoon queues commands for the agent. It returns false if the receiver is disconnecting
// from it.
func (a *agent) sendSoon(commands ...lttngagent.Command) bool {
	given := make([]order, len(commands))
	for i, command := range commands {
		given[i] = order{command: command}
	}
	return a.queue(given...)
}

// queue queues orders for the agent. It returns false if the receiver is disconnecting from
// it.
func (a *agent) queue(given ...order) bool {
	taken := a.orders.queue(given...)
	a.conversation.wake()
	return taken
}

// restoreUntil makes the agent's goroutine restore the agent until the time latest.
func (a *agent) restoreUntil(latest time.Time) {
	a.orders.close()
	a.conversation.finishBy(latest)
	a.conversation.wake()
}

// serve serves the agent until it disconnects or is restored.
func (a *agent) serve() {
	a.logRegistered()
	if a.identity.Dialect == lttngagent.RFC {
		// No application waits for it.
		a.createOrigin()
		a.register()
	}
	e := a.endingFor(a.carryOutOrders())
	a.unregister()
	a.recordGone(e)
	if e.cause != causeShutdown && !e.forgetsCommands(a.identity.Domain) {
		a.undoLater(e)
	}
}

// endingFor returns how the session ended for which carryOutOrders returned an error. If
// memory was short, it first frees the agent's.
func (a *agent) endingFor(err error) ending {
	e := endingOf(err)
	if why := a.conversation.charge.closeReason(); why != nil && e.cause != causeShutdown {
		e = ending{cause: causeMemory, err: why}
	}
	if e.cause == causeMemory {
		a.inventory = inventory{}
		_ = a.conversation.charge.holdExactly(0) // giving back always succeeds
	}
	return e
}

// undoLater sends the undo commands on a connection that is about to close. Commands that
// the agent may not have read wait until it connects again.
func (a *agent) undoLater(e ending) {
	if len(a.undo) == 0 || e.canReadCommands() && a.conversation.sendUndo(a.undo, a.env.config.CommandTimeout) {
		return
	}
	a.env.pendingUndo.put(a.life(), a.undo)
}

// carryOutOrders sends the queued orders, lists loggers in between, and waits. It returns
// nil once it has restored the agent.
func (a *agent) carryOutOrders() error {
	for {
		next, over := a.orders.next()
		err := a.conversation.charge.closeReason()
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

// restore lets the application continue, if it still waits, and sends the undo commands.
func (a *agent) restore() error {
	if a.identity.Dialect == lttngagent.V2 && !a.released {
		if err := a.registrationDone(); err != nil {
			return &abandonedError{left: len(a.undo), err: err}
		}
	}
	a.addPendingUndo()
	for n := len(a.undo); n > 0; n = len(a.undo) {
		if err := a.carryOut(a.undo[n-1]); err != nil {
			return &abandonedError{left: n, err: err}
		}
		a.undo = a.undo[:n-1] // a refused command is not sent again
	}
	return nil
}

// carryOut sends a command and handles the answer. It returns an error if the connection
// can't be used any more.
func (a *agent) carryOut(command lttngagent.Command) error {
	switch command.(type) {
	case lttngagent.List:
		return a.list()
	case lttngagent.RegistrationDone:
		err := a.registrationDone()
		// The application no longer waits.
		a.createOrigin()
		// This is impossible once the agent has closed its connection.
		a.findProcess(a.env.Serving.Done())
		a.register()
		return err
	}
	code, err := a.conversation.ask(command, a.env.config.CommandTimeout)
	if failed := a.countResult(command, code, err); failed != nil {
		if undo := undoOf(command); undo != nil && a.conversation.sent {
			// It may have been done.
			a.undo = append(a.undo, undo)
		}
		return failed
	}
	a.noteUndo(command, err == nil && code == lttngagent.Success)
	a.pace.changed()
	return nil
}

// registrationDone lets the application continue.
func (a *agent) registrationDone() error {
	command := lttngagent.RegistrationDone{}
	a.released = true
	return a.countResult(command, lttngagent.Success, a.conversation.send(command, a.env.config.CommandTimeout))
}

// list asks for the agent's loggers.
func (a *agent) list() error {
	reply, err := a.conversation.list(a.env.config.Limits.ofList(), a.env.config.CommandTimeout)
	var large *lttngagent.TooLargeError
	if errors.As(err, &large) {
		return a.keepLastList(large)
	}
	if err = a.countResult(lttngagent.List{}, reply.Code, err); err != nil {
		return err
	}
	return a.useList(reply)
}

// keepLastList continues with an agent that has more loggers than the limits allow, and
// keeps the last list. The receiver doesn't close the connection: the agent would connect
// again in seconds.
func (a *agent) keepLastList(large *lttngagent.TooLargeError) error {
	a.env.counts.command(a.identity.Domain, lttngagent.CommandList, resultTooLarge)
	a.env.telemetry.command(lttngagent.CommandList, resultTooLarge)
	a.lastAnswer = answer{result: resultTooLarge, err: large}
	a.env.LogSeldom(&a.env.lines.unlisted, a.env.Logger.Warn, "The loggers of an LTTng agent are not listed: they exceed limits.max_loggers or limits.max_list_bytes",
		a.fields(zap.Error(large))...)
	a.pace.listed(time.Now(), false)
	return a.conversation.charge.holdExactly(a.inventory.bytes)
}

// useList replaces the inventory with the loggers of a reply.
func (a *agent) useList(reply lttngagent.ListReply) error {
	var appeared, disappeared []string
	if reply.Code == lttngagent.Success {
		appeared, disappeared = a.inventory.replace(reply.Loggers)
	}
	if err := a.conversation.charge.holdExactly(a.inventory.bytes); err != nil {
		return err
	}
	a.loggers.Store(int64(len(a.inventory.names)))
	if len(appeared)+len(disappeared) > 0 {
		a.recordLoggers(appeared, disappeared)
	}
	a.pace.listed(time.Now(), len(appeared)+len(disappeared) > 0)
	return nil
}

// countResult counts the result of a command, and records a refusal. It returns an error if
// the connection can't be used any more.
func (a *agent) countResult(command lttngagent.Command, code lttngagent.Code, err error) error {
	result := resultOf(code)
	var unsupported *lttngagent.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		result = resultUnsupported
	case err != nil:
		result = resultNoAnswer
	}
	a.env.counts.command(a.identity.Domain, command.Type(), result)
	a.env.telemetry.command(command.Type(), result)
	a.lastAnswer = answer{result: result, code: code, err: err}
	if result != resultNoAnswer {
		a.answeredAt.Store(a.env.Now().UnixNano())
	}
	switch result {
	case resultSuccess:
		return nil
	case resultNoAnswer:
		return err
	case resultUnsupported:
		a.recordRefusal(command, result, err.Error(), code)
	default:
		a.recordRefusal(command, result, code.String(), code)
	}
	return nil
}

// noteUndo adds the undo command of a command that succeeded, or removes the undo command
// that it was.
func (a *agent) noteUndo(command lttngagent.Command, succeeded bool) {
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

// undoOf returns the command that undoes a command; nil: nothing has to be undone.
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

// logRegistered logs that the agent has registered.
func (a *agent) logRegistered() {
	a.env.LogSeldom(&a.env.lines.registered, a.env.Logger.Info, "An LTTng agent has registered", a.fields()...)
}

// createOrigin creates the origin of the agent's log records, once, and records the entries
// that waited for it. It takes time, so the receiver calls it when no application waits for
// the agent.
func (a *agent) createOrigin() {
	if a.origin != nil || a.env.logs == nil && len(a.env.Agents) == 0 {
		return
	}
	peer := a.conversation.conn.RemoteAddr()
	p := a.findProcess(a.env.Serving.Done()) // a shutdown has no time for it
	a.origin = &origin{resource: resourceOf(a.env.config, a.identity.Domain, a.pid, p, peer), domain: a.identity.Domain.String()}
	attributes := []logAttribute{text(attributeProtocol, a.identity.Dialect.String())}
	if tcp, ok := peer.(*net.TCPAddr); ok {
		attributes = append(attributes, text(attributePeerAddress, tcp.IP.String()), number(attributePeerPort, int64(tcp.Port)))
	}
	a.record(a.registered, logEntry{event: eventRegistered, severity: plog.SeverityNumberInfo, body: "Agent registered", attributes: attributes})
	for _, entry := range a.waitingEntries {
		a.record(entry.time, entry)
	}
	a.waitingEntries = nil
}

// fields appends the fields that identify the agent in log lines.
func (a *agent) fields(more ...zap.Field) []zap.Field {
	return append(more, zap.Stringer("domain", a.identity.Domain), zap.Uint32("pid", a.pid), zap.Stringer("peer", a.conversation.conn.RemoteAddr()))
}

// recordGone counts, logs and records the end of the session.
func (a *agent) recordGone(e ending) {
	a.createOrigin()
	a.env.telemetry.agentGone(e.cause)
	if e.cause == causeBadData {
		where := badReply
		if errors.As(e.err, new(unexpectedDataError)) {
			where = badUnasked
		}
		a.env.telemetry.badData(where)
	}
	severity, body := plog.SeverityNumberInfo, "Agent gone: "+endingTexts[e.cause]
	if !e.isOrdinary() {
		severity = plog.SeverityNumberWarn
		body += ": " + e.err.Error()
		a.logClosed(e)
	} else {
		a.env.LogSeldom(&a.env.lines.gone, a.env.Logger.Info, "An LTTng agent has disconnected", a.fields(zap.String("cause", string(e.cause)))...)
	}
	a.record(a.env.Now(), logEntry{event: eventGone, severity: severity, body: body, attributes: []logAttribute{text(attributeCause, string(e.cause))}})
}

// logClosed logs that the receiver closed the connection because of an error.
func (a *agent) logClosed(e ending) {
	a.env.LogSeldom(&a.env.lines.lost, a.env.Logger.Warn, "The receiver closed the connection of an LTTng agent",
		a.fields(zap.String("cause", string(e.cause)), zap.Error(e.err))...)
}

// recordLoggers records the loggers that appeared and disappeared.
func (a *agent) recordLoggers(appeared, disappeared []string) {
	a.recordNames(eventDisappeared, disappeared)
	a.recordNames(eventAppeared, appeared)
}

// recordRefusal records and logs a command that the agent refused, or doesn't support:
// there is no code then.
func (a *agent) recordRefusal(command lttngagent.Command, r result, why string, code lttngagent.Code) {
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
	a.record(a.env.Now(), logEntry{event: eventRefused, severity: plog.SeverityNumberWarn, body: body, attributes: attributes})
	a.env.LogSeldom(&a.env.lines.refusedCommand, a.env.Logger.Warn, "An LTTng agent refused a command",
		a.fields(zap.String("command", command.Type().String()+subject), zap.String("answer", why))...)
}

// record delivers an entry if a pipeline takes it. Entries wait until there is an origin.
func (a *agent) record(at time.Time, entry logEntry) {
	entry.origin, entry.time = a.origin, at
	switch {
	case a.env.logs == nil, a.env.eventsOff[entry.event]:
	case a.origin == nil:
		a.waitingEntries = append(a.waitingEntries, entry)
	default:
		a.env.logs.Deliver(entry)
	}
}

// recordNames delivers an event of each of some loggers.
func (a *agent) recordNames(event string, names []string) {
	now := a.env.Now()
	for some := range slices.Chunk(names, maxLoggersOfEntry) {
		a.record(now, logEntry{event: event, severity: plog.SeverityNumberInfo, loggers: copyNames(some)})
	}
}

// findProcess finds the agent's process, once, unless the search is given up before.
func (a *agent) findProcess(givenUp <-chan struct{}) process {
	if !a.lookedUp && a.pid != 0 {
		a.process, a.lookedUp = a.env.lookups.processOf(a.conversation, a.pid, givenUp)
	}
	return a.process
}

// life identifies the agent's process. It works only as long as the connection is open and
// the time of the shutdown isn't over.
func (a *agent) life() life {
	return life{domain: a.identity.Domain, pid: a.pid, started: a.findProcess(a.env.Delivering.Done()).started}
}

// addPendingUndo adds the undo commands of the agent's earlier connection.
func (a *agent) addPendingUndo() {
	if a.env.pendingUndo.has(a.identity.Domain, a.pid) {
		a.undo = append(a.env.pendingUndo.remove(a.life()), a.undo...)
	}
}

// register shows the agent in the extensions, once. The receiver calls it when no
// application waits for the agent.
func (a *agent) register() {
	if len(a.env.Agents) == 0 || a.origin == nil {
		return
	}
	a.withdraw = a.announce(a)
}

// unregister removes the agent from the extensions, and answers all orders that remain.
func (a *agent) unregister() {
	a.orders.close()
	if a.withdraw != nil {
		a.withdraw()
	}
}

// carryOutOrder carries out an order and answers it.
func (a *agent) carryOutOrder(o order) error {
	a.lastAnswer = answer{}
	err := a.carryOut(o.command)
	done := a.lastAnswer
	if err != nil && done.err == nil {
		done.result, done.err = resultNoAnswer, err
	}
	if _, isList := o.command.(lttngagent.List); isList && done.result == resultSuccess && o.answered != nil {
		// The inventory puts others in their place.
		done.loggers = slices.Clone(a.inventory.names)
	}
	o.answer(done)
	return err
}
