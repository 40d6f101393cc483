// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package greys is what can be asked of a Greys server, which is attached to a live Java
// process, and what it answers, whichever of its two protocols it speaks: package console
// below it knows the text console of the released servers, package gp the binary protocol
// of the document (greys-protocol.txt).
//
// A [Command] is asked, and gives any number of answers ([Reply]) until it ends.
package greys
