// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package socket

import "net"

// Unread returns false: this system does not show unread bytes.
func Unread(net.Conn) bool { return false }

// MaxOpenFiles returns false: this system does not show the limit.
func MaxOpenFiles() (limit uint64, known bool) { return 0, false }
