// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbkitserver plays the server of Rbkit that runs inside a Ruby process, faults
// included: it publishes messages of captures, or ones that are generated, and obeys
// commands. It knows no receiver.
package rbkitserver
