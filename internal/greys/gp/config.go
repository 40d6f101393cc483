// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import "time"

// Config has the settings that the document leaves open. A field that is 0 or nil has its default, except Codes.
type Config struct {
	// Version is the protocol version in every request; default 0x0001.
	Version uint16
	// Codes are the types of requests without a type in the document; default none.
	Codes Codes
	// MaxFrame is the maximum length of a frame's data in bytes, at most [MaxMaxFrame]. A longer reply ends its
	// request, and its data are skipped. A reply longer than MaxMaxFrame ends the connection; default 16 MiB.
	MaxFrame int
	// MaxTolerated is the maximum length of invalid JSON that is read a second time, as YAML; default 1 MiB. Only one
	// frame at a time is read so, because this needs up to 130 times as many bytes.
	MaxTolerated int
	// MaxWaiting is the maximum number of bytes that wait for the caller of one request. A single reply may always
	// wait. Beyond it the request fails; default 8 MiB.
	MaxWaiting int
	// MaxRequests is the maximum number of open requests. They include abandoned ones that the server has not ended;
	// default 1024.
	MaxRequests int
	// Heartbeat is the interval of heartbeats to the server; default 30 s.
	Heartbeat time.Duration
	// MaxUnanswered is the number of consecutive unanswered heartbeats after which the next one ends the connection;
	// default 3.
	MaxUnanswered int
	// ProbeTimeout limits the time that [Probe] waits for an answer; default 5 s.
	ProbeTimeout time.Duration
	// Provoke makes [Probe] send a line end to a server that does not answer. The text console and HTTP servers answer
	// it.
	Provoke bool
	// WriteTimeout limits the time to send a request; default 10 s.
	WriteTimeout time.Duration
	// Location is the time zone of the server, for the local times in records; default UTC.
	Location *time.Location
}

// The defaults of [Config], and a limit.
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

// or replaces a number that is not positive by its default.
func or[T ~uint16 | ~int | ~int64](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}
