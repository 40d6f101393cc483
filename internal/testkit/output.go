// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"bytes"
	"sync"
)

// Output is the output of a program, which a test reads while the program writes it.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// String returns the output until now.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
