// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak runs the built distribution for as long as one likes, with every receiver
// under load and with faults, and reports what became of everything that was sent: it was
// delivered, it was announced as lost, or it was lost with a process that was killed. What
// is none of these is unexplained, and fails the test. `make soak` runs it.
package soak
