// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package stackpairingprocessor pairs the call events of traced programs, which receivers
// pack into batches, and emits spans. Package engine does the work.
package stackpairingprocessor
