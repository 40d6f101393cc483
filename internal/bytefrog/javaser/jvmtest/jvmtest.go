// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package jvmtest runs Java programs in tests, so that a JVM verifies data for a JVM.
package jvmtest

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// RequirePeers is the environment variable that turns a missing peer into a failure.
const RequirePeers = "CALLBRAID_REQUIRE_PEERS"

// Run compiles the Java sources below the folder, runs the class main with stdin, and returns its output. Without a JDK
// it skips the test, or fails if RequirePeers is set. It fails if the program fails.
func Run(t *testing.T, folder, main string, stdin []byte) []byte {
	t.Helper()
	for _, tool := range []string{"javac", "java"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, tool)
		}
	}
	classes := t.TempDir()
	compile := append([]string{"-encoding", "UTF-8", "-d", classes}, sources(t, folder)...)
	command(t, nil, "javac", compile...)
	return command(t, stdin, "java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classes, main)
}

func missing(t *testing.T, tool string) {
	t.Helper()
	const remedy = "install a JDK of version 11 or later (Debian: apt-get install openjdk-17-jdk-headless)"
	if os.Getenv(RequirePeers) != "" {
		t.Fatalf("expected %s in PATH, because %s is set; %s", tool, RequirePeers, remedy)
	}
	t.Skipf("no %s in PATH: %s", tool, remedy)
}

// sources returns the Java files below the folder.
func sources(t *testing.T, folder string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".java" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatalf("look for Java sources: %v", err)
	}
	if len(files) == 0 {
		t.Fatalf("expected Java sources below %s, got none", folder)
	}
	return files
}

// command runs a program and returns its output.
func command(t *testing.T, stdin []byte, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, stderr.String())
	}
	return stdout.Bytes()
}
