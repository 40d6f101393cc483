// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Plan determines how a reader handles the events of one class. It is made once for each class, so a reader looks up
// no names for events.
type Plan struct {
	// Name is the full name of the events, such as lttng_ust_tracef:event.
	Name string
	Contexts
	// Runtime is the runtime of the process, such as java. It is empty if the events do not contain it.
	Runtime string
	// State is the event's part in the state of its process.
	State StateEvent
	// Call determines whether the events are call events without a rule. If a call rule has the events, they are not.
	Call CallPlan
	// Rules are the ends of calls that call rules make of the events, in this order: exits, the last rule first, and
	// then entries, the first rule first.
	Rules []RulePart
	// Kernel is the change that the event shows in the kernel's threads. CPU is the CPU that recorded the event.
	Kernel KernelEvent
	CPU    Number
	// Record determines how the events become log records. It is nil if the reader makes none.
	Record *RecordPlan
}

// attributeCPU is the CPU that recorded the event, under the tracer's name.
const attributeCPU = "cpu_id"

// Records determines the log records of all classes.
type Records struct {
	// MaxBytes is the maximum size of a record. With 0, the reader makes no log records.
	MaxBytes int
	// EnumerationNumbers adds an attribute with the number of each enumeration, beside that with its label.
	EnumerationNumbers bool
	// Hexadecimal writes integers whose preferred base is 16 as text, such as 0x7f00.
	Hexadecimal bool
}

// NewPlan returns the plan for the events of a class. isKernel is set for a trace of the kernel.
func NewPlan(class *ctf.EventClass, rules Rules, isKernel bool, records Records) *Plan {
	p := &Plan{
		Name:     class.Name,
		Contexts: newContexts(class, isKernel),
		Runtime:  loggers[class.Name].runtime,
		State:    newStateEvent(class),
		Rules:    rules.Parts(class),
		CPU:      numberAt(class, metadata.PacketContext, attributeCPU),
	}
	if isKernel {
		p.Kernel = newKernelEvent(class)
	}
	if len(p.Rules) == 0 {
		p.Call = newCallPlan(class)
	}
	if records.MaxBytes > 0 {
		p.Record = newRecordPlan(class, &p.Contexts, isKernel, records)
	}
	return p
}

// UsesValues reports whether a reader uses values of the events. makesCalls is set if it makes calls.
func (p *Plan) UsesValues(makesCalls bool) bool {
	return p.Record != nil || p.State.Kind != StateNone || p.Kernel.Kind != KernelNone || p.hasContext() ||
		makesCalls && (p.Call.Source != CallNone || len(p.Rules) > 0)
}

// planBytes and columnBytes are the approximate sizes of a plan and of one of its attributes.
const (
	planBytes   = 1 << 10
	columnBytes = 300
	partBytes   = 600
)

// Size returns the approximate size of the plan in memory, in bytes.
func (p *Plan) Size() int {
	bytes := planBytes + partBytes*len(p.Rules)
	if p.Record != nil {
		bytes += columnBytes * (len(p.Record.columns) + len(p.Record.packetColumns))
	}
	return bytes
}
