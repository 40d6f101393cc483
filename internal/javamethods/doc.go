// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package javamethods defines what a client can ask a tracer about the methods of a live Java process, and the answers.
// Greys and Arthas have these commands and answers in common. Each protocol has a package of its own, which knows its
// wire format.
//
// A client sends a [Command] and receives any number of answers ([Reply]) until the command ends.
package javamethods
