// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Contexts are the fields with the process and the thread of an event.
type Contexts struct {
	PID, TID, Namespace Number
	// ThreadName is the kernel's name of the thread (LTTng's context procname).
	ThreadName Text
}

func newContexts(class *ctf.EventClass) Contexts {
	return Contexts{
		PID:        contextNumber(class, "vpid", "pid"),
		TID:        contextNumber(class, "vtid", "tid"),
		Namespace:  contextNumber(class, "pid_ns"),
		ThreadName: contextText(class, "procname"),
	}
}

// contextScopes are the scopes in which tracers record contexts.
var contextScopes = [...]metadata.Scope{metadata.EventCommonContext, metadata.EventContext}

// contextNumber returns the first of these contexts that the class records.
func contextNumber(class *ctf.EventClass, names ...string) Number {
	for _, name := range names {
		for _, scope := range contextScopes {
			if n := numberAt(class, scope, name); n.exists() {
				return n
			}
		}
	}
	return Number{}
}

func contextText(class *ctf.EventClass, name string) Text {
	for _, scope := range contextScopes {
		if t := textAt(class, scope, name); t.exists() {
			return t
		}
	}
	return Text{}
}
