package services

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier/plan"
	"wmco/applier/winhost/hklm"
	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// PutService waits if a deleted service still has the name.
func (m Manager) PutService(ctx context.Context, config plan.ServiceConfig) error {
	err := withManager(func(scm windows.Handle) error {
		return explainHeld(wait.PollUntil(ctx, m.Limits.Delete, m.Limits.Poll, func() (bool, error) {
			err := putService(scm, config)
			if errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
				return false, nil
			}
			return err == nil, err
		}))
	})
	if err == nil {
		err = hklm.FlushHive(hive)
	}
	return serviceError(config.Name, "configuring", err)
}

// localSystem is the account of the services of a bundle
// (learn.microsoft.com/windows/win32/services/localsystem-account).
const localSystem = "LocalSystem"

// program is the part of a configuration that one call sets.
type program struct {
	start                       uint32
	name, commandLine, account  *uint16
	dependencies, emptyPassword *uint16
}

func programFor(c plan.ServiceConfig) (program, error) {
	start, err := startNumber(c.Start)
	if err != nil {
		return program{}, err
	}
	p := program{start: start, dependencies: &multiString(c.Dependencies)[0]}
	for text, into := range map[string]**uint16{c.Name: &p.name, c.CommandLine: &p.commandLine, localSystem: &p.account, "": &p.emptyPassword} {
		if *into, err = windows.UTF16PtrFromString(text); err != nil {
			return program{}, fmt.Errorf("%q: %w", text, err)
		}
	}
	return p, nil
}

// putService creates or changes a service. Windows has one call for the program and its dependencies and others for the
// rest. If it is interrupted between them, the configuration differs and the next run sets it.
func putService(scm windows.Handle, c plan.ServiceConfig) error {
	p, err := programFor(c)
	if err != nil {
		return err
	}
	err = withService(scm, c.Name, toChange, func(s service) error { return p.changeService(s) })
	if noService(err) {
		err = p.createService(scm)
	}
	if err != nil {
		return err
	}
	return withService(scm, c.Name, toChange, func(s service) error { return s.configureService(c) })
}

// createService creates the service (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-createservicew).
func (p program) createService(scm windows.Handle) error {
	handle, err := windows.CreateService(scm, p.name, p.name, windows.SERVICE_ALL_ACCESS, windows.SERVICE_WIN32_OWN_PROCESS,
		p.start, windows.SERVICE_ERROR_NORMAL, p.commandLine, nil, nil, p.dependencies, nil, nil)
	if err != nil {
		return err
	}
	return windows.CloseServiceHandle(handle)
}

// changeService changes it (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-changeserviceconfigw).
func (p program) changeService(s service) error {
	return windows.ChangeServiceConfig(s.handle, windows.SERVICE_WIN32_OWN_PROCESS, p.start, windows.SERVICE_ERROR_NORMAL,
		p.commandLine, nil, nil, p.dependencies, p.account, p.emptyPassword, p.name)
}

// configureService sets what neither createService nor changeService does
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-changeserviceconfig2w).
func (s service) configureService(c plan.ServiceConfig) error {
	text, err := windows.UTF16PtrFromString(c.Description)
	if err != nil {
		return err
	}
	description := windows.SERVICE_DESCRIPTION{Description: text}
	if err := s.setLevel(windows.SERVICE_CONFIG_DESCRIPTION, unsafe.Pointer(&description)); err != nil {
		return fmt.Errorf("setting the description: %w", err)
	}
	if err := s.setEnvironment(c.Environment); err != nil {
		return fmt.Errorf("setting the environment: %w", err)
	}
	if err := s.setRecovery(c.Recovery); err != nil {
		return fmt.Errorf("setting the recovery: %w", err)
	}
	// The recovery also begins if the service ends with an error, not only if it crashes. Wine does not know the level.
	flag := windows.SERVICE_FAILURE_ACTIONS_FLAG{FailureActionsOnNonCrashFailures: 1}
	if err := s.setLevel(windows.SERVICE_CONFIG_FAILURE_ACTIONS_FLAG, unsafe.Pointer(&flag)); err != nil && !noLevel(err) {
		return fmt.Errorf("setting when a recovery begins: %w", err)
	}
	return nil
}

func (s service) setLevel(level uint32, data unsafe.Pointer) error {
	return windows.ChangeServiceConfig2(s.handle, level, (*byte)(data))
}

// setRecovery sets the failure actions. To remove them takes an empty list, as no list changes nothing. If the service
// control manager does not know this level, setRecovery writes them to the registry as Windows does.
func (s service) setRecovery(r bundle.Recovery) error {
	actions := []windows.SC_ACTION{{}}
	for i, a := range failureActions(r) {
		actions = append(actions[:i], windows.SC_ACTION(a))
	}
	count := len(r.RestartAfterSeconds)
	nothing := uint16(0) // neither a message nor a command
	f := windows.SERVICE_FAILURE_ACTIONS{
		ResetPeriod: uint32(r.ResetSeconds), ActionsCount: uint32(count), Actions: &actions[0], //nolint:gosec // a few, of a manifest
		RebootMsg: &nothing, Command: &nothing,
	}
	if err := s.setLevel(windows.SERVICE_CONFIG_FAILURE_ACTIONS, unsafe.Pointer(&f)); err != nil && !noLevel(err) {
		return err
	}
	if _, err := s.queryLevel(windows.SERVICE_CONFIG_FAILURE_ACTIONS); !noLevel(err) {
		return err
	}
	return s.openRegistryKey(registry.SET_VALUE, func(k registry.Key) error {
		return k.SetBinaryValue(valueFailureActions, encodeFailureActions(r))
	})
}

// setEnvironment sets the variables of this service only: the service control manager adds this registry value to its
// own environment when it starts the service. No page of the API documents the value. The book Windows Internals does,
// and so do the settings of the .NET profiler
// (learn.microsoft.com/dotnet/framework/unmanaged-api/profiling/setting-up-a-profiling-environment). The variables may
// hold secrets and every user may read the keys of services, so this key is closed to users.
func (s service) setEnvironment(variables []string) error {
	const rights = registry.SET_VALUE | registry.QUERY_VALUE | windows.READ_CONTROL | windows.WRITE_DAC
	return s.openRegistryKey(rights, func(k registry.Key) error {
		if len(variables) == 0 {
			return hklm.IgnoreNotExist(k.DeleteValue(valueEnvironment))
		}
		if err := closeKey(k); err != nil {
			return fmt.Errorf("closing the key to users: %w", err)
		}
		return k.SetStringsValue(valueEnvironment, variables)
	})
}

// closedKey gives SYSTEM and Administrators full access to a key and those below it, and no others. The service
// control manager runs as SYSTEM.
const closedKey = "D:P(A;CI;KA;;;SY)(A;CI;KA;;;BA)"

func closeKey(k registry.Key) error {
	sd, err := windows.SecurityDescriptorFromString(closedKey)
	if err != nil {
		return err
	}
	dacl, _, err := sd.DACL()
	if err != nil {
		return err
	}
	const what = windows.DACL_SECURITY_INFORMATION | windows.PROTECTED_DACL_SECURITY_INFORMATION
	return windows.SetSecurityInfo(windows.Handle(k), windows.SE_REGISTRY_KEY, what, nil, nil, dacl, nil)
}
