// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package console speaks the text console of released Greys servers (1.7.6.6 is the last
// one), in both directions.
//
// A client sends a line and gets text, whose end is a byte 0x04. It is a text for people:
// tables, trees of calls and stacks, which are recognised here by how the server draws them.
// One command runs at a time on a connection, and whatever is sent meanwhile is lost, so a
// [Client] makes a connection for each command.
//
//	client             server
//	  ── session -s false ──►   from here on the server draws a prompt at the end of each
//	  ◄── table of the session, \rga?> 0x04   answer, and says what a pattern matched
//	  ── trace -n 2 demo.* * ──►
//	  ◄── Affect(...), a tree, a tree, \rga?> 0x04
//	  ── 0x04 ──►               ends a command that is running; answered with the prompt and 0x04
//
// What the package cannot know: the server keeps at most 2,048 answers that were not sent,
// and drops more without a word; and it sends by trying over and over, so that a client
// that does not read costs the traced program a processor.
package console
