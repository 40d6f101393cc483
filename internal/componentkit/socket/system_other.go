// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package socket

import "net"

// Unread reports false: it is not known here.
func Unread(net.Conn) bool { return false }

// MaxOpenFiles knows nothing here.
func MaxOpenFiles() (limit uint64, known bool) { return 0, false }
