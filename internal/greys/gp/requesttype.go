// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import "fmt"

// RequestType is the type of a request ("请求类型").
type RequestType uint16

// The request types of the document. It has no codes for sessions, stacks and records: see [Codes].
const (
	Heartbeat RequestType = 0x01 // 心跳
	Version   RequestType = 0x02 // 获取服务端版本
	Monitor   RequestType = 0x03 // 监控方法调用
	Reset     RequestType = 0x04 // 重置增强类
	Classes   RequestType = 0x05 // 搜索已加载类
	Methods   RequestType = 0x06 // 搜索已经加载类方法
)

// Codes are the types of requests that the document describes without a code. A request whose code is 0 is not sent:
// javamethods.ErrUnsupported.
type Codes struct{ Sessions, Stack, Records, RecordDetail RequestType }

// UsualCodes continue the document's codes, in its order.
func UsualCodes() Codes {
	return Codes{Sessions: 0x07, Stack: 0x08, Records: 0x09, RecordDetail: 0x0a}
}

// Check returns an error if two requests have the same code.
func (c Codes) Check() error {
	used := map[RequestType]string{
		Heartbeat: "the heartbeat", Version: "the version", Monitor: "monitor", Reset: "reset", Classes: "classes", Methods: "methods",
	}
	for _, code := range []struct {
		name string
		code RequestType
	}{{"session", c.Sessions}, {"stack", c.Stack}, {"tt_list", c.Records}, {"tt_detail", c.RecordDetail}} {
		if code.code == 0 {
			continue
		}
		if other, is := used[code.code]; is {
			return fmt.Errorf("code %#04x of %s is also the code of %s: expected another code, or 0 for none", uint16(code.code), code.name, other)
		}
		used[code.code] = code.name
	}
	return nil
}
