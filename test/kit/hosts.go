// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Hosts is a file of names and addresses that only some collectors see as /etc/hosts. It changes
// while they run, like the answers of a DNS server.
type Hosts struct{ name, path string }

// NewHosts makes a file of one name, which has these addresses. Where a process can't have
// a file of its own, the test is skipped, or fails if CALLBRAID_REQUIRE_PEERS is set.
func NewHosts(t testing.TB, name string, addresses ...string) *Hosts {
	t.Helper()
	h := &Hosts{name: name, path: filepath.Join(t.TempDir(), "hosts")}
	h.Set(t, addresses...)
	output, err := exec.Command(h.seenBy(t, "grep"), name, "/etc/hosts").CombinedOutput()
	if err != nil && os.Getenv("CALLBRAID_REQUIRE_PEERS") == "" {
		t.Skipf("expected a process to see a file as /etc/hosts, which needs Linux and unprivileged user namespaces; got: %v: %s", err, output)
	}
	if err != nil || len(addresses) > 0 && !strings.Contains(string(output), addresses[0]) {
		t.Fatalf("expected a process to see %v as /etc/hosts, got: %v: %s", addresses, err, output)
	}
	return h
}

// Set changes the addresses of the name. Programs see them after some seconds.
func (h *Hosts) Set(t testing.TB, addresses ...string) {
	t.Helper()
	lines := "127.0.0.1 localhost\n"
	for _, address := range addresses {
		lines += address + " " + h.name + "\n"
	}
	// It writes in place: a program that has the file as /etc/hosts would not see a new file of the same name.
	if err := os.WriteFile(h.path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
}

// seenBy is a program that runs the binary, which then is in its process, so that it sees
// the file.
func (h *Hosts) seenBy(t testing.TB, binary string) (program string) {
	t.Helper()
	program = filepath.Join(filepath.Dir(h.path), filepath.Base(binary)+".sh")
	script := fmt.Sprintf(`#!/bin/sh
exec unshare --map-root-user --mount sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' '%s' '%s' "$@"
`, h.path, binary)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// RequireUnshare skips a test where a process can't have a network of its own, or fails it if CALLBRAID_REQUIRE_PEERS is set.
func RequireUnshare(t testing.TB) {
	t.Helper()
	output, err := exec.Command("unshare", "--map-root-user", "--net", "ip", "link", "set", "lo", "up").CombinedOutput()
	if err != nil && os.Getenv("CALLBRAID_REQUIRE_PEERS") == "" {
		t.Skipf("expected a process to have a network of its own, which needs Linux, iproute2 and unprivileged user namespaces; got: %v: %s", err, output)
	}
	if err != nil {
		t.Fatalf("expected a process to have a network of its own, got: %v: %s", err, output)
	}
}
