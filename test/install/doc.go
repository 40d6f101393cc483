// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package install has the tests of what `make package` makes: packages are installed in a
// clean Debian and run there as their units say, an image is built and run.
// `make package-test` runs them, as root.
package install
