// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"bytes"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// identity tells the lives of a server apart, beside the numbers of messages.
type identity struct {
	// state is the reply of the server; nil: it was not asked, or didn't answer.
	state *rbkit.HandshakeReply
	// local is the process, if it is on this machine.
	local *localProcess
}

// startTolerance is how far the time at which a process was started may seem to move when
// the machine's clock is set.
const startTolerance = 2 * time.Second

// isOther reports whether a server is now another process than before. Unknown values
// decide nothing: the numbers of messages do.
func (before identity) isOther(now identity) bool {
	if b, n := before.state, now.state; b != nil && n != nil &&
		(b.PID != n.PID || b.ServerVersion != n.ServerVersion || b.Dialect != n.Dialect) {
		return true
	}
	return before.local != nil && now.local != nil &&
		now.local.started.Sub(before.local.started).Abs() > startTolerance
}

// identification is the time in which the receiver asks the server for its identity. It
// holds the messages that arrive meanwhile, so that all of them get the same resource.
type identification struct {
	open bool
	// number tells identifications of the server apart.
	number int
	// restarted says that the process is another one than before.
	restarted bool
	held      []heldMessage
	// size is the memory of the messages, about.
	size int
}

// heldMessage is a message with the time at which it arrived.
type heldMessage struct {
	data []byte
	at   time.Time
}

// bytesOfHeld is the memory of a message beside its bytes, about.
const bytesOfHeld = 64

// begin begins an identification.
func (m *identification) begin(anew bool) {
	*m = identification{open: true, number: m.number + 1, restarted: anew}
}

// end ends the identification, and returns the held messages.
func (m *identification) end() (kept []heldMessage) {
	kept = m.held
	*m = identification{number: m.number}
	return kept
}

// holdAll holds messages that an earlier identification held.
func (m *identification) holdAll(messages []heldMessage) {
	m.held = messages
	for i := range messages {
		m.size += len(messages[i].data) + bytesOfHeld
	}
}

// hold copies a message, if all messages stay within so many bytes. The first message
// always fits.
func (m *identification) hold(message []byte, at time.Time, most int) bool {
	size := len(message) + bytesOfHeld
	if len(m.held) > 0 && m.size+size > most {
		return false
	}
	m.held = append(m.held, heldMessage{bytes.Clone(message), at})
	m.size += size
	return true
}

// localProcess describes a server's process on this machine.
type localProcess struct {
	host    string
	started time.Time
}

// maxPID is beyond the IDs that processes have.
const maxPID = math.MaxInt32

// findLocal looks for the process of a server in /proc. The server has to be reached
// without leaving this machine, and the process with its ID has to have its directory and
// its name. nil: there is no such process, or the receiver can't see it. A server behind a
// port of a container has an ID that another process has here.
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

// isCalled reports whether a process with these arguments may have the name $0: the program
// that Ruby runs, or a title that the program set, which replaces all arguments.
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
