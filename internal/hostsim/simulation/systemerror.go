package simulation

import (
	"fmt"
	"io/fs"
)

// SystemError is a Windows system error code (learn.microsoft.com/windows/win32/debug/system-error-codes).
type SystemError int

// The error codes of services and files.
const (
	ErrFileNotFound            SystemError = 2
	ErrAccessDenied            SystemError = 5
	ErrSharingViolation        SystemError = 32
	ErrInvalidParameter        SystemError = 87
	ErrDiskFull                SystemError = 112
	ErrDirNotEmpty             SystemError = 145
	ErrAlreadyExists           SystemError = 183
	ErrDependentServices       SystemError = 1051
	ErrServiceRequestTimeout   SystemError = 1053
	ErrServiceAlreadyRunning   SystemError = 1056
	ErrServiceDisabled         SystemError = 1058
	ErrCircularDependency      SystemError = 1059
	ErrServiceDoesNotExist     SystemError = 1060
	ErrProcessAborted          SystemError = 1067
	ErrServiceDependencyFail   SystemError = 1068
	ErrServiceMarkedForDelete  SystemError = 1072
	ErrServiceDependencyAbsent SystemError = 1075
	ErrIODevice                SystemError = 1117
	ErrNotFound                SystemError = 1168
)

var systemErrors = map[SystemError]string{
	ErrFileNotFound:            "file not found",
	ErrAccessDenied:            "access denied",
	ErrSharingViolation:        "the file is in use by another process",
	ErrInvalidParameter:        "invalid parameter",
	ErrDiskFull:                "not enough space on the disk",
	ErrDirNotEmpty:             "the directory is not empty",
	ErrAlreadyExists:           "the file already exists",
	ErrDependentServices:       "running services depend on the service",
	ErrServiceRequestTimeout:   "the service did not respond in time",
	ErrServiceAlreadyRunning:   "the service is already running or starting",
	ErrServiceDisabled:         "the service is disabled",
	ErrCircularDependency:      "circular service dependency",
	ErrServiceDoesNotExist:     "the service does not exist",
	ErrProcessAborted:          "the process terminated unexpectedly",
	ErrServiceDependencyFail:   "a dependency failed to start",
	ErrServiceMarkedForDelete:  "the service is marked for deletion",
	ErrServiceDependencyAbsent: "a dependency does not exist",
	ErrIODevice:                "I/O device error",
	ErrNotFound:                "element not found",
}

func (e SystemError) Error() string {
	return fmt.Sprintf("%s (Windows error %d)", systemErrors[e], int(e))
}

// Is reports whether target is fs.ErrNotExist and the file was not found, as errors of package syscall do on Windows.
func (e SystemError) Is(target error) bool {
	return target == fs.ErrNotExist && e == ErrFileNotFound
}
