// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

// EndOfReply is the byte that ends what a server says to a command, and with which a client
// aborts one.
const EndOfReply = 0x04

// DefaultPrompt is what a server says that waits for a command, in a session that is not
// silent; before it stands a carriage return.
const DefaultPrompt = "ga?>"

// The functions whose names begin with Append add what a released server says. Times are
// said in their own time zone.
