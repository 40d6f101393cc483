// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package history stores call trees in a storage extension: the trees themselves, so that the next collector continues them, and
// windows of an hour and of a day. It knows no pages. internal/call/storedtree has the format.
//
// # Time of a save
//
//   - Nothing is stored for a call. A save takes place in each interval, at the end of each hour, before and after a reset, and at the
//     shutdown. A collector that is killed loses the calls since its last save, and the next one says so on the page of that hour.
//   - A save stores each tree that changed, twice: as a whole (live), and its growth in the current hour. Both replace the
//     entries that the last save of this collector made of the tree.
//   - A window can have several parts: one for each collector that ran in it, and one for each tree, if a reset or an eviction made
//     another one of the service. No call is in two parts, because a restored tree counts as grown before.
//   - When a day has ended, its hours become one tree. Hours that it has are known by their part numbers, which only rise. So
//     a sum that was interrupted, or that failed, begins again, and no hour counts twice.
//   - A damaged entry costs only itself. The page of its window shows the other parts, and names the missing ones.
//   - Entries of another version stay until they are too old, or beyond the bound. They are listed, but not read. The tree begins again
//     beside them, and so it does if the storage fails at the start. The next collector that can read all adds them up.
//   - The catalog lists the entries, and is stored with them in one transaction. Entries without a place in it, for example
//     because it is damaged, are found by walking through the storage, if the extension can do that.
//
// # Bounds
//
// The oldest hours and days go first. Beyond the bound in bytes, the oldest window of the service that takes most goes. If the storage
// refuses data, hours that have ended wait in memory within a bound. Everything that is dropped is counted.
package history
