// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import "fmt"

// Dialect is a version of the protocol.
type Dialect uint8

const (
	// V2 is version 2.0, which LTTng's agents have used since 2.6.
	V2 Dialect = iota
	// RFC is version 0.1, of the proposal of 2013. It is only for java.util.logging, without registration, levels,
	// filters and contexts.
	RFC
)

var dialectNames = [...]string{V2: "2.0", RFC: "rfc"}

func (d Dialect) String() string {
	if int(d) >= len(dialectNames) {
		return fmt.Sprintf("dialect %d", uint8(d))
	}
	return dialectNames[d]
}

// ParseDialect returns the dialect of a name: 2.0 or rfc.
func ParseDialect(name string) (Dialect, error) {
	for d, n := range dialectNames {
		if n == name {
			return Dialect(d), nil
		}
	}
	return 0, fmt.Errorf("expected 2.0 or rfc, got %q", name)
}

// headerSize returns the size of a command's header in bytes: the payload's size (64 bits), the command and its
// version, with 32 bits each, or 64 bits each in the RFC.
func (d Dialect) headerSize() int {
	if d == RFC {
		return 24
	}
	return 16
}
