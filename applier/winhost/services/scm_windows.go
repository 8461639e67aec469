package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier/plan"
	"wmco/applier/winhost/hklm"
	"wmco/bundle"
)

// hive is the part of the registry with the keys of services.
const hive = "SYSTEM"

// Where the service control manager keeps its services, and the values that no API returns
// (learn.microsoft.com/windows-hardware/drivers/install/hklm-system-currentcontrolset-services-registry-tree).
const (
	keyServices         = `SYSTEM\CurrentControlSet\Services\`
	valueDependencies   = "DependOnService"
	valueEnvironment    = "Environment"
	valueFailureActions = "FailureActions"
)

// Manager is the service control manager.
type Manager struct {
	Limits Limits
	// ForgetsDependencies is true if a change that does not name the dependencies of a service removes them. Windows
	// leaves them as they are (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-changeserviceconfigw). Wine
	// removes them.
	ForgetsDependencies bool
}

// IsRunning reports whether a service exists and runs.
func IsRunning(name string) (running bool, err error) {
	err = withManager(func(scm windows.Handle) error {
		return withService(scm, name, toQuery, func(s service) error {
			status, err := s.queryStatus()
			running = status.CurrentState == windows.SERVICE_RUNNING
			return err
		})
	})
	if noService(err) {
		return false, nil
	}
	return running, err
}

// ServiceProcess returns the process id of a service, 0 if it does not run or does not exist.
func (m Manager) ServiceProcess(ctx context.Context, name string) (process int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = withManager(func(scm windows.Handle) error {
		return withService(scm, name, toQuery, func(s service) error {
			status, err := s.queryStatus()
			process = int(status.ProcessId)
			return err
		})
	})
	if noService(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading service %s: %w", name, err)
	}
	return process, nil
}

// service is an open service.
type service struct {
	name   string
	handle windows.Handle
}

// withManager opens the service control manager for the time of use
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-openscmanagerw).
func withManager(use func(scm windows.Handle) error) error {
	scm, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT|windows.SC_MANAGER_CREATE_SERVICE)
	if err != nil {
		return fmt.Errorf("opening the service control manager: %w", err)
	}
	return errors.Join(use(scm), windows.CloseServiceHandle(scm))
}

// Access rights to a service. Some services of Windows, such as Defender's, do not grant the right to change them
// (learn.microsoft.com/windows/win32/services/service-security-and-access-rights).
const (
	toQuery  = windows.SERVICE_QUERY_STATUS
	toRead   = toQuery | windows.SERVICE_QUERY_CONFIG | windows.SERVICE_ENUMERATE_DEPENDENTS | windows.SERVICE_CHANGE_CONFIG
	toChange = windows.SERVICE_ALL_ACCESS
)

// withService opens a service for the time of use. A service that does not exist is an error, see noService.
func withService(scm windows.Handle, name string, rights uint32, use func(service) error) error {
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	handle, err := windows.OpenService(scm, text, rights)
	if err != nil {
		return err
	}
	return errors.Join(use(service{name, handle}), windows.CloseServiceHandle(handle))
}

func noService(err error) bool { return errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) }

// noLevel reports whether the service control manager does not know an information level. Wine 10 knows only two.
func noLevel(err error) bool { return errors.Is(err, windows.ERROR_INVALID_LEVEL) }

// queryStatus returns the status of the service
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryservicestatusex). A service whose process has ended is
// stopped, even if the service control manager has not noticed: in Wine, a service that ended while it was stopping
// keeps that state.
func (s service) queryStatus() (windows.SERVICE_STATUS_PROCESS, error) {
	var status windows.SERVICE_STATUS_PROCESS
	var needed uint32
	err := windows.QueryServiceStatusEx(s.handle, windows.SC_STATUS_PROCESS_INFO, (*byte)(unsafe.Pointer(&status)),
		uint32(unsafe.Sizeof(status)), &needed)
	if err == nil && (status.ProcessId != 0 && hasEnded(status.ProcessId) || status.ProcessId == 0 && status.CurrentState == windows.SERVICE_STOP_PENDING) {
		status.CurrentState, status.ProcessId = windows.SERVICE_STOPPED, 0
	}
	return status, err
}

// callWithGrowingBuffer calls with larger buffers until one is large enough.
func callWithGrowingBuffer(call func(buffer []byte, needed *uint32) error) ([]byte, error) {
	buffer := make([]byte, 1<<10)
	for {
		needed := uint32(len(buffer)) //nolint:gosec // 8 KiB at most, as documented
		err := call(buffer, &needed)
		if err == nil {
			return buffer, nil
		}
		if !errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER) && !errors.Is(err, windows.ERROR_MORE_DATA) || int(needed) <= len(buffer) {
			return nil, err
		}
		buffer = make([]byte, needed)
	}
}

// queryBasics returns the start type and the command line
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryserviceconfigw).
func (s service) queryBasics() (start uint32, commandLine string, err error) {
	buffer, err := callWithGrowingBuffer(func(b []byte, needed *uint32) error {
		return windows.QueryServiceConfig(s.handle, (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&b[0])), uint32(len(b)), needed) //nolint:gosec // small
	})
	if err != nil {
		return 0, "", err
	}
	c := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	return c.StartType, windows.UTF16PtrToString(c.BinaryPathName), nil
}

// queryLevel reads an information level of the configuration
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryserviceconfig2w).
func (s service) queryLevel(level uint32) ([]byte, error) {
	return callWithGrowingBuffer(func(b []byte, needed *uint32) error {
		return windows.QueryServiceConfig2(s.handle, level, &b[0], uint32(len(b)), needed) //nolint:gosec // small
	})
}

func (s service) queryDescription() (string, error) {
	buffer, err := s.queryLevel(windows.SERVICE_CONFIG_DESCRIPTION)
	if err != nil {
		return "", err
	}
	return windows.UTF16PtrToString((*windows.SERVICE_DESCRIPTION)(unsafe.Pointer(&buffer[0])).Description), nil
}

func (s service) queryRecovery() (bundle.Recovery, error) {
	buffer, err := s.queryLevel(windows.SERVICE_CONFIG_FAILURE_ACTIONS)
	if noLevel(err) {
		return s.recordedRecovery()
	}
	if err != nil {
		return bundle.Recovery{}, err
	}
	f := (*windows.SERVICE_FAILURE_ACTIONS)(unsafe.Pointer(&buffer[0]))
	var actions []failureAction
	for _, a := range unsafe.Slice(f.Actions, f.ActionsCount) {
		actions = append(actions, failureAction(a))
	}
	return recoveryOf(f.ResetPeriod, actions), nil
}

// recordedRecovery reads the recovery from the registry, for a service control manager that does not know its level.
func (s service) recordedRecovery() (bundle.Recovery, error) {
	var data []byte
	err := s.openRegistryKey(registry.QUERY_VALUE, func(k registry.Key) (err error) {
		data, _, err = k.GetBinaryValue(valueFailureActions)
		return err
	})
	if errors.Is(err, registry.ErrNotExist) {
		return bundle.Recovery{}, nil
	}
	if err != nil {
		return bundle.Recovery{}, err
	}
	return decodeFailureActions(data)
}

// openRegistryKey opens the service's key in the registry.
func (s service) openRegistryKey(access uint32, use func(registry.Key) error) error {
	return hklm.WithKey(keyServices+s.name, access, use)
}

// readRegistryList reads a list from the service's key. A list that does not exist is empty. The dependencies are read
// here because the service control manager of Wine does not return them.
func (s service) readRegistryList(value string) ([]string, error) {
	var list []string
	err := s.openRegistryKey(registry.QUERY_VALUE, func(k registry.Key) (err error) {
		list, _, err = k.GetStringsValue(value)
		return err
	})
	if errors.Is(err, registry.ErrNotExist) || len(list) == 0 {
		return nil, hklm.IgnoreNotExist(err)
	}
	return list, err
}

// isMarkedForDeletion reports whether the service is marked for deletion: Windows refuses even a change that changes
// nothing (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-changeserviceconfigw,
// ERROR_SERVICE_MARKED_FOR_DELETE).
func (m Manager) isMarkedForDeletion(s service) (bool, error) {
	const same = windows.SERVICE_NO_CHANGE
	dependencies, err := m.sameDependencies(s)
	if err != nil {
		return false, err
	}
	err = windows.ChangeServiceConfig(s.handle, same, same, same, nil, nil, nil, dependencies, nil, nil, nil)
	if errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
		return true, nil
	}
	return false, err
}

// sameDependencies returns the argument that leaves the dependencies as they are.
func (m Manager) sameDependencies(s service) (*uint16, error) {
	if !m.ForgetsDependencies {
		return nil, nil
	}
	list, err := s.readRegistryList(valueDependencies)
	return &multiString(list)[0], err
}

// runningDependents returns the services that run and depend on this one
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-enumdependentservicesw).
func (s service) runningDependents() ([]string, error) {
	var count uint32
	buffer, err := callWithGrowingBuffer(func(b []byte, needed *uint32) error {
		return windows.EnumDependentServices(s.handle, windows.SERVICE_ACTIVE, (*windows.ENUM_SERVICE_STATUS)(unsafe.Pointer(&b[0])), uint32(len(b)), needed, &count) //nolint:gosec // small
	})
	if err != nil || count == 0 {
		return nil, err
	}
	var names []string
	for _, d := range unsafe.Slice((*windows.ENUM_SERVICE_STATUS)(unsafe.Pointer(&buffer[0])), count) {
		names = append(names, windows.UTF16PtrToString(d.ServiceName))
	}
	slices.Sort(names)
	return names, nil
}

// readConfig reads the configuration.
func (s service) readConfig() (plan.ServiceConfig, error) {
	c := plan.ServiceConfig{Name: s.name}
	start, commandLine, err := s.queryBasics()
	if err != nil {
		return c, err
	}
	c.Start, c.CommandLine = startName(start), commandLine
	if c.Description, err = s.queryDescription(); err != nil {
		return c, err
	}
	if c.Dependencies, err = s.readRegistryList(valueDependencies); err != nil {
		return c, err
	}
	environment, err := s.readRegistryList(valueEnvironment)
	if err != nil {
		return c, err
	}
	c.Environment = sortedEnvironment(environment)
	c.Recovery, err = s.queryRecovery()
	return c, err
}
