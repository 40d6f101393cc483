// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package page does what a page of the documentation says: its commands are run as they stand
// there, and have to show what the page shows. What is run is the page's own text.
//
// A comment in front of a fenced block, which readers don't see, says what the block is:
//
//	<!-- run -->                  commands, run to their end in the page's shell
//	<!-- terminal: NAME -->       commands that go on, in a shell of their own, to the page's end
//	<!-- file: NAME -->           a file
//	<!-- shows -->                what the commands before show: these are repeated until they do
//	<!-- shows the like -->       the same with other numbers
//	<!-- shows nothing -->        without a block: the commands before show nothing
//	<!-- says: NAME -->           lines that a terminal says, in this order, sooner or later
//	<!-- says only info: NAME --> without a block: a terminal of a collector has said of nothing that it is wrong
//	<!-- not run: WHY -->         commands that are not run
//
// In what is shown … stands for anything within a line, and blanks for any blanks. Every block
// of commands (sh) has to have such a comment.
//
// # The machine
//
// A page has a machine of its own, made of namespaces: processes, network, what is below /run.
// So addresses are those of the page, and nothing that is started stays. It is an ordinary user's,
// in a directory like a checkout after make build.
package page
