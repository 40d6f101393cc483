// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package ctfdir reads CTF traces from directories, as tracers leave them on disk: a
// file named metadata, and files of packets beside it, one for each stream. Other
// directories in it, such as LTTng's index, and files that begin with a dot are left
// alone.
package ctfdir
