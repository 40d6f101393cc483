// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package symbols converts addresses of traced processes to names and source lines of functions.
//
// A tracer reports the loaded objects (executables and shared libraries) of a process, and their addresses. [Objects]
// holds those of one process. [Files] finds and reads the objects' files, which contain the names, once for all
// processes. The package knows ELF files and C++ and Rust names. It knows no tracer. Package dwarfline knows line tables.
//
// # From an address to a name
//
//  1. Find the object that contains the address.
//  2. Find the object's file by the tracer's description, and read the table of its functions. This happens
//     at the first lookup in the object.
//  3. Convert the address to an address in the file. The difference is that between the first loadable
//     segment's address in the process and its address in the file. In executables with fixed addresses
//     (ET_EXEC) both are equal.
//  4. Look up the function that contains the address, and demangle its name. Its source line is that of its first
//     instruction, whichever of its addresses is looked up.
//
// Without a file, or without a function in it, the name is object+0xoffset, the offset from the object's base.
// Without an object it is 0xaddress.
//
// # Which file is read
//
// Paths arrive from the traced process, over the network. So:
//
//   - Only files below the directories in [Settings].Paths are opened: each directory is used as the root of
//     the reported path. Symbolic links are followed inside the directory. Absolute links and links out of it
//     are an error. Without paths, no file is opened.
//   - Paths in /dev, /proc and /sys are refused, and only regular files that are not empty are opened. Devices have
//     effects when they are opened, and a FIFO would wait. On Linux, a file of the kernel's file systems is refused
//     after it was opened and before it is read, wherever they are mounted.
//   - A file must be the loaded one. If the tracer reported a build ID, the file must have the same. Otherwise
//     the file must have none, and its segments must have the reported size. Another build can have the same size.
//   - Limits bound the bytes read from a file and the memory for them, with any content.
//
// A peer learns nothing from this: the names are sent to the backend of the collector's operator, not to the peer.
// Nothing of a file is used if it is no ELF object, or if the peer does not know its build ID. The settings bound the
// cost. So the default is the whole file system, "/": a collector on the machine of the traced programs needs no
// configuration. On other machines the default does no harm, because different files have different build IDs.
//
// Programs are often stripped. So the package also searches for files with debug information: .build-id/xx/yyyy.debug
// below each directory and its usr/lib/debug, and the reported debug link. They require a build ID. The first file
// with a full table (.symtab) and line tables is used, or else the first one with a full table. If there is none, the
// exported functions (.dynsym) of the object itself are used. A result without all of this is searched again for objects
// that are loaded later: for one with another path, and after [Settings].RetryAfter. A loaded object keeps its table.
//
// # Names
//
// OpenTelemetry's conventions define code.function.name as the fully qualified name without arguments, in the
// language's natural form. [Function].Qualified is this name: for shop::Order::pay(int) const it is shop::Order::pay.
// Template arguments stay, because they identify the function. Return types, parameters (also those of enclosing
// functions), cv-qualifiers, ABI tags, symbol versions and compilers' suffixes of clones (.isra.0, .cold) are
// removed. Display is the last two parts of it without template arguments: Order::pay.
package symbols
