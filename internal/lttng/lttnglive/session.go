// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Session is a tracing session that a relay daemon has, as it lists it.
type Session struct {
	ID uint64
	// LiveTimer is how often, at least, the relay daemon hears of the session, in
	// microseconds as it is sent. 0: the session cannot be attached.
	LiveTimer time.Duration
	Clients   uint32 // 1 when a viewer is attached
	Streams   uint32
	Host      string
	Name      string
	Format    TraceFormat // TraceFormatCTF1 while the agreed minor version is below 15
}

// TraceFormat is the format of a session's metadata and packets.
type TraceFormat uint32

// The formats that are known.
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

// Sizes in bytes of a session's parts. The entries of minor versions below 15 have
// fields of fixed size for the names, which end with a NUL; later ones have the
// lengths and the format, and then the names without one.
const (
	sessionCommon     = 20 // ID, timer, clients, streams
	sessionHostField  = 64
	sessionNameField  = 255
	sessionFixedSize  = sessionCommon + sessionHostField + sessionNameField
	sessionLengths    = 12 // length of the host and of the name, format
	maxSessionNameLen = 4096
)

// appendSession appends the entry as it is sent when minor is the agreed version.
// Names too long for their fields are cut.
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

// readSession reads one entry as it is sent when minor is the agreed version.
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

// sessionOf reads the part that is the same in all versions.
func sessionOf(b []byte) Session {
	return Session{
		ID:        binary.BigEndian.Uint64(b),
		LiveTimer: time.Duration(binary.BigEndian.Uint32(b[8:])) * time.Microsecond,
		Clients:   binary.BigEndian.Uint32(b[12:]),
		Streams:   binary.BigEndian.Uint32(b[16:]),
	}
}
