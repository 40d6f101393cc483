// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package storedtree is the format in which a collector stores call trees for the next one. It knows no storage, and not which
// trees are stored when.
//
// # Layout
//
//	"cbct"                  magic
//	version                 1 byte: 2
//	length, header          length as uvarint
//	body                    compressed by zstd, up to the checksum
//	checksum                4 bytes, little endian: CRC-32C of everything before
//
// Numbers are varints, and signed ones in zigzag encoding. Texts are a length and bytes. The header has the window of the tree
// ([Window]), its part, service, kind, times, and the number of its paths. A reader needs no other entry, and no time for the body, to
// list trees. The body has remarks, gaps, the table of functions (name, file, line), and then the paths in pre-order, column by
// column, because a column compresses better than a row:
//
//   - up: by how many levels a path is above the place below the path before it. 0 is its first child.
//   - function and mark: the number of the function in the table, times 8, plus the mark
//   - calls, errors, total, and total minus self
//
// # Why not a profile of pprof
//
// A profile has a stack for each path, so its size grows with the depth of the tree, and a stack has one time only. Totals, marks
// and gaps would be lost. Here a path takes less than 10 bytes at any depth, and reading returns the written tree.
//
// # Versions
//
// A reader of another version returns [VersionError], and leaves the entry alone: after a downgrade the newer version finds its entries
// again. A change of the layout increments the version, and reads the version before. Version 1 has no numbers of calls that were left
// out, which are among the gaps.
package storedtree
