// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

// agent reports one session: as log records, counters and log lines, and to the extensions. It belongs to the session's
// goroutine.
type agent struct {
	*session.Session
	env *environment
	// origin is the source of the agent's log records. It is nil before createOrigin, and if neither a pipeline nor an
	// extension needs it. waitingEntries are entries that were made before it.
	origin         *origin
	waitingEntries []logEntry
	// withdraw removes the agent from the extensions; nil: they do not show it.
	withdraw func()
}

var _ session.Observer = (*agent)(nil)

// serve serves a registered agent until the end of its session.
func (a *agent) serve() {
	a.env.LogSeldom(&a.env.lines.registered, a.env.Logger.Info, "An LTTng agent has registered", a.fields()...)
	a.Serve(a)
}

// Released creates the origin of log records and shows the agent in the extensions. Both take time, so no application
// may wait.
func (a *agent) Released() {
	a.createOrigin()
	if len(a.env.Agents) > 0 && a.origin != nil {
		a.withdraw = announce(a)
	}
}

// CommandDone counts the result of a command, and records a refusal.
func (a *agent) CommandDone(command lttngagent.Command, answer session.Answer) {
	a.env.counts.command(a.Agent().Domain, command.Type(), answer.Result)
	a.env.telemetry.command(command.Type(), answer.Result)
	switch answer.Result {
	case session.Success, session.NoAnswer:
	case session.TooLarge:
		a.env.LogSeldom(&a.env.lines.unlisted, a.env.Logger.Warn, "The loggers of an LTTng agent are not listed: they exceed limits.max_loggers or limits.max_list_bytes",
			a.fields(zap.Error(answer.Err))...)
	case session.Unsupported:
		a.recordRefusal(command, answer, answer.Err.Error())
	default:
		a.recordRefusal(command, answer, answer.Code.String())
	}
}

// LoggersChanged records the loggers that appeared and disappeared.
func (a *agent) LoggersChanged(appeared, disappeared []string) {
	a.recordLoggers(eventDisappeared, disappeared)
	a.recordLoggers(eventAppeared, appeared)
}

// Ended removes the agent from the extensions, and counts, logs and records the end of the session.
func (a *agent) Ended(e session.Ending) {
	if a.withdraw != nil {
		a.withdraw()
	}
	a.createOrigin()
	a.env.telemetry.agentGone(e.Cause)
	if e.Cause == session.BadData {
		where := badReply
		if errors.As(e.Err, new(session.UnexpectedDataError)) {
			where = badUnasked
		}
		a.env.telemetry.badData(where)
	}
	severity, body := plog.SeverityNumberInfo, "Agent gone: "+endingTexts[e.Cause]
	if e.IsOrdinary() {
		a.env.LogSeldom(&a.env.lines.gone, a.env.Logger.Info, "An LTTng agent has disconnected", a.fields(zap.String("cause", string(e.Cause)))...)
	} else {
		severity = plog.SeverityNumberWarn
		body += ": " + e.Err.Error()
		a.env.LogSeldom(&a.env.lines.lost, a.env.Logger.Warn, "The receiver closed the connection of an LTTng agent",
			a.fields(zap.String("cause", string(e.Cause)), zap.Error(e.Err))...)
	}
	a.record(a.env.Now(), logEntry{event: eventGone, severity: severity, body: body, attributes: []logAttribute{text(attributeCause, string(e.Cause))}})
}

// createOrigin creates the origin of the agent's log records, once, and records the entries that waited for it.
func (a *agent) createOrigin() {
	if a.origin != nil || a.env.logs == nil && len(a.env.Agents) == 0 {
		return
	}
	domain, peer := a.Agent().Domain, a.Peer()
	p := a.Process(a.env.Serving.Done()) // a shutdown has no time for it
	a.origin = &origin{resource: resourceOf(a.env.config, domain, a.PID(), p, peer), domain: domain.String()}
	attributes := []logAttribute{text(attributeProtocol, a.Agent().Dialect.String())}
	if tcp, ok := peer.(*net.TCPAddr); ok {
		attributes = append(attributes, text(attributePeerAddress, tcp.IP.String()), number(attributePeerPort, int64(tcp.Port)))
	}
	a.record(a.Registered(), logEntry{event: eventRegistered, severity: plog.SeverityNumberInfo, body: "Agent registered", attributes: attributes})
	for _, entry := range a.waitingEntries {
		a.record(entry.time, entry)
	}
	a.waitingEntries = nil
}

// fields appends the fields that identify the agent in log lines.
func (a *agent) fields(more ...zap.Field) []zap.Field {
	return append(more, zap.Stringer("domain", a.Agent().Domain), zap.Uint32("pid", a.PID()), zap.Stringer("peer", a.Peer()))
}

// recordRefusal records and logs a command that the agent refused or does not support.
func (a *agent) recordRefusal(command lttngagent.Command, answer session.Answer, why string) {
	attributes := []logAttribute{
		text(attributeCommand, commandAttribute(command.Type()).String()), text(attributeResult, resultAttribute(answer.Result).String()),
	}
	if answer.Result != session.Unsupported {
		attributes = append(attributes, number(attributeCode, int64(answer.Code)))
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

// recordLoggers records an event of each of some loggers.
func (a *agent) recordLoggers(event string, names []string) {
	now := a.env.Now()
	for some := range slices.Chunk(names, maxLoggersOfEntry) {
		a.record(now, logEntry{event: event, severity: plog.SeverityNumberInfo, loggers: copyNames(some)})
	}
}

// record delivers an entry if a pipeline accepts it. Entries wait until there is an origin.
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

// endingTexts are the texts of causes in log records.
var endingTexts = map[session.Cause]string{
	session.Closed:   "it closed the connection",
	session.Silent:   "it did not answer in time",
	session.BadData:  "it sent data that cannot be read",
	session.Memory:   "the names of its loggers need too much memory",
	session.Shutdown: "the receiver shuts down",
}
