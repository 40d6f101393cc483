// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package openlistener decides whether other machines can connect to a listener that does not
// ask clients who they are, and logs one warning with the same words for every component. It
// looks at the address that the listener has, not at the one that was configured: a host name
// may resolve to any address.
package openlistener
