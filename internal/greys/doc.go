// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package greys has the parts that both protocols of a Greys server share. Package console speaks the text console of
// the released servers, and package gp speaks the binary protocol of the document (greys-protocol.txt). The commands
// and the answers are those of package javamethods.
package greys
