// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"encoding/binary"
	"fmt"
)

// Registration is what an agent says of itself, unasked, when it has connected. There
// is none in the RFC.
type Registration struct {
	Domain Domain
	PID    uint32 // of its process, as that one sees it
	Major  uint32
	Minor  uint32
}

// RegistrationSize is the size in bytes of a registration.
const RegistrationSize = 16

// The version of the protocol that agents of dialect V2 register with.
const (
	Major = 2
	Minor = 0
)

// NewRegistration is what an agent registers with.
func NewRegistration(d Domain, pid uint32) Registration {
	return Registration{Domain: d, PID: pid, Major: Major, Minor: Minor}
}

// AppendTo appends the registration as it is sent.
func (r Registration) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(r.Domain))
	b = binary.BigEndian.AppendUint32(b, r.PID)
	b = binary.BigEndian.AppendUint32(b, r.Major)
	return binary.BigEndian.AppendUint32(b, r.Minor)
}

// ParseRegistration returns the registration in RegistrationSize bytes. One of a domain
// or a version that the protocol doesn't have is a *ProtocolError.
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

// Agent is whom the agent's commands are for.
func (r Registration) Agent() Agent { return Agent{Dialect: V2, Domain: r.Domain} }
