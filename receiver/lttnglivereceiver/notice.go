// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// noticeKind is what an event of the tracer's own says of a process.
type noticeKind uint8

const (
	noticeNone noticeKind = iota
	// noticeStart: the state of a process begins to be told, its objects above all.
	noticeStart
	// noticeEnd: all of it was told.
	noticeEnd
	// noticeName is the name of the process.
	noticeName
	// noticeObject: an object is loaded.
	noticeObject
	// noticeBuildID and noticeDebugLink belong to an object that was told before.
	noticeBuildID
	noticeDebugLink
	// noticeGone: an object is no longer loaded.
	noticeGone
)

// notice is what events of a class say of their process.
type notice struct {
	kind noticeKind
	// base, size and path are those of an object.
	base, size number
	path       text
	// hasBuildID says whether a build ID follows.
	hasBuildID number
	buildID    *ctf.Field
	debugLink  text
	procname   text
}

// The providers of LTTng-UST that tell of objects: when a session starts, when
// programs call dlopen, and when the dynamic linker loads what these need.
const (
	providerStatedump = "lttng_ust_statedump"
	providerDl        = "lttng_ust_dl"
	providerLib       = "lttng_ust_lib"
)

var noticeKinds = map[string]noticeKind{
	providerStatedump + ":start":      noticeStart,
	providerStatedump + ":end":        noticeEnd,
	providerStatedump + ":procname":   noticeName,
	providerStatedump + ":bin_info":   noticeObject,
	providerStatedump + ":build_id":   noticeBuildID,
	providerStatedump + ":debug_link": noticeDebugLink,
	providerDl + ":dlopen":            noticeObject,
	providerDl + ":dlmopen":           noticeObject,
	providerDl + ":build_id":          noticeBuildID,
	providerDl + ":debug_link":        noticeDebugLink,
	providerDl + ":dlclose":           noticeGone,
	providerLib + ":load":             noticeObject,
	providerLib + ":build_id":         noticeBuildID,
	providerLib + ":debug_link":       noticeDebugLink,
	providerLib + ":unload":           noticeGone,
}

// newNotice says what the events of a class say of their process. A class without the
// fields that it should have says nothing.
func newNotice(class *ctf.EventClass) notice {
	n := notice{
		kind:       noticeKinds[class.Name],
		base:       numberAt(class, metadata.EventFields, "baddr"),
		size:       numberAt(class, metadata.EventFields, "memsz"),
		path:       textAt(class, metadata.EventFields, "path"),
		hasBuildID: numberAt(class, metadata.EventFields, "has_build_id"),
		debugLink:  textAt(class, metadata.EventFields, "filename"),
		procname:   textAt(class, metadata.EventFields, "procname"),
	}
	if f := class.Field(metadata.EventFields, "build_id"); f != nil && f.Kind == ctf.Bytes {
		n.buildID = f
	}
	complete := true
	switch n.kind {
	case noticeObject:
		complete = n.base.there() && n.size.there() && n.path.there()
	case noticeBuildID:
		complete = n.base.there() && n.buildID != nil
	case noticeDebugLink:
		complete = n.base.there() && n.debugLink.there()
	case noticeGone:
		complete = n.base.there()
	case noticeName:
		complete = n.procname.there()
	}
	if !complete {
		n.kind = noticeNone
	}
	return n
}

// mapping is the object that an event tells of.
func (n *notice) mapping(v *ctf.Values) symbols.Mapping {
	base, _ := n.base.get(v)
	size, _ := n.size.get(v)
	follows, _ := n.hasBuildID.get(v)
	return symbols.Mapping{
		Base: uint64(base), Size: uint64(size), Path: validString(start(n.path.get(v), symbols.MaxPathBytes)), BuildIDFollows: follows != 0,
	}
}
