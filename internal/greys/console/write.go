// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// Functions whose names begin with Append add what a released server says. Times are said in
// their own time zone.

// EndOfReply is the byte that ends what a server says to a command, and with which a client
// aborts one.
const EndOfReply = 0x04

// DefaultPrompt is what a server says that waits for a command, in a session that is not
// silent; a carriage return stands before it.
const DefaultPrompt = "ga?>"

// SessionTimedOut is the line that a server says before it closes a connection on which
// nothing was asked for too long.
const SessionTimedOut = timedOutNotice

// AppendPrompt adds the prompt.
func AppendPrompt(b []byte) []byte { return append(b, "\r"+DefaultPrompt...) }

// AppendAffected adds what a server says of a command that is not silent when it has put
// something into classes, which took a time: how to abort it, and how many there are.
func AppendAffected(b []byte, a *greys.Affected, took time.Duration) []byte {
	return fmt.Appendf(b, "%s\n%s(class-cnt:%d , method-cnt:%d) cost in %d ms.\n", abortNotice, affectNotice, a.Classes, a.Methods, took.Milliseconds())
}

// AppendNoRecord adds what a server says where there is no recorded call of an index.
func AppendNoRecord(b []byte, index int64) []byte {
	return fmt.Appendf(b, "%s%d] does not exist.\n", noFragment, index)
}
