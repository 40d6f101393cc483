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

// identity is what tells the lives of a server apart, beside the numbers of messages.
type identity struct {
	// hello is what the server says of itself; nil: it was not asked, or didn't answer.
	hello *rbkit.HandshakeReply
	// local is the process, if it is on this machine.
	local *localProcess
}

// startTolerance is how far the time at which a process was started may seem to move when
// the machine's clock is set.
const startTolerance = 2 * time.Second

// isOther reports whether a server that was before is another process now. What is not
// known of one of them says nothing: then the numbers of messages do.
func (before identity) isOther(now identity) bool {
	if b, n := before.hello, now.hello; b != nil && n != nil &&
		(b.PID != n.PID || b.ServerVersion != n.ServerVersion || b.Dialect != n.Dialect) {
		return true
	}
	return before.local != nil && now.local != nil &&
		now.local.started.Sub(before.local.started).Abs() > startTolerance
}

// meeting is the time in which a server is asked who it is. What it publishes meanwhile is
// kept, so that all of it has the same resource.
type meeting struct {
	goesOn bool
	// number tells it from others of the server.
	number int
	// anew says that it is not the process that it was.
	anew bool
	kept []keptMessage
	// size is what the messages take in memory, about.
	size int
}

// keptMessage is a message that came at a time.
type keptMessage struct {
	data []byte
	at   time.Time
}

// bytesOfKept is what a message takes beside its bytes, about.
const bytesOfKept = 64

// begin begins one. A server that is there is another one if it is met anew.
func (m *meeting) begin(anew bool) { *m = meeting{goesOn: true, number: m.number + 1, anew: anew} }

// end ends it, and gives the messages that were kept.
func (m *meeting) end() (kept []keptMessage) {
	kept = m.kept
	*m = meeting{number: m.number}
	return kept
}

// keepAll keeps messages that had been kept before.
func (m *meeting) keepAll(messages []keptMessage) {
	m.kept = messages
	for i := range messages {
		m.size += len(messages[i].data) + bytesOfKept
	}
}

// keep copies a message, if there is room for it in so many bytes. One always has room.
func (m *meeting) keep(message []byte, at time.Time, most int) bool {
	size := len(message) + bytesOfKept
	if len(m.kept) > 0 && m.size+size > most {
		return false
	}
	m.kept = append(m.kept, keptMessage{bytes.Clone(message), at})
	m.size += size
	return true
}

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
