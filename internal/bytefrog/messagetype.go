// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import "strconv"

// MessageType is the first byte of every message.
type MessageType uint8

// The message types of the document, and of the later versions where marked.
const (
	TypeHello                MessageType = 0
	TypeConfiguration        MessageType = 1
	TypeStart                MessageType = 2
	TypeStop                 MessageType = 3
	TypePause                MessageType = 4
	TypeUnpause              MessageType = 5
	TypeSuspend              MessageType = 6
	TypeUnsuspend            MessageType = 7
	TypeHeartbeat            MessageType = 8
	TypeDataBreak            MessageType = 9
	TypeMapThreadName        MessageType = 10
	TypeMapMethod            MessageType = 11
	TypeMapException         MessageType = 12
	TypeMapSourceLocation    MessageType = 13 // version 3
	TypeMethodVisit          MessageType = 14 // version 3
	TypeSourceLocationCount  MessageType = 15 // version 3
	TypeProjectHello         MessageType = 16 // version 4
	TypeMethodEntry          MessageType = 20
	TypeMethodExit           MessageType = 21
	TypeException            MessageType = 22
	TypeExceptionBubble      MessageType = 23
	TypeDataHello            MessageType = 30
	TypeDataHelloReply       MessageType = 31
	TypeClassTransformed     MessageType = 40
	TypeClassIgnored         MessageType = 41
	TypeClassTransformFailed MessageType = 42
	TypeMarker               MessageType = 50
	TypeError                MessageType = 99
)

var typeNames = map[MessageType]string{
	TypeHello:                "hello",
	TypeConfiguration:        "configuration",
	TypeStart:                "start",
	TypeStop:                 "stop",
	TypePause:                "pause",
	TypeUnpause:              "unpause",
	TypeSuspend:              "suspend",
	TypeUnsuspend:            "unsuspend",
	TypeHeartbeat:            "heartbeat",
	TypeDataBreak:            "data break",
	TypeMapThreadName:        "map thread name",
	TypeMapMethod:            "map method signature",
	TypeMapException:         "map exception",
	TypeMapSourceLocation:    "map source location",
	TypeMethodVisit:          "method visit",
	TypeSourceLocationCount:  "source location count",
	TypeProjectHello:         "project hello",
	TypeMethodEntry:          "method entry",
	TypeMethodExit:           "method exit",
	TypeException:            "exception",
	TypeExceptionBubble:      "exception bubble",
	TypeDataHello:            "data hello",
	TypeDataHelloReply:       "data hello reply",
	TypeClassTransformed:     "class transformed",
	TypeClassIgnored:         "class ignored",
	TypeClassTransformFailed: "class transform failed",
	TypeMarker:               "marker",
	TypeError:                "error",
}

// String returns the document's name of the type, or "message type N".
func (t MessageType) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return "message type " + strconv.Itoa(int(t))
}

// IsEvent reports whether messages of the type are call events: entry, exit,
// exception, exception bubble.
func (t MessageType) IsEvent() bool { return t >= TypeMethodEntry && t <= TypeExceptionBubble }

// IsCommand reports whether messages of the type are commands to an agent, on its control connection, that consist only
// of the type byte: start to unsuspend.
func (t MessageType) IsCommand() bool { return t >= TypeStart && t <= TypeUnsuspend }
