// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

// Protocol is the protocol of a server.
type Protocol string

const (
	// ProtocolAuto sends the version command by GP first. The reply decides which protocol follows.
	ProtocolAuto Protocol = "auto"
	// ProtocolGP is the binary protocol of the document.
	ProtocolGP Protocol = "gp"
	// ProtocolConsole is the text console of the released servers.
	ProtocolConsole Protocol = "console"
)
