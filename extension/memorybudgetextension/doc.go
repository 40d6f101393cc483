// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package memorybudgetextension has the memory budget of a collector's components.
//
// internal/componentkit/budget decides which component must free memory at the limit. This package
// finds the limit from its configuration, the memory of the process, and the configuration of
// memory_limiter, and reports the memory in use.
package memorybudgetextension
