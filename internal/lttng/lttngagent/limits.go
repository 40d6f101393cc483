// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

// Limits bound the reply to List. A larger reply is a *ProtocolError. A field that is 0 has its default.
//
// The limits are no allocations: buffers grow while bytes arrive.
type Limits struct {
	Names     int // default 65,536
	NameBytes int // bytes of all names with their NULs; default 4 MiB
}

const (
	defaultNames     = 65536
	defaultNameBytes = 4 << 20
)

func (l Limits) withDefaults() Limits {
	if l.Names <= 0 {
		l.Names = defaultNames
	}
	if l.NameBytes <= 0 {
		l.NameBytes = defaultNameBytes
	}
	return l
}
