// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"encoding/binary"
	"fmt"
)

// Registration is the first message of an agent after it has connected. The RFC has none.
type Registration struct {
	Domain Domain
	PID    uint32 // of its process, in that one's namespace
	Major  uint32
	Minor  uint32
}

// RegistrationSize is the size in bytes of a registration.
const RegistrationSize = 16

// The version of the protocol in registrations of dialect V2.
const (
	Major = 2
	Minor = 0
)

// NewRegistration returns the registration of an agent.
func NewRegistration(d Domain, pid uint32) Registration {
	return Registration{Domain: d, PID: pid, Major: Major, Minor: Minor}
}

// AppendTo appends the bytes of the registration.
func (r Registration) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(r.Domain))
	b = binary.BigEndian.AppendUint32(b, r.PID)
	b = binary.BigEndian.AppendUint32(b, r.Major)
	return binary.BigEndian.AppendUint32(b, r.Minor)
}

// ParseRegistration returns the registration in RegistrationSize bytes. An unknown domain or version is a
// *ProtocolError.
func ParseRegistration(b []byte) (Registration, error) {
	if len(b) != RegistrationSize {
		return Registration{}, &ProtocolError{
			Offset: 0, Expected: fmt.Sprintf("a registration of %d bytes", RegistrationSize), Got: fmt.Sprint(len(b)),
		}
	}
	r := Registration{
		Domain: Domain(binary.BigEndian.Uint32(b)),
		PID:    binary.BigEndian.Uint32(b[4:]),
		Major:  binary.BigEndian.Uint32(b[8:]),
		Minor:  binary.BigEndian.Uint32(b[12:]),
	}
	if !r.Domain.Valid() {
		return Registration{}, &ProtocolError{
			Offset: 0, Expected: "a registration with domain 3 (jul), 4 (log4j), 5 (python) or 6 (log4j2)",
			Got: fmt.Sprint(uint32(r.Domain)),
		}
	}
	if r.Major != Major || r.Minor != Minor {
		return Registration{}, &ProtocolError{
			Offset: 8, Expected: fmt.Sprintf("a registration with version %d.%d of the protocol", Major, Minor),
			Got: fmt.Sprintf("%d.%d", r.Major, r.Minor),
		}
	}
	return r, nil
}

// Agent returns the receiver of commands for this agent.
func (r Registration) Agent() Agent { return Agent{Dialect: V2, Domain: r.Domain} }
