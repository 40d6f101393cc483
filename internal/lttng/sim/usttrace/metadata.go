// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package usttrace

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// The event classes, by their IDs in their channels.
const (
	statedumpStart = iota
	statedumpObject
	statedumpEnd
	funcEntry
	funcExit
)

const (
	workRequest = iota
	workSamples
)

// The channels, which are stream classes.
const (
	channelCalls = iota
	channelWork
	channels
)

var channelNames = [channels]string{"calls", "work"}

// ProviderWork is the tracepoint provider of events that are not calls.
const ProviderWork = "work"

// preamble is the metadata before the channels, as LTTng writes it. It formats the UUID, the domain and the tracer.
const preamble = `/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 27; align = 1; signed = false; } := uint27_t;

trace {
	major = 1;
	minor = 8;
	uuid = "%s";
	byte_order = le;
	packet.header := struct {
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	};
};

env {
	domain = "%s";
	tracer_name = "%s";
	tracer_major = 2;
	tracer_minor = 13;
	tracer_buffering_scheme = "uid";
	tracer_buffering_id = 1000;
	architecture_bit_width = 64;
	trace_name = "usttrace";
	hostname = "host";
};

clock {
	name = "monotonic";
	description = "Monotonic Clock";
	freq = 1000000000; /* Frequency, in Hz */
	/* clock value offset from Epoch is: offset * (1/freq) */
	offset = 1790000000000000000;
};

typealias integer {
	size = 27; align = 1; signed = false;
	map = clock.monotonic.value;
} := uint27_clock_monotonic_t;

typealias integer {
	size = 32; align = 8; signed = false;
	map = clock.monotonic.value;
} := uint32_clock_monotonic_t;

typealias integer {
	size = 64; align = 8; signed = false;
	map = clock.monotonic.value;
} := uint64_clock_monotonic_t;

struct packet_context {
	uint64_clock_monotonic_t timestamp_begin;
	uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	unsigned long events_discarded;
	uint32_t cpu_id;
};

struct event_header_compact {
	enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
	variant <id> {
		struct {
			uint27_clock_monotonic_t timestamp;
		} compact;
		struct {
			uint32_t id;
			uint64_clock_monotonic_t timestamp;
		} extended;
	} v;
} align(8);

struct event_header_large {
	enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;
	variant <id> {
		struct {
			uint32_clock_monotonic_t timestamp;
		} compact;
		struct {
			uint32_t id;
			uint64_clock_monotonic_t timestamp;
		} extended;
	} v;
} align(8);

`

// contextFields are the contexts of "lttng add-context -u -t vtid -t vpid -t procname".
const contextFields = `	event.context := struct {
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _vtid;
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _vpid;
		integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _procname[17];
	};
`

// Types of fields as LTTng-UST declares them.
const (
	typeAddress = "integer { size = 64; align = 8; signed = 0; encoding = none; base = 16; }"
	typeUint64  = "integer { size = 64; align = 8; signed = 0; encoding = none; base = 10; }"
	typeUint8   = "integer { size = 8; align = 8; signed = 0; encoding = none; base = 10; }"
	typeInt32   = "integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; }"
	typeDouble  = "floating_point { exp_dig = 11; mant_dig = 53; align = 8; }"
)

// uuid is the UUID of the trace.
var uuid = [16]byte{0x6a, 0x16, 0x87, 0xdd, 0x5d, 0xe6, 0x4a, 0xa6, 0x92, 0xb1, 0x1a, 0xe1, 0x35, 0x1d, 0x55, 0xf6}

// metadataText returns the metadata of a trace with or without contexts.
func metadataText(contexts bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, preamble, uuidText(), "ust", "lttng-ust")
	for channel, header := range [channels]string{"event_header_large", "event_header_compact"} {
		fmt.Fprintf(&b, "stream {\n\tid = %d;\n\tevent.header := struct %s;\n\tpacket.context := struct packet_context;\n", channel, header)
		if contexts {
			b.WriteString(contextFields)
		}
		b.WriteString("};\n\n")
	}
	event := func(channel, id, level int, name string, fields ...string) {
		declareEvent(&b, channel, id, fmt.Sprintf("\tloglevel = %d;\n", level), name, fields...)
	}
	event(channelCalls, statedumpStart, 13, "lttng_ust_statedump:start")
	event(channelCalls, statedumpObject, 13, "lttng_ust_statedump:bin_info", typeAddress+" _baddr", typeUint64+" _memsz", "string _path",
		typeUint8+" _is_pic", typeUint8+" _has_build_id", typeUint8+" _has_debug_link")
	event(channelCalls, statedumpEnd, 13, "lttng_ust_statedump:end")
	event(channelCalls, funcEntry, 12, "lttng_ust_cyg_profile:func_entry", typeAddress+" _addr", typeAddress+" _call_site")
	event(channelCalls, funcExit, 12, "lttng_ust_cyg_profile:func_exit", typeAddress+" _addr", typeAddress+" _call_site")
	event(channelWork, workRequest, 6, ProviderWork+":request", "string _method", "string _path", typeUint64+" _bytes", typeInt32+" _status", typeDouble+" _seconds")
	event(channelWork, workSamples, 13, ProviderWork+":samples", "string _name",
		typeUint8+" __values_length", typeInt32+" _values[ __values_length ]",
		typeUint8+" __digest_length", typeUint8+" _digest[ __digest_length ]")
	return b.String()
}

// declareEvent declares an event class. more are further lines of its declaration.
func declareEvent(b *strings.Builder, channel, id int, more, name string, fields ...string) {
	fmt.Fprintf(b, "event {\n\tname = \"%s\";\n\tid = %d;\n\tstream_id = %d;\n%s\tfields := struct {\n", name, id, channel, more)
	for _, f := range fields {
		fmt.Fprintf(b, "\t\t%s;\n", f)
	}
	b.WriteString("\t};\n};\n\n")
}

func uuidText() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
}

// Constants of metadata packets.
const (
	metadataMagic      = 0x75D11D57
	metadataHeaderSize = 37
	metadataPacketSize = 4096
)

// MetadataPackets returns text in packets, as a relay daemon and a consumer daemon store it.
func MetadataPackets(text string) []byte {
	var b []byte
	for len(text) > 0 {
		n := min(metadataPacketSize-metadataHeaderSize, len(text))
		packet := make([]byte, metadataPacketSize)
		binary.LittleEndian.PutUint32(packet, metadataMagic)
		copy(packet[4:], uuid[:])
		binary.LittleEndian.PutUint32(packet[24:], uint32(metadataHeaderSize+n)*8)
		binary.LittleEndian.PutUint32(packet[28:], metadataPacketSize*8)
		packet[35], packet[36] = 1, 8 // the version of CTF
		copy(packet[metadataHeaderSize:], text[:n])
		text = text[n:]
		b = append(b, packet...)
	}
	return b
}
