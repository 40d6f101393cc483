// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"strings"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

// The names of the events that log records report.
const (
	eventRegistered  = "lttng.agent.registered"
	eventGone        = "lttng.agent.gone"
	eventRefused     = "lttng.agent.refused"
	eventAppeared    = "lttng.logger.appeared"
	eventDisappeared = "lttng.logger.disappeared"
)

// Attributes of log records, beside the conventions' own.
const (
	attributeDomain      = "lttng.agent.domain"
	attributeProtocol    = "lttng.agent.protocol"
	attributeCause       = "lttng.agent.end.cause"
	attributeCommand     = "lttng.agent.command"
	attributeResult      = "lttng.agent.result"
	attributeCode        = "lttng.agent.code"
	attributeLogger      = "lttng.logger.name"
	attributeContext     = "lttng.context.name"
	attributePeerAddress = "network.peer.address"
	attributePeerPort    = "network.peer.port"
)

// origin is the source of log records: an agent.
type origin struct {
	resource pcommon.Resource
	domain   string
	// waiting is the part of the queue that records of its loggers use. It belongs to shares.
	waiting amount
}

// logEntry is a log record on its way to the pipeline, or one for each of some loggers.
type logEntry struct {
	*origin
	event      string
	severity   plog.SeverityNumber
	time       time.Time
	body       string
	attributes []logAttribute
	// loggers are the names of loggers that appeared or disappeared.
	loggers []string
}

type logAttribute struct {
	key   string
	text  string
	int   int64
	isInt bool
}

func text(key, value string) logAttribute { return logAttribute{key: key, text: value} }

func number(key string, value int64) logAttribute {
	return logAttribute{key: key, int: value, isInt: true}
}

const (
	// maxLoggersOfEntry bounds the loggers of one entry, and so the size of one delivery.
	maxLoggersOfEntry = 1000
	// bytesOfLoggerRecord is the approximate memory of a logger's record in the queue, without its name.
	bytesOfLoggerRecord = 16
)

// size returns the number of records of an entry, and its approximate memory.
func (l *logEntry) size() (records, bytes int) {
	bytes = int(unsafe.Sizeof(*l)) + len(l.body)
	for i := range l.attributes {
		bytes += int(unsafe.Sizeof(l.attributes[i])) + len(l.attributes[i].text)
	}
	for _, name := range l.loggers {
		bytes += bytesOfLoggerRecord + len(name)
	}
	return max(1, len(l.loggers)), bytes
}

// logsOf returns the log records of entries. Adjacent entries of one agent share a
// resource.
func logsOf(entries []logEntry, kit *receiverkit.Kit) plog.Logs {
	logs := plog.NewLogs()
	var records plog.LogRecordSlice
	var of *origin
	for i := range entries {
		l := &entries[i]
		if l.origin != of {
			of = l.origin
			records = kit.AppendLogs(logs, of.resource)
		}
		l.appendTo(records)
	}
	return logs
}

// loggerBody is the end of the body of a logger's record, by event.
var loggerBody = map[string]string{eventAppeared: " appeared", eventDisappeared: " disappeared"}

// appendTo appends the record, or one record for each logger.
func (l *logEntry) appendTo(records plog.LogRecordSlice) {
	if len(l.loggers) == 0 {
		l.write(records.AppendEmpty(), l.body)
		return
	}
	for _, name := range l.loggers {
		r := records.AppendEmpty()
		l.write(r, "Logger "+name+loggerBody[l.event])
		r.Attributes().PutStr(attributeLogger, name)
	}
}

func (l *logEntry) write(r plog.LogRecord, body string) {
	r.SetEventName(l.event)
	r.SetTimestamp(pcommon.NewTimestampFromTime(l.time))
	r.SetObservedTimestamp(pcommon.NewTimestampFromTime(l.time))
	r.SetSeverityNumber(l.severity)
	r.SetSeverityText(l.severity.String())
	r.Body().SetStr(body)
	attributes := r.Attributes()
	attributes.EnsureCapacity(len(l.attributes) + 2)
	attributes.PutStr(attributeDomain, l.domain)
	for _, a := range l.attributes {
		if a.isInt {
			attributes.PutInt(a.key, a.int)
		} else {
			attributes.PutStr(a.key, a.text)
		}
	}
}

// amount is a part of the queue of log records.
type amount struct{ records, bytes int }

// hasRoom reports whether there is room for more beside used. An empty queue has room for an entry of any size.
func (most amount) hasRoom(used, more amount) bool {
	return used == amount{} || used.records+more.records <= most.records && used.bytes+more.bytes <= most.bytes
}

// change adds an amount so many times.
func (a *amount) change(more amount, times int) {
	a.records += times * more.records
	a.bytes += times * more.bytes
}

// subjectOf returns the logger or context of a command, as text and as an attribute; empty:
// it has none.
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

// copyNames copies names. A substring would keep a whole list in memory.
func copyNames(names []string) []string {
	bytes := 0
	for _, name := range names {
		bytes += len(name)
	}
	// strings.Join would not copy a single name.
	var all strings.Builder
	all.Grow(bytes)
	for _, name := range names {
		all.WriteString(name)
	}
	rest := all.String()
	copies := make([]string, len(names))
	for i, name := range names {
		copies[i], rest = rest[:len(name)], rest[len(name):]
	}
	return copies
}
