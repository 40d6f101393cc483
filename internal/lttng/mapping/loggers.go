// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import "strings"

// logFields are the names of the fields of an event that is a log record of a logging library. An
// empty name is a field that the library does not record.
type logFields struct {
	// runtime is the runtime of programs with that library.
	runtime                     string
	severityOf                  func(level int64) severity
	message, logger, level      string
	class, function, file, line string
	thread, threadName          string
}

// runtimeJava is the runtime of Java programs. Their loggers' texts are in Java's modified UTF-8, because LTTng's agents
// read them with JNI.
const runtimeJava = "java"

// EventJUL is the name of a log record of java.util.logging.
const EventJUL = "lttng_jul:event"

// loggers are the events of the logging libraries.
var loggers = map[string]logFields{
	EventJUL: {
		runtime: runtimeJava, severityOf: julSeverity, message: "msg", logger: "logger_name", level: "int_loglevel",
		class: "class_name", function: "method_name", thread: "int_threadid",
	},
	"lttng_log4j:event":  log4jFields(log4jSeverity),
	"lttng_log4j2:event": log4jFields(log4j2Severity),
	"lttng_python:event": {
		runtime: "python", severityOf: pythonSeverity, message: "msg", logger: "logger_name", level: "int_loglevel",
		function: "funcName", line: "lineno", thread: "thread", threadName: "threadName",
	},
}

func log4jFields(severityOf func(level int64) severity) logFields {
	return logFields{
		runtime: runtimeJava, severityOf: severityOf, message: "msg", logger: "logger_name", level: "int_loglevel",
		class: "class_name", function: "method_name", file: "filename", line: "line_number", threadName: "thread_name",
	}
}

// LTTng-UST's tracef() records a text, and tracelog() also the place in the code.
const (
	tracefEvent      = "lttng_ust_tracef:event"
	providerTracelog = "lttng_ust_tracelog"
)

// logFieldsOf returns the fields of the log record that events of a name are. It returns false if
// the events are no log records of a program.
func logFieldsOf(name string) (logFields, bool) {
	if fields, ok := loggers[name]; ok {
		return fields, true
	}
	if provider, _, _ := strings.Cut(name, ":"); name == tracefEvent || provider == providerTracelog {
		return logFields{message: "msg", function: "func", file: "file", line: "line"}, true
	}
	return logFields{}, false
}
