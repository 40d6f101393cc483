// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Paths in Debian of the files that are not commands. A directory of libraries is named after the architecture.
const (
	functionTracer = "/usr/lib/*/liblttng-ust-cyg-profile.so"
	fastTracer     = "/usr/lib/*/liblttng-ust-cyg-profile-fast.so"
	javaLibrary    = "/usr/lib/*/jni/liblttng-ust-jul-jni.so"
	javaCommon     = "/usr/share/java/lttng-ust-agent-common.jar"
	javaAgent      = "/usr/share/java/lttng-ust-agent-jul.jar"
	javaLog4jAgent = "/usr/share/java/lttng-ust-agent-log4j.jar"
	javaLog4j      = "/usr/share/java/log4j-1.2.jar"
)

// remedy is how the peers are had.
const remedy = "install LTTng (Debian: apt-get install lttng-tools liblttng-ust-dev liblttng-ust-agent-java liblttng-ust-agent-java-jni python3-lttngust babeltrace2 gcc libc6-dev openjdk-17-jdk-headless util-linux)"

// Require skips the test if a part of LTTng or a compiler is missing. If CALLBRAID_REQUIRE_PEERS is set, the test
// fails instead.
func Require(t testing.TB) {
	t.Helper()
	for _, command := range []string{"lttng", "lttng-sessiond", "lttng-relayd", "babeltrace2", "gcc", "javac", "java"} {
		if _, err := exec.LookPath(command); err != nil {
			missing(t, command+" in PATH")
		}
	}
	for _, pattern := range []string{functionTracer, fastTracer, javaLibrary, javaCommon, javaAgent, javaLog4jAgent, javaLog4j} {
		file(t, pattern)
	}
}

// file is the file of a pattern.
func file(t testing.TB, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		missing(t, pattern)
	}
	return files[0]
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CALLBRAID_REQUIRE_PEERS") != "" {
		t.Fatalf("expected %s, since CALLBRAID_REQUIRE_PEERS is set; %s", what, remedy)
	}
	t.Skipf("no %s: %s", what, remedy)
}
