// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// StateKind is the part that an event of the tracer itself has in the state of its process.
type StateKind uint8

const (
	StateNone StateKind = iota
	// StateBegin begins a state dump, a list of the objects of the process.
	StateBegin
	// StateEnd ends the state dump.
	StateEnd
	// StateName has the name of the process.
	StateName
	// StateLoad: the process loaded an object.
	StateLoad
	// StateBuildID and StateDebugLink describe an object that was loaded before.
	StateBuildID
	StateDebugLink
	// StateUnload: the process unloaded an object.
	StateUnload
)

// StateEvent is the part of a process's state in events of a class.
type StateEvent struct {
	Kind StateKind
	// base, size and path belong to an object.
	base, size Number
	path       Text
	// hasBuildID is a number: whether an event with a build ID follows.
	hasBuildID Number
	buildID    *ctf.Field
	debugLink  Text
	debugCRC   Number
	name       Text
}

// The providers of LTTng-UST that record objects: in a state dump, when a program calls dlopen, and
// when the dynamic linker loads dependencies.
const (
	providerStatedump = "lttng_ust_statedump"
	providerDl        = "lttng_ust_dl"
	providerLib       = "lttng_ust_lib"

	// StateDumpPrefix begins the names of the events of a state dump.
	StateDumpPrefix = providerStatedump + ":"
)

var stateKinds = map[string]StateKind{
	providerStatedump + ":start":      StateBegin,
	providerStatedump + ":end":        StateEnd,
	providerStatedump + ":procname":   StateName,
	providerStatedump + ":bin_info":   StateLoad,
	providerStatedump + ":build_id":   StateBuildID,
	providerStatedump + ":debug_link": StateDebugLink,
	providerDl + ":dlopen":            StateLoad,
	providerDl + ":dlmopen":           StateLoad,
	providerDl + ":build_id":          StateBuildID,
	providerDl + ":debug_link":        StateDebugLink,
	providerDl + ":dlclose":           StateUnload,
	providerLib + ":load":             StateLoad,
	providerLib + ":build_id":         StateBuildID,
	providerLib + ":debug_link":       StateDebugLink,
	providerLib + ":unload":           StateUnload,
}

// newStateEvent returns the state event of a class. A class that lacks the fields of its kind is
// StateNone.
func newStateEvent(class *ctf.EventClass) StateEvent {
	e := StateEvent{
		Kind:       stateKinds[class.Name],
		base:       numberAt(class, metadata.EventFields, "baddr"),
		size:       numberAt(class, metadata.EventFields, "memsz"),
		path:       textAt(class, metadata.EventFields, "path"),
		hasBuildID: numberAt(class, metadata.EventFields, "has_build_id"),
		debugLink:  textAt(class, metadata.EventFields, "filename"),
		debugCRC:   numberAt(class, metadata.EventFields, "crc"),
		name:       textAt(class, metadata.EventFields, "procname"),
	}
	if f := class.Field(metadata.EventFields, "build_id"); f != nil && f.Kind == ctf.Bytes {
		e.buildID = f
	}
	if !e.isComplete() {
		e.Kind = StateNone
	}
	return e
}

// isComplete reports whether the class has the fields of its kind.
func (e *StateEvent) isComplete() bool {
	switch e.Kind {
	case StateLoad:
		return e.base.exists() && e.size.exists() && e.path.exists()
	case StateBuildID:
		return e.base.exists() && e.buildID != nil
	case StateDebugLink:
		return e.base.exists() && e.debugLink.exists()
	case StateUnload:
		return e.base.exists()
	case StateName:
		return e.name.exists()
	default:
		return true
	}
}

// ProcessName returns the name of the process in a StateName event. The bytes are valid until the
// next event.
func (e *StateEvent) ProcessName(v *ctf.Values) []byte { return e.name.Bytes(v) }

// Base returns the address of the object.
func (e *StateEvent) Base(v *ctf.Values) uint64 {
	base, _ := e.base.Value(v)
	return uint64(base)
}

// BuildID returns the build ID of a StateBuildID event. The bytes are valid until the next event.
func (e *StateEvent) BuildID(v *ctf.Values) []byte { return v.Bytes(e.buildID) }

// DebugLink returns the name of the file with debug information in a StateDebugLink event, and its checksum.
func (e *StateEvent) DebugLink(v *ctf.Values) (name string, crc uint32) {
	sum, _ := e.debugCRC.Value(v)
	return ValidString(Prefix(e.debugLink.Bytes(v), symbols.MaxNameBytes)), uint32(sum)
}

// Object returns the object of a StateLoad event.
func (e *StateEvent) Object(v *ctf.Values) symbols.Mapping {
	size, _ := e.size.Value(v)
	follows, _ := e.hasBuildID.Value(v)
	return symbols.Mapping{
		Base: e.Base(v), Size: uint64(size), Path: ValidString(Prefix(e.path.Bytes(v), symbols.MaxPathBytes)), BuildIDFollows: follows != 0,
	}
}

// Prefix returns at most the first n bytes of a text.
func Prefix(text []byte, n int) []byte { return text[:min(len(text), n)] }
