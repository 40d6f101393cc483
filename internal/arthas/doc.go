// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package arthas is a client of the HTTP API of Arthas, which is attached to a live Java process. Its facts are of Arthas
// 4.3.4; the API is the same since 3.4.0.
//
// A [Client] knows one server. [Client.Exec] carries out one [Command] and returns all its results. [Client.Open] opens a
// [Session], and [Session.Start] starts a [Job] in it, for a command with results over a longer time. [Job.Pull] returns
// the results, page by page, until the job ends.
//
// The package knows neither sums nor resets of classes. A reset while a job runs leaves the classes of the job
// instrumented, so a caller interrupts its jobs first.
package arthas
