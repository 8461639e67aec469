//go:build windows

package main

import "unsafe"

// ptr is the address of a buffer that Windows fills.
func ptr(buffer []byte) unsafe.Pointer { return unsafe.Pointer(&buffer[0]) }
