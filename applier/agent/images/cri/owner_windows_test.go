package cri

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"
)

// TestAPipeOfAUserIsNotAsked: one that SYSTEM or Administrators own is. The server's end is Windows' own, as Wine runs no listener of winio.
func TestAPipeOfAUserIsNotAsked(t *testing.T) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		owner string
		why   string
	}{
		"of Administrators": {"BA", ""},
		"of a user":         {user.User.Sid.String(), "neither SYSTEM nor Administrators"},
	} {
		t.Run(name, func(t *testing.T) {
			path := fmt.Sprintf(`\\.\pipe\wmco-test-%d-%s`, windows.GetCurrentProcessId(), strings.ReplaceAll(name, " ", "-"))
			sd, err := windows.SecurityDescriptorFromString("O:" + tt.owner + "D:(A;;GA;;;WD)")
			if err != nil {
				t.Fatal(err)
			}
			text, err := windows.UTF16PtrFromString(path)
			if err != nil {
				t.Fatal(err)
			}
			attributes := &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: sd}
			server, err := windows.CreateNamedPipe(text, windows.PIPE_ACCESS_DUPLEX, windows.PIPE_TYPE_BYTE, 1, 4096, 4096, 0, attributes)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = windows.CloseHandle(server) }()
			conn, err := dialPipe(t.Context(), path)
			if err == nil {
				err = conn.Close()
			}
			switch {
			case tt.why == "" && err != nil:
				t.Error(err)
			case tt.why != "" && (err == nil || !strings.Contains(err.Error(), tt.why)):
				t.Errorf("%v, want %q", err, tt.why)
			}
		})
	}
}
