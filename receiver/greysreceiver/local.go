// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"net"
	"path/filepath"

	"github.com/prometheus/procfs"
)

// maxPID is beyond the IDs that processes have.
const maxPID = 1<<31 - 1

// isHere reports whether the process of a server runs on this machine: the server was
// reached without leaving it, and a process of that ID runs Java. A server behind a port of
// a container has an ID that another process has here.
func isHere(remote net.Addr, pid int64) bool {
	if tcp, ok := remote.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return false
	}
	if pid <= 0 || pid > maxPID {
		return false
	}
	process, err := procfs.NewProc(int(pid))
	if err != nil {
		return false
	}
	arguments, err := process.CmdLine()
	return err == nil && len(arguments) > 0 && filepath.Base(arguments[0]) == "java"
}
