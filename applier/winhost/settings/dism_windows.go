package settings

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/applier"
)

// The DISM API (learn.microsoft.com/windows-hardware/manufacture/desktop/dism/dism-api-reference).
const (
	dismLogErrorsWarnings = 1                                             // DismLogLevel
	dismOnlineImage       = "DISM_{53BFAE52-B167-4E2F-A258-0A37B57FF845}" // DISM_ONLINE_IMAGE
	dismNoPackage         = 0                                             // DismPackageNone
	// Codes of success: the session must be opened again, the host must be restarted.
	dismReload  = 1
	dismRestart = 3010 // ERROR_SUCCESS_REBOOT_REQUIRED
)

// dism is the running Windows. Every Windows Server has the library. Without it, calls return applier.ErrNoSetting.
type dism struct{}

// dismFeature is a DismFeature. DismApi.h packs structures to one byte: this one has 12 bytes, and names are not
// aligned.
type dismFeature [12]byte

func (f *dismFeature) featureName() string {
	return windows.UTF16PtrToString(*(**uint16)(unsafe.Pointer(&f[0])))
}

func (f *dismFeature) featureState() featureState { return *(*featureState)(unsafe.Pointer(&f[8])) }

// dismSession is an open session with the running Windows.
type dismSession struct {
	library *windows.LazyDLL
	id      uint32
}

// callFunction calls a function of the library. The caller keeps the arguments alive.
func (s dismSession) callFunction(function string, args ...uintptr) error {
	result, _, _ := s.library.NewProc(function).Call(args...)
	if code := uint32(result); int32(code) < 0 || code > dismReload && code != dismRestart { //nolint:gosec // an HRESULT
		return fmt.Errorf("%s: %w", function, windows.Errno(code))
	}
	return nil
}

// withDISM opens a session for the time of use. The library must be used on the thread that initialized it.
func withDISM(use func(dismSession) error) (err error) {
	s := dismSession{library: windows.NewLazySystemDLL("dismapi.dll")}
	if s.library.Load() != nil {
		return applier.ErrNoSetting
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := s.callFunction("DismInitialize", dismLogErrorsWarnings, 0, 0); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.callFunction("DismShutdown")) }()
	image, err := windows.UTF16PtrFromString(dismOnlineImage)
	if err != nil {
		return err
	}
	if err := s.callFunction("DismOpenSession", uintptr(unsafe.Pointer(image)), 0, 0, uintptr(unsafe.Pointer(&s.id))); err != nil {
		return err
	}
	return errors.Join(use(s), s.callFunction("DismCloseSession", uintptr(s.id)))
}

func (dism) listFeatures() (map[string]featureState, error) {
	states := map[string]featureState{}
	err := withDISM(func(s dismSession) error {
		var list *dismFeature
		var count uint32
		err := s.callFunction("DismGetFeatures", uintptr(s.id), 0, dismNoPackage, uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&count)))
		if err != nil {
			return err
		}
		for _, f := range unsafe.Slice(list, count) {
			states[f.featureName()] = f.featureState()
		}
		return s.callFunction("DismDelete", uintptr(unsafe.Pointer(list)))
	})
	return states, err
}

// enableFeature takes the feature and those that it needs from the component store or from Windows Update
// (learn.microsoft.com/windows-hardware/manufacture/desktop/dism/dismenablefeature-function).
func (dism) enableFeature(name string) error {
	const limitAccess, enableAll = 0, 1
	return withFeature(name, func(s dismSession, name uintptr) error {
		return s.callFunction("DismEnableFeature", uintptr(s.id), name, 0, dismNoPackage, limitAccess, 0, 0, enableAll, 0, 0, 0)
	})
}

// disableFeature leaves the files of the feature on the disk
// (learn.microsoft.com/windows-hardware/manufacture/desktop/dism/dismdisablefeature-function).
func (dism) disableFeature(name string) error {
	const removePayload = 0
	return withFeature(name, func(s dismSession, name uintptr) error {
		return s.callFunction("DismDisableFeature", uintptr(s.id), name, 0, removePayload, 0, 0, 0)
	})
}

func withFeature(name string, use func(s dismSession, name uintptr) error) error {
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(text)
	return withDISM(func(s dismSession) error { return use(s, uintptr(unsafe.Pointer(text))) })
}
