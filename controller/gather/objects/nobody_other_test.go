//go:build !linux

package objects_test

import "testing"

// asNobody: only Linux is run as root here.
func asNobody(*testing.T) bool { return false }
