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

// newContexts returns the contexts of a class. Fields of kernel events have the numbers of the first namespace, so
// the contexts with these numbers come first there.
func newContexts(class *ctf.EventClass, isKernel bool) Contexts {
	c := Contexts{ThreadName: contextText(class, "procname")}
	if isKernel {
		c.PID, c.TID = contextNumber(class, "pid", "vpid"), contextNumber(class, "tid", "vtid")
		return c
	}
	c.PID, c.TID = contextNumber(class, "vpid", "pid"), contextNumber(class, "vtid", "tid")
	c.Namespace = contextNumber(class, "pid_ns")
	return c
}

// hasContext reports whether events of the class have one of the contexts.
func (c *Contexts) hasContext() bool {
	return c.PID.exists() || c.TID.exists() || c.Namespace.exists() || c.ThreadName.exists()
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
