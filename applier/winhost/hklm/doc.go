// Package hklm reads and changes the registry of the host, HKEY_LOCAL_MACHINE. Paths are relative to it.
package hklm
