// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/bytefrog/javaser"
	"github.com/callbraid/callbraid/internal/mutf8"
)

// The protocol versions whose agents report calls.
const (
	MinVersion = versionSerialized
	MaxVersion = versionJSON

	versionSerialized = 1 // configuration is a serialised Java object
	versionJSON       = 2 // configuration is JSON
)

// AgentConfiguration is the content of a configuration message, the class
// RuntimeAgentConfigurationV1 of the tracer.
//
// Exclusions and Inclusions are Java regular expressions, tried from the start of
// a class's name with slashes ("^org/apache/maven"). A class is traced unless an
// exclusion matches; an inclusion that matches wins over every exclusion.
type AgentConfiguration struct {
	// RunID is the ID that the agent sends in its data hellos.
	RunID uint8
	// HeartbeatInterval is the time between heartbeats, in whole milliseconds of at
	// most 2^31-1.
	HeartbeatInterval time.Duration
	Exclusions        []string
	Inclusions        []string
	// BufferMemoryBudget is the number of bytes the agent may use for its send
	// buffers; it needs at least 10 of 128 bytes.
	BufferMemoryBudget int32
	// QueueRetryCount is how often the agent tries to get a buffer before it ends tracing; at least 1.
	QueueRetryCount int32
	// DataConnections is the number of data connections the agent opens.
	DataConnections int32
}

// The class of the tracer and its fields.
const (
	configurationClass            = "com.secdec.bytefrog.common.config.RuntimeAgentConfigurationV1"
	configurationSerialVersionUID = -4660117618158655806

	fieldRunID              = "runId"
	fieldHeartbeatInterval  = "heartbeatInterval"
	fieldExclusions         = "exclusions"
	fieldInclusions         = "inclusions"
	fieldBufferMemoryBudget = "bufferMemoryBudget"
	fieldQueueRetryCount    = "queueRetryCount"
	fieldNumDataSenders     = "numDataSenders"
)

// Message returns c as the message that an agent of the protocol version expects:
// Configuration for 1, ConfigurationV2 for 2. It fails for another version, for a
// heartbeat interval that is not whole milliseconds of a Java int, for expressions
// that are not UTF-8, and for JSON that is longer than MaxString bytes.
func (c AgentConfiguration) Message(version uint8) (Message, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	switch version {
	case versionSerialized:
		return c.serialized()
	case versionJSON:
		return c.json()
	default:
		return nil, fmt.Errorf("expected protocol version %d or %d, got %d", versionSerialized, versionJSON, version)
	}
}

func (c AgentConfiguration) check() error {
	ms := c.HeartbeatInterval / time.Millisecond
	if c.HeartbeatInterval%time.Millisecond != 0 || ms < math.MinInt32 || ms > math.MaxInt32 {
		return fmt.Errorf("heartbeat interval: expected whole milliseconds of 32 bits, got %v", c.HeartbeatInterval)
	}
	for _, s := range c.Exclusions {
		if !utf8.ValidString(s) {
			return fmt.Errorf("exclusions: expected UTF-8, got %q", s)
		}
	}
	for _, s := range c.Inclusions {
		if !utf8.ValidString(s) {
			return fmt.Errorf("inclusions: expected UTF-8, got %q", s)
		}
	}
	return nil
}

// milliseconds returns the heartbeat interval in milliseconds. check has verified that it fits.
func (c AgentConfiguration) milliseconds() int32 {
	return int32(c.HeartbeatInterval / time.Millisecond)
}

func (c AgentConfiguration) serialized() (Message, error) {
	data, err := javaser.Marshal(javaser.Object{
		Class:            configurationClass,
		SerialVersionUID: configurationSerialVersionUID,
		Fields: []javaser.Field{
			{Name: fieldRunID, Type: javaser.TypeByte, Value: javaser.Byte(c.RunID)},
			{Name: fieldHeartbeatInterval, Type: javaser.TypeInt, Value: javaser.Int(c.milliseconds())},
			{Name: fieldExclusions, Type: javaser.TypeList, Value: javaser.ArrayList(c.Exclusions)},
			{Name: fieldInclusions, Type: javaser.TypeList, Value: javaser.ArrayList(c.Inclusions)},
			{Name: fieldBufferMemoryBudget, Type: javaser.TypeInt, Value: javaser.Int(c.BufferMemoryBudget)},
			{Name: fieldQueueRetryCount, Type: javaser.TypeInt, Value: javaser.Int(c.QueueRetryCount)},
			{Name: fieldNumDataSenders, Type: javaser.TypeInt, Value: javaser.Int(c.DataConnections)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("serialise configuration: %w", err)
	}
	return Configuration{Data: data}, nil
}

// configurationJSON is the object of protocol version 2. Agents ignore the case of the names. The run ID is 0 to 255
// for the .NET agent; -128 to -1 is also accepted.
type configurationJSON struct {
	RunID              int16    `json:"runId"`
	HeartbeatInterval  int32    `json:"heartbeatInterval"`
	Exclusions         []string `json:"exclusions"`
	Inclusions         []string `json:"inclusions"`
	BufferMemoryBudget int32    `json:"bufferMemoryBudget"`
	QueueRetryCount    int32    `json:"queueRetryCount"`
	NumDataSenders     int32    `json:"numDataSenders"`
}

func (c AgentConfiguration) json() (Message, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(configurationJSON{
		RunID:              int16(c.RunID),
		HeartbeatInterval:  c.milliseconds(),
		Exclusions:         append([]string{}, c.Exclusions...), // never null
		Inclusions:         append([]string{}, c.Inclusions...),
		BufferMemoryBudget: c.BufferMemoryBudget,
		QueueRetryCount:    c.QueueRetryCount,
		NumDataSenders:     c.DataConnections,
	})
	if err != nil {
		return nil, fmt.Errorf("write configuration as JSON: %w", err)
	}
	s := string(bytes.TrimSpace(text.Bytes()))
	if n := mutf8.Len(s); n > MaxString {
		return nil, fmt.Errorf("expected a configuration of at most %d bytes of JSON, got %d", MaxString, n)
	}
	return ConfigurationV2{JSON: s}, nil
}

// ParseAgentConfiguration returns the configuration in m, a Configuration or a ConfigurationV2. A field that is missing
// in JSON is zero. A serialised object must have all fields.
func ParseAgentConfiguration(m Message) (AgentConfiguration, error) {
	switch m := m.(type) {
	case Configuration:
		return parseSerialized(m.Data)
	case ConfigurationV2:
		return parseJSON(m.JSON)
	default:
		return AgentConfiguration{}, fmt.Errorf("expected a configuration, got %T", m)
	}
}

func parseSerialized(data []byte) (AgentConfiguration, error) {
	o, err := javaser.Unmarshal(data)
	if err != nil {
		return AgentConfiguration{}, fmt.Errorf("serialised configuration: %w", err)
	}
	if o.Class != configurationClass || o.SerialVersionUID != configurationSerialVersionUID {
		return AgentConfiguration{}, fmt.Errorf("serialised configuration: expected class %s with serialVersionUID %d, got %s with %d",
			configurationClass, int64(configurationSerialVersionUID), o.Class, o.SerialVersionUID)
	}
	f := fieldReader{object: o}
	c := AgentConfiguration{
		RunID:              uint8(field[javaser.Byte](&f, fieldRunID)),
		HeartbeatInterval:  time.Duration(field[javaser.Int](&f, fieldHeartbeatInterval)) * time.Millisecond,
		Exclusions:         field[javaser.ArrayList](&f, fieldExclusions),
		Inclusions:         field[javaser.ArrayList](&f, fieldInclusions),
		BufferMemoryBudget: int32(field[javaser.Int](&f, fieldBufferMemoryBudget)),
		QueueRetryCount:    int32(field[javaser.Int](&f, fieldQueueRetryCount)),
		DataConnections:    int32(field[javaser.Int](&f, fieldNumDataSenders)),
	}
	if f.err != nil {
		return AgentConfiguration{}, fmt.Errorf("serialised configuration: %w", f.err)
	}
	return c, nil
}

// fieldReader reads fields of an object and stores the first error.
type fieldReader struct {
	object javaser.Object
	err    error
}

func field[T javaser.Value](r *fieldReader, name string) T {
	f, ok := r.object.Field(name)
	v, fits := f.Value.(T)
	switch {
	case r.err != nil:
	case !ok:
		r.err = fmt.Errorf("expected a field %s, got none", name)
	case !fits:
		r.err = fmt.Errorf("field %s: expected %T, got %T", name, v, f.Value)
	}
	return v
}

func parseJSON(text string) (AgentConfiguration, error) {
	var c configurationJSON
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return AgentConfiguration{}, fmt.Errorf("configuration as JSON: %w", err)
	}
	if c.RunID < math.MinInt8 || c.RunID > math.MaxUint8 {
		return AgentConfiguration{}, fmt.Errorf("configuration as JSON: expected a runId of one byte, got %d", c.RunID)
	}
	return AgentConfiguration{
		RunID:              uint8(c.RunID),
		HeartbeatInterval:  time.Duration(c.HeartbeatInterval) * time.Millisecond,
		Exclusions:         c.Exclusions,
		Inclusions:         c.Inclusions,
		BufferMemoryBudget: c.BufferMemoryBudget,
		QueueRetryCount:    c.QueueRetryCount,
		DataConnections:    c.NumDataSenders,
	}, nil
}
