// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"net/http"
	"os/exec"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
)

// RunPeer runs the process of a server until the end of the test, and waits until it answers a GET
// of url with 200. If the test fails, its output is shown under its name.
func RunPeer(t testing.TB, name string, command *exec.Cmd, url string) {
	t.Helper()
	said := &bytes.Buffer{} // is read when the process has ended
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		t.Fatalf("start %s: %v", command.Path, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = command.Wait() // the output has the reason
		close(exited)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // an error means that it has ended
		<-exited
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, said)
		}
	})
	testkit.Eventually(t, name+" answers", func() (bool, string) {
		select {
		case <-exited:
			t.Fatalf("%s ended at its start:\n%s", name, said)
		default:
		}
		response, err := client.Get(url)
		if err != nil {
			return false, err.Error()
		}
		response.Body.Close() // its content is not needed
		return response.StatusCode == http.StatusOK, response.Status
	})
}
