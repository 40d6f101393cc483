// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// Relay is a relay daemon. It can be ended and started again, at the same ports.
type Relay struct {
	// Live is the address that viewers connect to.
	Live string
	// Output is the directory of its recordings, with a directory of traces for each session.
	Output string

	daemons       *Daemons
	control, data string
	process       *process
}

// Start starts the relay daemon, which must not be running, and waits until it is ready.
func (r *Relay) Start(t testing.TB) {
	t.Helper()
	r.process = start(t, r.daemons.command("lttng-relayd", "--output="+r.Output, "--fd-pool-size=512",
		"--control-port=tcp://"+r.control, "--data-port=tcp://"+r.data, "--live-port=tcp://"+r.Live),
		filepath.Join(r.daemons.Dir, "relayd.log"))
	for _, address := range []string{r.control, r.data, r.Live} {
		r.process.await(t, "the relay daemon listens at "+address, func() error {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			return connection.Close()
		})
	}
}

// Kill ends the relay daemon as a crash does.
func (r *Relay) Kill(t testing.TB) {
	t.Helper()
	if r.process.hasEnded() {
		t.Fatalf("expected the relay daemon to run, it has ended: %v\n%s", r.process.exit, r.process.said())
	}
	r.process.kill()
}

// Size returns the number of bytes in the relay daemon's files.
func (r *Relay) Size(t testing.TB) (size int64) {
	t.Helper()
	r.eachFile(t, func(file fs.FileInfo) { size += file.Size() })
	return size
}

// Written is when it wrote to a file last.
func (r *Relay) Written(t testing.TB) (last time.Time) {
	t.Helper()
	r.eachFile(t, func(file fs.FileInfo) {
		if file.ModTime().After(last) {
			last = file.ModTime()
		}
	})
	return last
}

func (r *Relay) eachFile(t testing.TB, do func(fs.FileInfo)) {
	t.Helper()
	err := filepath.WalkDir(r.Output, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return ignoreRemoved(err)
		}
		info, err := entry.Info()
		if err == nil {
			do(info)
		}
		return ignoreRemoved(err)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ignoreRemoved is the error unless the relay daemon has just removed a file.
func ignoreRemoved(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
