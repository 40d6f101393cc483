// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

const (
	// quiet is how long an agent sends nothing that has done what it was told.
	quiet = time.Second
	// bytesOfCode is an answer to what takes something back.
	bytesOfCode = 4
)

// takeBack tells an agent commands, the last first, whose answers cannot be told from what
// else it sends. It reports whether the agent has sent as much as those are and is quiet,
// or has closed the connection. Nothing else can be done with the connection then. Its end
// is not sent before: Python's agent answers that, over and over.
func (c *conversation) takeBack(undo []lttngagent.Command, timeout time.Duration) bool {
	end := time.Now().Add(timeout)
	c.begin(timeout)
	for _, command := range slices.Backward(undo) {
		if c.write(command, timeout) != nil {
			return false
		}
	}
	b := make([]byte, inputBytes)
	for got := 0; ; {
		c.begin(min(quiet, time.Until(end)))
		n, err := c.conn.Read(b)
		got += n
		switch {
		case err == nil && time.Now().Before(end):
		case err == nil:
			return false
		default:
			return got >= bytesOfCode*len(undo) && (timedOut(err) || errors.Is(err, io.EOF))
		}
	}
}
