// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package origin

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

// Identity identifies a life of a server, beside the numbers of its messages.
type Identity struct {
	// State is the reply of the server; nil: it was not asked, or didn't answer.
	State *rbkit.HandshakeReply
	// Local is the process, if it is on this machine.
	Local *LocalProcess
}

// startTolerance is how much the start time of a process may change when the machine's clock is
// set.
const startTolerance = 2 * time.Second

// IsOther reports whether a server is now another process than before. Unknown values decide
// nothing; then the numbers of messages decide.
func (before Identity) IsOther(now Identity) bool {
	if b, n := before.State, now.State; b != nil && n != nil &&
		(b.PID != n.PID || b.ServerVersion != n.ServerVersion || b.Dialect != n.Dialect) {
		return true
	}
	return before.Local != nil && now.Local != nil &&
		now.Local.Started.Sub(before.Local.Started).Abs() > startTolerance
}

// LocalProcess describes a server's process on this machine.
type LocalProcess struct {
	Host    string
	Started time.Time
}

// maxPID is the largest ID that a process can have.
const maxPID = math.MaxInt32

// FindLocal looks for the process of a server in /proc. The connection must not leave this
// machine, and the process with its ID must have its directory and its name. nil: there is no
// such process, or the receiver can't see it. A server behind a port of a container has an ID
// that another process has here.
func FindLocal(peer net.Addr, hello *rbkit.HandshakeReply) *LocalProcess {
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
	// The attribute is missing if the machine has no name.
	host, _ := os.Hostname()
	seconds, part := math.Modf(started)
	return &LocalProcess{Host: host, Started: time.Unix(int64(seconds), int64(part*float64(time.Second)))}
}

// isCalled reports whether a process with these arguments may have the name $0: the program that
// Ruby runs, or a title that the program set, which replaces all arguments.
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
