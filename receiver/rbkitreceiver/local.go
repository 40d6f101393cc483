// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// localProcess is what this machine knows of a server's process.
type localProcess struct {
	host    string
	started time.Time
}

// maxPID is beyond the IDs that processes have.
const maxPID = math.MaxInt32

// findLocal looks for the process of a server in /proc. It is the one that the server
// speaks of if the server was reached without leaving this machine, and a process of that
// ID works in the directory that the server names and was called as it says; nil: there is
// none, or it can't be seen. A server behind a port of a container has an ID that another
// process has here.
func findLocal(peer net.Addr, hello *rbkit.HandshakeReply) *localProcess {
	if tcp, ok := peer.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil
	}
	if hello.PID == 0 || hello.PID > maxPID || hello.WorkingDirectory == "" {
		return nil
	}
	process, err := procfs.NewProc(int(hello.PID))
	if err != nil {
		return nil
	}
	if directory, err := process.Cwd(); err != nil || directory != hello.WorkingDirectory {
		return nil
	}
	if arguments, err := process.CmdLine(); err != nil || !isCalled(arguments, hello.ProcessName) {
		return nil
	}
	stat, err := process.Stat()
	if err != nil {
		return nil
	}
	started, err := stat.StartTime()
	if err != nil {
		return nil
	}
	// A host that has no name goes without.
	host, _ := os.Hostname()
	seconds, part := math.Modf(started)
	return &localProcess{host: host, started: time.Unix(int64(seconds), int64(part*float64(time.Second)))}
}

// isCalled reports whether a process with these arguments may be the one whose $0 is that
// name: the program that Ruby was told to run, or a title that the program gave itself,
// which replaces all arguments.
func isCalled(arguments []string, name string) bool {
	if name == "" {
		return false
	}
	for _, a := range arguments {
		if filepath.Base(a) == filepath.Base(name) {
			return true
		}
	}
	return strings.HasPrefix(strings.Join(arguments, " "), name)
}
