// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "time"

// Options are how a side speaks. The zero value is the defaults.
type Options struct {
	// Security is the mechanism: Null, or Plain with the name and the password; default
	// Null.
	Security Security
	// Version30 says 3.0 in the greeting instead of 3.1. There are no PING and PONG
	// then, and subscriptions are messages.
	Version30 bool
	// Timeout is how long the greeting and the handshake may take together, each 64 KiB
	// of a message to come once it has begun, 64 KiB to be sent, and the answer to a
	// request to begin; default 10 s.
	Timeout time.Duration
	// Heartbeat is after how long of silence between messages a PING is sent, which has to
	// be answered, by anything, within Timeout; default 15 s, at most 1 h. It is not sent
	// to a peer of version 3.0, whose silence is never an error.
	Heartbeat time.Duration
	// Limits bound what the other side may announce.
	Limits Limits
	// Room is called with how many bytes the buffer of the connection will have before it
	// grows. An error is one of the connection. nil: there is always room.
	Room func(bytes int) error
}

// Limits bound what may come. What is beyond them is a *ProtocolError. A field that is 0
// has its default.
type Limits struct {
	Frame   int // bytes of one frame; default as Message
	Message int // bytes of all parts of a message; default 32 MiB
	Parts   int // of one message; default 1024
}

const (
	defaultTimeout   = 10 * time.Second
	defaultHeartbeat = 15 * time.Second
	maxHeartbeat     = time.Hour
	defaultMessage   = 32 << 20
	defaultParts     = 1024
)

func (o Options) withDefaults() Options {
	if o.Security == nil {
		o.Security = Null{}
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = defaultHeartbeat
	}
	o.Heartbeat = min(o.Heartbeat, maxHeartbeat)
	o.Limits = o.Limits.withDefaults()
	return o
}

func (l Limits) withDefaults() Limits {
	if l.Message <= 0 {
		l.Message = defaultMessage
	}
	if l.Frame <= 0 {
		l.Frame = l.Message
	}
	if l.Parts <= 0 {
		l.Parts = defaultParts
	}
	return l
}

// minor is the minor version to announce.
func (o Options) minor() byte {
	if o.Version30 {
		return 0
	}
	return 1
}
