// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package symbols turns addresses of traced processes into names of functions.
//
// A tracer says which objects (executables and shared libraries) are loaded in a
// process, and where: [Objects] is what one process has loaded. The names stand
// in the objects' files, which [Files] finds and reads, once for all processes.
// The package knows ELF files, C++ and Rust names. It knows no tracer, and no
// line numbers.
//
// # From an address to a name
//
//  1. The object that covers the address is found.
//  2. The object's file is found by what the tracer said of it, at the first
//     address that is asked for in it, and the table of its functions is read.
//  3. The address becomes an address in the file: by the difference of where the
//     first loadable segment lies in the process and where the file says that it
//     lies; in executables with fixed addresses (ET_EXEC) the two are equal.
//  4. The function that covers the address is looked up, and its name demangled.
//
// Where there is no file, or no function in it, the name is object+0xoffset, the
// offset from the object's base; where there is no object it is 0xaddress.
//
// # Which file is read
//
// Paths come from the traced process, over the network. So:
//
//   - Only files below the directories in [Settings].Paths are opened: the told
//     path is taken as one below each of them. Symbolic links are followed as
//     long as they stay in the directory; absolute ones and those that lead out
//     of it are an error. Nothing is opened where no path is set.
//   - /dev, /proc and /sys are never looked into, and only regular files are
//     opened: devices have effects when they are opened, and a FIFO would wait.
//   - A file must be the one that was loaded. Where a build ID was told, the file
//     has to have that one; where none was told, the file must have none and its
//     segments must have the size that was told. A wrong file never names
//     functions.
//   - Whatever a file holds, what is read of it and kept from it is bounded.
//
// What a peer could learn is nothing: the names go to the backend of whoever runs
// the collector, not back to the peer, and of a file that is no ELF object, or
// whose build ID the peer doesn't know, nothing is used at all. What it could
// cost is bounded by the settings. So the default is the whole file system, "/":
// a collector beside the traced programs names functions without configuration.
// Elsewhere the same default does no harm, since build IDs differ where files do.
//
// Besides the told path, files with debug information are looked for, since
// programs are often stripped: .build-id/xx/yyyy.debug below each directory and
// its usr/lib/debug, and the told debug link. They need a build ID. The first
// file with a full table (.symtab) is taken; where there is none, the exported
// functions (.dynsym) of the object itself have to do.
//
// # Names
//
// OpenTelemetry's conventions ask in code.function.name for the fully qualified
// name without arguments, in the language's natural form. That is [Function].Qualified: of
// shop::Order::pay(int) const it is shop::Order::pay. Template arguments stay,
// since they are part of which function it is; return types, parameters (those of
// enclosing functions too), cv-qualifiers, ABI tags, symbol versions and the
// suffixes of clones that compilers make (.isra.0, .cold) go. Display is the last
// two parts of that without template arguments: Order::pay.
package symbols
