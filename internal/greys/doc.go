// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package greys defines the commands and answers of a Greys server, which is attached to a live Java process. They are
// the same for both protocols: package console speaks the text console of the released servers, and package gp speaks
// the binary protocol of the document (greys-protocol.txt).
//
// A client sends a [Command] and receives any number of answers ([Reply]) until the command ends.
package greys
