// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitserver

import (
	"context"
	"time"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
)

// Hello is what the server of a capture said of itself first, as its messages' dialect
// has it; what is missing in the capture is empty.
func Hello(c *capture.Capture) rbkit.HandshakeReply {
	for _, r := range c.Replies {
		if h, err := rbkit.DecodeHandshake(r.Data); err == nil {
			return h
		}
	}
	dialect, _ := rbkit.DialectOf(c.Messages[0].Data) // none where it is no message
	return rbkit.HandshakeReply{Dialect: dialect}
}

// Replay publishes the messages of a capture, byte for byte, when they came, so many
// times faster; speed 0 is as fast as it can. sent is told of each; nil: nobody is.
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
