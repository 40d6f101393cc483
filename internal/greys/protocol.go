// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

// Protocol is what a server speaks.
type Protocol string

const (
	// ProtocolAuto asks for the version by GP first. The reply decides.
	ProtocolAuto Protocol = "auto"
	// ProtocolGP is the binary protocol of the document.
	ProtocolGP Protocol = "gp"
	// ProtocolConsole is the text console of the released servers.
	ProtocolConsole Protocol = "console"
)
