// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// plan is what is to be done with the events of a class, worked out once: nothing is
// looked up by name for an event.
type plan struct {
	name string
	// Whose event it is.
	vpid, vtid, namespace number
	procname              text
	// runtime is what the process runs on, where the event says so.
	runtime string

	// notice is what the event says of the process itself.
	notice notice
	// call says whether the event is a call event.
	call callPlan
	// record is how it becomes a log record; nil where no pipeline takes those.
	record *recordPlan
}

// newPlan works out what to do with events of a class. Log records of them have so many
// bytes at most; 0: none are made.
func newPlan(class *ctf.EventClass, rules map[string]rulePart, recordBytes int) *plan {
	p := &plan{
		name:      class.Name,
		vpid:      contextNumber(class, "vpid", "pid"),
		vtid:      contextNumber(class, "vtid", "tid"),
		namespace: contextNumber(class, "pid_ns"),
		procname:  contextText(class, "procname"),
		runtime:   loggers[class.Name].runtime,
		notice:    newNotice(class),
		call:      newCallPlan(class, rules),
	}
	if recordBytes > 0 {
		p.record = newRecordPlan(class, p, recordBytes)
	}
	return p
}

// contexts are the scopes that contexts stand in.
var contexts = [...]metadata.Scope{metadata.EventCommonContext, metadata.EventContext}

// contextNumber is the first of these contexts that is recorded.
func contextNumber(class *ctf.EventClass, names ...string) number {
	for _, name := range names {
		for _, scope := range contexts {
			if n := numberAt(class, scope, name); n.there() {
				return n
			}
		}
	}
	return number{}
}

func contextText(class *ctf.EventClass, name string) text {
	for _, scope := range contexts {
		if t := textAt(class, scope, name); t.there() {
			return t
		}
	}
	return text{}
}

// provider and event are the two parts of a tracepoint's name.
func splitName(name string) (provider, event string) {
	provider, event, _ = strings.Cut(name, ":")
	return provider, event
}

// lengths are the names of fields that only say how long others are, or which option
// of a variant is there: the value itself says it.
func lengths(root *ctf.Field) map[string]bool {
	names := map[string]bool{}
	for _, m := range root.Members {
		var path []string
		switch t := m.Type.(type) {
		case *metadata.Array:
			path = refPath(t.LengthRef)
		case *metadata.Bytes:
			path = refPath(t.LengthRef)
		case *metadata.Variant:
			path = refPath(&t.Selector)
		case *metadata.Optional:
			path = refPath(&t.Selector)
		}
		if len(path) > 0 {
			names[strings.TrimPrefix(path[len(path)-1], "_")] = true
		}
	}
	return names
}

func refPath(ref *metadata.Ref) []string {
	if ref == nil {
		return nil
	}
	return ref.Path
}
