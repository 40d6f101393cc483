// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// disk is a small file system for the queue. The test can fill it.
type disk struct {
	folder string
	small  bool
}

// diskSize is several times the size of the queues, so only fill makes the disk full. See
// docs/reliability.md.
const diskSize = "192m"

// newDisk mounts a file system in memory, if root runs the test. Otherwise the queue is in the
// test's temporary folder, and the disk is never full.
func newDisk(t testing.TB) *disk {
	t.Helper()
	d := &disk{folder: t.TempDir()}
	output, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+diskSize, "tmpfs", d.folder).CombinedOutput()
	if err != nil {
		t.Logf("The disk is not filled, as only root can mount a small one: %s", output)
		return d
	}
	d.small = true
	t.Cleanup(func() {
		if output, err := exec.Command("umount", d.folder).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", d.folder, err, output)
		}
	})
	return d
}

// fill fills the disk, and reports whether it is full.
func (d *disk) fill() (bool, error) {
	if !d.small {
		return false, nil
	}
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return false, err
	}
	defer f.Close()
	_, err = io.Copy(f, endless{})
	if errors.Is(err, syscall.ENOSPC) {
		return true, nil
	}
	return false, err
}

// free removes the data of fill.
func (d *disk) free() error {
	if err := os.Remove(d.ballast()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *disk) ballast() string { return filepath.Join(d.folder, "ballast") }

// endless reads as zeros without end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
