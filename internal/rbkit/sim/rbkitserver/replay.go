// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitserver

import (
	"context"
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
)

// Hello returns the first handshake reply of a capture's server, in the dialect of its messages.
// Missing properties are empty.
func Hello(c *capture.Capture) rbkit.HandshakeReply {
	for _, r := range c.Replies {
		if h, err := rbkit.DecodeHandshake(r.Data); err == nil {
			return h
		}
	}
	dialect, _ := rbkit.DialectOf(c.Messages[0].Data) // none where it is no message
	return rbkit.HandshakeReply{Dialect: dialect}
}

// Replay publishes the messages of a capture, byte for byte, at their times divided by speed;
// speed 0 is as fast as possible. It calls sent after each message; sent may be nil.
func (s *Server) Replay(ctx context.Context, c *capture.Capture, speed float64, sent func(capture.Message)) error {
	begin := time.Now()
	for _, m := range c.Messages {
		if speed > 0 {
			due := begin.Add(time.Duration(float64(m.At-c.Messages[0].At) / speed))
			if err := waitUntil(ctx, due); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		s.Publish(m.Data)
		if sent != nil {
			sent(m)
		}
	}
	return nil
}

func waitUntil(ctx context.Context, due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
