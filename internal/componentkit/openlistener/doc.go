// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package openlistener warns of listeners that other machines can connect to without authentication. The warning has the
// same words for every component. The package checks the actual address of the listener and not the configured one,
// because a host name may resolve to any address.
package openlistener
