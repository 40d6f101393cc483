// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import "time"

// Config is how a server is spoken with, where the document leaves it open. A field that is
// 0 or nil has its default, but for Codes.
type Config struct {
	// Version is that of the protocol, which every request says; default 0x0001.
	Version uint16
	// Codes are the types of the requests that have none in the document; default none.
	Codes Codes
	// MaxFrame is how many bytes the data of a frame may have, at most [MaxMaxFrame]. A reply
	// that has more ends its request, and is read past, or ends the connection where it has
	// more than MaxMaxFrame; default 16 MiB.
	MaxFrame int
	// MaxTolerated is how many bytes data that are no JSON may have to be read once more,
	// tolerantly: one frame at a time, for which up to 130 times as many bytes are needed;
	// default 1 MiB.
	MaxTolerated int
	// MaxWaiting is how many bytes of replies to one request may wait for whoever asked. A
	// single one may always. Beyond it the request is given up, which is an error; default
	// 8 MiB.
	MaxWaiting int
	// MaxRequests is how many requests may be under way, those that were given up and that
	// the server has not ended included; default 1024.
	MaxRequests int
	// Heartbeat is how often the server is told that the client is there; default 30 s.
	Heartbeat time.Duration
	// MaxUnanswered is how many heartbeats in a row may have no answer when the next is due:
	// then the connection is lost; default 3.
	MaxUnanswered int
	// ProbeTimeout is how long [Probe] waits for an answer; default 5 s.
	ProbeTimeout time.Duration
	// Provoke has [Probe] send a line end to a server that does not answer, to which the text
	// console and HTTP servers say something.
	Provoke bool
	// WriteTimeout is how long it may take the server to take a request; default 10 s.
	WriteTimeout time.Duration
	// Location is where the server is, whose local times records have; default UTC.
	Location *time.Location
}

// The defaults of [Config], and a bound.
const (
	DefaultVersion       = 0x0001
	DefaultMaxFrame      = 16 << 20
	DefaultMaxTolerated  = 1 << 20
	DefaultMaxWaiting    = 8 << 20
	DefaultMaxRequests   = 1024
	DefaultHeartbeat     = 30 * time.Second
	DefaultMaxUnanswered = 3
	DefaultProbeTimeout  = 5 * time.Second
	DefaultWriteTimeout  = 10 * time.Second

	MaxMaxFrame = 1 << 30
)

func (c Config) withDefaults() Config {
	or(&c.Version, DefaultVersion)
	or(&c.MaxFrame, DefaultMaxFrame)
	c.MaxFrame = min(c.MaxFrame, MaxMaxFrame)
	or(&c.MaxTolerated, DefaultMaxTolerated)
	or(&c.MaxWaiting, DefaultMaxWaiting)
	or(&c.MaxRequests, DefaultMaxRequests)
	or(&c.Heartbeat, DefaultHeartbeat)
	or(&c.MaxUnanswered, DefaultMaxUnanswered)
	or(&c.ProbeTimeout, DefaultProbeTimeout)
	or(&c.WriteTimeout, DefaultWriteTimeout)
	if c.Location == nil {
		c.Location = time.UTC
	}
	return c
}

// or has a number that is not above 0 be its default.
func or[T ~uint16 | ~int | ~int64](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}
