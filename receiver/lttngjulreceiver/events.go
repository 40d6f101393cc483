// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"fmt"
	"net"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// sayRegistered says that the agent has registered.
func (a *agent) sayRegistered() {
	if since, say := a.env.lines.registered.Say(a.env.now()); say {
		a.env.logger.Info("An LTTng agent has registered", a.fields(zap.Int("since_last_line", since))...)
	}
}

// introduce begins the agent's log records, once: with whose they are, which takes time to
// find out and so comes when nobody waits for the agent, and with those that had to wait
// for it.
func (a *agent) introduce() {
	if a.origin != nil || a.env.logs == nil && len(a.env.agents) == 0 {
		return
	}
	a.origin = &origin{resource: a.env.resourceOf(a), domain: a.who.Domain.String()}
	attributes := []logAttribute{text(attributeProtocol, a.who.Dialect.String())}
	if tcp, ok := a.conversation.conn.RemoteAddr().(*net.TCPAddr); ok {
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
	} else if since, say := a.env.lines.gone.Say(a.env.now()); say {
		a.env.logger.Info("An LTTng agent has gone", a.fields(zap.String("cause", string(e.cause)), zap.Int("since_last_line", since))...)
	}
	a.log(a.env.now(), logEntry{event: eventGone, severity: severity, body: body, attributes: []logAttribute{text(attributeCause, string(e.cause))}})
}

// warnGone says that the connection of an agent was closed because of what it did.
func (a *agent) warnGone(e ending) {
	if since, say := a.env.lines.lost.Say(a.env.now()); say {
		a.env.logger.Warn("The connection of an LTTng agent is closed",
			a.fields(zap.String("cause", string(e.cause)), zap.Error(e.err), zap.Int("since_last_line", since))...)
	}
}

// endingTexts say how agents go.
var endingTexts = map[cause]string{
	causeClosed:   "it closed the connection",
	causeSilent:   "it did not answer in time",
	causeBadData:  "it sent what cannot be read",
	causeMemory:   "the names of its loggers have no room",
	causeShutdown: "the receiver left it",
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
	a.log(a.env.now(), logEntry{event: eventRefused, severity: plog.SeverityNumberWarn, body: body, attributes: attributes})
	if since, say := a.env.lines.refusedCommand.Say(a.env.now()); say {
		a.env.logger.Warn("An LTTng agent refused a command",
			a.fields(zap.String("command", command.Type().String()+subject), zap.String("answer", why), zap.Int("since_last_line", since))...)
	}
}

// subjectOf is what a command is about, as text and as an attribute; empty: nothing.
func subjectOf(command lttngagent.Command) (string, logAttribute) {
	logger := func(p lttngagent.Pattern) (string, logAttribute) {
		return p.String(), text(attributeLogger, p.String())
	}
	context := func(c lttngagent.Context) (string, logAttribute) {
		return c.String(), text(attributeContext, c.String())
	}
	switch c := command.(type) {
	case lttngagent.Enable:
		return logger(c.Logger)
	case lttngagent.Disable:
		return logger(c.Logger)
	case lttngagent.EnableContext:
		return context(c.Context)
	case lttngagent.DisableContext:
		return context(c.Context)
	default:
		return "", logAttribute{}
	}
}
