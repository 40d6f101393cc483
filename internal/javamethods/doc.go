// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package javamethods defines the commands and the answers of tracers about methods of a live Java process. Greys and
// Arthas have them in common. Each protocol has a package of its own, which knows its wire format.
//
// A client sends a [Command] and receives any number of answers ([Reply]) until the command ends.
package javamethods
