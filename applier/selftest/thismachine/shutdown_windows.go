package thismachine

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"

	"wmco/applier/selftest"
	"wmco/applier/winhost/hklm"
)

// Where Windows keeps the order of preshutdown.
const (
	keyControl = `SYSTEM\CurrentControlSet\Control`
	valueOrder = "PreshutdownOrder"
)

// withService opens a service with rights for the time of use.
func withService(t selftest.T, name string, rights uint32, use func(windows.Handle) error) {
	t.Helper()
	scm, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	check(t, err)
	service, err := windows.OpenService(scm, wide(t, name), rights)
	check(t, errors.Join(err, windows.CloseServiceHandle(scm)))
	check(t, errors.Join(use(service), windows.CloseServiceHandle(service)))
}

// AcceptsPreshutdown implements selftest.PreshutdownKeeper
// (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status_process, SERVICE_ACCEPT_PRESHUTDOWN).
func (Machine) AcceptsPreshutdown(t selftest.T, service string) bool {
	t.Helper()
	var status windows.SERVICE_STATUS_PROCESS
	withService(t, service, windows.SERVICE_QUERY_STATUS, func(s windows.Handle) error {
		var needed uint32
		return windows.QueryServiceStatusEx(s, windows.SC_STATUS_PROCESS_INFO, (*byte)(unsafe.Pointer(&status)),
			uint32(unsafe.Sizeof(status)), &needed)
	})
	return svc.Accepted(status.ControlsAccepted)&svc.AcceptPreShutdown != 0
}

// preshutdownInfo is a SERVICE_PRESHUTDOWN_INFO, in milliseconds.
type preshutdownInfo struct{ timeout uint32 }

// PreshutdownTimeout implements selftest.PreshutdownKeeper.
func (Machine) PreshutdownTimeout(t selftest.T, service string) time.Duration {
	t.Helper()
	var info preshutdownInfo
	withService(t, service, windows.SERVICE_QUERY_CONFIG, func(s windows.Handle) error {
		var needed uint32
		return windows.QueryServiceConfig2(s, windows.SERVICE_CONFIG_PRESHUTDOWN_INFO, (*byte)(unsafe.Pointer(&info)),
			uint32(unsafe.Sizeof(info)), &needed)
	})
	return time.Duration(info.timeout) * time.Millisecond
}

// SetPreshutdownTimeout implements selftest.PreshutdownKeeper.
func (Machine) SetPreshutdownTimeout(t selftest.T, service string, timeout time.Duration) {
	t.Helper()
	info := preshutdownInfo{uint32(timeout.Milliseconds())} //nolint:gosec // less than a minute
	withService(t, service, windows.SERVICE_CHANGE_CONFIG, func(s windows.Handle) error {
		return windows.ChangeServiceConfig2(s, windows.SERVICE_CONFIG_PRESHUTDOWN_INFO, (*byte)(unsafe.Pointer(&info)))
	})
}

// PreshutdownOrder implements selftest.PreshutdownKeeper.
func (Machine) PreshutdownOrder(t selftest.T) (order []string) {
	t.Helper()
	err := hklm.WithKey(keyControl, registry.QUERY_VALUE, func(k registry.Key) (err error) {
		order, _, err = k.GetStringsValue(valueOrder)
		return err
	})
	check(t, hklm.IgnoreNotExist(err))
	return order
}

// AddToPreshutdownOrder implements selftest.PreshutdownKeeper.
func (m Machine) AddToPreshutdownOrder(t selftest.T, services ...string) {
	t.Helper()
	order := append(m.PreshutdownOrder(t), services...)
	check(t, hklm.WithKey(keyControl, registry.SET_VALUE, func(k registry.Key) error { return k.SetStringsValue(valueOrder, order) }))
}

// controlLimit is how long a service may take to say that it has received a control.
const controlLimit = 10 * time.Second

// fileReceived returns the file that the receiver of a control writes. What is in it is a selftest.Receiver.
func fileReceived(control uint8) string {
	return filepath.Join(folderSeen, "control-"+strconv.Itoa(int(control)))
}

// SendControl implements selftest.ControlSender (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice,
// 128 to 255).
func (Machine) SendControl(t selftest.T, service string, control uint8) selftest.Receiver {
	t.Helper()
	withService(t, service, windows.SERVICE_USER_DEFINED_CONTROL, func(s windows.Handle) error {
		var status windows.SERVICE_STATUS
		return windows.ControlService(s, uint32(control), &status)
	})
	for end := time.Now().Add(controlLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(fileReceived(control))
		if err == nil && len(data) > 0 {
			return selftest.Receiver(data)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			check(t, err)
		}
	}
	return selftest.ReceiverNone
}

// received writes that this process has received a control of the service.
func received(control svc.Cmd) error {
	return os.WriteFile(fileReceived(uint8(control)), []byte(receiverRole()), 0o600) //nolint:gosec // 128 to 255
}

// receiverRole returns what this process is of a service of selftest.ProgramWrapped.
func receiverRole() selftest.Receiver {
	if os.Getenv(asWrapped) != "" {
		return selftest.ReceiverChild
	}
	return receiverWrapper
}

// receiverWrapper is the wrapper itself, or a service that has none.
const receiverWrapper selftest.Receiver = "wrapper"
