// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Functions whose names begin with Append add text as a released server sends it. They write a time in its own time
// zone.

// EndOfReply is the byte that ends an answer. A client sends it to abort a command.
const EndOfReply = 0x04

// DefaultPrompt is the prompt of a session that is not silent. A carriage return precedes it.
const DefaultPrompt = "ga?>"

// SessionTimedOut is the line that a server sends before it closes an idle connection.
const SessionTimedOut = timedOutNotice

// AppendPrompt adds the prompt.
func AppendPrompt(b []byte) []byte { return append(b, "\r"+DefaultPrompt...) }

// AppendAffected adds the server's text after it has instrumented classes, in a session that is not silent: how to
// abort, and the counts.
func AppendAffected(b []byte, a *javamethods.Affected, took time.Duration) []byte {
	return fmt.Appendf(b, "%s\n%s(class-cnt:%d , method-cnt:%d) cost in %d ms.\n", abortNotice, affectNotice, a.Classes, a.Methods, took.Milliseconds())
}

// AppendNoRecord adds the server's text for an unknown index of a recorded call.
func AppendNoRecord(b []byte, index int64) []byte {
	return fmt.Appendf(b, "%s%d] does not exist.\n", noFragment, index)
}
