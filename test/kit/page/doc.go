// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package page follows a page of the documentation: it runs the page's commands unchanged, and
// compares their output with the page.
//
// A comment in front of a fenced block, invisible to readers, describes the block:
//
//	<!-- run -->                  commands, run to their end in the page's shell
//	<!-- terminal: NAME -->       commands that go on, in a shell of their own, to the page's end
//	<!-- file: NAME -->           a file
//	<!-- shows -->                the output of the commands before: these are repeated until they match
//	<!-- shows the like -->       the same with other numbers
//	<!-- shows nothing -->        without a block: the commands before show nothing
//	<!-- says: NAME -->           lines of a terminal's output, in this order, sooner or later
//	<!-- says only info: NAME --> without a block: the log of a collector in a terminal has no warning or error
//	<!-- ends: NAME -->           without a block: the programs of a terminal are asked to end, and do
//	<!-- not run: WHY -->         commands that are not run
//
// In an output, … stands for any text within a line, and blanks for any blanks. Every block of
// commands (sh) has to have such a comment.
//
// # The machine
//
// Each page has its own machine, made of namespaces: processes, network, the directory /run. So
// addresses are those of the page, and every started program ends. It belongs to an ordinary user,
// in a directory like a checkout after make build. Its programs are also found without bin/, like installed ones.
//
// The page of the installation is followed in a system in a folder instead, as its root.
package page
