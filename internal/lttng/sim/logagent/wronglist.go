// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"encoding/binary"
	"math"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// Offsets of the fields of a reply to List.
const (
	sizeAt     = 4
	countAt    = 8
	namesAt    = 12
	rfcNamesAt = 8
)

// wrongList adds the fault to a reply to List with names that are not empty.
func (a *Agent) wrongList(reply []byte) []byte {
	ofRFC := a.options.Dialect == lttngagent.RFC
	names, end := namesAt, len(reply)
	if ofRFC {
		names, end = rfcNamesAt, len(reply)-4 // the code is last
	}
	switch kind := a.options.Fault.Kind; {
	case kind == HugeSize && ofRFC:
		binary.BigEndian.PutUint64(reply, math.MaxUint64)
	case kind == HugeSize:
		binary.BigEndian.PutUint32(reply[sizeAt:], math.MaxUint32)
	case kind == WrongCount && ofRFC:
		binary.BigEndian.PutUint64(reply, binary.BigEndian.Uint64(reply)+1)
	case kind == WrongCount:
		binary.BigEndian.PutUint32(reply[countAt:], binary.BigEndian.Uint32(reply[countAt:])+1)
	case kind == NoNUL:
		reply[end-1] = 'x'
	case kind == NoUTF8:
		reply[names] = 0xff
	}
	return reply
}
