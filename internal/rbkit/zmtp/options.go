// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "time"

// Options are the options of one side. The zero value has the defaults.
type Options struct {
	// Security is the mechanism: Null, or Plain with the name and the password; default
	// Null.
	Security Security
	// Version30 announces 3.0 in the greeting instead of 3.1. Then there are no PING and
	// PONG, and subscriptions are messages.
	Version30 bool
	// Timeout bounds each of these: the greeting and the handshake together, the receipt of
	// each 64 KiB of a begun message, the sending of 64 KiB, and the wait for the begin of a
	// reply; default 10 s.
	Timeout time.Duration
	// Heartbeat is the silence between messages after which a PING is sent. Any bytes must
	// arrive within Timeout then; default 15 s, at most 1 h. A peer of version 3.0 gets no
	// PING, and its silence is never an error.
	Heartbeat time.Duration
	// Limits bound the sizes that the other side may announce.
	Limits Limits
	// Room is called before the buffer of the connection grows, with its new size in bytes.
	// An error of it ends the connection. nil: any size is allowed.
	Room func(bytes int) error
}

// Limits bound received messages. A larger one is a *ProtocolError. A field that is 0 has
// its default.
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
