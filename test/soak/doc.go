// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak runs the built distribution for any time, with every receiver under load and with
// faults. It reports the fate of all sent data: delivered, counted as lost, or lost with a killed
// process. The rest is unexplained, and fails the test. `make soak` runs it.
package soak
