// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Session is an entry in a relay daemon's list of tracing sessions.
type Session struct {
	ID uint64
	// LiveTimer is the maximum interval at which the tracer sends data of the session to the relay daemon. It is sent
	// in microseconds. If it is 0, the session cannot be attached.
	LiveTimer time.Duration
	Clients   uint32 // 1 when a viewer is attached
	Streams   uint32
	Host      string
	Name      string
	Format    TraceFormat // TraceFormatCTF1 while the agreed minor version is below 15
}

// TraceFormat is the format of a session's metadata and packets.
type TraceFormat uint32

// The known formats.
const (
	TraceFormatCTF1 TraceFormat = 0 // CTF 1.8
	TraceFormatCTF2 TraceFormat = 1
)

func (f TraceFormat) String() string {
	switch f {
	case TraceFormatCTF1:
		return "CTF 1.8"
	case TraceFormatCTF2:
		return "CTF 2"
	default:
		return fmt.Sprintf("trace format %d", uint32(f))
	}
}

// Sizes in bytes of a session's parts. Up to minor version 14, the names are in fields of fixed size and end with a
// NUL. Later entries have the lengths of the names, the format, and then the names without NUL.
const (
	sessionCommon     = 20 // ID, timer, clients, streams
	sessionHostField  = 64
	sessionNameField  = 255
	sessionFixedSize  = sessionCommon + sessionHostField + sessionNameField
	sessionLengths    = 12 // length of the host and of the name, format
	maxSessionNameLen = 4096
)

// appendSession appends the bytes of the entry. minor is the agreed version. It truncates names that are too long for
// their fields.
func appendSession(b []byte, s Session, minor uint32) []byte {
	b = binary.BigEndian.AppendUint64(b, s.ID)
	b = binary.BigEndian.AppendUint32(b, uint32(s.LiveTimer/time.Microsecond))
	b = binary.BigEndian.AppendUint32(b, s.Clients)
	b = binary.BigEndian.AppendUint32(b, s.Streams)
	if minor < minorTraceFormats {
		b = appendField(b, s.Host, sessionHostField)
		return appendField(b, s.Name, sessionNameField)
	}
	host, name := s.Host[:min(len(s.Host), maxSessionNameLen)], s.Name[:min(len(s.Name), maxSessionNameLen)]
	b = binary.BigEndian.AppendUint32(b, uint32(len(host)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
	b = binary.BigEndian.AppendUint32(b, uint32(s.Format))
	b = append(b, host...)
	return append(b, name...)
}

// readSession reads one entry. minor is the agreed version.
func readSession(from replySource, minor uint32) (Session, error) {
	if minor < minorTraceFormats {
		return readFixedSession(from)
	}
	start := from.offset()
	b, err := from.next(sessionCommon + sessionLengths)
	if err != nil {
		return Session{}, err
	}
	s := sessionOf(b)
	hostLength, nameLength := binary.BigEndian.Uint32(b[20:]), binary.BigEndian.Uint32(b[24:])
	s.Format = TraceFormat(binary.BigEndian.Uint32(b[28:]))
	if err := checkBound(hostLength, maxSessionNameLen, start+20, "bytes in the name of a host"); err != nil {
		return Session{}, err
	}
	if err := checkBound(nameLength, maxSessionNameLen, start+24, "bytes in the name of a session"); err != nil {
		return Session{}, err
	}
	names, err := from.next(int(hostLength + nameLength))
	if err != nil {
		return Session{}, err
	}
	s.Host, s.Name = string(names[:hostLength]), string(names[hostLength:])
	return s, nil
}

func readFixedSession(from replySource) (Session, error) {
	start := from.offset()
	b, err := from.next(sessionFixedSize)
	if err != nil {
		return Session{}, err
	}
	s := sessionOf(b)
	host, name := b[sessionCommon:sessionCommon+sessionHostField], b[sessionCommon+sessionHostField:]
	if s.Host, err = fieldText(host, start+sessionCommon, "the name of a host"); err != nil {
		return Session{}, err
	}
	if s.Name, err = fieldText(name, start+sessionCommon+sessionHostField, "the name of a session"); err != nil {
		return Session{}, err
	}
	return s, nil
}

// sessionOf reads the part that is equal in all versions.
func sessionOf(b []byte) Session {
	return Session{
		ID:        binary.BigEndian.Uint64(b),
		LiveTimer: time.Duration(binary.BigEndian.Uint32(b[8:])) * time.Microsecond,
		Clients:   binary.BigEndian.Uint32(b[12:]),
		Streams:   binary.BigEndian.Uint32(b[16:]),
	}
}
