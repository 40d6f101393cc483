// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"net"
	"path/filepath"

	"github.com/prometheus/procfs"
)

// maxPID is the largest process ID.
const maxPID = 1<<31 - 1

// IsLocal reports whether the server's process runs on this machine: the last connection used a loopback address, and
// the local process with this ID runs Java. A published port of a container is a loopback address too, but its process
// IDs belong to other processes here.
func (d *Dialer) IsLocal(pid int64) bool {
	remote := d.remote.Load()
	return remote != nil && isLocal(*remote, pid)
}

func isLocal(remote net.Addr, pid int64) bool {
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
