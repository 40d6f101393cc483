// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package memorybudgetextension gives the components of a collector one memory budget.
//
// internal/componentkit/budget decides which component gives way at the limit. This package only finds
// the limit, from its configuration, the memory of the process, and the configuration of
// memory_limiter, and reports what is held.
package memorybudgetextension
