// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbkitserver simulates the server of Rbkit inside a Ruby process, with faults. It
// publishes messages of captures, or generated ones, and obeys commands. It knows no receiver.
package rbkitserver
