// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package bytefrogreceiver

import "net"

// unread reports whether something has come on a connection that was not read yet.
// Here nobody can say.
func unread(net.Conn) bool { return false }
