// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

// Attributes of the semantic conventions, and those that all tracers share.
const (
	attributeFunction         = "code.function.name"
	attributeFile             = "code.file.path"
	attributeLine             = "code.line.number"
	attributeStacktrace       = "code.stacktrace"
	attributeThreadName       = "thread.name"
	attributeThreadID         = "thread.id"
	attributeErrorType        = "error.type"
	attributeExceptionType    = "exception.type"
	attributeExceptionMessage = "exception.message"
	attributeExceptionStack   = "exception.stacktrace"

	attributeClass = "java.class"
	// Several calls in one span, with times in nanoseconds.
	attributeRepeatedCalls = "callbraid.repeated.calls"
	attributeRepeatedLeast = "callbraid.repeated.least"
	attributeRepeatedMost  = "callbraid.repeated.greatest"
	attributeRepeatedTotal = "callbraid.repeated.total"
	// attributeDuplicate marks a call that a call tree also has. flame_graph counts it only once.
	attributeDuplicate = "callbraid.duplicate"

	eventException = "exception"
)

// eventNames are the names of log records of one tracer.
type eventNames struct {
	connected, restarted, gone, stack, watch, record, class, method, classGone, methodGone, unmatched, timedOut, unsupported, refused string
}

// attributeNames are the names of attributes of one tracer.
type attributeNames struct {
	// Of tasks and problems.
	command, pattern, err string
	// Of listed classes and methods.
	change, modifier, annotations                         string
	codeSource, kinds, super, interfaces, loaders, fields string
	parameters, returns, exceptions                       string
	// Of calls of a tree.
	estimated, foreignTrace string
	// Of recorded calls.
	recordIndex, recordProcess, recordObject, recordSimple string
	// Of values at calls, and of recorded calls that are log records.
	duration, watchPoint, callIndex, callObject, callParameters, callReturn string
	// Of servers.
	lifetime, version, protocol string
}

// newNames returns the names in the namespace of a tracer.
func newNames(tracer string) (eventNames, attributeNames) {
	n := tracer + "."
	return eventNames{
			connected:   n + "server.connected",
			restarted:   n + "server.restarted",
			gone:        n + "server.gone",
			stack:       n + "stack",
			watch:       n + "watch",
			record:      n + "record",
			class:       n + "class",
			method:      n + "method",
			classGone:   n + "class.gone",
			methodGone:  n + "method.gone",
			unmatched:   n + "pattern.unmatched",
			timedOut:    n + "session.timed_out",
			unsupported: n + "command.unsupported",
			refused:     n + "command.refused",
		}, attributeNames{
			command:        n + "command",
			pattern:        n + "pattern",
			change:         n + "change",
			modifier:       n + "modifier",
			annotations:    n + "annotations",
			codeSource:     n + "class.code_source",
			kinds:          n + "class.kinds",
			super:          n + "class.super",
			interfaces:     n + "class.interfaces",
			loaders:        n + "class.loaders",
			fields:         n + "class.fields",
			parameters:     n + "method.parameters",
			returns:        n + "method.return",
			exceptions:     n + "method.exceptions",
			err:            n + "error.message",
			lifetime:       n + "server.connected_for",
			estimated:      n + "time.estimated",
			foreignTrace:   n + "trace_id",
			recordIndex:    n + "tt.index",
			recordProcess:  n + "tt.process_id",
			recordObject:   n + "tt.object",
			recordSimple:   n + "tt.class.is_simple",
			duration:       n + "duration",
			watchPoint:     n + "watch.point",
			callIndex:      n + "record.index",
			callObject:     n + "record.object",
			callParameters: n + "record.parameters",
			callReturn:     n + "record.return",
			version:        n + "server.version",
			protocol:       n + "server.protocol",
		}
}
