// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// The greeting (RFC 23, "The Greeting"): a signature of 10 bytes, the version, the
// mechanism, whether we are the server, and filler.
const (
	greetingSize    = 64
	signatureFirst  = 0xff
	signatureLast   = 0x7f
	signatureSize   = 10
	versionMajorAt  = 10
	versionMinorAt  = 11
	mechanismAt     = 12
	mechanismSize   = 20
	asServerAt      = 32
	versionMajor    = 3
	greetingFailure = "a ZMTP 3 greeting"
)

// opening is a connection without a greeting of the other side.
type opening struct{ *connection }

// appendGreeting appends the greeting of a side.
func appendGreeting(b []byte, options Options, server bool) []byte {
	at := len(b)
	b = append(b, make([]byte, greetingSize)...)
	g := b[at:]
	g[0], g[signatureSize-1] = signatureFirst, signatureLast
	g[versionMajorAt], g[versionMinorAt] = versionMajor, options.minor()
	copy(g[mechanismAt:], options.Security.name())
	// Only mechanisms with two different sides have a server.
	if server && options.Security.name() != (Null{}).name() {
		g[asServerAt] = 1
	}
	return b
}

// exchangeGreetings exchanges greetings until the deadline. A client sends its mechanism after
// that of the server. libzmq may reset the connection after another mechanism than its own, and
// then its greeting is lost.
func (o opening) exchangeGreetings(deadline time.Time, server bool) (greeted, error) {
	greeting := appendGreeting(nil, o.options, server)
	if !server {
		if err := o.write(greeting[:mechanismAt]); err != nil {
			return greeted{}, err
		}
		greeting = greeting[mechanismAt:]
		if _, err := o.readGreeting(o.hesitation()); err != nil && !isTimeout(err) {
			return greeted{}, err
		}
	}
	if err := o.write(greeting); err != nil {
		return greeted{}, err
	}
	minor, err := o.readGreeting(deadline)
	if err != nil {
		return greeted{}, err
	}
	o.in.drop(greetingSize)
	return greeted{connection: o.connection, minor: min(minor, o.options.minor()), deadline: deadline}, nil
}

// readGreeting waits for the greeting of the other side until a deadline. The greeting stays in
// the input.
func (o opening) readGreeting(deadline time.Time) (minor byte, err error) {
	for {
		minor, complete, wrong := parseGreeting(o.in.held(), o.options.Security.name())
		if wrong != nil {
			return 0, wrong
		}
		if complete {
			return minor, nil
		}
		if err := o.fill(deadline, greetingFailure); err != nil {
			return 0, err
		}
	}
}

// parseGreeting reads the received part of a greeting, so the first bytes already show another
// protocol. minor is 1 for all versions after 3.1, because such peers speak 3.1 with us (RFC 23,
// "Version Negotiation").
func parseGreeting(b []byte, mechanism string) (minor byte, complete bool, wrong *ProtocolError) {
	if len(b) > 0 && b[0] != signatureFirst {
		return 0, false, &ProtocolError{Expected: greetingFailure, Got: speaker(b)}
	}
	if len(b) >= signatureSize && b[signatureSize-1] != signatureLast {
		return 0, false, &ProtocolError{
			Offset:   signatureSize - 1,
			Expected: fmt.Sprintf("%#02x, the end of the signature", signatureLast),
			Got:      fmt.Sprintf("%#02x", b[signatureSize-1]),
		}
	}
	if len(b) > versionMajorAt && b[versionMajorAt] < versionMajor {
		return 0, false, &ProtocolError{Offset: versionMajorAt, Expected: greetingFailure, Got: fmt.Sprintf("one of ZMTP %s", oldVersion(b[versionMajorAt]))}
	}
	if len(b) < greetingSize {
		return 0, false, nil
	}
	if theirs := string(bytes.TrimRight(b[mechanismAt:mechanismAt+mechanismSize], "\x00")); theirs != mechanism {
		return 0, false, &ProtocolError{Offset: mechanismAt, Expected: fmt.Sprintf("the mechanism %s", mechanism), Got: fmt.Sprintf("%q", theirs)}
	}
	if b[versionMajorAt] > versionMajor {
		return 1, true, nil
	}
	return min(b[versionMinorAt], 1), true, nil
}

// oldVersion returns the version before 3.0 of a greeting with a revision.
func oldVersion(revision byte) string {
	if revision == 0 {
		return "1.0"
	}
	return "2.0"
}

// speaker describes the first bytes of a connection that are no greeting.
func speaker(b []byte) string {
	const (
		tlsAlert, tlsHandshake = 0x15, 0x16
		tlsMajor               = 0x03
	)
	for _, verb := range []string{"HTTP/", "GET ", "HEAD ", "POST ", "PUT ", "OPTIONS "} {
		if n := min(len(verb), len(b)); string(b[:n]) == verb[:n] && n > 1 {
			return "HTTP: " + quoted(firstLine(b))
		}
	}
	switch {
	case len(b) > 1 && (b[0] == tlsAlert || b[0] == tlsHandshake) && b[1] == tlsMajor:
		return "TLS: " + quoted(b)
	case len(b) > 1 && b[1] == 0 && int(b[0]) >= 1:
		// The first frame of ZMTP 1 is an identity: a size that counts the flags, and 0.
		return "a frame of ZMTP 1.0, or something else: " + quoted(b)
	}
	return quoted(b)
}

func firstLine(b []byte) []byte {
	line, _, _ := strings.Cut(string(b), "\r\n")
	return []byte(line)
}
