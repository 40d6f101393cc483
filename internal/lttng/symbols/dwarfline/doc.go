// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package dwarfline reads the source file and line at which functions begin, from the line tables (.debug_line) of DWARF
// 2 to 5. It knows no object files: the caller opens the sections.
//
// # Which line
//
// The place of a function is the first row of the line table at the address of its first instruction. GCC and Clang
// write the line of the opening brace there. It is the place that addr2line and babeltrace2 show, and the conventions
// of OpenTelemetry ask for a line inside the function. DW_AT_decl_line of the function's entry in .debug_info is the
// line of its name, often one line above. But .debug_info is five to twenty times as large, refers to itself across
// units, and is partly or completely in other files after dwz or -gsplit-dwarf. Line tables remain in the program with
// -gsplit-dwarf, with -g1, and after optimisation at link time.
//
// A function without a row at exactly this address has no place. Rows of removed code have the address 0 or the highest
// one. They are ignored.
//
// # Hostile input
//
// debug/dwarf is not used: it allocates the number of files that a header claims, before it reads them. This
// package allocates in proportion to bytes that it has read. [Limits] bound the bytes, and so the time. It reads each
// program of .debug_line once. An unreadable program costs only its own places.
package dwarfline
