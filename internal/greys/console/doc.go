// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package console speaks the text console of released Greys servers, in both directions. The last release is 1.7.6.6.
//
// A client sends a line and receives text that ends with a byte 0x04. The text is made for people: tables, trees of
// calls and stacks. The package recognises them by the way the server draws them. Only one command at a time runs on a
// connection, and the server loses lines that arrive meanwhile. So a [Client] opens a connection for each command.
//
//	client             server
//	  ── session -s false ──►   from here on the server draws a prompt at the end of each
//	  ◄── table of the session, \rga?> 0x04   answer, and reports how much a pattern matched
//	  ── trace -n 2 demo.* * ──►
//	  ◄── Affect(...), a tree, a tree, \rga?> 0x04
//	  ── 0x04 ──►               ends a command that is running; answered with the prompt and 0x04
//
// The package cannot detect two limits of the server. The server keeps at most 2,048 unsent answers and drops more
// without a message. It sends in a busy loop, so a client that does not read costs the traced program one processor.
package console
